"""Random resamples of cases that serve many statistics at once: weights of the units, or swaps of their sides."""

from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np

from yarus.metrics.statistics.groups import Floats, Ints

Statistic: TypeAlias = Callable[[Floats], Floats]
Key = TypeVar("Key", bound=Hashable)

_BLOCK_CELLS, _CACHED_CELLS = 2_000_000, 20_000
_FAR = 5.0
"""Standard deviations within which a resampled quantile is searched: less than one in a million lie beyond."""


class StatisticSide(NamedTuple):
    """A statistic of one evaluation: totals over units and a function of them, or a quantile."""

    parts: Floats
    """(units, p) contribution of each unit to each total."""
    statistic: Statistic
    """Totals (..., p) -> values (...); NaN if undefined."""
    quantile: "ResampledQuantile | None" = None


def resample_values(sides: Mapping[Key, StatisticSide], units: int, *, seed: int, count: int) -> dict[Key, Floats]:
    """Return the value of every statistic in each of `count` resamples of the same units.

    Example:
        >>> import numpy as np
        >>> from yarus.metrics.statistics.differences.draws import StatisticSide, resample_values
        >>> side = StatisticSide(np.array([[1.0], [2.0], [6.0]]), lambda totals: totals[..., 0])  # a sum over units
        >>> resample_values({"sum": side}, 3, seed=0, count=4)
        {'sum': array([10.,  3.,  3., 14.])}
    """
    table, columns = stack_tables({key: side.parts for key, side in sides.items()}, units)
    values = {key: np.empty(count) for key in sides}
    for rows, weights in draw_resamples(units, count, seed) if sides else ():
        totals = weights @ table
        for key, side in sides.items():
            own = totals[:, columns[key]]
            values[key][rows] = side.statistic(own) if side.quantile is None else side.quantile(weights, own)
    return values


def stack_tables(tables: Mapping[Key, Floats], units: int) -> tuple[Floats, dict[Key, slice]]:
    """Return all columns side by side, (units, columns), and the slice of each table.

    Example:
        >>> import numpy as np
        >>> from yarus.metrics.statistics.differences.draws import stack_tables
        >>> table, places = stack_tables({"bleu": np.ones((3, 2)), "mrr": np.zeros((3, 1))}, 3)
        >>> table.shape, places
        ((3, 3), {'bleu': slice(0, 2, None), 'mrr': slice(2, 3, None)})
    """
    columns, start = {}, 0
    for key, table in tables.items():
        columns[key] = slice(start, start + table.shape[1])
        start += table.shape[1]
    return np.hstack([np.zeros((units, 0)), *tables.values()]), columns


def draw_resamples(units: int, count: int, seed: int) -> Iterator[tuple[slice, Floats]]:
    """Yield bootstrap resamples block by block: rows of the block, and the weights of the units (rows, units).

    Example:
        >>> from yarus.metrics.statistics.differences.draws import draw_resamples
        >>> [weights for _, weights in draw_resamples(3, 2, seed=0)]  # each row adds up to 3
        [array([[0., 2., 1.],
               [3., 0., 0.]])]
    """
    generator = np.random.default_rng(seed)
    for rows in _blocks(count, units):
        weights = np.empty((rows.stop - rows.start, units))
        for part in np.array_split(weights, -(-weights.size // _CACHED_CELLS)):  # views: the counts stay in the cache
            units_drawn = generator.integers(0, units, part.shape) + np.arange(len(part))[:, None] * units
            part[:] = np.bincount(units_drawn.ravel(), minlength=part.size).reshape(part.shape)
        yield rows, weights


def draw_swaps(units: int, count: int, seed: int) -> Iterator[tuple[slice, Floats]]:
    """Yield which units have their sides swapped (1) or not (0): all patterns if there are at most `count`.

    Example:
        >>> from yarus.metrics.statistics.differences.draws import draw_swaps
        >>> [swapped for _, swapped in draw_swaps(2, 4, seed=0)]
        [array([[0., 0.],
               [1., 0.],
               [0., 1.],
               [1., 1.]])]
    """
    generator = np.random.default_rng(seed)
    n_patterns = count_swap_patterns(units, count)
    for rows in _blocks(n_patterns or count, units):
        if n_patterns:
            yield rows, (np.arange(rows.start, rows.stop)[:, None] >> np.arange(units) & 1).astype(np.float64)
        else:
            bits = generator.integers(0, 256, (rows.stop - rows.start, -(-units // 8)), dtype=np.uint8)
            yield rows, np.unpackbits(bits, axis=1, count=units).astype(np.float64)


def count_swap_patterns(units: int, count: int) -> int:
    """Return the number of patterns of swaps, if it is at most `count`; otherwise 0.

    Example:
        >>> from yarus.metrics.statistics.differences.draws import count_swap_patterns
        >>> count_swap_patterns(2, 10_000), count_swap_patterns(100, 10_000)
        (4, 0)
    """
    return 2**units if 2**units <= count else 0


class ResampledQuantile:
    """The quantile of resampled values without sorting each resample, exact within five standard deviations.

    The values are sorted once. In a resample, the quantile lies near its position in the sorted values: only the values
    near it are counted one by one, all below at once.

    Example: five values, 10 20 30 40 50, drawn 1 0 2 2 0 times, are 10 30 30 40 40. Their median needs no sorting: the
    running count of the drawn values is 1 1 3 5 5, and the third of the five is the first value with a count above two,
    30. With 1,000 values the median of a resample is (except once in a million) one of those from 409 to 591 in order,
    five standard deviations about 500. The weights of the 409 below are one sum, and 182 are counted one by one.

    Example:
        >>> import numpy as np
        >>> from yarus.metrics.statistics.differences.draws import ResampledQuantile
        >>> median = ResampledQuantile(np.array([30.0, 10, 50, 20, 40]), np.arange(5), 5, 0.5)
        >>> weights = np.array([[2.0, 1, 0, 0, 2]])  # one draw: 30 twice, 10 once, 40 twice
        >>> median(weights, weights @ median.columns)
        array([30.])
    """

    def __init__(self, values: Floats, codes: Ints, units: int, quantile: float, *, inverted: Floats | None = None):
        """Sort the values.

        Args:
            values: (m,).
            codes: (m,) the unit that each belongs to.
            units: number of units.
            quantile: 0..1, linearly interpolated.
            inverted: (m,) 1 for a value that is in a resample if its unit is not, for swaps; default: none.
        """
        order = np.argsort(values, kind="stable")
        self._values, self._codes, self._quantile = values[order], codes[order], quantile
        is_inverted = np.zeros(len(values)) if inverted is None else inverted[order]
        self._offset, self._sign = is_inverted, 1 - 2 * is_inverted
        m = len(values)
        there = len(np.unique(codes))
        # Near the ends counts are not normal but Poisson, whose tail is longer by half of the square.
        reach = int(m * (_FAR * np.sqrt(quantile * (1 - quantile) / there) + _FAR**2 / 2 / there))
        self._window = slice(max(0, int(m * quantile) - reach), min(m, int(m * quantile) + reach))
        before = slice(0, self._window.start)
        counts = (
            np.bincount(self._codes[part], weights=self._sign[part], minlength=units) for part in (before, slice(None))
        )
        self.columns: Floats = np.column_stack([*counts]).astype(np.float64)
        """(units, 2) contribution of a unit drawn once to the count below the window, and to all."""

    def __call__(self, weights: Floats, totals: Floats) -> Floats:
        """Return the quantile of each resample.

        Args:
            weights: (draws, units) how often each resample has each unit.
            totals: (draws, 2) weights @ columns: one matrix product for all statistics is cheaper than one for each.

        Returns:
            (draws,) NaN for an empty resample.
        """
        window = self._window
        size = totals[:, 1] + self._offset.sum()
        counts = weights[:, self._codes[window]] * self._sign[window] + self._offset[window]
        running_counts = counts.cumsum(axis=1) + (totals[:, 0] + self._offset[: window.start].sum())[:, None]
        position = (size - 1) * self._quantile
        lower = np.floor(position + 1e-9)
        neighbours = [self._values[window.start + self._nth(running_counts, rank)] for rank in (lower, lower + 1)]
        fraction = np.maximum(position - lower, 0.0)
        return np.where(size == 0, np.nan, neighbours[0] + fraction * (neighbours[1] - neighbours[0]))

    def _nth(self, running_counts: Floats, ranks: Floats) -> Ints:
        """Return the index in the window of the nth value (from 0) of each resample."""
        indices: Ints = np.minimum((running_counts <= ranks[:, None] + 0.5).sum(axis=1), running_counts.shape[1] - 1)
        return indices


def _blocks(count: int, units: int) -> Iterator[slice]:
    size = max(1, _BLOCK_CELLS // units)
    for start in range(0, count, size):
        yield slice(start, min(start + size, count))
