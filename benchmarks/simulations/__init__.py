"""Statistical claims, counted: each area repeats what the real code decides on data whose truth is known."""

import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from yarus.db.importers.sample import FOLDER


class Claim(NamedTuple):
    """What is promised of a figure, and what came out."""

    what: str
    low: float
    """The figure is to lie between `low` and `high`."""
    high: float
    measured: float
    repetitions: int
    """How many times it was tried; of a share, so many were counted."""
    is_share: bool = True
    """Whether the figure is a share of the repetitions, 0..1."""

    @property
    def slack(self) -> float:
        """How far chance alone takes a share from what it is: three standard deviations; 0 of what is no share."""
        nearest = min(max(self.measured, self.low), self.high)
        return 3 * float(np.sqrt(nearest * (1 - nearest) / self.repetitions)) if self.is_share else 0.0

    @property
    def holds(self) -> bool:
        """Whether the figure lies where it was promised to, but for chance."""
        return self.low - self.slack <= self.measured <= self.high + self.slack


def counted(what: str, low: float, high: float, found: Iterable[bool | np.bool_]) -> Claim:
    """The claim of the share of these that are true."""
    tried = [bool(one) for one in found]
    return Claim(what, low, high, float(np.mean(tried)), len(tried))


def sample_rows(name: str) -> list[dict[str, Any]]:
    """The rows of one table of the bundled sample."""
    with (FOLDER / f"{name}.jsonl").open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


class Area(Protocol):
    """A module of simulations."""

    def claims(self, effort: float) -> Iterator[Claim]:
        """Every claim of the area.

        Args:
            effort: share of the repetitions that `make simulate` makes: 1 there, less in the everyday suite.
        """
