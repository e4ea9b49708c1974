"""The difference of two corrected means: what both share is no chance, and what is found is true."""

import numpy as np
import pytest

from yarus.metrics.statistics.corrected import Labelled, corrected_mean
from yarus.metrics.statistics.differences.corrected import compare_corrected

NAN = float("nan")


def side(rng: np.random.Generator, truth: np.ndarray, n: int, *, right: float = 0.85) -> Labelled:
    """All answers judged, n of them labelled."""
    scores = np.where(rng.random(len(truth)) < right, truth, 1 - truth)
    labels = np.full(len(truth), NAN)
    chosen = rng.choice(len(truth), n, replace=False)
    labels[chosen] = truth[chosen]
    chances = np.full(len(truth), n / len(truth))
    return Labelled(scores, labels, chances, list(range(len(truth))), np.ones(len(truth), dtype=bool))


def test_both_means_are_those_of_one_weight() -> None:
    rng = np.random.default_rng(1)
    truth = (rng.random(400) < 0.7).astype(float)
    sides = side(rng, truth, 100), side(rng, truth, 100)
    found = compare_corrected(*sides)
    alone = [corrected_mean(*one[:3], groups=one.groups, counted=one.counted) for one in sides]
    weight = (alone[0].weight + alone[1].weight) / 2
    for value, one in zip((found.a, found.b), sides, strict=True):
        known = ~np.isnan(one.labels)
        by_hand = weight * one.scores.mean() + (one.labels[known] - weight * one.scores[known]).mean()
        assert value == pytest.approx(by_hand)
    assert found.comparison.difference == pytest.approx(found.b - found.a)
    assert (found.comparison.n, found.comparison.method) == (100, "PPI++ (by group)")


@pytest.mark.parametrize("fall", [0.0, 0.1])
def test_its_interval_holds_the_truth_and_a_loss_is_found(fall: float) -> None:
    """400 answers with 100 labels a side, 200 times: .935 to .975 of intervals, and of no loss 2.5 to 8 % are found."""
    held, found = 0, 0
    for number in range(200):
        rng = np.random.default_rng(number)
        before = (rng.random(400) < 0.8).astype(float)
        after = np.where(rng.random(400) < 0.3, rng.random(400) < 0.8 - fall / 0.3, before).astype(float)
        one = compare_corrected(side(rng, before, 100), side(rng, after, 100)).comparison
        held += one.interval.low <= -fall <= one.interval.high
        found += one.verdict == "regressed"
    assert 0.9 < held / 200 < 0.99
    assert found / 200 < 0.05 if fall == 0 else found / 200 > 0.4


def test_the_same_labels_on_both_sides_are_no_difference() -> None:
    rng = np.random.default_rng(3)
    one = side(rng, (rng.random(100) < 0.7).astype(float), 40)
    found = compare_corrected(one, one).comparison
    assert (found.difference, found.p) == (0.0, 1.0)
    assert found.interval.low < 0 < found.interval.high


def test_less_is_better_of_some_metrics() -> None:
    rng = np.random.default_rng(4)
    good, bad = (side(rng, (rng.random(400) < rate).astype(float), 200) for rate in (0.9, 0.4))
    assert compare_corrected(good, bad).comparison.verdict == "regressed"
    assert compare_corrected(good, bad, better="lower").comparison.verdict == "improved"


def test_a_side_without_labels_has_no_value() -> None:
    rng = np.random.default_rng(5)
    one = side(rng, np.ones(50), 20)
    none = one._replace(labels=np.full(50, NAN))
    found = compare_corrected(one, none)
    assert np.isnan([found.a, found.b, found.comparison.p]).all()
    assert found.comparison.verdict == "inconclusive"


def test_scores_that_are_missing_leave_their_groups_in_step() -> None:
    rng = np.random.default_rng(6)
    truth = (rng.random(60) < 0.7).astype(float)
    one = side(rng, truth, 60)
    holed = one._replace(scores=np.where(np.arange(60) < 10, NAN, one.scores))
    kept = Labelled(one.scores[10:], one.labels[10:], one.probabilities[10:], one.groups[10:], one.counted[10:])
    assert compare_corrected(one, holed).comparison == compare_corrected(one, kept).comparison
