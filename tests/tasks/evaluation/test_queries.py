"""Conditions on columns of every type that a case can have."""

import pytest

from yarus.db.errors import InputError
from yarus.tasks.cases.table import make_cases
from yarus.tasks.evaluation.queries import match_condition

REPLIES = [
    [{"metric": "faithfulness", "repeat": 0, "reply": "Оценка «0.5»", "status": "ok"}],
    [{"metric": "relevance", "repeat": 0, "reply": None, "status": "judge_error"}],
    [],
    None,
]
CASES = make_cases(
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
def test_matching_searches_columns_of_every_type(condition: str, ids: list[str]) -> None:
    assert CASES.filter(match_condition(CASES, condition))["case_id"].to_pylist() == ids


def test_matching_refuses_to_compare_records() -> None:
    with pytest.raises(InputError, match="look for it: judge_raw~ok"):
        match_condition(CASES, "judge_raw=ok")
