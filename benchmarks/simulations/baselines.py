"""The default gate against the accepted evaluation: a slow decline, an unchanged system, and a failure repeated."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.simulations import Claim, counted
from benchmarks.simulations.pairs import gate_fails
from yarus.tasks.cases.table import table

TIER = "tier1"
N, HIT_RATE, K = 300, 0.8, 10
NOISE = 0.02
"""Share of the cases that come out otherwise in a night, without a cause."""
A_NIGHT = 0.002
"""What is lost a night."""
NIGHTS = 24
"""Of a decline, before five points are lost."""
AT_ONCE = 0.2
"""What is lost by a bad release."""
Hits = NDArray[np.bool_]


class System:
    """A retriever that finds what is relevant at rank 1 in most cases, but for its noise, and else further down.

    Args:
        chance: of everything that happens to it.
    """

    def __init__(self, chance: np.random.Generator) -> None:
        self._chance = chance
        self._hits: Hits = chance.random(N) < HIT_RATE
        self._otherwise = chance.integers(2, K + 1, N).astype(np.float64)
        self._falling = chance.permutation(np.flatnonzero(self._hits))

    def evaluated(self, lost: float = 0) -> NDArray[np.float64]:
        """The rank of what is relevant in each case, after the hit rate has fallen by so much for good."""
        hits = self._hits.copy()
        hits[self._falling[: round(lost * N)]] = False
        hits ^= self._chance.random(N) < NOISE
        return np.where(hits, 1.0, self._otherwise)


def claims(effort: float) -> Iterator[Claim]:
    """Whether a decline fails in time, how often an unchanged system fails, and whether a failure repeated fails."""
    repetitions = max(12, round(500 * effort))
    found = [declines(np.random.default_rng([1, number])) for number in range(repetitions)]
    yield counted(f"-0.2 points a night, n = {N}: fails before 5 points are lost", 0.9, 1, found)
    systems = [System(np.random.default_rng([2, number])) for number in range(repetitions)]
    unchanged = [fails(one.evaluated(), one.evaluated()) for one in systems]
    yield counted("system unchanged: an evaluation fails", 0, 0.05, unchanged)
    released = [(one.evaluated(), one.evaluated(AT_ONCE), one.evaluated(AT_ONCE)) for one in systems]
    repeated = [fails(accepted, again) for accepted, bad, again in released if fails(accepted, bad)]
    yield counted("-20 points: what failed fails again when it is repeated", 1, 1, repeated)


def declines(chance: np.random.Generator) -> bool:
    """Whether any night of a slow decline fails: the last first, for they are the likeliest."""
    system = System(chance)
    accepted = system.evaluated()
    return any(fails(accepted, system.evaluated(night * A_NIGHT)) for night in range(NIGHTS, 0, -1))


def fails(*ranks: NDArray[np.float64]) -> bool:
    """Whether the gate fails, of the accepted evaluation and another one."""
    return gate_fails([_cases(one) for one in ranks], TIER)


def _cases(ranks: NDArray[np.float64]) -> pa.Table:
    columns = {"hit_rate@1": (ranks == 1).astype(np.float64), "mrr": 1 / ranks, "ndcg@10": 1 / np.log2(ranks + 1)}
    ids = [f"q{number}" for number in range(N)]
    same = {"status": ["ok"] * N, "reason": [None] * N, "group": [None] * N}
    return table(case_id=ids, question=ids, **same, **columns)
