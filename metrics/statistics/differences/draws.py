"""Random draws of cases that serve many numbers at once: how often each unit is drawn, or which units are swapped."""

from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np

from yarus.metrics.statistics.groups import Floats, Ints

Statistic: TypeAlias = Callable[[Floats], Floats]
Key = TypeVar("Key", bound=Hashable)

_BLOCK_CELLS, _CACHED_CELLS = 2_000_000, 20_000
_FAR = 5.0
"""Standard deviations within which a drawn quantile is looked for: beyond lie less than one in a million."""


class Side(NamedTuple):
    """A number of one evaluation: totals over units and what follows from them, or a quantile."""

    parts: Floats
    """(units, p) what each unit adds to each total."""
    statistic: Statistic
    """Totals (..., p) -> values (...); NaN where it has none."""
    quantile: "QuantileOfDraws | None" = None


def draw_values(sides: Mapping[Key, Side], units: int, *, seed: int, count: int) -> dict[Key, Floats]:
    """The value of every number in each of `count` resamples of the same units.

    Example:
        >>> import numpy as np
        >>> from yarus.metrics.statistics.differences.draws import Side, draw_values
        >>> side = Side(np.array([[1.0], [2.0], [6.0]]), lambda totals: totals[..., 0])  # a sum over units
        >>> draw_values({"sum": side}, 3, seed=0, count=4)
        {'sum': array([10.,  3.,  3., 14.])}
    """
    table, places = stacked({key: side.parts for key, side in sides.items()}, units)
    out = {key: np.empty(count) for key in sides}
    for rows, weights in resamples(units, count, seed) if sides else ():
        totals = weights @ table
        for key, side in sides.items():
            own = totals[:, places[key]]
            out[key][rows] = side.statistic(own) if side.quantile is None else side.quantile(weights, own)
    return out


def stacked(tables: Mapping[Key, Floats], units: int) -> tuple[Floats, dict[Key, slice]]:
    """All columns side by side, (units, columns), and where those of each table stand.

    Example:
        >>> import numpy as np
        >>> from yarus.metrics.statistics.differences.draws import stacked
        >>> table, places = stacked({"bleu": np.ones((3, 2)), "mrr": np.zeros((3, 1))}, 3)
        >>> table.shape, places
        ((3, 3), {'bleu': slice(0, 2, None), 'mrr': slice(2, 3, None)})
    """
    places, start = {}, 0
    for key, table in tables.items():
        places[key] = slice(start, start + table.shape[1])
        start += table.shape[1]
    return np.hstack([np.zeros((units, 0)), *tables.values()]), places


def resamples(units: int, count: int, seed: int) -> Iterator[tuple[slice, Floats]]:
    """Bootstrap draws, block by block: rows of the block, and how often each draw has each unit (rows, units).

    Example:
        >>> from yarus.metrics.statistics.differences.draws import resamples
        >>> [weights for _, weights in resamples(3, 2, seed=0)]  # each row adds up to 3
        [array([[0., 2., 1.],
               [3., 0., 0.]])]
    """
    generator = np.random.default_rng(seed)
    for rows in _blocks(count, units):
        weights = np.empty((rows.stop - rows.start, units))
        for few in np.array_split(weights, -(-weights.size // _CACHED_CELLS)):  # views: the counts stay in the cache
            drawn = generator.integers(0, units, few.shape) + np.arange(len(few))[:, None] * units
            few[:] = np.bincount(drawn.ravel(), minlength=few.size).reshape(few.shape)
        yield rows, weights


def swaps(units: int, count: int, seed: int) -> Iterator[tuple[slice, Floats]]:
    """Which units have their sides swapped (1) or not (0): all patterns where there are no more than `count`.

    Example:
        >>> from yarus.metrics.statistics.differences.draws import swaps
        >>> [swapped for _, swapped in swaps(2, 4, seed=0)]
        [array([[0., 0.],
               [1., 0.],
               [0., 1.],
               [1., 1.]])]
    """
    generator = np.random.default_rng(seed)
    every = all_swaps(units, count)
    for rows in _blocks(every or count, units):
        if every:
            yield rows, (np.arange(rows.start, rows.stop)[:, None] >> np.arange(units) & 1).astype(np.float64)
        else:
            bits = generator.integers(0, 256, (rows.stop - rows.start, -(-units // 8)), dtype=np.uint8)
            yield rows, np.unpackbits(bits, axis=1, count=units).astype(np.float64)


def all_swaps(units: int, count: int) -> int:
    """How many patterns of swaps there are, if no more than `count`; else 0.

    Example:
        >>> from yarus.metrics.statistics.differences.draws import all_swaps
        >>> all_swaps(2, 10_000), all_swaps(100, 10_000)
        (4, 0)
    """
    return 2**units if 2**units <= count else 0


class QuantileOfDraws:
    """The quantile of drawn values, exact but for draws beyond five standard deviations, without sorting each draw.

    The values are sorted once. In a draw, the quantile lies near its place in the sorted values: only the values about
    there are counted one by one, all below at once.

    Five values, 10 20 30 40 50, drawn 1 0 2 2 0 times: 10 30 30 40 40. Nobody has to write that out and sort it: the
    running count of the drawn, 1 1 3 5 5, says that the third of the five is the first value that counts more than two,
    30. Of 1,000 values the median of a draw is, once in a million draws excepted, one of those from 409 to 591 in order
    (five standard deviations about 500): what was drawn of the 409 below is one sum, and 182 are counted one by one.

    Example:
        >>> import numpy as np
        >>> from yarus.metrics.statistics.differences.draws import QuantileOfDraws
        >>> median = QuantileOfDraws(np.array([30.0, 10, 50, 20, 40]), np.arange(5), 5, 0.5)
        >>> weights = np.array([[2.0, 1, 0, 0, 2]])  # one draw: 30 twice, 10 once, 40 twice
        >>> median(weights, weights @ median.columns)
        array([30.])
    """

    def __init__(self, values: Floats, codes: Ints, units: int, quantile: float, *, inverted: Floats | None = None):
        """Sorts the values.

        Args:
            values: (m,).
            codes: (m,) the unit that each belongs to.
            units: how many there are.
            quantile: 0..1, linearly interpolated.
            inverted: (m,) 1 where a value is in a draw if its unit is not, for swaps; default: nowhere.
        """
        order = np.argsort(values, kind="stable")
        self._values, self._codes, self._quantile = values[order], codes[order], quantile
        turned = np.zeros(len(values)) if inverted is None else inverted[order]
        self._offset, self._sign = turned, 1 - 2 * turned
        m = len(values)
        there = len(np.unique(codes))
        # Near the ends counts are not normal but Poisson's, whose tail is longer by half of the square.
        reach = int(m * (_FAR * np.sqrt(quantile * (1 - quantile) / there) + _FAR**2 / 2 / there))
        self._window = slice(max(0, int(m * quantile) - reach), min(m, int(m * quantile) + reach))
        before = slice(0, self._window.start)
        counts = (
            np.bincount(self._codes[part], weights=self._sign[part], minlength=units) for part in (before, slice(None))
        )
        self.columns: Floats = np.column_stack([*counts]).astype(np.float64)
        """(units, 2) what a unit drawn once adds to the values below the window, and to all."""

    def __call__(self, weights: Floats, totals: Floats) -> Floats:
        """The quantile of each draw.

        Args:
            weights: (draws, units) how often each draw has each unit.
            totals: (draws, 2) weights @ columns: one matrix product for all numbers is cheaper than one for each.

        Returns:
            (draws,) NaN for an empty one.
        """
        window = self._window
        size = totals[:, 1] + self._offset.sum()
        counted = weights[:, self._codes[window]] * self._sign[window] + self._offset[window]
        upto = counted.cumsum(axis=1) + (totals[:, 0] + self._offset[: window.start].sum())[:, None]
        place = (size - 1) * self._quantile
        lower = np.floor(place + 1e-9)
        found = [self._values[window.start + self._nth(upto, nth)] for nth in (lower, lower + 1)]
        between = np.maximum(place - lower, 0.0)
        return np.where(size == 0, np.nan, found[0] + between * (found[1] - found[0]))

    def _nth(self, upto: Floats, nth: Floats) -> Ints:
        """Where in the window the nth value (from 0) of each draw stands."""
        places: Ints = np.minimum((upto <= nth[:, None] + 0.5).sum(axis=1), upto.shape[1] - 1)
        return places


def _blocks(count: int, units: int) -> Iterator[slice]:
    size = max(1, _BLOCK_CELLS // units)
    for start in range(0, count, size):
        yield slice(start, min(start + size, count))
