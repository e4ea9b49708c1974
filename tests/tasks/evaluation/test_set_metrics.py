"""Intervals of the metrics of a set: groups reach every one of them, and none leaves its range."""

import math

import numpy as np
import pytest

from yarus.metrics import agreement
from yarus.tasks.evaluation.numbers import interval
from yarus.tasks.evaluation.set_metrics import SET_METRICS, over_pairs

RNG = np.random.default_rng(5)
N = 200
USERS = [f"user {number // 20}" for number in range(N)]
SAME = RNG.random(10).repeat(20)  # what a user's cases have in common
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
def test_groups_widen_every_interval_of_a_set(name: str) -> None:
    measure = SET_METRICS[name].measure
    assert measure is not None
    alone, grouped = (measure(TABLES[name], groups, 0) for groups in ([None] * N, USERS))
    assert grouped.value == alone.value
    assert grouped.interval.low < alone.interval.low <= alone.value <= alone.interval.high < grouped.interval.high


@pytest.mark.slow("simulation: many samples")
def test_rank_correlation_knows_of_groups() -> None:
    alone, grouped = (over_pairs(agreement.spearman, *SCORES, groups, 0) for groups in ([None] * N, USERS))
    assert np.ptp(grouped.interval) > 1.5 * np.ptp(alone.interval)
    with_gap = (np.append(SCORES[0], math.nan), np.append(SCORES[1], 1.0))
    assert over_pairs(agreement.spearman, *with_gap, [*USERS, "user 9"], 0) == grouped


@pytest.mark.parametrize(("name", "counts"), [("f1_score", (20, 0, 0, 0)), ("mcc", (18, 2, 0, 0))])
def test_perfect_decisions_of_few_cases_leave_a_doubt(name: str, counts: tuple[int, ...]) -> None:
    measure = SET_METRICS[name].measure
    assert measure is not None
    found = measure(np.eye(4).repeat(counts, axis=0), [None] * 20, 0)
    assert found.value == 1 == found.interval.high
    assert found.interval.low < 0.95


def test_calls_of_one_case_belong_together() -> None:
    """Ten cases of ten calls each, of which all or none fail: ten calls would tell as much."""
    measure = SET_METRICS["error_rate"].measure
    assert measure is not None
    rows = np.column_stack([[10, 0] * 5, [10] * 10]).astype(float)
    found = measure(rows, [None] * 10, 0)
    assert (found.value, found.n_scored, found.n_total) == (0.5, 100, 100)
    assert np.ptp(found.interval) > 0.5


def test_an_interval_that_is_open_is_shown_by_its_bound() -> None:
    metric = {"ci_low": 120.0, "ci_high": None}
    assert interval("retrieval_latency_ms_p95", metric).startswith("≥")
    assert "120" in interval("retrieval_latency_ms_p95", metric)
