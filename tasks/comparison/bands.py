"""Schema of a metric's history, and the band of each night: from changes on common cases, else from values."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

from sqlalchemy.engine import RowMapping
from typing_extensions import TypedDict

from yarus.metrics.metric import Direction
from yarus.metrics.statistics.ewma import ControlChart, ewma_chart
from yarus.metrics.statistics.paired_chart import NightChange, paired_chart
from yarus.metrics.table import get_metric
from yarus.tasks.comparison.paired_changes import MIN_SHARED
from yarus.tasks.evaluation.config import EvaluationState
from yarus.tasks.evaluation.number_format import replace_non_finite

BandSide = Literal["below", "above"]


class Band(TypedDict):
    """Place of a night relative to the band of the nights before."""

    smoothed: float | None
    """Moving average at the centre of the band."""
    band_low: float | None
    """Null until enough nights with one key are measured."""
    band_high: float | None
    is_out_of_band: bool
    """Whether the night is outside the band."""
    side: BandSide | None
    paired: bool
    """Whether the band describes changes since the night before on common cases, drawn around the night's value;
    otherwise it describes the values of the nights before."""


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
    state: EvaluationState


class TrendNight(_Night, Band):
    """One evaluation of the history."""

    is_break: bool
    """Whether its comparability key differs from that of the night before."""


class NoiseFloor(TypedDict):
    """Variation of the metric between repeats of an evaluation."""

    band: float
    """The difference of two evaluations of the same system is below this in 19 of 20 cases."""
    pairs: int
    n: int
    """Cases measured twice, over all pairs."""


class AcceptedLevel(TypedDict):
    """Value of the metric in the accepted evaluation with the newest night's key."""

    evaluation_id: str
    value: float


class Trend(TypedDict):
    """The history of a metric."""

    metric: str
    tier: str
    source: str | None
    stratum: str | None
    anchor: str | None
    """Id of the evaluation whose stored answers are judged every night; null for the system's own history."""
    better_direction: Direction
    """Direction in which the metric is better."""
    nights: list[TrendNight]
    """The oldest first."""
    has_earlier: bool
    """Whether there are earlier nights."""
    first_out_of_band: str | None
    """First listed night outside the band that is comparable with the newest."""
    side: BandSide | None
    """Side of `first_out_of_band`."""
    accepted: AcceptedLevel | None
    """Null if no accepted evaluation is comparable with the newest night."""
    noise: NoiseFloor | None
    """Null without repeated evaluations."""


SIDE_NAMES: dict[int, BandSide | None] = {-1: "below", 0: None, 1: "above"}
NO_BAND: Band = {
    "smoothed": None,
    "band_low": None,
    "band_high": None,
    "is_out_of_band": False,
    "side": None,
    "paired": False,
}


class RunNight(NamedTuple):
    """A night of a run."""

    row: RowMapping
    level: float
    """The level of the system, independent of the cases: 0 in the first night of the run."""


def compute_bands(rows: Sequence[RowMapping]) -> dict[str, Band]:
    """Return the band of each night, by id.

    Nights that are compared with one before them on common cases form runs; each run has its own chart. Other nights
    form one chart, including those stored before changes were recorded.

    Args:
        rows: completed nights of one key that have a value, oldest first, as `yarus.tasks.comparison.trend` reads
            them.
    """
    runs = list(_split_runs(rows))
    starts = [run[0].row for run in runs]
    steps, shares = [_smallest_step(row) for row in starts], [row["share"] if row["change"] else 0.0 for row in starts]
    by_id = _draw_bands(starts, ewma_chart([row["value"] for row in starts], step=steps, shared=shares), paired=False)
    for run in runs:
        changes = [
            NightChange(
                **{name: night.row["change"][name] for name in NightChange._fields if name != "difference"},
                difference=night.level - before.level,
            )
            for before, night in pairwise(run)
        ]
        run_bands = _draw_bands([night.row for night in run], paired_chart(changes), paired=True)
        by_id |= {name: band for name, band in run_bands.items() if name != run[0].row["id"]}
    return by_id


def _split_runs(rows: Sequence[RowMapping]) -> Iterator[list[RunNight]]:
    """Yield the runs, each with the night that it begins with; many consist of that night alone.

    A night is compared with the newest night that had ended when it ended. An evaluation that is resumed later may come
    after its successors.
    """
    run: dict[str, RunNight] = {}
    for row in rows:
        before = (
            run.get(row["change"].get("since", row["since"])) if row["change"] and row["share"] >= MIN_SHARED else None
        )
        if before is None and run:
            yield list(run.values())
            run = {}
        run[row["id"]] = RunNight(row, before.level + row["change"]["difference"] if before else 0.0)
    if run:
        yield list(run.values())


def _smallest_step(row: RowMapping) -> float:
    """Return the largest change that one case can cause, for metrics from 0 to 1; 0 for other ranges."""
    return 1 / row["n_scored"] if get_metric(row["metric"]).unit == "share" else 0.0


def _draw_bands(rows: Sequence[RowMapping], charted: ControlChart, *, paired: bool) -> dict[str, Band]:
    """Return the bands of a chart; that of a paired chart is drawn around the value of each night."""
    by_id: dict[str, Band] = {
        row["id"]: {
            "smoothed": smoothed + paired * row["value"],
            "band_low": low + paired * row["value"],
            "band_high": high + paired * row["value"],
            "is_out_of_band": bool(side),
            "side": SIDE_NAMES[int(side)],
            "paired": paired,
        }
        for row, smoothed, low, high, side in zip(rows, *charted, strict=True)
    }
    return replace_non_finite(by_id)
