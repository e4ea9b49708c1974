"""What a judge does not see: the kinds of damage, languages and lengths in which it does not tell answers apart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from yarus.metrics.exam_kinds import KINDS

if TYPE_CHECKING:
    from yarus.metrics.statistics.intervals import Interval

Row = dict[str, Any]
FEWEST = 10
"""Examined cases below which nothing is said, of a judge or of a slice."""
PASSED = 0.7
"""What the area under the curve, and the mean of sensitivity and specificity, must reach for scores to be graded."""
SUBTLE = ("number", "entity", "negation")
"""Kinds of damage that leave nearly all words in place. Where each has too few cases, they are one slice."""


def find_blind_slices(scored: list[Row]) -> list[str]:
    """Return the slices in which the judge does not tell damaged answers from sound ones.

    Args:
        scored: the answers that got a score; `script` is that of the question.

    Returns:
        Kinds of `yarus.metrics.exam_kinds.KINDS`, scripts of `yarus.tasks.cases.text.script_of`, `short` and `long`. A
        slice is named if the whole interval of the mean of sensitivity and specificity lies below 0.7.
    """
    blind = [name for name, rows in _slices(scored) if _is_blind(rows)]
    if not set(SUBTLE) & set(blind) and _is_blind(_with_damage(scored, SUBTLE)):
        blind += [kind for kind in SUBTLE if any(row["kind"] == kind and row["damaged"] for row in scored)]
    return blind


def find_balance(rows: list[Row]) -> tuple[int, Interval]:
    """Return the cases with sound and damaged answers, and the interval of the mean of sensitivity and specificity.

    The mean is 0.5 for a judge that does not look.
    """
    import numpy as np

    from yarus.metrics.exam import is_right
    from yarus.metrics.statistics import mean_interval
    from yarus.metrics.statistics.groups import group_codes, group_totals

    groups = {row["case_id"]: row["group"] for row in rows}
    damaged = np.array([row["damaged"] for row in rows], dtype=np.bool_)
    right = is_right([row["score"] for row in rows], damaged)
    sides = np.array([damaged, ~damaged, damaged & right, ~damaged & right], dtype=np.float64).T
    totals = group_totals(sides, group_codes([row["case_id"] for row in rows], len(rows)))
    both = np.flatnonzero(totals[:, :2].all(axis=1))
    values = (totals[both, 2:] / totals[both, :2]).mean(axis=1)
    of = list(groups.values())
    return len(values), mean_interval(values, seed=0, low=0, high=1, groups=[of[case] for case in both])


def _is_blind(rows: list[Row]) -> bool:
    cases, balance = find_balance(rows)
    return cases >= FEWEST and balance.high < PASSED


def _slices(scored: list[Row]) -> Iterator[tuple[str, list[Row]]]:
    for kind in KINDS:
        yield kind, _with_damage(scored, (kind,))
    scripts = dict.fromkeys(row["script"] for row in scored)
    if len(scripts) > 1:
        for script in scripts:
            yield script, [row for row in scored if row["script"] == script]
    lengths = {row["case_id"]: row["characters"] for row in scored if not row["damaged"]}
    if lengths:
        middle = sorted(lengths.values())[len(lengths) // 2]
        for name, is_long in (("short", False), ("long", True)):
            cases = {case_id for case_id, characters in lengths.items() if (characters >= middle) is is_long}
            yield name, [row for row in scored if row["case_id"] in cases]


def _with_damage(scored: list[Row], kinds: tuple[str, ...]) -> list[Row]:
    return [row for row in scored if not row["damaged"] or row["kind"] in kinds]
