"""What a judge does not see, by scores that were planted."""

from collections.abc import Callable
from typing import Any

import pytest

from yarus.tasks.evaluation.findings.exam import find_blind_slices

KINDS = {"reference": False, "framed": False, "number": True, "entity": True, "negation": True, "empty": True}
Row = dict[str, Any]


def scored(misses: Callable[[Row], bool], *, cases: int = 24, kinds: dict[str, bool] = KINDS) -> list[Row]:
    """The answers of a judge that takes some of the damaged ones for sound; every second case is in English."""
    rows: list[Row] = [
        {
            "case_id": str(number),
            "group": None,
            "script": ("cyrillic", "latin")[number % 2],
            "characters": 10 + number,
            "kind": kind,
            "damaged": damaged,
        }
        for number in range(cases)
        for kind, damaged in kinds.items()
    ]
    return [{**row, "score": float(not row["damaged"] or misses(row))} for row in rows]


@pytest.mark.parametrize(
    ("misses", "blind"),
    [
        (lambda row: False, []),
        (lambda row: row["kind"] == "negation", ["negation"]),
        (lambda row: row["kind"] in ("number", "entity"), ["number", "entity"]),
        (lambda row: row["script"] == "latin", ["latin"]),
        (lambda row: row["characters"] >= 22, ["long"]),
        (lambda row: row["kind"] == "negation" and row["script"] == "latin", []),  # half of them it sees
    ],
)
def test_what_a_judge_misses_is_named(misses: Callable[[Row], bool], blind: list[str]) -> None:
    assert find_blind_slices(scored(misses)) == blind


def test_a_slice_of_few_cases_is_not_judged_alone() -> None:
    rows = scored(lambda row: row["kind"] in ("number", "entity", "negation"), cases=12)
    few = [row for row in rows if row["kind"] != "negation" or int(row["case_id"]) < 9]
    assert find_blind_slices(few) == ["number", "entity"]


def test_kinds_that_leave_the_words_in_place_are_one_slice_if_each_is_rare() -> None:
    subtle = ("number", "entity", "negation")
    rows = scored(lambda row: row["kind"] in subtle, cases=21)
    rare = [row for row in rows if row["kind"] not in subtle or subtle[int(row["case_id"]) % 3] == row["kind"]]
    assert find_blind_slices(rare) == ["number", "entity", "negation"]


def test_one_script_is_no_slice() -> None:
    rows = [row | {"script": "latin"} for row in scored(lambda row: True)]
    assert "latin" not in find_blind_slices(rows)
