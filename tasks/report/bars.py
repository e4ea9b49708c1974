"""Positions of values and intervals on bars."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from yarus.metrics.metric import GRADE_LADDERS
from yarus.metrics.table import find_metric
from yarus.tasks.evaluation.number_format import MINUS_SIGN
from yarus.tasks.report.embedded_data import Document

MIN_TICK_DISTANCE = 13
"""Minimum distance of two ticks in percent of the bar: the width of a number."""


def value_bar(name: str, metric: Mapping[str, Any]) -> Document | None:
    """Return the positions of a value and its interval on the metric's range, in percent of the width.

    Returns:
        point, low, width, zones (from, width, grade), ticks (at, text) and zero (if it is in the range); None without a
        value, or if the range is unbounded.
    """
    declared = find_metric(name)
    if declared is None or metric["value"] is None or declared.high == float("inf"):
        return None
    span = declared.high - declared.low

    def to_percent(value: float) -> float:
        return round(100 * min(max((value - declared.low) / span, 0), 1), 2)

    low, high = (metric[end] if metric[end] is not None else metric["value"] for end in ("ci_low", "ci_high"))
    bounds = declared.thresholds or ()
    edges = [0.0, *(to_percent(bound) for bound in bounds), 100.0]
    grades = GRADE_LADDERS.get(len(bounds), ("",))
    return {
        "point": to_percent(metric["value"]),
        "low": to_percent(low),
        "width": round(to_percent(high) - to_percent(low), 2),
        "zones": [
            {"from": start, "width": round(end - start, 2), "grade": grade}
            for (start, end), grade in zip(pairwise(edges), grades, strict=True)
        ],
        "ticks": _select_ticks(
            {to_percent(tick): f"{tick:g}".replace("-", MINUS_SIGN) for tick in (*bounds, declared.low, declared.high)}
        ),
        "zero": to_percent(0) if declared.low < 0 else None,
    }


def _select_ticks(text_by_position: dict[float, str]) -> list[Document]:
    """Return the ticks that do not overlap earlier ones."""
    selected: dict[float, str] = {}
    for position, text in text_by_position.items():
        if all(abs(position - selected_position) >= MIN_TICK_DISTANCE for selected_position in selected):
            selected[position] = text
    return [{"at": position, "text": selected[position]} for position in sorted(selected)]


def difference_bar(change: Document) -> Document | None:
    """Return the positions of a difference and its interval around zero, in percent of the width."""
    if change["difference"] is None or change["ci_low"] is None:
        return None
    reach = max(
        abs(change["ci_low"]), abs(change["ci_high"]), abs(change["difference"]), change["min_detectable_effect"] or 0
    )
    if reach == 0:
        return {"point": 50.0, "low": 50.0, "width": 0.0}
    low, high, point = (round(50 + 46 * change[part] / reach, 2) for part in ("ci_low", "ci_high", "difference"))
    return {"point": point, "low": low, "width": round(high - low, 2)}
