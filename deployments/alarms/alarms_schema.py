"""What `yarus alerts` tells of incidents: its documents, as `--json` prints them."""

from typing import Literal

from typing_extensions import TypedDict

from yarus.tasks.evaluation.findings_schema import Persistence

NightlyVerdict = Literal["good", "accepted", "regressed", "invalid", "failed", "inconclusive"]
GOOD_VERDICTS = ("good", "accepted")


class MetricChange(TypedDict):
    """A headline metric whose level has fallen."""

    metric: str
    a: float | None
    """What the night would have come to at the level before; null where it was not measured."""
    b: float | None
    """What it came to."""
    difference: float
    """What the level has changed by, on common cases, when the alarm was raised."""
    low: float
    """The 95 % interval of what was lost, which is above 0 whatever is better."""
    high: float
    since: str
    """The evaluation that it began with."""


class Incident(TypedDict):
    """What went bad in a night and is bad since."""

    incident: str
    """The evaluation that began it."""
    comparability_key: str | None
    """Null for nights that failed."""
    nights: int
    last: str
    """The newest evaluation of it, which the rest is about."""
    tier: str
    source: str
    verdict: NightlyVerdict
    baseline: str | None
    """The accepted evaluation that it was compared with."""
    changes: list[MetricChange]
    error: str | None
    asked_again: Persistence | None
    """What of its first night persisted; null where the questions that changed were not asked again."""


class Incidents(TypedDict):
    """The incidents that go on."""

    incidents: list[Incident]


class Accepted(TypedDict):
    """An evaluation whose level is taken for good."""

    evaluation_id: str
    verdict: Literal["accepted"]
