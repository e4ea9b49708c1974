"""How often the gate is wrong, counted: on noise, and on drops of the size that it says it detects."""

import numpy as np
import pytest

from yarus.metrics.statistics.differences.comparison import adjusted
from yarus.metrics.statistics.differences.numbers import Compared, Number
from yarus.metrics.statistics.differences.paired import compare_numbers
from yarus.tasks.comparison.gate_rules import Rule
from yarus.tasks.comparison.gate_verdicts import regressions

N = 200


def gates(shift: float, seed: int, n_gates: int) -> list[list[str]]:
    """The verdicts of gates with three no-regression rules on pairs of evaluations of 200 cases; the first shifted."""
    rng, names = np.random.default_rng(seed), ("mrr", "ndcg@10", "hit_rate@1")
    found: dict[str, list[Compared]] = {}
    for name in names:
        hard = rng.uniform(size=(n_gates, N))
        before, after = (hard + rng.normal(0, 0.15, hard.shape) for _ in range(2))
        if name == "hit_rate@1":
            before, after = (before > 0.3).astype(float), (after > 0.3).astype(float)
        after = after - (shift if name == "mrr" else 0)
        for start in range(0, n_gates, 50):
            rows = range(start, min(start + 50, n_gates))
            numbers = {str(row): Number(a=before[row], b=after[row]) for row in rows}
            found.setdefault(name, []).extend(compare_numbers(numbers, seed=seed + start, count=600).values())
    verdicts = []
    for row in range(n_gates):
        headlines = adjusted({name: found[name][row].comparison for name in names})
        pairs = {Rule(name, "no regression"): found[name][row] for name in names}
        verdicts.append([rule["verdict"] for rule in regressions(pairs, headlines).values()])
    return verdicts


@pytest.mark.slow("simulation: a thousand gates")
def test_a_thousand_gates_on_noise_fail_rarely() -> None:
    failed = np.mean(["fail" in verdicts for verdicts in gates(0.0, 0, 1_000)])
    assert failed <= 0.065  # of any regression 0.025: half of the false alarms are improvements


@pytest.mark.slow("simulation: hundreds of gates")
def test_a_drop_of_the_detectable_size_is_found_as_often_as_is_said() -> None:
    # Of differences with a deviation of 0.15 * sqrt(2), 200 cases detect 2.8 * 0.212 / sqrt(200) = 0.042 alone;
    # among three rules the smallest p must be below 0.05 / 3, and less is found.
    found = np.mean(["fail" in verdicts[:1] for verdicts in gates(0.042, 1, 300)])
    assert 0.6 <= found <= 0.85
