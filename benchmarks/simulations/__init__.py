"""Statistical claims, tested by simulation: each area repeats decisions of the real code on data with known truth."""

import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from yarus.db.importers.sample import SAMPLE_FOLDER


class Claim(NamedTuple):
    """A promised range of a figure, and its measured value."""

    what: str
    low: float
    """The figure must lie between `low` and `high`."""
    high: float
    measured: float
    repetitions: int
    """Number of repetitions; for a share, the number of trials."""
    is_share: bool = True
    """Whether the figure is a share of the repetitions, 0..1."""

    @property
    def slack(self) -> float:
        """Return the tolerance for chance in a share: three standard deviations; 0 for other figures."""
        nearest = min(max(self.measured, self.low), self.high)
        return 3 * float(np.sqrt(nearest * (1 - nearest) / self.repetitions)) if self.is_share else 0.0

    @property
    def holds(self) -> bool:
        """Return whether the figure is in the promised range, apart from chance."""
        return self.low - self.slack <= self.measured <= self.high + self.slack


def share_claim(what: str, low: float, high: float, outcomes: Iterable[bool | np.bool_]) -> Claim:
    """Return the claim about the share of true outcomes."""
    trials = [bool(outcome) for outcome in outcomes]
    return Claim(what, low, high, float(np.mean(trials)), len(trials))


def sample_rows(name: str) -> list[dict[str, Any]]:
    """Return the rows of one table of the bundled sample."""
    with (SAMPLE_FOLDER / f"{name}.jsonl").open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


class Area(Protocol):
    """A module of simulations."""

    def claims(self, effort: float) -> Iterator[Claim]:
        """Yield every claim of the area.

        Args:
            effort: share of the repetitions that `make simulate` makes: 1 there, less in the everyday suite.
        """
