"""The price of showing: computed once, when an evaluation of the gate ends."""

import math

import numpy as np
import pyarrow as pa

from yarus.metrics.selective.threshold import Shown, cheapest, costs, curve
from yarus.metrics.statistics import mean_interval
from yarus.tasks.cases.table import floats
from yarus.tasks.results.showing.documents import CheapestThreshold, Showing, ShownFrom

FEWEST = 10
"""Right answers, and wrong ones, that a threshold is chosen by."""


def price_of_showing(cases: pa.Table, *, wrong_shown: float, right_hidden: float, seed: int) -> Showing | None:
    """What showing costs; None where no labelled answer has a score.

    Args:
        cases: with `show_score`, `decision` and `shown`.
        wrong_shown, right_hidden: the cost of either mistake.
        seed: of the draws.
    """
    columns = {name: floats(cases, name) for name in ("show_score", "decision", "shown")}
    kept = np.all(~np.isnan(np.column_stack(list(columns.values()))), axis=1)
    if not kept.any():
        return None
    scores, decided, right = (values[kept] for values in columns.values())
    groups = [group for group, keep in zip(cases["group"].to_pylist(), kept, strict=True) if keep]
    price = {"wrong_shown": wrong_shown, "right_hidden": right_hidden}
    spent = costs(right, decided, **price)
    low, high = mean_interval(spent, low=0.0, high=max(wrong_shown, right_hidden), groups=groups, seed=seed)
    shown = decided == 1
    found: CheapestThreshold | None = None
    if min(right.sum(), (1 - right).sum()) >= FEWEST:
        best = cheapest(scores, right, decided, groups=groups, seed=seed, **price)
        found = {
            **_shown(best.shown),
            "threshold_low": best.interval.low,
            "threshold_high": best.interval.high,
            "saved": best.saved,
            "saved_low": best.saved_interval.low,
            "saved_high": best.saved_interval.high,
        }
    return {
        "n": len(scores),
        "wrong_shown": wrong_shown,
        "right_hidden": right_hidden,
        "decided": {
            "coverage": float(shown.mean()),
            "risk": float(1 - right[shown].mean()) if shown.any() else None,
            "cost": float(spent.mean()),
            "ci_low": _number(low),
            "ci_high": _number(high),
        },
        "cheapest": found,
        "curve": [_shown(point) for point in curve(scores, right, **price)],
    }


def _shown(point: Shown) -> ShownFrom:
    return {
        "threshold": _number(point.threshold),
        "coverage": point.coverage,
        "risk": _number(point.risk),
        "cost": point.cost,
    }


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
