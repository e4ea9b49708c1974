"""Numbers of two evaluations over different cases: all that is left where the cases cannot be paired."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from math import comb
from typing import TypeAlias

import numpy as np

from yarus.metrics.statistics.differences.comparison import concluded
from yarus.metrics.statistics.differences.draws import draw_values
from yarus.metrics.statistics.differences.intervals import IntervalAt, Mean, mean_of, student_interval
from yarus.metrics.statistics.differences.numbers import Compared, Number, Pair, percentiles_at, prepare
from yarus.metrics.statistics.groups import Floats, group_codes
from yarus.metrics.statistics.intervals import NO_INTERVAL, SMALLEST, UNDEFINED, Interval, wilson_interval
from yarus.metrics.statistics.power import detectable

How: TypeAlias = tuple[float, IntervalAt, str]
"""p, the interval at any level, and the method's name."""
COUNT = 10_000
"""How many draws."""


def compare_independent(
    numbers: Mapping[str, Number],
    *,
    seed: int,
    groups: tuple[Sequence[Hashable], Sequence[Hashable]],
    confidence: float = 0.95,
) -> dict[str, Compared]:
    """Compares every number over the cases of a with that over the cases of b, which are others.

    Means: Welch's test and interval, with the variance and the degrees of freedom of the groups; shares of cases that
    stand alone: Fisher's exact test and Newcombe's interval. Everything else: the bootstrap of each side by itself
    (whole groups are drawn), percentiles of the difference, and p from the share of draws beyond no difference. Where
    test and interval disagree, the more careful one is believed.

    Args:
        numbers: by name; each side over its own cases.
        seed: of the draws.
        groups: labels of a's cases and of b's; None marks a case that stands alone.
        confidence: the intervals' level, 0..1.

    Returns:
        By name; `n` counts the measured cases of the smaller side, `n_missing` those of both that were not measured.

    Raises:
        ValueError: groups of another length.

    Reference: Welch 1947, The generalization of Student's problem; Efron and Tibshirani 1993, chapter 16.

    Example:
        >>> import numpy as np
        >>> from yarus.metrics.statistics.differences.numbers import Number
        >>> from yarus.metrics.statistics.differences.unpaired import compare_independent
        >>> a, b = np.array([0.2, 0.5, 0.4, 0.6, 0.3, 0.7]), np.array([0.8, 0.7, 0.9, 0.6, 0.8, 0.9, 0.7])
        >>> alone = [None] * 6, [None] * 7
        >>> found = compare_independent({"mrr": Number(a, b)}, seed=0, groups=alone)["mrr"].comparison
        >>> round(found.difference, 3), found.method, found.verdict
        (0.321, 'Welch', 'improved')
    """
    groups_a, groups_b = groups
    one, drawn_a = _drawn({name: replace(number, b=number.a) for name, number in numbers.items()}, groups_a, seed)
    other, drawn_b = _drawn({name: replace(number, a=number.b) for name, number in numbers.items()}, groups_b, seed + 1)
    return {
        name: _compared(
            number, one[name], other[name], drawn_b[name] - drawn_a[name] if name in drawn_a else None, confidence
        )
        for name, number in numbers.items()
    }


def _drawn(
    numbers: Mapping[str, Number], groups: Sequence[Hashable], seed: int
) -> tuple[dict[str, Pair], dict[str, Floats]]:
    """Numbers that have the same evaluation on both sides, prepared, and those that are no means in every resample."""
    codes = group_codes(groups, len(groups))
    pairs = {name: prepare(number, codes) for name, number in numbers.items()}
    units = len(np.unique(codes))
    sides = {name: next(pair.drawn(units)) for name, pair in pairs.items() if pair.units and not pair.number.is_mean}
    return pairs, draw_values(sides, units, seed=seed, count=COUNT)


def _compared(number: Number, one: Pair, other: Pair, drawn: Floats | None, confidence: float) -> Compared:
    (a, _), (b, _) = one.values(), other.values()
    (values_a, _), (values_b, _) = one.sides, other.sides
    units = min(one.units, other.units)
    slack = 1e-12 * (abs(a) + abs(b))  # the same sum in another order is no difference, and no spread
    difference = 0.0 if abs(b - a) <= slack else b - a
    error = UNDEFINED
    how: How = UNDEFINED, lambda level: NO_INTERVAL, "none: fewer than two cases a side, or no value"
    if units >= 2 and not np.isnan(difference):
        if drawn is not None:
            error, how = _bootstrapped(difference, one, other, drawn, slack)
        else:
            error, how = _welch(difference, one, other, slack)
            if one.alone and other.alone and one.yes_no and other.yes_no:
                how = _shares(values_a, values_b)
    found = concluded(
        difference,
        *how,
        detectable_at=lambda alpha, margin: detectable(error, alpha=alpha),
        n=min(len(values_a), len(values_b)),
        units=units,
        n_missing=sum(len(pair.kept) - len(pair.codes) for pair in (one, other)),
        better=number.better,
        margin=number.margin_at(a, values_a, values_b),
        confidence=confidence,
    )
    return Compared(a, b, found)


def _bootstrapped(difference: float, one: Pair, other: Pair, drawn: Floats, slack: float) -> tuple[float, How]:
    apart = np.where(np.abs(drawn) <= slack, 0.0, drawn)
    beyond = min(np.count_nonzero(apart <= 0), np.count_nonzero(apart >= 0)) + 1
    p = min(1.0, 2 * beyond / (np.count_nonzero(~np.isnan(apart)) + 1))
    fewer = min(one, other, key=lambda pair: pair.units)
    method = "independent bootstrap, percentile" + ("" if one.alone and other.alone else " (by group)")
    return float(np.nanstd(apart)), (p, percentiles_at(difference, apart, fewer.codes), method)


def _welch(difference: float, one: Pair, other: Pair, slack: float) -> tuple[float, How]:
    from scipy.special import stdtr  # here, because it costs 0.1 s to import

    a, b = (mean_of(pair.sides[0], np.unique(pair.codes, return_inverse=True)[1]) for pair in (one, other))
    method = "Welch" + ("" if one.alone and other.alone else " (by group)")
    error = float(np.hypot(a.error, b.error))
    if error <= slack:  # nothing varies within either side: how often would chance part them so?
        p = 2 / comb(one.units + other.units, one.units) if difference else 1.0
        return UNDEFINED, (max(p, SMALLEST), lambda level: Interval(difference, difference), "permutation")
    degrees = error**4 / (a.error**4 / a.degrees + b.error**4 / b.degrees)
    p = max(SMALLEST, 2 * float(stdtr(degrees, -abs(difference) / error)))
    return error, (p, lambda level: student_interval(Mean(difference, error, degrees), level), method)


def _shares(a: Floats, b: Floats) -> How:
    """Fisher's exact test, and the difference b - a of two shares between Wilson's bounds (Newcombe's method 10)."""
    from scipy import stats  # here, because it costs half a second to import

    yes_a, yes_b, n_a, n_b = int(a.sum()), int(b.sum()), len(a), len(b)
    p = float(stats.fisher_exact([[yes_a, n_a - yes_a], [yes_b, n_b - yes_b]]).pvalue)
    share_a, share_b = yes_a / n_a, yes_b / n_b

    def at(confidence: float) -> Interval:
        low_a, high_a = wilson_interval(yes_a, n_a, confidence=confidence)
        low_b, high_b = wilson_interval(yes_b, n_b, confidence=confidence)
        return Interval(
            share_b - share_a - ((share_b - low_b) ** 2 + (high_a - share_a) ** 2) ** 0.5,
            share_b - share_a + ((high_b - share_b) ** 2 + (share_a - low_a) ** 2) ** 0.5,
        )

    return max(p, SMALLEST), at, "exact Fisher, Newcombe"
