"""What two evaluations say about one number: the difference, its interval and p, and a verdict."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, TypeAlias, TypeVar

import numpy as np

from yarus.metrics.metric import Direction
from yarus.metrics.statistics.differences.intervals import IntervalAt, agreed, level_at
from yarus.metrics.statistics.intervals import UNDEFINED, Interval, level_of
from yarus.metrics.statistics.power import fewest_pairs
from yarus.metrics.statistics.significance import holm

ComparisonVerdict = Literal["improved", "regressed", "changed", "no difference shown", "inconclusive"]
Key = TypeVar("Key", bound=Hashable)
DetectableAt: TypeAlias = Callable[[float, float], float]
"""(level of the two-sided test, margin) -> what a loss has to exceed the margin by to be found four times in five."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What two evaluations of the same cases say about one metric."""

    difference: float
    """Mean of b - a over the complete pairs, in the metric's unit."""
    interval: Interval
    """Holds 0 where p does not show a difference, and does not where it does."""
    p: float
    """Two-sided, for no difference at all; NaN below two pairs."""
    verdict: ComparisonVerdict
    n: int
    """Complete pairs."""
    units: int
    """What they are worth at most: pairs, or the groups that they come in."""
    effective_units: float
    """The same, where groups are of different sizes (Kish)."""
    n_missing: int
    """Pairs left out because a side was not measured."""
    method: str
    better: Direction
    margin: float
    """A difference up to this one is taken as none that matters."""
    alpha: float
    interval_at: IntervalAt = field(compare=False, repr=False)
    detectable_at: DetectableAt = field(compare=False, repr=False)
    tests: int = 1
    """Comparisons of the family, if none of them may be a false alarm."""

    @cached_property
    def smallest_detectable(self) -> float:
        """The true difference that a comparison of this size finds four times in five; NaN where none is."""
        return self.detectable_at(self.alpha / self.tests, 0.0) if self.enough else UNDEFINED

    @property
    def enough(self) -> bool:
        """Whether there are so many pairs (or groups) that a test can find anything: 6 at 95 %."""
        return self.units >= fewest_pairs(self.alpha)

    def loss_between(self, confidence: float) -> Interval:
        """The interval of the loss, above 0 where b is worse."""
        low, high = self.interval_at(confidence)
        return Interval(-high, -low) if self.better == "higher" else Interval(low, high)

    def p_of_loss_within(self, margin: float) -> float:
        """One-sided p of a loss of at most `margin`: small where all of the interval of the loss lies beyond it.

        Returns:
            Above 0, below 1; NaN where there is no interval.
        """
        if np.isnan(self.difference) or np.isnan(self.interval.low):
            return UNDEFINED
        half = level_at(self.loss_between, margin) / 2
        loss = -self.difference if self.better == "higher" else self.difference
        return half if loss > margin else 1 - half


def adjusted(family: Mapping[Key, Comparison]) -> dict[Key, Comparison]:
    """Several comparisons of which none may be a false alarm: each with Holm's p, and the verdict under it.

    What each has to be to be found is then that of the first of them: of m that were made, at level alpha / m.

    Example:
        >>> from yarus.metrics.statistics.differences.comparison import adjusted
        >>> from yarus.metrics.statistics.differences.means import compare_paired
        >>> a, b = [0] * 20, [1] * 6 + [0] * 14
        >>> one = compare_paired(a, b, seed=0)
        >>> both = adjusted({"hit_rate@1": one, "hit_rate@3": one})
        >>> one.p, both["hit_rate@1"].p, both["hit_rate@1"].verdict
        (0.03125, 0.0625, 'inconclusive')
    """
    strict = holm([comparison.p for comparison in family.values()])
    tests = max(1, int(np.count_nonzero(~np.isnan(strict))))
    return {key: _under(one, p, tests) for (key, one), p in zip(family.items(), strict.tolist(), strict=True)}


def _under(one: Comparison, p: float, tests: int) -> Comparison:
    found = replace(one, p=p, tests=tests)
    if one.enough and one.p < one.alpha:  # not shown under its own p, the verdict is the interval's, and stays
        verdict = verdict_of(one.difference, one.interval, p, better=one.better, margin=one.margin, alpha=one.alpha)
        found = replace(found, verdict=verdict)
    return found


def concluded(
    difference: float,
    p: float,
    interval_at: IntervalAt,
    method: str,
    *,
    detectable_at: DetectableAt,
    n: int,
    units: int,
    n_missing: int,
    better: Direction,
    margin: float,
    confidence: float,
    effective_units: float | None = None,
) -> Comparison:
    """The comparison that follows from a difference, the p of its test and its interval: they agree, and a verdict.

    Example:
        >>> from yarus.metrics.statistics import Interval
        >>> from yarus.metrics.statistics.differences.comparison import concluded
        >>> options = {"n": 90, "units": 90, "n_missing": 0, "better": "higher", "margin": 0.1, "confidence": 0.95}
        >>> found = concluded(
        ...     0.05, 0.2, lambda level: Interval(0.01, 0.09), "a test", detectable_at=lambda a, m: 0.06, **options
        ... )
        >>> found.interval, found.verdict
        (Interval(low=0.0, high=0.09), 'no difference shown')
    """
    alpha = level_of(confidence)
    p, interval = agreed(p, interval_at, confidence)
    enough = units >= fewest_pairs(alpha)
    verdict = verdict_of(difference, interval, p, better=better, margin=margin, alpha=alpha)
    return Comparison(
        difference=difference,
        interval=interval,
        p=p,
        verdict=verdict if enough else "inconclusive",
        n=n,
        units=units,
        effective_units=units if effective_units is None else effective_units,
        n_missing=n_missing,
        method=method,
        better=better,
        margin=margin,
        alpha=alpha,
        interval_at=interval_at,
        detectable_at=detectable_at,
    )


def verdict_of(
    difference: float, interval: Interval, p: float, *, better: Direction, margin: float, alpha: float
) -> ComparisonVerdict:
    """What a difference, its interval and its p say together; how, stands at `compare_paired`.

    Example:
        >>> from yarus.metrics.statistics import Interval
        >>> from yarus.metrics.statistics.differences.comparison import verdict_of
        >>> verdict_of(0.04, Interval(0.01, 0.07), 0.01, better="higher", margin=0.05, alpha=0.05)
        'improved'
        >>> verdict_of(0.04, Interval(-0.02, 0.1), 0.2, better="higher", margin=0.05, alpha=0.05)
        'inconclusive'
    """
    if p < alpha:
        if better == "neither":
            return "changed"
        return "improved" if (difference > 0) == (better == "higher") else "regressed"
    return "no difference shown" if interval.low >= -margin and interval.high <= margin else "inconclusive"
