"""Numbers of two evaluations over different cases: all that is left where the cases cannot be paired."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from metrics.statistics.bootstrap import interval_of_draws
from metrics.statistics.comparison import Comparison, verdict_of
from metrics.statistics.draws import draw_values
from metrics.statistics.groups import Floats, group_codes
from metrics.statistics.intervals import NO_INTERVAL, SMALLEST, UNDEFINED, Interval, level_of, wilson_interval
from metrics.statistics.numbers import Compared, Number, Pair, prepare
from metrics.statistics.power import detectable

FEWEST = 6
"""Units a side below which nothing is called different, as for pairs."""
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

    Means of cases that stand alone: Welch's test and interval. Everything else: the bootstrap of each side by itself
    (whole groups are drawn), percentiles of the difference, and p from the share of draws beyond no difference.

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
        >>> from metrics.statistics.numbers import Number
        >>> from metrics.statistics.unpaired import compare_independent
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
        name: _compared(number, one[name], other[name], drawn_b[name] - drawn_a[name], confidence)
        for name, number in numbers.items()
    }


def _drawn(
    numbers: Mapping[str, Number], groups: Sequence[Hashable], seed: int
) -> tuple[dict[str, Pair], dict[str, Floats]]:
    """Numbers that have the same evaluation on both sides, prepared, and the value of each in every resample."""
    codes = group_codes(groups, len(groups))
    pairs = {name: prepare(number, codes) for name, number in numbers.items()}
    units = len(np.unique(codes))
    sides = {name: next(pair.drawn(units)) for name, pair in pairs.items() if pair.units}
    none = {name: np.full(COUNT, UNDEFINED) for name in numbers}
    return pairs, none | draw_values(sides, units, seed=seed, count=COUNT)


def _compared(number: Number, one: Pair, other: Pair, drawn: Floats, confidence: float) -> Compared:
    (a, _), (b, _) = one.values(), other.values()
    (values_a, _), (values_b, _) = one.sides, other.sides
    alone = number.is_mean and one.alone and other.alone
    alpha, units = level_of(confidence), min(one.units, other.units)
    slack = 1e-12 * (abs(a) + abs(b))  # the same sum in another order is no difference, and no spread
    difference, drawn = (np.where(np.abs(apart) <= slack, 0.0, apart) for apart in (b - a, drawn))
    error = float(np.nanstd(drawn)) if units > 1 and not np.isnan(difference) else UNDEFINED
    varies = error > slack
    method = "independent bootstrap, percentile" + ("" if one.alone and other.alone else " (by group)")
    if np.isnan(error):
        p, interval, method = UNDEFINED, NO_INTERVAL, "none: fewer than two cases a side, or no value"
    elif alone and one.yes_no and other.yes_no:
        p, interval, method = *_shares(values_a, values_b, confidence), "exact Fisher, Newcombe"
    elif alone and varies:
        p, interval, method = *_welch(values_a, values_b, confidence), "Welch"
    else:
        beyond = min(np.count_nonzero(drawn <= 0), np.count_nonzero(drawn >= 0)) + 1
        p = min(1.0, 2 * beyond / (np.count_nonzero(~np.isnan(drawn)) + 1))
        interval = interval_of_draws(float(difference), drawn, None, confidence)
    margin = number.margin_at(a, values_a, values_b)
    verdict = verdict_of(float(difference), interval, p, better=number.better, margin=margin, alpha=alpha)
    missing = sum(len(pair.kept) - len(pair.codes) for pair in (one, other))
    found = Comparison(
        difference=float(difference),
        interval=interval,
        p=p,
        verdict=verdict if units >= FEWEST else "inconclusive",
        n=min(len(values_a), len(values_b)),
        n_missing=missing,
        method=method,
        smallest_detectable=detectable(error, alpha=alpha) if varies and units >= FEWEST else UNDEFINED,
        better=number.better,
        margin=margin,
        alpha=alpha,
    )
    return Compared(a, b, found)


def _welch(a: Floats, b: Floats, confidence: float) -> tuple[float, Interval]:
    from scipy import stats  # here, because it costs half a second to import

    found = stats.ttest_ind(b, a, equal_var=False)
    low, high = found.confidence_interval(confidence)
    return max(float(found.pvalue), SMALLEST), Interval(float(low), float(high))


def _shares(a: Floats, b: Floats, confidence: float) -> tuple[float, Interval]:
    """Fisher's exact test, and the difference b - a of two shares between Wilson's bounds (Newcombe's method 10)."""
    from scipy import stats  # here, because it costs half a second to import

    yes_a, yes_b, n_a, n_b = int(a.sum()), int(b.sum()), len(a), len(b)
    p = float(stats.fisher_exact([[yes_a, n_a - yes_a], [yes_b, n_b - yes_b]]).pvalue)
    low_a, high_a = wilson_interval(yes_a, n_a, confidence=confidence)
    low_b, high_b = wilson_interval(yes_b, n_b, confidence=confidence)
    share_a, share_b = yes_a / n_a, yes_b / n_b
    low = share_b - share_a - ((share_b - low_b) ** 2 + (high_a - share_a) ** 2) ** 0.5
    return max(p, SMALLEST), Interval(
        low, share_b - share_a + ((high_b - share_b) ** 2 + (share_a - low_a) ** 2) ** 0.5
    )
