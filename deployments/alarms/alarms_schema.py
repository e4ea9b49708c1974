"""JSON types of `yarus alerts` about incidents, printed with `--json`."""

from typing import Literal

from typing_extensions import TypedDict

from yarus.tasks.evaluation.findings_schema import Persistence

NightlyVerdict = Literal["good", "accepted", "regressed", "invalid", "failed", "inconclusive"]
GOOD_VERDICTS = ("good", "accepted")


class MetricChange(TypedDict):
    """A headline metric with a lower level."""

    metric: str
    a: float | None
    """Value that the night would have had at the earlier level; null if it was not measured."""
    b: float | None
    """Value of the night; null if it was not measured."""
    difference: float
    """Change of the level on common cases, estimated when the alarm was raised."""
    low: float
    """Lower end of the 95 % interval of the loss; a loss is positive, whichever direction is better."""
    high: float
    since: str
    """Id of the first evaluation with the loss."""


class Incident(TypedDict):
    """A problem that began in one night and still exists."""

    incident_id: str
    """Id of the evaluation that started it."""
    comparability_key: str | None
    """Null if the night failed."""
    nights: int
    latest_evaluation_id: str
    """Id of its newest evaluation; the following keys describe that one."""
    tier: str
    source: str
    verdict: NightlyVerdict
    baseline: str | None
    """Id of the accepted evaluation that it was compared with."""
    changes: list[MetricChange]
    error: str | None
    asked_again: Persistence | None
    """Result of asking the changed questions of its first night again; null if they were not asked."""


class Incidents(TypedDict):
    """Open incidents."""

    incidents: list[Incident]


class Accepted(TypedDict):
    """An evaluation that was accepted as the new level."""

    evaluation_id: str
    verdict: Literal["accepted"]
