"""Slices in which a judge is blind, for known scores."""

from collections.abc import Callable
from typing import Any

import pytest

from yarus.tasks.evaluation.findings.exam import find_blind_slices

KINDS = {"reference": False, "framed": False, "number": True, "entity": True, "negation": True, "empty": True}
Row = dict[str, Any]


def make_scores(misses: Callable[[Row], bool], *, cases: int = 24, kinds: dict[str, bool] = KINDS) -> list[Row]:
    """Return scores of a judge that misses some damaged answers; every second case is in English."""
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
        (lambda row: row["kind"] == "negation" and row["script"] == "latin", []),  # it sees half of them
    ],
)
def test_find_blind_slices_names_missed_slices(misses: Callable[[Row], bool], blind: list[str]) -> None:
    assert find_blind_slices(make_scores(misses)) == blind


def test_find_blind_slices_skips_small_slices() -> None:
    rows = make_scores(lambda row: row["kind"] in ("number", "entity", "negation"), cases=12)
    few = [row for row in rows if row["kind"] != "negation" or int(row["case_id"]) < 9]
    assert find_blind_slices(few) == ["number", "entity"]


def test_find_blind_slices_merges_rare_subtle_kinds() -> None:
    subtle = ("number", "entity", "negation")
    rows = make_scores(lambda row: row["kind"] in subtle, cases=21)
    rare = [row for row in rows if row["kind"] not in subtle or subtle[int(row["case_id"]) % 3] == row["kind"]]
    assert find_blind_slices(rare) == ["number", "entity", "negation"]


def test_find_blind_slices_ignores_a_single_script() -> None:
    rows = [row | {"script": "latin"} for row in make_scores(lambda row: True)]
    assert "latin" not in find_blind_slices(rows)
