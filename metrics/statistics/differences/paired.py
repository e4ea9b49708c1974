"""The comparison of many statistics of two evaluations of the same cases.

The resampling is the costly part of a bootstrap and of a permutation test. Here each resample serves all statistics:
functions of totals over cases (a mean, F1, kappa, corpus BLEU), by one matrix product, and quantiles.
"""

from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from yarus.metrics.statistics.differences.compared_statistics import (
    PreparedStatistic,
    SampleStatistic,
    StatisticComparison,
    prepare_statistic,
)
from yarus.metrics.statistics.differences.draws import (
    ResampledQuantile,
    count_swap_patterns,
    draw_swaps,
    resample_values,
    stack_tables,
)
from yarus.metrics.statistics.groups import Floats, group_codes


def compare_statistics(
    numbers: Mapping[str, SampleStatistic],
    *,
    seed: int,
    groups: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
    count: int = 10_000,
) -> dict[str, StatisticComparison]:
    """Compare every statistic as `compare_paired` compares means, all with the same resamples.

    The test swaps the two sides of random cases: if nothing changed, it does not matter which side a result came from.
    The intervals of means are those of `compare_paired`; for other statistics the bootstrap draws cases with both of
    their sides (percentiles). Whole groups are drawn and swapped. Yes/no means without groups: exact McNemar test and
    Newcombe's paired score interval.

    Args:
        numbers: by name; all over the same n cases in the same order.
        seed: of the resamples.
        groups: n labels of users, dialogs or pages; None marks a case without a group.
        confidence: the intervals' level, 0..1.
        count: number of resamples.

    Returns:
        By name. Below two measured units, and if a side has no value, p and interval are NaN.

    Raises:
        ValueError: numbers over different cases, groups of another length, an infinite value.

    Reference: Efron and Tibshirani 1993, An introduction to the bootstrap, chapter 16; Phipson and Smyth 2010,
    Permutation p-values should never be zero.

    Example:
        >>> import numpy as np
        >>> from yarus.metrics.statistics.differences.compared_statistics import SampleStatistic
        >>> from yarus.metrics.statistics.differences.paired import compare_statistics
        >>> before, after = np.array([0.2, 0.5, 0.4, 0.6, 0.3, 0.7]), np.array([0.5, 0.6, 0.6, 0.7, 0.5, 0.9])
        >>> numbers = {"mean": SampleStatistic(before, after), "median": SampleStatistic(before, after, quantile=0.5)}
        >>> compared = compare_statistics(numbers, seed=0)
        >>> {name: (round(pair.a, 2), round(pair.b, 2), round(pair.comparison.p, 3)) for name, pair in compared.items()}
        {'mean': (0.45, 0.63, 0.031), 'median': (0.45, 0.6, 0.125)}
    """
    if not numbers:
        return {}
    n = len(next(iter(numbers.values())).a)
    for name, number in numbers.items():
        if not len(number.a) == len(number.b) == n:
            raise ValueError(f"{name}: {len(number.a)} and {len(number.b)} cases; all numbers need the same {n}")
        if np.isinf(number.a).any() or np.isinf(number.b).any():
            raise ValueError(f"{name}: values must be finite, or NaN where not measured; got an infinite one")
    codes = np.arange(n) if groups is None else group_codes(groups, n)
    pairs = {name: prepare_statistic(number, codes) for name, number in numbers.items()}
    exact = {name for name, pair in pairs.items() if pair.units < 2 or (pair.yes_no and pair.alone)}
    resampled = {name: pair for name, pair in pairs.items() if name not in exact}
    units = len(np.unique(codes))
    drawn = _resample({name: pair for name, pair in resampled.items() if not pair.number.is_mean}, units, seed, count)
    swapped = _permute(resampled, units, seed + 1, count)
    compared = {}
    for name, pair in pairs.items():
        if name in exact:
            compared[name] = pair.compare_exact(confidence)
        else:
            compared[name] = pair.compare_resampled(drawn.get(name), swapped[name], confidence, count)
    return compared


def _resample(pairs: Mapping[str, PreparedStatistic], units: int, seed: int, count: int) -> dict[str, Floats]:
    """Return b - a in every resample."""
    sides = {
        (name, label): side for name, pair in pairs.items() for label, side in zip("ab", pair.drawn(units), strict=True)
    }
    values = resample_values(sides, units, seed=seed, count=count)
    return {name: values[name, "b"] - values[name, "a"] for name in pairs}


def _permute(pairs: Mapping[str, PreparedStatistic], units: int, seed: int, count: int) -> dict[str, Floats]:
    """Return b - a after every swap."""
    sums = {name: [part.sum(axis=0) for part in pair.parts] for name, pair in pairs.items()}
    quantiles = {
        name: _swapped_quantiles(pair, units, pair.number.quantile)
        for name, pair in pairs.items()
        if pair.number.quantile is not None
    }
    moves = {
        name: np.hstack([side.columns for side in quantiles[name]])
        if name in quantiles
        else pair.parts[1] - pair.parts[0]
        for name, pair in pairs.items()
    }
    table, columns = stack_tables(moves, units)
    differences = {name: np.empty(count_swap_patterns(units, count) or count) for name in pairs}
    for rows, swapped in draw_swaps(units, count, seed) if pairs else ():
        totals = swapped @ table
        for name, pair in pairs.items():
            shift = totals[:, columns[name]]
            if name in quantiles:
                before, after = quantiles[name]
                before_totals, after_totals = np.hsplit(shift, 2)
                differences[name][rows] = after(swapped, after_totals) - before(swapped, before_totals)
            else:
                differences[name][rows] = pair.statistic(sums[name][1] - shift) - pair.statistic(sums[name][0] + shift)
    return differences


def _swapped_quantiles(
    pair: PreparedStatistic, units: int, quantile: float
) -> tuple[ResampledQuantile, ResampledQuantile]:
    """Return the quantiles of both sides after swaps: own values of unswapped units, the other's of swapped."""
    values, both_codes = np.concatenate(pair.sides), np.tile(pair.codes, 2)
    is_of_a = np.repeat([1.0, 0.0], len(pair.codes))  # in side a as long as the unit is not swapped
    return (
        ResampledQuantile(values, both_codes, units, quantile, inverted=is_of_a),
        ResampledQuantile(values, both_codes, units, quantile, inverted=1 - is_of_a),
    )
