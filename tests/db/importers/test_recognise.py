"""Whose column is which of ours: by name and content, and never by guessing."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest

from yarus.db.importers.cells import Style, history_in, mark_in, style_of, text_in
from yarus.db.importers.recognise import propose
from yarus.db.importers.values import BadValue

Rows = list[dict[str, Any]]


def rows(*names: str, of: Sequence[Sequence[Any]]) -> Rows:
    return [dict(zip(names, row, strict=True)) for row in of]


URL = "https://wiki.example/pages/viewpage.action?pageId=7"
RUSSIAN = rows(
    "№", "Дата", "Пользователь", "Вопрос", "Ответ", "Ссылка", "Оценка", "Канал",
    of=[
        (1, "18.08.2025 06:32", "u1", "Где справка?", "В деканате.", URL, "5", "vk"),
        (2, "18.08.2025 7:15", "u2", "Когда стипендия?", "", "", "", "vk"),
        (3, "19.08.2025", "u1", "Кто ректор?", "Иванов.", URL, "1", "tg"),
    ],
)  # fmt: skip
ENGLISH = rows(
    "messageId", "userQuery", "botResponse", "pageUrl", "rating", "createdAt",
    of=[("a", "Where is it?", "Here.", URL, 5, "2026-01-01T10:00:00Z"), ("b", "When?", "Now.", URL, 2, "2026-01-02")],
)  # fmt: skip


@pytest.mark.parametrize(
    ("table", "kind", "mapping", "unused"),
    [
        (RUSSIAN, "questions", {
            "id": "№", "question": "Вопрос", "answer": "Ответ", "confluence_url": "Ссылка", "score": "Оценка",
            "user_id": "Пользователь", "created_at": "Дата",
        }, ["Канал"]),
        (ENGLISH, "questions", {
            "id": "messageId", "question": "userQuery", "answer": "botResponse", "confluence_url": "pageUrl",
            "score": "rating", "created_at": "createdAt",
        }, []),
        (rows("url", "title", "content", of=[(URL, "A", "text " * 90)]), "chunks",
         {"confluence_url": "url", "text": "content", "page_title": "title"}, []),
        (rows("Вопрос", "куда", "когда", of=[("Где?", URL, "2026-01-01"), ("Как?", URL, "2026-01-02")]), "questions",
         {"question": "Вопрос", "confluence_url": "куда", "created_at": "когда"}, []),
        (rows("a", "b", of=[("x", "y")]), None, {}, ["a", "b"]),
    ],
    ids=["Russian", "English in camel case", "pages", "by content", "nothing that is known"],
)  # fmt: skip
def test_columns_are_told(table: Rows, kind: str | None, mapping: dict[str, str], unused: list[str]) -> None:
    found = propose(list(table[0]), table)
    assert (found.kind, found.mapping, found.doubtful, found.unused) == (kind, mapping, {}, unused)


@pytest.mark.parametrize(
    ("scores", "told"),
    [
        ([5, 1, 3], True),
        (["5", "", "1"], True),
        ([0, 1, 1], False),  # where 1 is good: it would be read as the worst
        ([-1, 1, 1], False),
        ([10, 7, 5], False),
        ([1, 2, 1], False),  # perhaps of two
    ],
)
def test_a_score_of_another_scale_is_not_taken_for_ours(scores: list[Any], told: bool) -> None:
    table = rows("question", "оценка", of=[(f"{n}?", score) for n, score in enumerate(scores)])
    found = propose(["question", "оценка"], table)
    assert ("score" in found.mapping, found.doubtful) == (told, {} if told else {"score": ["оценка"]})


def mark_or_none(value: Any, style: Style) -> int | None:
    try:
        return mark_in(value, style)
    except BadValue:
        return None


@pytest.mark.parametrize(
    ("name", "votes", "told"),
    [
        ("feedback", [0, 1, 1], [1, 5, 5]),
        ("thumbsUp", [True, False], [5, 1]),
        ("user-rating", ["true", "FALSE", "true"], [5, 1, 5]),
        ("vote", ["+1", "-1"], [5, 1]),
        ("Оценка пользователя", ["1.0", "0.0"], [5, 1]),
        ("rating", ["👍🏽", "👎", "👍"], [5, 1, 5]),
        ("score", ["like", "dislike"], [5, 1]),
        ("feedback", ["positive", "negative"], [5, 1]),
        ("stars", ["thumbs_up", "Thumbs-Down"], [5, 1]),
        ("score", [True, False], None),  # perhaps a judge's
        ("vote", [1, 1, 1], [5, 5, 5]),
        ("user_rating", [1, 1, 1], None),  # of five stars, or of one
        ("upvotes", [0, 0], [1, 1]),
        ("vote", [Decimal("1.0"), Decimal(0)], [5, 1]),
        ("reaction", ["👍", "neutral", "👎", "❤️", "👍"], [5, None, 1, None, 5]),
        ("vote", [-1, 0, 1], [1, None, 5]),  # where 0 is no vote
        ("Полезно?", ["Да", "Нет"], [5, 1]),
        ("judge_vote", [1, 0], None),
        ("disliked", ["true", "false"], None),
        ("score", [1, 1, 1], [1, 1, 1]),  # as our own tables have it; said
        ("score", ["1.0", "0.0", "1.0"], None),
        ("score", [1, -1, 1], None),
        ("vote", [0, 1, 2], None),
        ("feedback", ["thank you", "like", "it was wrong"], None),
    ],
)
def test_votes_of_users_are_scores(name: str, votes: list[Any], told: list[int | None] | None) -> None:
    table = rows("question", name, of=[(f"{n}?", vote) for n, vote in enumerate(votes)])
    mapping = propose(["question", name], table).mapping
    assert mapping.get("score") == (None if told is None else name)
    if told is not None:
        assert [mark_or_none(vote, style_of("score", votes, name)) for vote in votes] == told


@pytest.mark.parametrize(
    ("name", "votes", "marks"),
    [
        ("score", [1, 1], [1, 1]),
        ("vote", [1, 1], [5, 5]),
        ("score", [1] * 300 + [0], [5] * 300 + [1]),
        ("score", [1] * 300 + [4], [1] * 300 + [4]),
        ("score", [0, 1, -1], [None, 5, 1]),
        ("disliked", [True, "false", "👎"], [1, 5, 1]),
        ("upvotes", [1, 0, 3], [None, None, None]),  # counts
    ],
)
def test_score_scale_is_told_by_the_whole_column(name: str, votes: list[Any], marks: list[int | None]) -> None:
    style = style_of("score", iter(votes), name)
    assert [mark_or_none(vote, style) for vote in votes] == marks


Q, A = ["Where is the gym?", "When is it open?"], ["On floor one.", "From nine."]


@pytest.mark.parametrize(
    ("columns", "mapping", "doubtful"),
    [
        ({"score": [5, 4], "user_rating": [5, 1]}, {"score": "user_rating"}, {}),
        ({"score": [5, 4], "feedback": ["It helped me a lot.", "Wrong."]}, {"score": "score"}, {}),
        ({"score": [5, 4], "user_rating": [9, 7]}, {}, {"score": ["user_rating"]}),
        ({"thumbs_up": [1, 0], "thumbs_down": [0, 0]}, {}, {"score": ["thumbs_up", "thumbs_down"]}),
        ({"query": ["gym", "opening hours of the gym"]}, {}, {"question": ["question", "query"]}),
        ({"query": Q}, {"question": "question"}, {}),
        ({"prompt": ["Answer briefly: where?", "Answer briefly: when?"]}, {"question": "question"}, {}),
        ({"score": [5, 4], "faithfulness": [0.5, 1.0]}, {}, {"score": ["score"]}),
    ],
)
def test_columns_that_could_be_one_of_ours(
    columns: dict[str, list[Any]], mapping: dict[str, str], doubtful: dict[str, list[str]]
) -> None:
    columns = {"question": Q, "answer": A, "user_id": ["u1", "u2"], **columns}
    found = propose(list(columns), rows(*columns, of=list(zip(*columns.values(), strict=True))))
    assert {ours: found.mapping.get(ours) for ours in mapping} == mapping
    assert not doubtful.keys() & found.mapping.keys()
    assert found.doubtful == doubtful


def test_score_beside_its_explanation_is_of_a_judge() -> None:
    table = rows("question", "feedback", "feedback_score", of=[("a?", "The answer is right.", 1)])
    assert propose(list(table[0]), table).doubtful == {"score": ["feedback_score"]}


def test_other_scores_beside_those_of_users_are_named() -> None:
    found = propose(["question", "score", "thumbs"], rows("question", "score", "thumbs", of=[("a?", 5, "👍")]))
    assert found.mapping["score"] == "thumbs"
    assert any("--map score=score" in note for note in found.notes)


@pytest.mark.parametrize("name", ["upvotes", "reaction", "disliked", "Полезно?"])
def test_votes_are_a_sign_of_a_log(name: str) -> None:
    found = propose(["question", "answer", name], rows("question", "answer", name, of=[(Q[0], A[0], "Да")]))
    assert found.mapping["answer"] == "answer"


@pytest.mark.parametrize(
    "row",
    [
        {"messages": [{"role": "user", "content": Q[0]}, {"role": "assistant", "content": A[0]}], "rating": 5},
        {"user_input": Q[0], "response": A[0], "retrieved_contexts": ["x"], "faithfulness": 1, "user_feedback": 1},
        {"input": Q[0], "actual_output": A[0], "thumbs_up": True},
    ],
    ids=["messages", "ragas", "DeepEval"],
)
def test_columns_beside_a_shape_are_mapped(row: dict[str, Any]) -> None:
    row |= {"expected_answer": "One.", "created_at": "2026-03-05", "cost_usd": 0.1, "error": "none", "tokens_in": 5}
    found = propose(list(row), [row])
    assert found.shape is not None
    beside = {"ground_truth_answer", "created_at", "cost_usd", "error", "tokens_in", "score"}
    assert beside <= found.mapping.keys()
    assert "faithfulness" not in found.mapping.values()


def test_q_and_a_are_question_and_reference() -> None:
    found = propose(["q", "a"], rows("q", "a", of=[(Q[0], A[0])]))
    assert found.mapping == {"question": "q", "ground_truth_answer": "a"}
    assert (
        "A" not in propose(["question", "A", "B"], rows("question", "A", "B", of=[(Q[0], "1", "2")])).mapping.values()
    )


def test_what_is_not_a_vote_is_left_out() -> None:
    with pytest.raises(BadValue, match="not a vote"):
        mark_in("perhaps", style_of("score", ["👍"] * 9 + ["perhaps"], "rating"))


def test_a_number_is_a_time_only_by_its_name() -> None:
    table = rows("question", "timestamp", of=[("Где?", 1767225600), ("Как?", 1767225700)])
    assert propose(list(table[0]), table).mapping["created_at"] == "timestamp"
    table = rows("question", "chat", of=[("Где?", 1767225600), ("Как?", 1767225700)])
    assert "created_at" not in propose(list(table[0]), table).mapping


def test_messages_before_the_question_are_its_history() -> None:
    talk = [
        {"content": "Где справка?", "type": "human"},
        {"content": "В деканате.", "type": "ai"},
        {"content": "А когда?", "type": "human"},
        {"content": "С 9 до 12.", "type": "ai"},
    ]
    table = rows("user_input", "reference", of=[(talk, "С 9."), ([talk[0]], "Там.")])
    assert propose(list(table[0]), table).mapping["history"] == "user_input"
    said = [{"role": "user", "content": "Где справка?"}, {"role": "assistant", "content": "В деканате."}]
    assert history_in(talk, with_question=True) == said
    assert history_in(said, with_question=False) == said
    assert history_in([talk[0]], with_question=True) is None
    assert text_in("question", talk) == ("А когда?", 1)
    assert text_in("answer", talk) == ("С 9 до 12.", 1)
    assert text_in("answer", talk[:3]) == ("", 0)  # not the answer to an earlier question
    assert "history" not in propose(["user_input"], rows("user_input", of=[([talk[0]],)])).mapping


def test_of_several_that_could_be_it_none_is_taken() -> None:
    table = rows("вопрос", "ответ_системы", "ответ_бота", of=[("Где?", "тут", "там")])
    found = propose(list(table[0]), table)
    assert "answer" not in found.mapping
    assert found.doubtful == {"answer": ["ответ_бота", "ответ_системы"]}
    links = rows("вопрос", "a", "b", of=[("Где?", URL, URL)])
    assert propose(list(links[0]), links).doubtful == {"confluence_url": ["a", "b"]}


def test_ids_that_come_twice_are_none() -> None:
    table = rows("id", "question", of=[(7, "Где?"), (7, "Как?")])
    assert propose(["id", "question"], table).doubtful == {"id": ["id"]}
