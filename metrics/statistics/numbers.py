"""A number of two evaluations: what each case adds to it, and what the draws say of its difference."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from metrics.metric import Direction
from metrics.statistics.bootstrap import interval_of_draws
from metrics.statistics.comparison import Comparison, only_yes_no, usual_margin, verdict_of
from metrics.statistics.draws import QuantileOfDraws, Side, Statistic, all_swaps
from metrics.statistics.groups import Floats, Ints
from metrics.statistics.intervals import NO_INTERVAL, UNDEFINED, Interval, level_of
from metrics.statistics.power import detectable, fewest_pairs, smallest_detectable_difference
from metrics.statistics.significance import compare_yes_no


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
        if self.units < 2:
            return self._compared(UNDEFINED, NO_INTERVAL, UNDEFINED, confidence, "none: fewer than two pairs")
        p, interval = compare_yes_no(*self.sides, confidence)
        return self._compared(p, interval, UNDEFINED, confidence, "exact McNemar, Newcombe 10")

    def from_draws(self, drawn: Floats, swapped: Floats, confidence: float, count: int) -> Compared:
        """From the differences in every resample and after every swap."""
        a, b = self.values()
        how = "BCa" if self.number.is_mean else "percentile bootstrap"
        method = f"paired permutation, {how}{'' if self.alone else ' (by group)'}"
        if np.isnan(b - a):
            return self._compared(UNDEFINED, NO_INTERVAL, UNDEFINED, confidence, "none: a side has no value")
        slack = 1e-10 * (abs(a) + abs(b))  # the same sum in another order is as large
        defined = np.abs(swapped[~np.isnan(swapped)])
        larger, every = int((defined >= abs(b - a) - slack).sum()), len(defined)
        p = larger / every if all_swaps(self._all_units, count) else (larger + 1) / (every + 1)
        interval = self._interval(b - a, drawn, confidence)
        return self._compared(p, interval, float(np.nanstd(drawn)), confidence, method)

    @property
    def _all_units(self) -> int:
        return len(self.parts[0])

    def _interval(self, difference: float, drawn: Floats, confidence: float) -> Interval:
        jackknife = None
        if self.number.is_mean:
            apart = self.sides[1] - self.sides[0]
            if np.ptp(apart) == 0:  # without the rounding of a sum
                return Interval(float(apart.min()), float(apart.max()))
            there = np.unique(self.codes)
            one, other = (self.statistic(part.sum(axis=0) - part[there]) for part in self.parts)
            jackknife = other - one
        return interval_of_draws(difference, drawn, jackknife, confidence)

    def _compared(self, p: float, interval: Interval, error: float, confidence: float, method: str) -> Compared:
        a, b = self.values()
        alpha, margin = level_of(confidence), self.number.margin_at(a, *self.sides)
        difference = float((self.sides[1] - self.sides[0]).mean()) if self.number.is_mean and self.units else b - a
        verdict = verdict_of(difference, interval, p, better=self.number.better, margin=margin, alpha=alpha)
        enough = self.units >= fewest_pairs(alpha)
        return Compared(
            a,
            b,
            Comparison(
                difference=difference,
                interval=interval,
                p=p,
                verdict=verdict if enough else "inconclusive",
                n=len(self.codes),
                n_missing=len(self.kept) - len(self.codes),
                method=method,
                smallest_detectable=self._detectable(error, alpha) if enough else UNDEFINED,
                better=self.number.better,
                margin=margin,
                alpha=alpha,
            ),
        )

    def _detectable(self, error: float, alpha: float) -> float:
        if not self.number.is_mean:
            return detectable(error, alpha=alpha)
        labels = None if self.alone else self.codes.tolist()
        apart = self.sides[1] - self.sides[0]
        return smallest_detectable_difference(apart, alpha=alpha, yes_no=self.yes_no, groups=labels)


def prepare(number: Number, codes: Ints) -> Pair:
    """The number over the cases that were measured on both sides; `codes` (n,) says whose each case is.

    Example:
        >>> import numpy as np
        >>> from metrics.statistics.numbers import Number, prepare
        >>> pair = prepare(Number(a=np.array([0.0, 1.0, np.nan]), b=np.array([1.0, 1.0, 0.0])), np.arange(3))
        >>> pair.kept
        array([ True,  True, False])
        >>> pair.values()
        (0.5, 1.0)
    """
    units = len(np.unique(codes))
    kept = np.asarray(~np.isnan(np.column_stack([number.a, number.b])).any(axis=1))
    own = codes[kept]
    if number.quantile is not None:
        none = np.zeros((units, 0))
        return Pair(number, kept, own, len(np.unique(own)), (none, none))
    one, other = (_by_unit(_columns(side, kept), codes, units) for side in (number.a, number.b))
    return Pair(number, kept, own, len(np.unique(own)), (one, other))


def _columns(side: Floats, kept: NDArray[np.bool_]) -> Floats:
    """(n, p) what each case adds to the totals; a value adds itself and 1."""
    table = np.column_stack([side, np.ones(len(side))]) if side.ndim == 1 else side
    return np.where(kept[:, None], table, 0.0)


def _by_unit(table: Floats, codes: Ints, units: int) -> Floats:
    if units == len(table):
        return table  # units are numbered in order of appearance: each is one case
    return np.column_stack([np.bincount(codes, weights=column, minlength=units) for column in table.T])
