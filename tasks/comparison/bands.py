"""The band of each night of a line: of nights that share their cases by what changed, of others by their values."""

from collections.abc import Iterator, Sequence

import numpy as np
from sqlalchemy.engine import RowMapping

from metrics.statistics.ewma import Chart, chart
from metrics.statistics.paired_chart import NightChange, paired_chart
from metrics.table import metric
from tasks.comparison.documents import Band, BandSide

SHARED = 0.5
"""The share of cases in common from which on two nights are compared on these alone: below, they tell less than all."""
SIDES: dict[int, BandSide | None] = {-1: "below", 0: None, 1: "above"}
NO_BAND: Band = {"smoothed": None, "band_low": None, "band_high": None, "out": False, "side": None, "paired": False}


def bands(line: Sequence[RowMapping]) -> dict[str, Band]:
    """By id the band of each night.

    Nights that follow each other and share their cases make runs; where a run begins, so does its chart. The other
    nights make one chart, among them those that were stored before changes were.

    Args:
        line: completed nights of one key that have a value, oldest first, as `tasks.comparison.trend` reads them.
    """
    found: dict[str, Band] = {}
    alone = [row for row, before in zip(line, [None, *line], strict=False) if not _linked(row, before)]
    if alone:
        steps, shares = [_step(row) for row in alone], [row["share"] if row["change"] else 0.0 for row in alone]
        found |= _bands(alone, chart([row["value"] for row in alone], step=steps, shared=shares), paired=False)
    for run in _runs(line):
        charted = paired_chart([NightChange(**row["change"]) for row in run[1:]])
        found |= {name: band for name, band in _bands(run, charted, paired=True).items() if name != run[0]["id"]}
    return found


def _runs(line: Sequence[RowMapping]) -> Iterator[list[RowMapping]]:
    """Each with the night before it, which its first night is compared with."""
    run: list[RowMapping] = []
    for row in line:
        if run and _linked(row, run[-1]):
            run.append(row)
            continue
        if len(run) > 1:
            yield run
        run = [row]
    if len(run) > 1:
        yield run


def _linked(row: RowMapping, before: RowMapping | None) -> bool:
    """Whether a night is compared with the one before it on common cases."""
    return before is not None and row["change"] is not None and row["since"] == before["id"] and row["share"] >= SHARED


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
