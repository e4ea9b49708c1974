"""The comparison of two corrected means."""

import numpy as np

from yarus.metrics.metric import Direction
from yarus.metrics.statistics.corrected import (
    PSEUDO_LABELS,
    LabelledScores,
    PPIEstimate,
    check_sample,
    estimate_mean,
    jackknife_half_width,
)
from yarus.metrics.statistics.differences.compared_statistics import StatisticComparison
from yarus.metrics.statistics.differences.comparison import Comparison, build_comparison
from yarus.metrics.statistics.differences.intervals import p_value_at
from yarus.metrics.statistics.groups import Floats, group_codes
from yarus.metrics.statistics.intervals import NO_INTERVAL, UNDEFINED, Interval, normal_quantile
from yarus.metrics.statistics.power import detectable_difference

DEFAULT_MARGIN = 0.05
"""The largest difference that does not matter: five points of a share."""
METHOD = "PPI++ (by group)"


def compare_corrected(
    a: LabelledScores, b: LabelledScores, *, better: Direction = "higher", confidence: float = 0.95
) -> StatisticComparison:
    """Compare two corrected means: is b better than a, as people would judge both?

    Both means give the judge's scores the same weight, and the contributions of a group to both are correlated. Labels
    must be of each side's own answers: labels of other answers correct both alike, so that only the judge's difference
    is left.

    Args:
        a, b: both sides.
        better: which direction of the metric is better.
        confidence: the interval's level, 0..1.

    Returns:
        Both means, and the comparison: Student's interval of the difference over groups, and its test. If a side has
        fewer than two labels the values are NaN.

    Reference: Angelopoulos, Duchi and Zrnic 2023, PPI++: Efficient prediction-powered inference (arXiv 2311.01453).

    Example:
        >>> from yarus.metrics.statistics.corrected import LabelledScores
        >>> from yarus.metrics.statistics.differences.corrected import compare_corrected
        >>> people = [1.0] * 18 + [0.0] * 2 + [float("nan")] * 60, [1.0] * 11 + [0.0] * 9 + [float("nan")] * 60
        >>> names, chances, counted = list(range(80)), [0.25] * 80, [True] * 80
        >>> sides = [LabelledScores([1.0] * 80, labels, chances, names, counted) for labels in people]
        >>> result = compare_corrected(*sides)
        >>> round(result.a, 2), round(result.b, 2), result.comparison.verdict
        (0.9, 0.55, 'regressed')
    """
    codes = group_codes([*a.groups, *b.groups], len(a.groups) + len(b.groups))
    samples = []
    for side, side_codes in zip((a, b), np.split(codes, [len(a.groups)]), strict=True):
        sample = check_sample(side.scores, side.labels, side.probabilities, None, side.counted, bounded=side.bounded)
        samples.append(sample._replace(codes=side_codes[~np.isnan(np.asarray(side.scores, dtype=np.float64))]))
    estimates = [estimate_mean(sample) for sample in samples]
    if estimates[0] is None or estimates[1] is None:
        return StatisticComparison(UNDEFINED, UNDEFINED, _undefined_comparison(better, confidence))
    weight = (estimates[0].weight + estimates[1].weight) / 2
    before, after = (estimate_mean(sample, weight=weight) for sample in samples)
    if before is None or after is None:  # for the type checker: they were not None above
        return StatisticComparison(UNDEFINED, UNDEFINED, _undefined_comparison(better, confidence))
    return StatisticComparison(
        before.value, after.value, _compare(before, after, int(codes.max()) + 1, better, confidence)
    )


def _compare(before: PPIEstimate, after: PPIEstimate, groups: int, better: Direction, confidence: float) -> Comparison:
    sides = (before, after)
    influences = [_by_group(side, side.influences, groups) for side in sides]
    labels = [_by_group(side, side.w, groups) for side in sides]
    n_effective = [side.effective_labels(confidence) for side in sides]
    shares_of_labels = [n / (n + len(PSEUDO_LABELS)) for n in n_effective]
    invented = [
        sign * (np.array(PSEUDO_LABELS) - side.value) / (n + len(PSEUDO_LABELS))
        for sign, side, n in zip((-1, 1), sides, n_effective, strict=True)
    ]
    by_group = np.concatenate([shares_of_labels[1] * influences[1] - shares_of_labels[0] * influences[0], *invented])
    shares = np.append((labels[0] + labels[1]) / 2, np.zeros(2 * len(PSEUDO_LABELS)))
    difference = round(after.value - before.value, 12) + 0.0  # the same labels in another order are not a difference

    def interval_at(level: float) -> Interval:
        half_width = jackknife_half_width(by_group, shares, level)
        return Interval(difference - half_width, difference + half_width)

    half_width = jackknife_half_width(by_group, shares, confidence)
    units = int(np.count_nonzero(shares))
    return build_comparison(
        difference,
        p_value_at(interval_at, 0.0),
        interval_at,
        METHOD,
        detectable_at=lambda alpha, margin: detectable_difference(
            half_width / normal_quantile(confidence), alpha=alpha
        ),
        n=min(int((~np.isnan(side.sample.labels)).sum()) for side in sides),
        units=units,
        n_missing=0,
        better=better,
        margin=DEFAULT_MARGIN,
        confidence=confidence,
    )


def _by_group(side: PPIEstimate, by_case: Floats, groups: int) -> Floats:
    return np.asarray(np.bincount(side.sample.codes, by_case, minlength=groups), dtype=np.float64)


def _undefined_comparison(better: Direction, confidence: float) -> Comparison:
    return build_comparison(
        UNDEFINED,
        UNDEFINED,
        lambda level: NO_INTERVAL,
        "none: a side has fewer than two labels",
        detectable_at=lambda alpha, margin: UNDEFINED,
        n=0,
        units=0,
        n_missing=0,
        better=better,
        margin=DEFAULT_MARGIN,
        confidence=confidence,
    )
