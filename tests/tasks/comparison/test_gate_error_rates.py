"""Error rates of the gate, by simulation: on noise, and on drops of the detectable size."""

import numpy as np
import pytest

from yarus.metrics.statistics.differences.compared_statistics import SampleStatistic, StatisticComparison
from yarus.metrics.statistics.differences.comparison import adjust_for_multiple_tests
from yarus.metrics.statistics.differences.paired import compare_statistics
from yarus.tasks.comparison.gate_rules import GateRule
from yarus.tasks.comparison.gate_verdicts import judge_regressions

N = 200


def simulate_gates(shift: float, seed: int, n_gates: int) -> list[list[str]]:
    """Return the verdicts of gates with three rules on pairs of evaluations of 200 cases; the first is shifted."""
    rng, names = np.random.default_rng(seed), ("mrr", "ndcg@10", "hit_rate@1")
    compared: dict[str, list[StatisticComparison]] = {}
    for name in names:
        difficulties = rng.uniform(size=(n_gates, N))
        before, after = (difficulties + rng.normal(0, 0.15, difficulties.shape) for _ in range(2))
        if name == "hit_rate@1":
            before, after = (before > 0.3).astype(float), (after > 0.3).astype(float)
        after = after - (shift if name == "mrr" else 0)
        for start in range(0, n_gates, 50):
            rows = range(start, min(start + 50, n_gates))
            numbers = {str(row): SampleStatistic(a=before[row], b=after[row]) for row in rows}
            compared.setdefault(name, []).extend(compare_statistics(numbers, seed=seed + start, count=600).values())
    verdicts = []
    for row in range(n_gates):
        headlines = adjust_for_multiple_tests({name: compared[name][row].comparison for name in names})
        pairs = {GateRule(name, "no regression"): compared[name][row] for name in names}
        verdicts.append([rule["verdict"] for rule in judge_regressions(pairs, headlines).values()])
    return verdicts


@pytest.mark.slow("simulation: a thousand gates")
def test_gates_on_noise_rarely_fail() -> None:
    failed = np.mean(["fail" in verdicts for verdicts in simulate_gates(0.0, 0, 1_000)])
    assert failed <= 0.065  # of any regression 0.025: half of the false alarms are improvements


@pytest.mark.slow("simulation: hundreds of gates")
def test_gates_detect_drops_with_the_stated_power() -> None:
    # Of differences with a deviation of 0.15 * sqrt(2), 200 cases detect 2.8 * 0.212 / sqrt(200) = 0.042 alone;
    # among three rules the smallest p must be below 0.05 / 3, and less is found.
    power = np.mean(["fail" in verdicts[:1] for verdicts in simulate_gates(0.042, 1, 300)])
    assert 0.6 <= power <= 0.85
