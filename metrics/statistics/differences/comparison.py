"""The comparison of one statistic of two evaluations: the difference, its interval and p, and a verdict."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, TypeAlias, TypeVar

import numpy as np

from yarus.metrics.metric import Direction
from yarus.metrics.statistics.differences.intervals import IntervalAt, p_value_at, reconcile_p_and_interval
from yarus.metrics.statistics.intervals import UNDEFINED, Interval, alpha_of
from yarus.metrics.statistics.power import min_pairs
from yarus.metrics.statistics.significance import holm

ComparisonVerdict = Literal["improved", "regressed", "changed", "no difference shown", "inconclusive"]
Key = TypeVar("Key", bound=Hashable)
DetectableAt: TypeAlias = Callable[[float, float], float]
"""(level of the two-sided test, margin) -> by how much a loss must exceed the margin to be found with power 0.8."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The comparison of one metric of two evaluations of the same cases."""

    difference: float
    """Mean of b - a over the complete pairs, in the metric's unit."""
    interval: Interval
    """Contains 0 if and only if p does not show a difference."""
    p: float
    """Two-sided p of the null hypothesis of no difference; NaN below two pairs."""
    verdict: ComparisonVerdict
    n: int
    """Complete pairs."""
    units: int
    """Independent units at most: pairs, or the groups that they come in."""
    effective_units: float
    """Their effective number, if groups are of different sizes (Kish)."""
    n_missing: int
    """Pairs left out because a side was not measured."""
    method: str
    better: Direction
    margin: float
    """The largest difference that does not matter."""
    alpha: float
    interval_at: IntervalAt = field(compare=False, repr=False)
    detectable_at: DetectableAt = field(compare=False, repr=False)
    tests: int = 1
    """Comparisons of the family, if none of them may be a false alarm."""

    @cached_property
    def smallest_detectable(self) -> float:
        """Return the true difference that a comparison of this size finds with power 0.8; NaN if there is none."""
        return self.detectable_at(self.alpha / self.tests, 0.0) if self.enough else UNDEFINED

    @property
    def enough(self) -> bool:
        """Return whether there are enough pairs (or groups) for a test to find anything: 6 at 95 %."""
        return self.units >= min_pairs(self.alpha)

    def loss_between(self, confidence: float) -> Interval:
        """Return the interval of the loss, above 0 if b is worse."""
        low, high = self.interval_at(confidence)
        return Interval(-high, -low) if self.better == "higher" else Interval(low, high)

    def p_of_loss_within(self, margin: float) -> float:
        """Return the one-sided p of a loss of at most `margin`: small if the interval of the loss lies beyond it.

        Returns:
            Above 0, below 1; NaN if there is no interval.
        """
        if np.isnan(self.difference) or np.isnan(self.interval.low):
            return UNDEFINED
        half = p_value_at(self.loss_between, margin) / 2
        loss = -self.difference if self.better == "higher" else self.difference
        return half if loss > margin else 1 - half


def adjust_for_multiple_tests(family: Mapping[Key, Comparison]) -> dict[Key, Comparison]:
    """Return a family of comparisons of which none may be a false alarm: each with Holm's p, and the verdict under it.

    The detectable difference of each is that of the strictest test: of m comparisons, at level alpha / m.

    Example:
        >>> from yarus.metrics.statistics.differences.comparison import adjust_for_multiple_tests
        >>> from yarus.metrics.statistics.differences.means import compare_paired
        >>> a, b = [0] * 20, [1] * 6 + [0] * 14
        >>> single = compare_paired(a, b, seed=0)
        >>> both = adjust_for_multiple_tests({"hit_rate@1": single, "hit_rate@3": single})
        >>> single.p, both["hit_rate@1"].p, both["hit_rate@1"].verdict
        (0.03125, 0.0625, 'inconclusive')
    """
    strict = holm([single.p for single in family.values()])
    tests = max(1, int(np.count_nonzero(~np.isnan(strict))))
    return {key: _adjust_p(single, p, tests) for (key, single), p in zip(family.items(), strict.tolist(), strict=True)}


def _adjust_p(raw: Comparison, p: float, tests: int) -> Comparison:
    adjusted = replace(raw, p=p, tests=tests)
    # If its own p is not significant, the verdict is that of the interval, and stays.
    if raw.enough and raw.p < raw.alpha:
        verdict = decide_verdict(raw.difference, raw.interval, p, better=raw.better, margin=raw.margin, alpha=raw.alpha)
        adjusted = replace(adjusted, verdict=verdict)
    return adjusted


def build_comparison(
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
    """Return the comparison from a difference, the p of its test and its interval, made consistent, with a verdict.

    Example:
        >>> from yarus.metrics.statistics import Interval
        >>> from yarus.metrics.statistics.differences.comparison import build_comparison
        >>> options = {"n": 90, "units": 90, "n_missing": 0, "better": "higher", "margin": 0.1, "confidence": 0.95}
        >>> result = build_comparison(
        ...     0.05, 0.2, lambda level: Interval(0.01, 0.09), "a test", detectable_at=lambda a, m: 0.06, **options
        ... )
        >>> result.interval, result.verdict
        (Interval(low=0.0, high=0.09), 'no difference shown')
    """
    alpha = alpha_of(confidence)
    p, interval = reconcile_p_and_interval(p, interval_at, confidence)
    has_enough_units = units >= min_pairs(alpha)
    verdict = decide_verdict(difference, interval, p, better=better, margin=margin, alpha=alpha)
    return Comparison(
        difference=difference,
        interval=interval,
        p=p,
        verdict=verdict if has_enough_units else "inconclusive",
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


def decide_verdict(
    difference: float, interval: Interval, p: float, *, better: Direction, margin: float, alpha: float
) -> ComparisonVerdict:
    """Return the verdict of a difference, its interval and its p; `compare_paired` documents the rules.

    Example:
        >>> from yarus.metrics.statistics import Interval
        >>> from yarus.metrics.statistics.differences.comparison import decide_verdict
        >>> decide_verdict(0.04, Interval(0.01, 0.07), 0.01, better="higher", margin=0.05, alpha=0.05)
        'improved'
        >>> decide_verdict(0.04, Interval(-0.02, 0.1), 0.2, better="higher", margin=0.05, alpha=0.05)
        'inconclusive'
    """
    if p < alpha:
        if better == "neither":
            return "changed"
        return "improved" if (difference > 0) == (better == "higher") else "regressed"
    return "no difference shown" if interval.low >= -margin and interval.high <= margin else "inconclusive"
