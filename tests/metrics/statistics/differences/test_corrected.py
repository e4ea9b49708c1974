"""The difference of two corrected means: correlation of both sides, coverage and power."""

import numpy as np
import pytest

from yarus.metrics.statistics.corrected import LabelledScores, ppi_mean
from yarus.metrics.statistics.differences.corrected import compare_corrected

NAN = float("nan")


def make_side(rng: np.random.Generator, truth: np.ndarray, n: int, *, right: float = 0.85) -> LabelledScores:
    """Return judged answers, n of them labelled."""
    scores = np.where(rng.random(len(truth)) < right, truth, 1 - truth)
    labels = np.full(len(truth), NAN)
    chosen = rng.choice(len(truth), n, replace=False)
    labels[chosen] = truth[chosen]
    chances = np.full(len(truth), n / len(truth))
    return LabelledScores(scores, labels, chances, list(range(len(truth))), np.ones(len(truth), dtype=bool))


def test_compare_corrected_uses_one_weight() -> None:
    rng = np.random.default_rng(1)
    truth = (rng.random(400) < 0.7).astype(float)
    sides = make_side(rng, truth, 100), make_side(rng, truth, 100)
    compared = compare_corrected(*sides)
    means = [ppi_mean(*side[:3], groups=side.groups, counted=side.counted) for side in sides]
    weight = (means[0].weight + means[1].weight) / 2
    for value, side in zip((compared.a, compared.b), sides, strict=True):
        is_labelled = ~np.isnan(side.labels)
        by_hand = weight * side.scores.mean() + (side.labels[is_labelled] - weight * side.scores[is_labelled]).mean()
        assert value == pytest.approx(by_hand)
    assert compared.comparison.difference == pytest.approx(compared.b - compared.a)
    assert (compared.comparison.n, compared.comparison.method) == (100, "PPI++ (by group)")


@pytest.mark.parametrize("fall", [0.0, 0.1])
def test_compare_corrected_coverage_and_power(fall: float) -> None:
    """400 answers with 100 labels per side, 200 times: coverage .935 to .975, false alarms 2.5 to 8 %."""
    n_covered, n_detected = 0, 0
    for number in range(200):
        rng = np.random.default_rng(number)
        before = (rng.random(400) < 0.8).astype(float)
        after = np.where(rng.random(400) < 0.3, rng.random(400) < 0.8 - fall / 0.3, before).astype(float)
        comparison = compare_corrected(make_side(rng, before, 100), make_side(rng, after, 100)).comparison
        n_covered += comparison.interval.low <= -fall <= comparison.interval.high
        n_detected += comparison.verdict == "regressed"
    assert 0.9 < n_covered / 200 < 0.99
    assert n_detected / 200 < 0.05 if fall == 0 else n_detected / 200 > 0.4


def test_compare_corrected_with_equal_sides() -> None:
    rng = np.random.default_rng(3)
    side = make_side(rng, (rng.random(100) < 0.7).astype(float), 40)
    comparison = compare_corrected(side, side).comparison
    assert (comparison.difference, comparison.p) == (0.0, 1.0)
    assert comparison.interval.low < 0 < comparison.interval.high


def test_compare_corrected_if_lower_is_better() -> None:
    rng = np.random.default_rng(4)
    good, bad = (make_side(rng, (rng.random(400) < rate).astype(float), 200) for rate in (0.9, 0.4))
    assert compare_corrected(good, bad).comparison.verdict == "regressed"
    assert compare_corrected(good, bad, better="lower").comparison.verdict == "improved"


def test_compare_corrected_undefined_without_labels() -> None:
    rng = np.random.default_rng(5)
    side = make_side(rng, np.ones(50), 20)
    unlabelled = side._replace(labels=np.full(50, NAN))
    compared = compare_corrected(side, unlabelled)
    assert np.isnan([compared.a, compared.b, compared.comparison.p]).all()
    assert compared.comparison.verdict == "inconclusive"


def test_compare_corrected_keeps_groups_with_missing_scores() -> None:
    rng = np.random.default_rng(6)
    truth = (rng.random(60) < 0.7).astype(float)
    side = make_side(rng, truth, 60)
    with_missing = side._replace(scores=np.where(np.arange(60) < 10, NAN, side.scores))
    complete = LabelledScores(
        side.scores[10:], side.labels[10:], side.probabilities[10:], side.groups[10:], side.counted[10:]
    )
    assert compare_corrected(side, with_missing).comparison == compare_corrected(side, complete).comparison
