"""The default gate against the accepted evaluation: a slow decline, an unchanged system, and a repeated failure."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.simulations import Claim, share_claim
from benchmarks.simulations.pairs import gate_fails
from yarus.tasks.cases.table import make_cases

TIER = "tier1"
N, HIT_RATE, K = 300, 0.8, 10
NOISE = 0.02
"""Share of the cases that change in a night, without a cause."""
A_NIGHT = 0.002
"""Loss per night."""
NIGHTS = 24
"""Nights of a decline, before five points are lost."""
AT_ONCE = 0.2
"""Loss by a bad release."""
Hits = NDArray[np.bool_]


class System:
    """A retriever with relevant results at rank 1 in most cases, apart from its noise, and else further down.

    Args:
        chance: generator of everything random.
    """

    def __init__(self, chance: np.random.Generator) -> None:
        self._generator = chance
        self._hits: Hits = chance.random(N) < HIT_RATE
        self._other_ranks = chance.integers(2, K + 1, N).astype(np.float64)
        self._losing_order = chance.permutation(np.flatnonzero(self._hits))

    def evaluate(self, lost: float = 0) -> NDArray[np.float64]:
        """Return the rank of the relevant result in each case, after the hit rate has fallen by so much for good."""
        hits = self._hits.copy()
        hits[self._losing_order[: round(lost * N)]] = False
        hits ^= self._generator.random(N) < NOISE
        return np.where(hits, 1.0, self._other_ranks)


def claims(effort: float) -> Iterator[Claim]:
    """Yield how often a decline fails in time, an unchanged system fails, and a repeated failure fails again."""
    repetitions = max(12, round(500 * effort))
    outcomes = [declines(np.random.default_rng([1, number])) for number in range(repetitions)]
    yield share_claim(f"-0.2 points a night, n = {N}: fails before 5 points are lost", 0.9, 1, outcomes)
    systems = [System(np.random.default_rng([2, number])) for number in range(repetitions)]
    unchanged = [fails(system.evaluate(), system.evaluate()) for system in systems]
    yield share_claim("system unchanged: an evaluation fails", 0, 0.05, unchanged)
    released = [(system.evaluate(), system.evaluate(AT_ONCE), system.evaluate(AT_ONCE)) for system in systems]
    repeated = [fails(accepted, rerun) for accepted, failed, rerun in released if fails(accepted, failed)]
    yield share_claim("-20 points: what failed fails again when it is repeated", 1, 1, repeated)


def declines(chance: np.random.Generator) -> bool:
    """Return whether any night of a slow decline fails: the last first, as they are the likeliest."""
    system = System(chance)
    accepted = system.evaluate()
    return any(fails(accepted, system.evaluate(night * A_NIGHT)) for night in range(NIGHTS, 0, -1))


def fails(*ranks: NDArray[np.float64]) -> bool:
    """Return whether the gate fails, with the accepted evaluation and another one."""
    return gate_fails([_cases(case_ranks) for case_ranks in ranks], TIER)


def _cases(ranks: NDArray[np.float64]) -> pa.Table:
    columns = {"hit_rate@1": (ranks == 1).astype(np.float64), "mrr": 1 / ranks, "ndcg@10": 1 / np.log2(ranks + 1)}
    ids = [f"q{number}" for number in range(N)]
    common_columns = {"status": ["ok"] * N, "reason": [None] * N, "group": [None] * N}
    return make_cases(case_id=ids, question=ids, **common_columns, **columns)
