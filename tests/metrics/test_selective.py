"""The cheapest threshold: planted gates, the curve's ends, and what cannot be."""

import numpy as np
import pytest

from yarus.metrics.selective import cheapest, costs, curve, thresholds


def test_the_curve_shows_all_at_its_beginning_and_nothing_at_its_end() -> None:
    points = curve([0.1, 0.4, 0.4, 0.9], [0, 0, 1, 1], wrong_shown=2, right_hidden=1)
    assert [(p.threshold, p.coverage, p.cost) for p in points] == [
        (0.1, 1.0, 1.0),
        (0.4, 0.75, 0.5),
        (0.9, 0.25, 0.25),
        (np.inf, 0.0, 0.5),
    ]
    assert points[1].risk == pytest.approx(1 / 3) and np.isnan(points[3].risk)


@pytest.mark.slow("simulation: forty gates")
def test_the_interval_holds_the_threshold_of_a_planted_gate() -> None:
    """An answer is right as often as its score says: it is best shown from wrong / (wrong + hidden) on."""
    held = []
    for seed in range(40):
        chance = np.random.default_rng(seed)
        scores = chance.beta(2, 1.2, 400)
        right = chance.random(400) < scores
        found = cheapest(scores, right, scores >= 0.5, wrong_shown=3, right_hidden=1, seed=seed)
        held.append(found.interval.low <= 0.75 <= found.interval.high)
        assert found.interval.low < found.shown.threshold <= found.interval.high
    assert sum(held) >= 37


@pytest.mark.slow("simulation: forty gates")
def test_a_score_that_says_nothing_saves_nothing() -> None:
    """Chosen on the same cases the threshold always seems to save; on other cases it does not."""
    saved = []
    for seed in range(40):
        chance = np.random.default_rng(seed)
        scores, right = chance.random(200), chance.random(200) < 0.7
        found = cheapest(scores, right, np.ones(200), wrong_shown=1, right_hidden=1, seed=seed)
        assert found.saved_interval.low <= 0
        saved.append(found.saved)
    assert np.mean(saved) <= 0


def test_groups_widen_the_interval() -> None:
    chance = np.random.default_rng(0)
    users = np.repeat(np.arange(20), 20)
    scores = np.clip(chance.normal(0.6, 0.2, 400), 0, 1)
    right = chance.random(400) < np.clip(scores + chance.normal(0, 0.3, 20)[users], 0, 1)
    price = {"wrong_shown": 2.0, "right_hidden": 1.0, "seed": 0}
    alone = cheapest(scores, right, scores >= 0.5, **price)  # type: ignore[arg-type]
    grouped = cheapest(scores, right, scores >= 0.5, groups=users.tolist(), **price)  # type: ignore[arg-type]
    width = [found.interval.high - found.interval.low for found in (alone, grouped)]
    assert width[1] >= width[0] and width[1] > 0.2


def test_many_scores_are_tried_at_fifty_thresholds() -> None:
    scores = np.random.default_rng(0).random(5_000)
    tried = thresholds(scores)
    assert len(tried) == 50 and tried[0] == scores.min() and tried[-2] == scores.max() and np.isinf(tried[-1])


def test_one_score_for_all_is_one_threshold() -> None:
    found = cheapest([0.5] * 30, [1] * 20 + [0] * 10, [1] * 30, wrong_shown=1, right_hidden=1, seed=0)
    assert found.shown.threshold == 0.5 and found.shown.coverage == 1


@pytest.mark.parametrize(("scores", "right"), [([], []), ([0.5], [])])
def test_what_cannot_be_is_refused(scores: list[float], right: list[int]) -> None:
    with pytest.raises(ValueError, match="as many"):
        curve(scores, right, wrong_shown=1, right_hidden=1)


def test_costs_of_several_thresholds() -> None:
    assert costs([1, 0], [[1, 0], [1, 0]], wrong_shown=5, right_hidden=2).tolist() == [[0, 2], [5, 0]]
