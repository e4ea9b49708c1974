"""Many numbers of two evaluations of the same cases, compared at once.

Drawing the cases is what a bootstrap and a permutation test cost. Here each draw serves all numbers: whatever follows
from totals over cases (a mean, F1, kappa, corpus BLEU), by one matrix product, and quantiles.
"""

from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from yarus.metrics.statistics.differences.draws import QuantileOfDraws, all_swaps, draw_values, stacked, swaps
from yarus.metrics.statistics.differences.numbers import Compared, Number, Pair, prepare
from yarus.metrics.statistics.groups import Floats, group_codes


def compare_numbers(
    numbers: Mapping[str, Number],
    *,
    seed: int,
    groups: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
    count: int = 10_000,
) -> dict[str, Compared]:
    """Compares every number as `compare_paired` does means, all from the same draws.

    The test swaps the two sides of random cases: if nothing changed, it does not matter which side a result came from.
    The intervals of means are those of `compare_paired`; for what is no mean the bootstrap draws cases with both of
    their sides (percentiles). Whole groups are drawn and swapped. Yes/no means of cases that stand alone: exact McNemar
    test and Newcombe's paired score interval.

    Args:
        numbers: by name; all over the same n cases in the same order.
        seed: of the draws.
        groups: n labels of users, dialogs or pages; None marks a case that stands alone.
        confidence: the intervals' level, 0..1.
        count: how many draws.

    Returns:
        By name. Below two measured units, and where a side has no value, p and interval are NaN.

    Raises:
        ValueError: numbers over different cases, groups of another length, an infinite value.

    Reference: Efron and Tibshirani 1993, An introduction to the bootstrap, chapter 16; Phipson and Smyth 2010,
    Permutation p-values should never be zero.

    Example:
        >>> import numpy as np
        >>> from yarus.metrics.statistics.differences.numbers import Number
        >>> from yarus.metrics.statistics.differences.paired import compare_numbers
        >>> before, after = np.array([0.2, 0.5, 0.4, 0.6, 0.3, 0.7]), np.array([0.5, 0.6, 0.6, 0.7, 0.5, 0.9])
        >>> numbers = {"mean": Number(before, after), "median": Number(before, after, quantile=0.5)}
        >>> found = compare_numbers(numbers, seed=0)
        >>> {name: (round(one.a, 2), round(one.b, 2), round(one.comparison.p, 3)) for name, one in found.items()}
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
    pairs = {name: prepare(number, codes) for name, number in numbers.items()}
    exact = {name for name, pair in pairs.items() if pair.units < 2 or (pair.yes_no and pair.alone)}
    open_ = {name: pair for name, pair in pairs.items() if name not in exact}
    units = len(np.unique(codes))
    drawn = _bootstrap({name: pair for name, pair in open_.items() if not pair.number.is_mean}, units, seed, count)
    swapped = _permutation(open_, units, seed + 1, count)
    compared = {}
    for name, pair in pairs.items():
        if name in exact:
            compared[name] = pair.without_draws(confidence)
        else:
            compared[name] = pair.from_draws(drawn.get(name), swapped[name], confidence, count)
    return compared


def _bootstrap(pairs: Mapping[str, Pair], units: int, seed: int, count: int) -> dict[str, Floats]:
    """b - a in every resample."""
    sides = {
        (name, which): side for name, pair in pairs.items() for which, side in zip("ab", pair.drawn(units), strict=True)
    }
    values = draw_values(sides, units, seed=seed, count=count)
    return {name: values[name, "b"] - values[name, "a"] for name in pairs}


def _permutation(pairs: Mapping[str, Pair], units: int, seed: int, count: int) -> dict[str, Floats]:
    """b - a after every swap."""
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
    table, places = stacked(moves, units)
    out = {name: np.empty(all_swaps(units, count) or count) for name in pairs}
    for rows, swapped in swaps(units, count, seed) if pairs else ():
        totals = swapped @ table
        for name, pair in pairs.items():
            moved = totals[:, places[name]]
            if name in quantiles:
                before, after = quantiles[name]
                of_before, of_after = np.hsplit(moved, 2)
                out[name][rows] = after(swapped, of_after) - before(swapped, of_before)
            else:
                out[name][rows] = pair.statistic(sums[name][1] - moved) - pair.statistic(sums[name][0] + moved)
    return out


def _swapped_quantiles(pair: Pair, units: int, quantile: float) -> tuple[QuantileOfDraws, QuantileOfDraws]:
    """Of both sides after swaps: each holds its own values of the units that stay, and the other's of those swapped."""
    values, twice = np.concatenate(pair.sides), np.tile(pair.codes, 2)
    own_of_a = np.repeat([1.0, 0.0], len(pair.codes))  # there as long as the unit is not swapped
    return (
        QuantileOfDraws(values, twice, units, quantile, inverted=own_of_a),
        QuantileOfDraws(values, twice, units, quantile, inverted=1 - own_of_a),
    )
