"""Conditions on columns of every type that a case can have."""

import pytest

from yarus.db.errors import InputError
from yarus.tasks.cases.table import table
from yarus.tasks.evaluation.queries import matching

REPLIES = [
    [{"metric": "faithfulness", "repeat": 0, "reply": "Оценка «0.5»", "status": "ok"}],
    [{"metric": "relevance", "repeat": 0, "reply": None, "status": "judge_error"}],
    [],
    None,
]
CASES = table(
    case_id=["1", "2", "3", "4"],
    judge_raw=REPLIES,
    retrieved=[["a", "b"], [], None, ["c d"]],
    grades=[[1.0], [2.5, 3.0], [], None],
    asked_at=[None] * 4,
)


@pytest.mark.parametrize(
    ("condition", "ids"),
    [
        ("judge_raw~оценка «0", ["1"]),
        ("judge_raw~judge_error", ["2"]),
        ("judge_raw~x", []),
        ("judge_raw=null", ["4"]),
        ("judge_raw!=null", ["1", "2", "3"]),
        ("retrieved~a b", ["1"]),
        ("retrieved~C", ["4"]),
        ("grades~2.5", ["2"]),
        ("asked_at~2026", []),
    ],
)
def test_what_a_column_contains(condition: str, ids: list[str]) -> None:
    assert CASES.filter(matching(CASES, condition))["case_id"].to_pylist() == ids


def test_records_are_looked_into_and_not_compared() -> None:
    with pytest.raises(InputError, match="look for it: judge_raw~ok"):
        matching(CASES, "judge_raw=ok")
