"""Test votes and conversations from the file to the rows."""

import json
from pathlib import Path
from typing import Any

from yarus.db.importers import table
from yarus.db.importers.reader import recognise_source
from yarus.db.loading.load_rows import RowStream
from yarus.db.loading.staging import IncomingRow


def read_questions(folder: Path, rows: list[dict[str, Any]], **options: Any) -> list[dict[str, Any]]:
    (path := folder / "a.json").write_text(json.dumps(rows))
    stream = recognise_source(path, **options).open(None)
    assert isinstance(stream, RowStream)
    list(stream.chunks)
    return [row.values for row in stream.questions if isinstance(row, IncomingRow)]


def test_votes_become_five_and_one(tmp_path: Path) -> None:
    log = [{"question": f"{n}?", "answer": "a", "feedback": vote, "user": n} for n, vote in enumerate([1, 0, None])]
    assert [row["score"] for row in read_questions(tmp_path, log)] == [5, 1, None]


def test_zero_and_one_are_votes_only_if_score_is_mapped(tmp_path: Path) -> None:
    log = [{"question": f"{n}?", "answer": "a", "score": vote, "user": n} for n, vote in enumerate([1, 0])]
    assert all("score" not in row for row in read_questions(tmp_path, log))
    assert [row["score"] for row in read_questions(tmp_path, log, mapping={"score": "score"})] == [5, 1]


def test_column_of_ones_is_read_by_its_name(tmp_path: Path) -> None:
    for name, expected in (("score", [1, 1, None]), ("vote", [5, 5, None])):
        log = [{"question": f"{n}?", "answer": "a", name: vote, "user": n} for n, vote in enumerate([1, 1, None])]
        assert [row["score"] for row in read_questions(tmp_path, log)] == expected
    log = [{"question": f"{n}?", "answer": "a", "score": 1, "user": n} for n in range(300)]
    assert all("score" not in row for row in read_questions(tmp_path, [*log, *({**row, "score": 0} for row in log)]))


def test_scale_is_detected_from_the_whole_file(tmp_path: Path) -> None:
    log = [{"question": f"{n}?", "answer": "a", "score": 1, "user": n} for n in range(300)]
    for last, mark in ((0, 5), (4, 1)):
        marked = read_questions(tmp_path, [*log, {**log[0], "score": last, "user": 300}], mapping={"score": "score"})
        assert [row["score"] for row in marked[:2]] == [mark, mark]


def test_column_of_ones_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_text(json.dumps([{"question": "How?", "answer": "So.", "score": 1, "user": 1}]), encoding="utf-8")
    assert (
        "score: every value is 1 and is read as the worst mark; if 1 is good, rename the column to vote"
        in table.inspect_table(path).problems()
    )


def test_mapped_dislikes_are_inverted(tmp_path: Path) -> None:
    log = [
        {"question": f"{n}?", "answer": "a", "disliked": vote, "user": n} for n, vote in enumerate(["true", "false"])
    ]
    assert [row["score"] for row in read_questions(tmp_path, log, mapping={"score": "disliked"})] == [1, 5]


def test_unknown_words_among_votes_become_null(tmp_path: Path) -> None:
    votes = ["positive", "neutral", "negative", "none", "❤️", "ok"]
    log = [{"question": f"{n}?", "answer": "a", "score": vote, "user": n} for n, vote in enumerate(votes)]
    assert [row["score"] for row in read_questions(tmp_path, log, mapping={"score": "score"})] == [
        5,
        None,
        1,
        *[None] * 3,
    ]


def test_conversation_becomes_last_question_with_history(tmp_path: Path) -> None:
    messages = [("user", "Where?"), ("assistant", "Here."), ("user", "When?"), ("assistant", "At nine.")]
    turns: list[dict[str, Any]] = [{"role": role, "content": text} for role, text in messages]
    turns[3]["retrieval_context"] = ["Open from nine."]
    answered, unanswered = read_questions(tmp_path, [{"turns": turns}, {"turns": turns[:3]}])
    assert (answered["question"], answered["answer"]) == ("When?", "At nine.")
    assert answered["recorded"]["history"] == turns[:2]
    assert [passage["text"] for passage in answered["recorded"]["contexts"]] == ["Open from nine."]
    assert (unanswered["question"], unanswered["answer"]) == ("When?", None)
