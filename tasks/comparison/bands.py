"""The history of a metric, and the band of each night: of nights that share cases by changes, of others by values."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

from sqlalchemy.engine import RowMapping
from typing_extensions import TypedDict

from yarus.metrics.metric import Direction
from yarus.metrics.statistics.ewma import Chart, chart
from yarus.metrics.statistics.paired_chart import NightChange, paired_chart
from yarus.metrics.table import metric
from yarus.tasks.comparison.paired_changes import SHARED
from yarus.tasks.evaluation.config import State
from yarus.tasks.evaluation.numbers import finite

BandSide = Literal["below", "above"]


class Band(TypedDict):
    """Where a night stands to the band of the nights before."""

    smoothed: float | None
    """The moving average that the band is about."""
    band_low: float | None
    """Null until enough nights of one key have been measured."""
    band_high: float | None
    out: bool
    """Whether it is out of the band."""
    side: BandSide | None
    paired: bool
    """Whether the night is compared with the one before it on the cases that both have: its band is then about what
    changed on these, drawn around its value. Else about the values of the nights before."""


_Break = TypedDict("_Break", {"break": bool})


class _Night(TypedDict):
    evaluation_id: str
    started_at: str
    value: float | None
    ci_low: float | None
    ci_high: float | None
    n_scored: int
    n_total: int
    name: str | None
    tags: list[str]
    sut_label: str | None
    comparability_key: str | None
    state: State


class TrendNight(_Night, _Break, Band):
    """One evaluation of the history; `break`: its comparability key is not that of the night before."""


class NoiseFloor(TypedDict):
    """How far the metric moves when nothing has changed, from evaluations that were repeated."""

    band: float
    """The difference of two evaluations of the same system stays below this 19 times in 20."""
    pairs: int
    n: int
    """Cases measured twice, of all pairs."""


class AcceptedLevel(TypedDict):
    """What the accepted evaluation of the newest night's key has of the metric."""

    evaluation_id: str
    value: float


class Trend(TypedDict):
    """The history of a metric."""

    metric: str
    tier: str
    source: str | None
    stratum: str | None
    anchor: str | None
    """The evaluation whose stored answers are judged every night; null for the system's own history."""
    better: Direction
    nights: list[TrendNight]
    """Oldest first."""
    more: bool
    """Whether there are nights before those."""
    first_out: str | None
    """The first shown night out of the band that is comparable with the newest."""
    side: BandSide | None
    """Of `first_out`."""
    accepted: AcceptedLevel | None
    """Null where nothing comparable with the newest night is accepted."""
    noise: NoiseFloor | None
    """Null without a repeated evaluation."""


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
    runs = list(_runs(line))
    alone = [run[0].row for run in runs]
    steps, shares = [_step(row) for row in alone], [row["share"] if row["change"] else 0.0 for row in alone]
    found = _bands(alone, chart([row["value"] for row in alone], step=steps, shared=shares), paired=False)
    for run in runs:
        changes = [
            NightChange(
                **{name: night.row["change"][name] for name in NightChange._fields if name != "difference"},
                difference=night.level - before.level,
            )
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


def _step(row: RowMapping) -> float:
    """What one case can change of a share, or of a mean of scores of 0 to 1; 0 of what has another range."""
    return 1 / row["n_scored"] if metric(row["metric"]).unit == "share" else 0.0


def _bands(rows: Sequence[RowMapping], charted: Chart, *, paired: bool) -> dict[str, Band]:
    """A paired chart is drawn around the value of each night, which it is about on that night's cases."""
    found: dict[str, Band] = {
        row["id"]: {
            "smoothed": smoothed + paired * row["value"],
            "band_low": low + paired * row["value"],
            "band_high": high + paired * row["value"],
            "out": bool(side),
            "side": SIDES[int(side)],
            "paired": paired,
        }
        for row, smoothed, low, high, side in zip(rows, *charted, strict=True)
    }
    return finite(found)
