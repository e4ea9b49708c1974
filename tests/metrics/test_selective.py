"""The best threshold: simulated gates, the ends of the curve, and refused input."""

import numpy as np
import pytest

from yarus.metrics.selective import best_threshold, candidate_thresholds, decision_costs, risk_coverage_curve


def test_curve_from_all_shown_to_none() -> None:
    points = risk_coverage_curve([0.1, 0.4, 0.4, 0.9], [0, 0, 1, 1], wrong_shown=2, right_hidden=1)
    assert [(p.threshold, p.coverage, p.cost) for p in points] == [
        (0.1, 1.0, 1.0),
        (0.4, 0.75, 0.5),
        (0.9, 0.25, 0.25),
        (np.inf, 0.0, 0.5),
    ]
    assert points[1].risk == pytest.approx(1 / 3) and np.isnan(points[3].risk)


@pytest.mark.slow("simulation: forty gates")
def test_best_threshold_interval_contains_true_threshold() -> None:
    """An answer is right as often as its score says: the best threshold is wrong / (wrong + hidden)."""
    covers = []
    for seed in range(40):
        chance = np.random.default_rng(seed)
        scores = chance.beta(2, 1.2, 400)
        right = chance.random(400) < scores
        best = best_threshold(scores, right, scores >= 0.5, wrong_shown=3, right_hidden=1, seed=seed)
        covers.append(best.interval.low <= 0.75 <= best.interval.high)
        assert best.interval.low < best.shown.threshold <= best.interval.high
    assert sum(covers) >= 37


@pytest.mark.slow("simulation: forty gates")
def test_best_threshold_saves_nothing_with_useless_score() -> None:
    """Chosen on the same cases the threshold always seems to save; on other cases it does not."""
    saved = []
    for seed in range(40):
        chance = np.random.default_rng(seed)
        scores, right = chance.random(200), chance.random(200) < 0.7
        best = best_threshold(scores, right, np.ones(200), wrong_shown=1, right_hidden=1, seed=seed)
        assert best.saved_interval.low <= 0
        saved.append(best.saved)
    assert np.mean(saved) <= 0


def test_best_threshold_interval_wider_with_groups() -> None:
    chance = np.random.default_rng(0)
    users = np.repeat(np.arange(20), 20)
    scores = np.clip(chance.normal(0.6, 0.2, 400), 0, 1)
    right = chance.random(400) < np.clip(scores + chance.normal(0, 0.3, 20)[users], 0, 1)
    price = {"wrong_shown": 2.0, "right_hidden": 1.0, "seed": 0}
    ungrouped = best_threshold(scores, right, scores >= 0.5, **price)  # type: ignore[arg-type]
    grouped = best_threshold(scores, right, scores >= 0.5, groups=users.tolist(), **price)  # type: ignore[arg-type]
    width = [best.interval.high - best.interval.low for best in (ungrouped, grouped)]
    assert width[1] >= width[0] and width[1] > 0.2


def test_thresholds_at_most_fifty() -> None:
    scores = np.random.default_rng(0).random(5_000)
    tried = candidate_thresholds(scores)
    assert len(tried) == 50 and tried[0] == scores.min() and tried[-2] == scores.max() and np.isinf(tried[-1])


def test_best_threshold_with_one_score() -> None:
    best = best_threshold([0.5] * 30, [1] * 20 + [0] * 10, [1] * 30, wrong_shown=1, right_hidden=1, seed=0)
    assert best.shown.threshold == 0.5 and best.shown.coverage == 1


@pytest.mark.parametrize(("scores", "right"), [([], []), ([0.5], [])])
def test_best_threshold_refuses(scores: list[float], right: list[int]) -> None:
    with pytest.raises(ValueError, match="as many"):
        risk_coverage_curve(scores, right, wrong_shown=1, right_hidden=1)


def test_costs_of_several_thresholds() -> None:
    assert decision_costs([1, 0], [[1, 0], [1, 0]], wrong_shown=5, right_hidden=2).tolist() == [[0, 2], [5, 0]]
