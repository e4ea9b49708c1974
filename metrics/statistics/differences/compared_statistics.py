"""A statistic of two evaluations: the contributions of the cases, and its comparison by resamples."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from yarus.metrics.metric import Direction
from yarus.metrics.statistics.bootstrap import resampled_interval
from yarus.metrics.statistics.differences.comparison import Comparison, DetectableAt, build_comparison
from yarus.metrics.statistics.differences.draws import ResampledQuantile, Statistic, StatisticSide, count_swap_patterns
from yarus.metrics.statistics.differences.intervals import IntervalAt
from yarus.metrics.statistics.differences.means import compare_means, default_margin, is_binary
from yarus.metrics.statistics.groups import Floats, Ints
from yarus.metrics.statistics.intervals import NO_INTERVAL, STANDARD_NORMAL, UNDEFINED, Interval, student_quantile
from yarus.metrics.statistics.power import detectable_difference


@dataclass(frozen=True)
class SampleStatistic:
    """A statistic that both evaluations have, from the contributions of the cases.

    Without `statistic` and `quantile` it is the mean of one value per case.
    """

    a: Floats
    """(n,) one value per case, or (n, p) its contribution to each of p totals; NaN if it was not measured."""
    b: Floats
    statistic: Statistic | None = None
    """Totals (..., p) -> values (...); NaN if undefined."""
    quantile: float | None = None
    better: Direction = "higher"
    margin: float | None = None
    """The largest difference that does not matter; default for means as in `compare_paired`, else 5 % of a's value."""

    @property
    def is_mean(self) -> bool:
        """Return whether it is the mean of one value per case."""
        return self.statistic is None and self.quantile is None

    def margin_at(self, a: float, *sides: Floats) -> float:
        """Return the margin, given the value of a and the measured values of both sides."""
        if self.margin is not None:
            return self.margin
        values = np.concatenate(sides)
        return default_margin(values, yes_no=is_binary(values)) if self.is_mean else 0.05 * abs(a)


class StatisticComparison(NamedTuple):
    """Both values over the cases that were measured on both sides, and their comparison."""

    a: float
    b: float
    comparison: Comparison


class PreparedStatistic(NamedTuple):
    """A statistic prepared for resampling: only the cases that were measured on both sides."""

    number: SampleStatistic
    kept: NDArray[np.bool_]
    codes: Ints
    """(kept,) the unit of each case."""
    units: int
    """Number of units."""
    parts: tuple[Floats, Floats]
    """(all units, p) of both sides; without columns for a quantile."""

    @property
    def yes_no(self) -> bool:
        """Return whether it is a share of cases."""
        return self.number.is_mean and is_binary(np.concatenate(self.sides))

    @property
    def alone(self) -> bool:
        """Return whether no two cases share a unit."""
        return self.units == len(self.codes)

    @property
    def sides(self) -> tuple[Floats, Floats]:
        """Return the values that were measured on both sides."""
        return self.number.a[self.kept], self.number.b[self.kept]

    def drawn(self, units: int) -> Iterator[StatisticSide]:
        """Yield both sides as needed to resample all units."""
        for values, part in zip(self.sides, self.parts, strict=True):
            if self.number.quantile is None:
                yield StatisticSide(part, self.statistic)
            else:
                quantile = ResampledQuantile(values, self.codes, units, self.number.quantile)
                yield StatisticSide(quantile.columns, self.statistic, quantile)

    def statistic(self, totals: Floats) -> Floats:
        """Return the values of totals (..., p)."""
        measure = self.number.statistic
        with np.errstate(divide="ignore", invalid="ignore"):
            return totals[..., 0] / totals[..., 1] if measure is None else measure(totals)

    def values(self) -> tuple[float, float]:
        """Return the values of both sides; NaN if undefined."""
        if not self.units:
            return UNDEFINED, UNDEFINED
        if (quantile := self.number.quantile) is not None:
            return tuple(float(np.quantile(side, quantile)) for side in self.sides)  # type: ignore[return-value]
        return tuple(float(self.statistic(part.sum(axis=0))) for part in self.parts)  # type: ignore[return-value]

    def compare_exact(self, confidence: float) -> StatisticComparison:
        """Compare yes/no values, or too few of them, without resampling."""
        if self.number.is_mean:
            return self._compare_means(UNDEFINED, confidence)
        return self._build_undefined("fewer than two pairs", confidence)

    def compare_resampled(
        self, drawn: Floats | None, swapped: Floats, confidence: float, count: int
    ) -> StatisticComparison:
        """Compare by the differences after every swap and, unless it is a mean, in every resample."""
        a, b = self.values()
        if np.isnan(b - a):
            return self._build_undefined("a side has no value", confidence)
        slack = 1e-10 * (abs(a) + abs(b))  # the same sum in another order is as large
        defined = np.abs(swapped[~np.isnan(swapped)])
        larger, n_swaps = int((defined >= abs(b - a) - slack).sum()), len(defined)
        p = larger / n_swaps if count_swap_patterns(len(self.parts[0]), count) else (larger + 1) / (n_swaps + 1)
        if drawn is None:
            return self._compare_means(p, confidence)
        error = float(np.nanstd(drawn))
        return self._build(
            p,
            percentile_interval_at(b - a, drawn, self.codes),
            f"paired permutation, percentile bootstrap{'' if self.alone else ' (by group)'}",
            lambda alpha, margin: detectable_difference(error, alpha=alpha),
            confidence,
        )

    def _compare_means(self, p: float, confidence: float) -> StatisticComparison:
        (a, b), number = self.values(), self.number
        return StatisticComparison(
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
                n_missing=self._n_missing,
            ),
        )

    def _build_undefined(self, reason: str, confidence: float) -> StatisticComparison:
        return self._build(
            UNDEFINED, lambda level: NO_INTERVAL, f"none: {reason}", lambda alpha, margin: UNDEFINED, confidence
        )

    def _build(
        self, p: float, interval_at: IntervalAt, method: str, detectable_at: DetectableAt, confidence: float
    ) -> StatisticComparison:
        a, b = self.values()
        return StatisticComparison(
            a,
            b,
            build_comparison(
                b - a,
                p,
                interval_at,
                method,
                detectable_at=detectable_at,
                n=len(self.codes),
                units=self.units,
                n_missing=self._n_missing,
                better=self.number.better,
                margin=self.number.margin_at(a, *self.sides),
                confidence=confidence,
            ),
        )

    @property
    def _n_missing(self) -> int:
        return len(self.kept) - len(self.codes)


def percentile_interval_at(value: float, drawn: Floats, codes: Ints) -> IntervalAt:
    """Return percentile intervals of a bootstrap, widened by the ratio of Student's quantile to the normal one.

    Reference: Hesterberg 2015, What teachers should know about the bootstrap, "expanded percentile interval".

    Example:
        >>> import numpy as np
        >>> from yarus.metrics.statistics.differences.compared_statistics import percentile_interval_at
        >>> low, high = percentile_interval_at(0.5, np.linspace(0, 1, 1_001), np.arange(10))(0.9)  # of ten units
        >>> round(low, 3), round(high, 3)
        (0.027, 0.973)
    """
    sizes = np.unique(codes, return_counts=True)[1]
    n_effective = max(2.0, float(sizes.sum()) ** 2 / float((sizes.astype(float) ** 2).sum()))

    def interval_at(confidence: float) -> Interval:
        z = student_quantile(confidence, n_effective - 1) * (n_effective / (n_effective - 1)) ** 0.5
        return resampled_interval(value, drawn, None, STANDARD_NORMAL.cdf(z) - STANDARD_NORMAL.cdf(-z))

    return interval_at


def prepare_statistic(number: SampleStatistic, codes: Ints) -> PreparedStatistic:
    """Return the statistic over the cases that were measured on both sides; `codes` (n,) numbers its group from 0.

    Example:
        >>> import numpy as np
        >>> from yarus.metrics.statistics.differences.compared_statistics import SampleStatistic, prepare_statistic
        >>> a, b = np.array([0.0, 1.0, np.nan]), np.array([1.0, 1.0, 0.0])
        >>> pair = prepare_statistic(SampleStatistic(a=a, b=b), np.arange(3))
        >>> pair.kept
        array([ True,  True, False])
        >>> pair.values()
        (0.5, 1.0)
    """
    units = int(np.count_nonzero(np.bincount(codes)))
    is_complete = ~(_is_missing(number.a) | _is_missing(number.b))
    complete_codes = codes[is_complete]
    n_units = int(np.count_nonzero(np.bincount(complete_codes)))
    if number.quantile is not None:
        empty = np.zeros((units, 0))
        return PreparedStatistic(number, is_complete, complete_codes, n_units, (empty, empty))
    before, after = (_by_unit(_contributions(side, is_complete), codes, units) for side in (number.a, number.b))
    return PreparedStatistic(number, is_complete, complete_codes, n_units, (before, after))


def _is_missing(side: Floats) -> NDArray[np.bool_]:
    """Return (n,) whether a case was not measured."""
    missing = np.isnan(side)
    return np.asarray(missing.any(axis=1) if missing.ndim > 1 else missing)


def _contributions(side: Floats, is_complete: NDArray[np.bool_]) -> Floats:
    """Return (n, p) contributions of each case to the totals; a value contributes itself and 1."""
    if side.ndim > 1:
        return np.where(is_complete[:, None], side, 0.0)
    table = np.empty((len(side), 2))
    table[:, 0], table[:, 1] = np.where(is_complete, side, 0.0), is_complete
    return table


def _by_unit(table: Floats, codes: Ints, units: int) -> Floats:
    if units == len(table):
        return table  # units are numbered in order of appearance: each is one case
    return np.column_stack([np.bincount(codes, weights=column, minlength=units) for column in table.T])
