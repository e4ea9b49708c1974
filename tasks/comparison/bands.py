"""The band of each night of a line: of nights that share their cases by what changed, of others by their values."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy.engine import RowMapping

from yarus.metrics.statistics.ewma import Chart, chart
from yarus.metrics.statistics.paired_chart import NightChange, paired_chart
from yarus.metrics.table import metric
from yarus.tasks.comparison.paired_changes import SHARED
from yarus.tasks.comparison.trend_documents import Band, BandSide

SIDES: dict[int, BandSide | None] = {-1: "below", 0: None, 1: "above"}
NO_BAND: Band = {"smoothed": None, "band_low": None, "band_high": None, "out": False, "side": None, "paired": False}


class Night(NamedTuple):
    """A night of a run."""

    row: RowMapping
    level: float
    """Of the system, on whatever cases: 0 in the night that the run begins with."""


def bands(line: Sequence[RowMapping]) -> dict[str, Band]:
    """By id the band of each night.

    Nights that are compared with one before them, on the cases that both have, make runs; where a run begins, so does
    its chart. Other nights make one chart, among them those that were stored before changes were.

    Args:
        line: completed nights of one key that have a value, oldest first, as `yarus.tasks.comparison.trend` reads them.
    """
    found: dict[str, Band] = {}
    runs = list(_runs(line))
    alone = [run[0].row for run in runs]
    steps, shares = [_step(row) for row in alone], [row["share"] if row["change"] else 0.0 for row in alone]
    found |= _bands(alone, chart([row["value"] for row in alone], step=steps, shared=shares), paired=False)
    for run in runs:
        changes = [
            NightChange(**_told(night.row["change"]) | {"difference": night.level - before.level})
            for before, night in pairwise(run)
        ]
        of_run = _bands([night.row for night in run], paired_chart(changes), paired=True)
        found |= {name: band for name, band in of_run.items() if name != run[0].row["id"]}
    return found


def _runs(line: Sequence[RowMapping]) -> Iterator[list[Night]]:
    """Each with the night that it begins with; many are of that night alone.

    A night is compared with the newest that had ended when it ended itself, which an evaluation that was resumed later
    may come to stand after.
    """
    run: dict[str, Night] = {}
    for row in line:
        before = run.get(row["change"].get("since", row["since"])) if row["change"] and row["share"] >= SHARED else None
        if before is None and run:
            yield list(run.values())
            run = {}
        run[row["id"]] = Night(row, before.level + row["change"]["difference"] if before else 0.0)
    if run:
        yield list(run.values())


def _told(change: Mapping[str, Any]) -> dict[str, Any]:
    """What a chart is made of."""
    return {name: change[name] for name in NightChange._fields}


def _step(row: RowMapping) -> float:
    """What one case can change of a share, or of a mean of scores of 0 to 1; 0 of what has another range."""
    return 1 / row["n_scored"] if metric(row["metric"]).unit == "share" else 0.0


def _bands(rows: Sequence[RowMapping], charted: Chart, *, paired: bool) -> dict[str, Band]:
    """A paired chart is drawn around the value of each night, which it is about on that night's cases."""
    return {
        row["id"]: {
            "smoothed": _number(smoothed + paired * row["value"]),
            "band_low": _number(low + paired * row["value"]),
            "band_high": _number(high + paired * row["value"]),
            "out": bool(side),
            "side": SIDES[int(side)],
            "paired": paired,
        }
        for row, smoothed, low, high, side in zip(rows, *charted, strict=True)
    }


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
