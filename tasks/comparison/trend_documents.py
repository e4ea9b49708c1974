"""The history of a metric, as it is printed with `--json`."""

from typing import Literal

from typing_extensions import TypedDict

from yarus.metrics.metric import Direction
from yarus.tasks.results.summary import State

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
