"""The comparison of statistics of two evaluations over different cases, which cannot be paired."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from math import comb
from typing import TypeAlias

import numpy as np

from yarus.metrics.statistics.differences.compared_statistics import (
    PreparedStatistic,
    SampleStatistic,
    StatisticComparison,
    percentile_interval_at,
    prepare_statistic,
)
from yarus.metrics.statistics.differences.comparison import build_comparison
from yarus.metrics.statistics.differences.draws import resample_values
from yarus.metrics.statistics.differences.intervals import ClusteredMean, IntervalAt, clustered_mean, student_interval
from yarus.metrics.statistics.groups import Floats, group_codes
from yarus.metrics.statistics.intervals import NO_INTERVAL, SMALLEST_P, UNDEFINED, Interval, wilson_interval
from yarus.metrics.statistics.power import detectable_difference

TestResult: TypeAlias = tuple[float, IntervalAt, str]
"""p, the interval at any level, and the name of the method."""
N_RESAMPLES = 10_000
"""Number of resamples."""


def compare_independent(
    numbers: Mapping[str, SampleStatistic],
    *,
    seed: int,
    groups: tuple[Sequence[Hashable], Sequence[Hashable]],
    confidence: float = 0.95,
) -> dict[str, StatisticComparison]:
    """Compare every statistic over the cases of a with that over the different cases of b.

    Means: Welch's test and interval, with the variance and the degrees of freedom of the groups. Shares of cases
    without groups: Fisher's exact test and Newcombe's interval. Everything else: a separate bootstrap of each side
    (whole groups are drawn), percentiles of the difference, and p from the share of draws beyond no difference. If test
    and interval disagree, the more conservative one is used.

    Args:
        numbers: by name; each side over its own cases.
        seed: of the resamples.
        groups: labels of a's cases and of b's; None marks a case without a group.
        confidence: the intervals' level, 0..1.

    Returns:
        By name; `n` counts the measured cases of the smaller side, `n_missing` those of both that were not measured.

    Raises:
        ValueError: groups of another length.

    Reference: Welch 1947, The generalization of Student's problem; Efron and Tibshirani 1993, chapter 16.

    Example:
        >>> import numpy as np
        >>> from yarus.metrics.statistics.differences.compared_statistics import SampleStatistic
        >>> from yarus.metrics.statistics.differences.unpaired import compare_independent
        >>> a, b = np.array([0.2, 0.5, 0.4, 0.6, 0.3, 0.7]), np.array([0.8, 0.7, 0.9, 0.6, 0.8, 0.9, 0.7])
        >>> alone = [None] * 6, [None] * 7
        >>> result = compare_independent({"mrr": SampleStatistic(a, b)}, seed=0, groups=alone)["mrr"].comparison
        >>> round(result.difference, 3), result.method, result.verdict
        (0.321, 'Welch', 'improved')
    """
    groups_a, groups_b = groups
    numbers_a = {name: replace(number, b=number.a) for name, number in numbers.items()}
    numbers_b = {name: replace(number, a=number.b) for name, number in numbers.items()}
    pairs_a, drawn_a = _resample(numbers_a, groups_a, seed)
    pairs_b, drawn_b = _resample(numbers_b, groups_b, seed + 1)
    return {
        name: _compare_pair(
            number, pairs_a[name], pairs_b[name], drawn_b[name] - drawn_a[name] if name in drawn_a else None, confidence
        )
        for name, number in numbers.items()
    }


def _resample(
    numbers: Mapping[str, SampleStatistic], groups: Sequence[Hashable], seed: int
) -> tuple[dict[str, PreparedStatistic], dict[str, Floats]]:
    """Return the prepared statistics of one evaluation, and the resamples of those that are not means."""
    codes = group_codes(groups, len(groups))
    pairs = {name: prepare_statistic(number, codes) for name, number in numbers.items()}
    units = len(np.unique(codes))
    sides = {name: next(pair.drawn(units)) for name, pair in pairs.items() if pair.units and not pair.number.is_mean}
    return pairs, resample_values(sides, units, seed=seed, count=N_RESAMPLES)


def _compare_pair(
    number: SampleStatistic,
    before: PreparedStatistic,
    after: PreparedStatistic,
    drawn: Floats | None,
    confidence: float,
) -> StatisticComparison:
    (a, _), (b, _) = before.values(), after.values()
    (values_a, _), (values_b, _) = before.sides, after.sides
    units = min(before.units, after.units)
    slack = 1e-12 * (abs(a) + abs(b))  # the same sum in another order is not a difference, and not a spread
    difference = 0.0 if abs(b - a) <= slack else b - a
    error = UNDEFINED
    result: TestResult = UNDEFINED, lambda level: NO_INTERVAL, "none: fewer than two cases a side, or no value"
    if units >= 2 and not np.isnan(difference):
        if drawn is not None:
            error, result = _bootstrap_test(difference, before, after, drawn, slack)
        else:
            error, result = _compare_means(difference, before, after, slack)
            if before.alone and after.alone and before.yes_no and after.yes_no:
                result = _compare_shares(values_a, values_b)
    comparison = build_comparison(
        difference,
        *result,
        detectable_at=lambda alpha, margin: detectable_difference(error, alpha=alpha),
        n=min(len(values_a), len(values_b)),
        units=units,
        n_missing=sum(len(pair.kept) - len(pair.codes) for pair in (before, after)),
        better=number.better,
        margin=number.margin_at(a, values_a, values_b),
        confidence=confidence,
    )
    return StatisticComparison(a, b, comparison)


def _bootstrap_test(
    difference: float, before: PreparedStatistic, after: PreparedStatistic, drawn: Floats, slack: float
) -> tuple[float, TestResult]:
    differences = np.where(np.abs(drawn) <= slack, 0.0, drawn)
    beyond = min(np.count_nonzero(differences <= 0), np.count_nonzero(differences >= 0)) + 1
    p = min(1.0, 2 * beyond / (np.count_nonzero(~np.isnan(differences)) + 1))
    fewer = min(before, after, key=lambda pair: pair.units)
    method = "independent bootstrap, percentile" + ("" if before.alone and after.alone else " (by group)")
    return float(np.nanstd(differences)), (p, percentile_interval_at(difference, differences, fewer.codes), method)


def _compare_means(
    difference: float, before: PreparedStatistic, after: PreparedStatistic, slack: float
) -> tuple[float, TestResult]:
    from scipy.special import stdtr  # here, because it costs 0.1 s to import

    a, b = (clustered_mean(pair.sides[0], np.unique(pair.codes, return_inverse=True)[1]) for pair in (before, after))
    method = "Welch" + ("" if before.alone and after.alone else " (by group)")
    error = float(np.hypot(a.error, b.error))
    if error <= slack:  # without variation on either side, p is the chance of such a split
        p = 2 / comb(before.units + after.units, before.units) if difference else 1.0
        return UNDEFINED, (max(p, SMALLEST_P), lambda level: Interval(difference, difference), "permutation")
    degrees = error**4 / (a.error**4 / a.degrees + b.error**4 / b.degrees)
    p = max(SMALLEST_P, 2 * float(stdtr(degrees, -abs(difference) / error)))
    return error, (p, lambda level: student_interval(ClusteredMean(difference, error, degrees), level), method)


def _compare_shares(a: Floats, b: Floats) -> TestResult:
    """Return Fisher's exact test, and the interval of the difference b - a of two shares (Newcombe's method 10)."""
    from scipy import stats  # here, because it costs half a second to import

    yes_a, yes_b, n_a, n_b = int(a.sum()), int(b.sum()), len(a), len(b)
    p = float(stats.fisher_exact([[yes_a, n_a - yes_a], [yes_b, n_b - yes_b]]).pvalue)
    share_a, share_b = yes_a / n_a, yes_b / n_b

    def interval_at(confidence: float) -> Interval:
        low_a, high_a = wilson_interval(yes_a, n_a, confidence=confidence)
        low_b, high_b = wilson_interval(yes_b, n_b, confidence=confidence)
        return Interval(
            share_b - share_a - ((share_b - low_b) ** 2 + (high_a - share_a) ** 2) ** 0.5,
            share_b - share_a + ((high_b - share_b) ** 2 + (share_a - low_a) ** 2) ** 0.5,
        )

    return max(p, SMALLEST_P), interval_at, "exact Fisher, Newcombe"
