"""Test the detection of columns by name and content, without guessing."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest

from yarus.db.importers.cells import CellStyle, detect_style, extract_text, parse_history, parse_mark
from yarus.db.importers.column_parsers import BadValue
from yarus.db.importers.recognise import detect_columns

Rows = list[dict[str, Any]]


def make_rows(*names: str, values: Sequence[Sequence[Any]]) -> Rows:
    return [dict(zip(names, row, strict=True)) for row in values]


URL = "https://wiki.example/pages/viewpage.action?pageId=7"
RUSSIAN = make_rows(
    "№", "Дата", "Пользователь", "Вопрос", "Ответ", "Ссылка", "Оценка", "Канал",
    values=[
        (1, "18.08.2025 06:32", "u1", "Где справка?", "В деканате.", URL, "5", "vk"),
        (2, "18.08.2025 7:15", "u2", "Когда стипендия?", "", "", "", "vk"),
        (3, "19.08.2025", "u1", "Кто ректор?", "Иванов.", URL, "1", "tg"),
    ],
)  # fmt: skip
ENGLISH = make_rows(
    "messageId", "userQuery", "botResponse", "pageUrl", "rating", "createdAt",
    values=[
        ("a", "Where is it?", "Here.", URL, 5, "2026-01-01T10:00:00Z"), ("b", "When?", "Now.", URL, 2, "2026-01-02"),
    ],
)  # fmt: skip


@pytest.mark.parametrize(
    ("sample_rows", "kind", "mapping", "unused"),
    [
        (RUSSIAN, "questions", {
            "id": "№", "question": "Вопрос", "answer": "Ответ", "confluence_url": "Ссылка", "score": "Оценка",
            "user_id": "Пользователь", "created_at": "Дата",
        }, ["Канал"]),
        (ENGLISH, "questions", {
            "id": "messageId", "question": "userQuery", "answer": "botResponse", "confluence_url": "pageUrl",
            "score": "rating", "created_at": "createdAt",
        }, []),
        (make_rows("url", "title", "content", values=[(URL, "A", "text " * 90)]), "chunks",
         {"confluence_url": "url", "text": "content", "page_title": "title"}, []),
        (make_rows("Вопрос", "куда", "когда", values=[("Где?", URL, "2026-01-01"), ("Как?", URL, "2026-01-02")]),
         "questions", {"question": "Вопрос", "confluence_url": "куда", "created_at": "когда"}, []),
        (make_rows("a", "b", values=[("x", "y")]), None, {}, ["a", "b"]),
    ],
    ids=["Russian", "English in camel case", "pages", "by content", "nothing that is known"],
)  # fmt: skip
def test_detect_columns_reads_names_and_values(
    sample_rows: Rows, kind: str | None, mapping: dict[str, str], unused: list[str]
) -> None:
    proposal = detect_columns(list(sample_rows[0]), sample_rows)
    assert (proposal.kind, proposal.mapping, proposal.doubtful, proposal.unused) == (kind, mapping, {}, unused)


@pytest.mark.parametrize(
    ("scores", "is_taken"),
    [
        ([5, 1, 3], True),
        (["5", "", "1"], True),
        ([0, 1, 1], False),  # if 1 is good, it would be read as the worst
        ([-1, 1, 1], False),
        ([10, 7, 5], False),
        ([1, 2, 1], False),  # perhaps on a scale of two
    ],
)
def test_score_on_another_scale_is_not_detected(scores: list[Any], is_taken: bool) -> None:
    sample_rows = make_rows("question", "оценка", values=[(f"{n}?", score) for n, score in enumerate(scores)])
    proposal = detect_columns(["question", "оценка"], sample_rows)
    assert ("score" in proposal.mapping, proposal.doubtful) == (is_taken, {} if is_taken else {"score": ["оценка"]})


def mark_or_none(value: Any, style: CellStyle) -> int | None:
    try:
        return parse_mark(value, style)
    except BadValue:
        return None


@pytest.mark.parametrize(
    ("name", "votes", "marks"),
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
        ("user_rating", [1, 1, 1], None),  # on a scale of five stars, or of one
        ("upvotes", [0, 0], [1, 1]),
        ("vote", [Decimal("1.0"), Decimal(0)], [5, 1]),
        ("reaction", ["👍", "neutral", "👎", "❤️", "👍"], [5, None, 1, None, 5]),
        ("vote", [-1, 0, 1], [1, None, 5]),  # 0 is not a vote
        ("Полезно?", ["Да", "Нет"], [5, 1]),
        ("judge_vote", [1, 0], None),
        ("disliked", ["true", "false"], None),
        ("score", [1, 1, 1], [1, 1, 1]),  # as in our own tables; reported
        ("score", ["1.0", "0.0", "1.0"], None),
        ("score", [1, -1, 1], None),
        ("vote", [0, 1, 2], None),
        ("feedback", ["thank you", "like", "it was wrong"], None),
    ],
)
def test_votes_of_users_are_scores(name: str, votes: list[Any], marks: list[int | None] | None) -> None:
    sample_rows = make_rows("question", name, values=[(f"{n}?", vote) for n, vote in enumerate(votes)])
    mapping = detect_columns(["question", name], sample_rows).mapping
    assert mapping.get("score") == (None if marks is None else name)
    if marks is not None:
        assert [mark_or_none(vote, detect_style("score", votes, name)) for vote in votes] == marks


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
def test_score_scale_follows_from_the_whole_column(name: str, votes: list[Any], marks: list[int | None]) -> None:
    style = detect_style("score", iter(votes), name)
    assert [mark_or_none(vote, style) for vote in votes] == marks


QUESTIONS, ANSWERS = ["Where is the gym?", "When is it open?"], ["On floor one.", "From nine."]


@pytest.mark.parametrize(
    ("columns", "mapping", "doubtful"),
    [
        ({"score": [5, 4], "user_rating": [5, 1]}, {"score": "user_rating"}, {}),
        ({"score": [5, 4], "feedback": ["It helped me a lot.", "Wrong."]}, {"score": "score"}, {}),
        ({"score": [5, 4], "user_rating": [9, 7]}, {}, {"score": ["user_rating"]}),
        ({"thumbs_up": [1, 0], "thumbs_down": [0, 0]}, {}, {"score": ["thumbs_up", "thumbs_down"]}),
        ({"query": ["gym", "opening hours of the gym"]}, {}, {"question": ["question", "query"]}),
        ({"query": QUESTIONS}, {"question": "question"}, {}),
        ({"prompt": ["Answer briefly: where?", "Answer briefly: when?"]}, {"question": "question"}, {}),
        ({"score": [5, 4], "faithfulness": [0.5, 1.0]}, {}, {"score": ["score"]}),
    ],
)
def test_ambiguous_columns_are_resolved_or_reported(
    columns: dict[str, list[Any]], mapping: dict[str, str], doubtful: dict[str, list[str]]
) -> None:
    columns = {"question": QUESTIONS, "answer": ANSWERS, "user_id": ["u1", "u2"], **columns}
    proposal = detect_columns(list(columns), make_rows(*columns, values=list(zip(*columns.values(), strict=True))))
    assert {target: proposal.mapping.get(target) for target in mapping} == mapping
    assert not doubtful.keys() & proposal.mapping.keys()
    assert proposal.doubtful == doubtful


def test_score_beside_its_explanation_is_a_judges() -> None:
    sample_rows = make_rows("question", "feedback", "feedback_score", values=[("a?", "The answer is right.", 1)])
    assert detect_columns(list(sample_rows[0]), sample_rows).doubtful == {"score": ["feedback_score"]}


def test_scores_beside_user_votes_are_reported() -> None:
    proposal = detect_columns(
        ["question", "score", "thumbs"], make_rows("question", "score", "thumbs", values=[("a?", 5, "👍")])
    )
    assert proposal.mapping["score"] == "thumbs"
    assert any("--map score=score" in note for note in proposal.notes)


@pytest.mark.parametrize("name", ["upvotes", "reaction", "disliked", "Полезно?"])
def test_votes_indicate_a_log(name: str) -> None:
    proposal = detect_columns(
        ["question", "answer", name], make_rows("question", "answer", name, values=[(QUESTIONS[0], ANSWERS[0], "Да")])
    )
    assert proposal.mapping["answer"] == "answer"


@pytest.mark.parametrize(
    "row",
    [
        {
            "messages": [{"role": "user", "content": QUESTIONS[0]}, {"role": "assistant", "content": ANSWERS[0]}],
            "rating": 5,
        },
        {
            "user_input": QUESTIONS[0],
            "response": ANSWERS[0],
            "retrieved_contexts": ["x"],
            "faithfulness": 1,
            "user_feedback": 1,
        },
        {"input": QUESTIONS[0], "actual_output": ANSWERS[0], "thumbs_up": True},
    ],
    ids=["messages", "ragas", "DeepEval"],
)
def test_columns_beside_a_shape_are_mapped(row: dict[str, Any]) -> None:
    row |= {"expected_answer": "One.", "created_at": "2026-03-05", "cost_usd": 0.1, "error": "none", "tokens_in": 5}
    proposal = detect_columns(list(row), [row])
    assert proposal.shape is not None
    other_columns = {"ground_truth_answer", "created_at", "cost_usd", "error", "tokens_in", "score"}
    assert other_columns <= proposal.mapping.keys()
    assert "faithfulness" not in proposal.mapping.values()


def test_q_and_a_are_question_and_reference() -> None:
    proposal = detect_columns(["q", "a"], make_rows("q", "a", values=[(QUESTIONS[0], ANSWERS[0])]))
    assert proposal.mapping == {"question": "q", "ground_truth_answer": "a"}
    assert (
        "A"
        not in detect_columns(
            ["question", "A", "B"], make_rows("question", "A", "B", values=[(QUESTIONS[0], "1", "2")])
        ).mapping.values()
    )


def test_parse_mark_rejects_value_that_is_not_a_vote() -> None:
    with pytest.raises(BadValue, match="not a vote"):
        parse_mark("perhaps", detect_style("score", ["👍"] * 9 + ["perhaps"], "rating"))


def test_number_is_detected_as_time_only_by_name() -> None:
    sample_rows = make_rows("question", "timestamp", values=[("Где?", 1767225600), ("Как?", 1767225700)])
    assert detect_columns(list(sample_rows[0]), sample_rows).mapping["created_at"] == "timestamp"
    sample_rows = make_rows("question", "chat", values=[("Где?", 1767225600), ("Как?", 1767225700)])
    assert "created_at" not in detect_columns(list(sample_rows[0]), sample_rows).mapping


def test_earlier_messages_become_history() -> None:
    chat = [
        {"content": "Где справка?", "type": "human"},
        {"content": "В деканате.", "type": "ai"},
        {"content": "А когда?", "type": "human"},
        {"content": "С 9 до 12.", "type": "ai"},
    ]
    sample_rows = make_rows("user_input", "reference", values=[(chat, "С 9."), ([chat[0]], "Там.")])
    assert detect_columns(list(sample_rows[0]), sample_rows).mapping["history"] == "user_input"
    history = [{"role": "user", "content": "Где справка?"}, {"role": "assistant", "content": "В деканате."}]
    assert parse_history(chat, with_question=True) == history
    assert parse_history(history, with_question=False) == history
    assert parse_history([chat[0]], with_question=True) is None
    assert extract_text("question", chat) == ("А когда?", 1)
    assert extract_text("answer", chat) == ("С 9 до 12.", 1)
    assert extract_text("answer", chat[:3]) == ("", 0)  # not the answer to an earlier question
    assert "history" not in detect_columns(["user_input"], make_rows("user_input", values=[([chat[0]],)])).mapping


def test_no_column_is_taken_if_several_fit() -> None:
    sample_rows = make_rows("вопрос", "ответ_системы", "ответ_бота", values=[("Где?", "тут", "там")])
    proposal = detect_columns(list(sample_rows[0]), sample_rows)
    assert "answer" not in proposal.mapping
    assert proposal.doubtful == {"answer": ["ответ_бота", "ответ_системы"]}
    link_rows = make_rows("вопрос", "a", "b", values=[("Где?", URL, URL)])
    assert detect_columns(list(link_rows[0]), link_rows).doubtful == {"confluence_url": ["a", "b"]}


def test_repeated_ids_are_not_detected() -> None:
    sample_rows = make_rows("id", "question", values=[(7, "Где?"), (7, "Как?")])
    assert detect_columns(["id", "question"], sample_rows).doubtful == {"id": ["id"]}
