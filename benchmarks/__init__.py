"""Speed against peers, as ratios measured in the same run: `make bench`, or some: `make bench text dense`."""

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Literal


@dataclass(frozen=True, slots=True)
class Row:
    """One measured ratio. `at least`: peer's time / ours; `at most`: ours / the peer's (or the limit's)."""

    what: str
    peer: str
    ours_s: float
    peer_s: float
    target: float = 1.0
    goal: Literal["at least", "at most"] = "at most"

    @property
    def ratio(self) -> float:
        """Return how many times faster than the peer (`at least`), or how many times the limit (`at most`)."""
        return self.peer_s / self.ours_s if self.goal == "at least" else self.ours_s / self.peer_s

    @property
    def met(self) -> bool:
        """Return whether the ratio reaches its target."""
        return self.ratio >= self.target if self.goal == "at least" else self.ratio <= self.target


def time_in_turn(ours: Callable[[], object], peer: Callable[[], object], *, rounds: int = 5) -> tuple[float, float]:
    """Return the median seconds of both, run in turn after one warm-up each, so that drift hits both.

    Use a single round for slow functions: it has no warm-up.
    """
    times: tuple[list[float], list[float]] = ([], [])
    if rounds > 1:
        ours(), peer()
    for _ in range(rounds):
        for function, times_of_function in zip((ours, peer), times, strict=True):
            gc.collect()
            start = time.perf_counter()
            function()
            times_of_function.append(time.perf_counter() - start)
    return median(times[0]), median(times[1])
