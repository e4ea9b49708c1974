"""Values and their intervals as places on a bar."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from yarus.metrics.metric import LADDERS
from yarus.metrics.table import known
from yarus.tasks.evaluation.numbers import MINUS
from yarus.tasks.report.embedded_data import Document

ROOM = 13
"""Percent of a bar's width that a number below it takes."""


def bar(name: str, metric: Mapping[str, Any]) -> Document | None:
    """Where a value and its interval stand on the metric's range, in percent of its width.

    Returns:
        point, low, width, zones (from, width, grade), ticks (at, text) and zero (where that is inside); None without a
        value or where the range has no end.
    """
    declared = known(name)
    if declared is None or metric["value"] is None or declared.high == float("inf"):
        return None
    span = declared.high - declared.low

    def place(value: float) -> float:
        return round(100 * min(max((value - declared.low) / span, 0), 1), 2)

    low, high = (metric[end] if metric[end] is not None else metric["value"] for end in ("ci_low", "ci_high"))
    bounds = declared.thresholds or ()
    edges = [0.0, *(place(bound) for bound in bounds), 100.0]
    grades = LADDERS.get(len(bounds), ("",))
    return {
        "point": place(metric["value"]),
        "low": place(low),
        "width": round(place(high) - place(low), 2),
        "zones": [
            {"from": start, "width": round(end - start, 2), "grade": grade}
            for (start, end), grade in zip(pairwise(edges), grades, strict=True)
        ],
        "ticks": _ticks({place(at): f"{at:g}".replace("-", MINUS) for at in (*bounds, declared.low, declared.high)}),
        "zero": place(0) if declared.low < 0 else None,
    }


def _ticks(wanted: dict[float, str]) -> list[Document]:
    """Those that leave each other room, the first ones first."""
    kept: dict[float, str] = {}
    for at, text in wanted.items():
        if all(abs(at - other) >= ROOM for other in kept):
            kept[at] = text
    return [{"at": at, "text": kept[at]} for at in sorted(kept)]


def difference_bar(found: Document) -> Document | None:
    """Where a difference and its interval stand around no difference, in percent of the width."""
    if found["difference"] is None or found["ci_low"] is None:
        return None
    reach = max(
        abs(found["ci_low"]), abs(found["ci_high"]), abs(found["difference"]), found["smallest_detectable"] or 0
    )
    if reach == 0:
        return {"point": 50.0, "low": 50.0, "width": 0.0}
    low, high, point = (round(50 + 46 * found[part] / reach, 2) for part in ("ci_low", "ci_high", "difference"))
    return {"point": point, "low": low, "width": round(high - low, 2)}
