"""What `yarus alerts` tells of incidents: its documents, as `--json` prints them."""

from typing import Literal

from typing_extensions import TypedDict

NightlyVerdict = Literal["good", "accepted", "regressed", "invalid", "failed", "inconclusive"]


class MetricChange(TypedDict):
    """A headline metric that is worse than in the baseline."""

    metric: str
    a: float | None
    """Of the baseline."""
    b: float | None
    difference: float | None
    p: float | None
    p_holm: float | None
    """Holm's p over the tier's headline metrics."""


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


class Incidents(TypedDict):
    """The incidents that go on."""

    incidents: list[Incident]


class Accepted(TypedDict):
    """An evaluation whose level is taken for good."""

    evaluation_id: str
    verdict: Literal["accepted"]
