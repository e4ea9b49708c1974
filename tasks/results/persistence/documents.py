"""What is found where the questions that changed are asked again, as `--json` prints it."""

from typing_extensions import TypedDict


class PersistedMetric(TypedDict):
    """Of one headline metric; the three values are over the same questions, those measured both times."""

    n: int
    """Questions whose value had changed."""
    persisted: int
    """Of these, those that are nearer to the changed value than to the one before when they are asked again."""
    unmeasured: int
    """Of these, those that gave no value when they were asked again: nothing is said of them."""
    before: float | None
    after: float | None
    again: float | None
    """With what the questions that had changed came to when they were asked again."""


class Persistence(TypedDict):
    """Of an evaluation that asks again what changed in another one."""

    confirms: str
    """The evaluation whose changes were asked about."""
    since: str
    """The evaluation before, beside which they had changed."""
    metrics: dict[str, PersistedMetric]
