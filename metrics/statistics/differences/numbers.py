"""A number of two evaluations: what each case adds to it, and what the draws say of its difference."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from yarus.metrics.metric import Direction
from yarus.metrics.statistics.bootstrap import interval_of_draws
from yarus.metrics.statistics.differences.comparison import Comparison, DetectableAt, concluded
from yarus.metrics.statistics.differences.draws import QuantileOfDraws, Side, Statistic, all_swaps
from yarus.metrics.statistics.differences.intervals import IntervalAt
from yarus.metrics.statistics.differences.means import compare_means, only_yes_no, usual_margin
from yarus.metrics.statistics.groups import Floats, Ints
from yarus.metrics.statistics.intervals import NO_INTERVAL, NORMAL, UNDEFINED, Interval, student_quantile
from yarus.metrics.statistics.power import detectable


@dataclass(frozen=True)
class Number:
    """A number that both evaluations have, from what each case adds to it.

    Without `statistic` and `quantile` it is the mean of one value a case.
    """

    a: Floats
    """(n,) one value a case, or (n, p) what each case adds to each of p totals; NaN where it was not measured."""
    b: Floats
    statistic: Statistic | None = None
    """Totals (..., p) -> values (...); NaN where it has none."""
    quantile: float | None = None
    better: Direction = "higher"
    margin: float | None = None
    """The largest difference that does not matter; default for means as in `compare_paired`, else 5 % of a's value."""

    @property
    def is_mean(self) -> bool:
        """Whether it is the mean of one value a case."""
        return self.statistic is None and self.quantile is None

    def margin_at(self, a: float, *sides: Floats) -> float:
        """The margin, given the value of a and what was measured on both sides."""
        if self.margin is not None:
            return self.margin
        values = np.concatenate(sides)
        return usual_margin(values, yes_no=only_yes_no(values)) if self.is_mean else 0.05 * abs(a)


class Compared(NamedTuple):
    """Both values over the cases that were measured on both sides, and what their difference says."""

    a: float
    b: float
    comparison: Comparison


class Pair(NamedTuple):
    """A number as the draws need it: only the cases that were measured on both sides."""

    number: Number
    kept: NDArray[np.bool_]
    codes: Ints
    """(kept,) the unit of each."""
    units: int
    """How many units they are."""
    parts: tuple[Floats, Floats]
    """(all units, p) of both sides; without columns for a quantile."""

    @property
    def yes_no(self) -> bool:
        """Whether it is a share of cases."""
        return self.number.is_mean and only_yes_no(np.concatenate(self.sides))

    @property
    def alone(self) -> bool:
        """Whether every case stands alone: no group has two."""
        return self.units == len(self.codes)

    @property
    def sides(self) -> tuple[Floats, Floats]:
        """What was measured on both sides."""
        return self.number.a[self.kept], self.number.b[self.kept]

    def drawn(self, units: int) -> Iterator[Side]:
        """Both sides as the draws of all units need them."""
        for values, part in zip(self.sides, self.parts, strict=True):
            if self.number.quantile is None:
                yield Side(part, self.statistic)
            else:
                quantile = QuantileOfDraws(values, self.codes, units, self.number.quantile)
                yield Side(quantile.columns, self.statistic, quantile)

    def statistic(self, totals: Floats) -> Floats:
        """Totals (..., p) -> values."""
        measure = self.number.statistic
        with np.errstate(divide="ignore", invalid="ignore"):
            return totals[..., 0] / totals[..., 1] if measure is None else measure(totals)

    def values(self) -> tuple[float, float]:
        """Of both sides; NaN where it has none."""
        if not self.units:
            return UNDEFINED, UNDEFINED
        if (quantile := self.number.quantile) is not None:
            return tuple(float(np.quantile(side, quantile)) for side in self.sides)  # type: ignore[return-value]
        return tuple(float(self.statistic(part.sum(axis=0))) for part in self.parts)  # type: ignore[return-value]

    def without_draws(self, confidence: float) -> Compared:
        """Of yes/no values, or of too few."""
        if self.number.is_mean:
            return self._mean(UNDEFINED, confidence)
        return self._undefined("fewer than two pairs", confidence)

    def from_draws(self, drawn: Floats | None, swapped: Floats, confidence: float, count: int) -> Compared:
        """From the differences after every swap and, of what is no mean, in every resample."""
        a, b = self.values()
        if np.isnan(b - a):
            return self._undefined("a side has no value", confidence)
        slack = 1e-10 * (abs(a) + abs(b))  # the same sum in another order is as large
        defined = np.abs(swapped[~np.isnan(swapped)])
        larger, every = int((defined >= abs(b - a) - slack).sum()), len(defined)
        p = larger / every if all_swaps(len(self.parts[0]), count) else (larger + 1) / (every + 1)
        if drawn is None:
            return self._mean(p, confidence)
        error = float(np.nanstd(drawn))
        return self._concluded(
            p,
            percentiles_at(b - a, drawn, self.codes),
            f"paired permutation, percentile bootstrap{'' if self.alone else ' (by group)'}",
            lambda alpha, margin: detectable(error, alpha=alpha),
            confidence,
        )

    def _mean(self, p: float, confidence: float) -> Compared:
        (a, b), number = self.values(), self.number
        return Compared(
            a,
            b,
            compare_means(
                *self.sides,
                self.codes,
                p,
                yes_no=self.yes_no,
                better=number.better,
                margin=number.margin_at(a, *self.sides),
                confidence=confidence,
                n_missing=self._missing,
            ),
        )

    def _undefined(self, why: str, confidence: float) -> Compared:
        return self._concluded(
            UNDEFINED, lambda level: NO_INTERVAL, f"none: {why}", lambda alpha, margin: UNDEFINED, confidence
        )

    def _concluded(
        self, p: float, interval_at: IntervalAt, method: str, detectable_at: DetectableAt, confidence: float
    ) -> Compared:
        a, b = self.values()
        return Compared(
            a,
            b,
            concluded(
                b - a,
                p,
                interval_at,
                method,
                detectable_at=detectable_at,
                n=len(self.codes),
                units=self.units,
                n_missing=self._missing,
                better=self.number.better,
                margin=self.number.margin_at(a, *self.sides),
                confidence=confidence,
            ),
        )

    @property
    def _missing(self) -> int:
        return len(self.kept) - len(self.codes)


def percentiles_at(value: float, drawn: Floats, codes: Ints) -> IntervalAt:
    """Percentile intervals of a bootstrap, as much wider as few units make Student's quantile than the normal one.

    Reference: Hesterberg 2015, What teachers should know about the bootstrap, "expanded percentile interval".

    Example:
        >>> import numpy as np
        >>> from yarus.metrics.statistics.differences.numbers import percentiles_at
        >>> low, high = percentiles_at(0.5, np.linspace(0, 1, 1_001), np.arange(10))(0.9)  # of ten units
        >>> round(low, 3), round(high, 3)
        (0.027, 0.973)
    """
    sizes = np.unique(codes, return_counts=True)[1]
    worth = max(2.0, float(sizes.sum()) ** 2 / float((sizes.astype(float) ** 2).sum()))

    def at(confidence: float) -> Interval:
        reach = student_quantile(confidence, worth - 1) * (worth / (worth - 1)) ** 0.5
        return interval_of_draws(value, drawn, None, NORMAL.cdf(reach) - NORMAL.cdf(-reach))

    return at


def prepare(number: Number, codes: Ints) -> Pair:
    """The number over the cases that were measured on both sides; `codes` (n,) numbers its group from 0.

    Example:
        >>> import numpy as np
        >>> from yarus.metrics.statistics.differences.numbers import Number, prepare
        >>> pair = prepare(Number(a=np.array([0.0, 1.0, np.nan]), b=np.array([1.0, 1.0, 0.0])), np.arange(3))
        >>> pair.kept
        array([ True,  True, False])
        >>> pair.values()
        (0.5, 1.0)
    """
    units = int(np.count_nonzero(np.bincount(codes)))
    kept = ~(_is_missing(number.a) | _is_missing(number.b))
    own = codes[kept]
    measured = int(np.count_nonzero(np.bincount(own)))
    if number.quantile is not None:
        none = np.zeros((units, 0))
        return Pair(number, kept, own, measured, (none, none))
    one, other = (_by_unit(_columns(side, kept), codes, units) for side in (number.a, number.b))
    return Pair(number, kept, own, measured, (one, other))


def _is_missing(side: Floats) -> NDArray[np.bool_]:
    """(n,) whether a case was not measured."""
    missing = np.isnan(side)
    return np.asarray(missing.any(axis=1) if missing.ndim > 1 else missing)


def _columns(side: Floats, kept: NDArray[np.bool_]) -> Floats:
    """(n, p) what each case adds to the totals; a value adds itself and 1."""
    if side.ndim > 1:
        return np.where(kept[:, None], side, 0.0)
    table = np.empty((len(side), 2))
    table[:, 0], table[:, 1] = np.where(kept, side, 0.0), kept
    return table


def _by_unit(table: Floats, codes: Ints, units: int) -> Floats:
    if units == len(table):
        return table  # units are numbered in order of appearance: each is one case
    return np.column_stack([np.bincount(codes, weights=column, minlength=units) for column in table.T])
