"""What is found where the questions that changed are asked again, as `--json` prints it."""

from typing_extensions import TypedDict


class PersistedMetric(TypedDict):
    """Of one headline metric."""

    n: int
    """Questions whose value had changed."""
    persisted: int
    """Of these, those that are nearer to the changed value than to the one before when they are asked again. Of changes
    by chance about half are: of as many the value before was the odd one."""
    unmeasured: int
    """Of these, those that gave no value when they were asked again: nothing is said of them."""


class Persistence(TypedDict):
    """Of an evaluation that asks again what changed in another one, and of that other one."""

    confirms: str
    """The evaluation whose changes were asked about."""
    asked_again: str
    """The evaluation that asked."""
    since: str
    """The evaluation before, beside which they had changed."""
    metrics: dict[str, PersistedMetric]


class FailedAgain(TypedDict):
    """Of an evaluation of the cases that failed in another one."""

    of: str
    """That evaluation."""
    n: int
    """Cases that failed in it: the system, the judge or the budget stood in the way."""
    asked: int
    """Of these, those that the source still has."""
    succeeded: int
    """Of these, those that nothing stood in the way of now."""
