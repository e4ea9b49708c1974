"""Intervals of set metrics: all use groups, and stay within the metric's range."""

import math

import numpy as np
import pytest

from yarus.metrics import agreement
from yarus.tasks.evaluation.number_format import format_interval
from yarus.tasks.evaluation.set_metrics import SET_METRICS, measure_agreement

RNG = np.random.default_rng(5)
N = 200
USERS = [f"user {number // 20}" for number in range(N)]
SAME = RNG.random(10).repeat(20)  # shared component of a user's cases
OUTCOMES = np.eye(4)[(SAME * 4).astype(int)]
SCORES = (np.round(SAME * 4) / 4, np.round(np.clip(SAME + RNG.normal(0, 0.2, 10).repeat(20), 0, 1) * 4) / 4)
TABLES = {
    "f1_score": OUTCOMES,
    "mcc": OUTCOMES,
    "invalid_rate": (SAME > 0.5) * 1.0,
    "precision": OUTCOMES,
    "weighted_kappa": agreement.kappa_parts(*SCORES),
    "user_votes_weighted_kappa": agreement.kappa_parts(*SCORES),
    "error_rate": np.column_stack([SAME > 0.7, np.full(N, 2)]).astype(float),
}


@pytest.mark.parametrize("name", TABLES)
def test_set_metric_intervals_widen_with_groups(name: str) -> None:
    measure = SET_METRICS[name].measure
    assert measure is not None
    alone, grouped = (measure(TABLES[name], groups, 0) for groups in ([None] * N, USERS))
    assert grouped.value == alone.value
    assert grouped.interval.low < alone.interval.low <= alone.value <= alone.interval.high < grouped.interval.high


@pytest.mark.slow("simulation: many samples")
def test_over_pairs_interval_widens_with_groups() -> None:
    alone, grouped = (measure_agreement(agreement.spearman, *SCORES, groups, 0) for groups in ([None] * N, USERS))
    assert np.ptp(grouped.interval) > 1.5 * np.ptp(alone.interval)
    with_gap = (np.append(SCORES[0], math.nan), np.append(SCORES[1], 1.0))
    assert measure_agreement(agreement.spearman, *with_gap, [*USERS, "user 9"], 0) == grouped


@pytest.mark.parametrize(("name", "counts"), [("f1_score", (20, 0, 0, 0)), ("mcc", (18, 2, 0, 0))])
def test_set_metric_interval_is_open_for_few_perfect_cases(name: str, counts: tuple[int, ...]) -> None:
    measure = SET_METRICS[name].measure
    assert measure is not None
    result = measure(np.eye(4).repeat(counts, axis=0), [None] * 20, 0)
    assert result.value == 1 == result.interval.high
    assert result.interval.low < 0.95


def test_error_rate_groups_calls_of_one_case() -> None:
    """Ten cases of ten calls each, of which all or none fail, carry the information of ten calls."""
    measure = SET_METRICS["error_rate"].measure
    assert measure is not None
    rows = np.column_stack([[10, 0] * 5, [10] * 10]).astype(float)
    result = measure(rows, [None] * 10, 0)
    assert (result.value, result.n_scored, result.n_total) == (0.5, 100, 100)
    assert np.ptp(result.interval) > 0.5


def test_interval_shows_lower_bound_when_open() -> None:
    metric = {"ci_low": 120.0, "ci_high": None}
    assert format_interval("retrieval_latency_ms_p95", metric).startswith("≥")
    assert "120" in format_interval("retrieval_latency_ms_p95", metric)
