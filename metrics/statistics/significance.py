"""The significance tests of a comparison, and Holm's correction for several tests."""

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from yarus.metrics.statistics.groups import Floats, group_codes, group_totals
from yarus.metrics.statistics.intervals import NO_INTERVAL, SMALLEST_P, UNDEFINED, Interval, wilson_interval


def permutation_p(
    differences: ArrayLike, *, seed: int, resamples: int = 10_000, groups: Sequence[Hashable] | None = None
) -> float:
    """Return the two-sided p of the paired permutation test: how often random signs give a mean difference as large.

    All sign patterns are tried if there are at most `resamples` of them; otherwise p is (c + 1) / (resamples + 1).

    Args:
        differences: (n,) one finite difference per pair.
        seed: of the random signs.
        resamples: how many sign patterns to draw.
        groups: n labels; the cases of one group change sign together.

    Returns:
        p above 0, at most 1; NaN without pairs.

    Raises:
        ValueError: a difference that is NaN or infinite, groups of another length, fewer than 1 resample.

    Reference: Phipson and Smyth 2010, Permutation p-values should never be zero; equal to
    scipy.stats.permutation_test(permutation_type="samples") up to Monte-Carlo error.

    Example:
        >>> from yarus.metrics.statistics import permutation_p
        >>> permutation_p([0.1, 0.2, 0.1, 0.3, 0.2], seed=0)  # 2 of 32 patterns of signs give a mean as large
        0.0625
    """
    pairs = np.asarray(differences, dtype=np.float64)
    if not np.isfinite(pairs).all() or resamples < 1:
        raise ValueError(f"differences must be finite and resamples at least 1, got {resamples} resamples")
    if not pairs.size:
        return UNDEFINED
    units = pairs if groups is None else group_totals(pairs[:, None], group_codes(groups, len(pairs))).ravel()
    moving = units[units != 0]
    # The same sum in another order differs in the last digits, and counts as equally large.
    threshold = abs(moving.sum()) - 1e-12 * np.abs(moving).sum()
    if 2 ** len(moving) <= resamples:
        return float((np.abs(_sign_patterns(len(moving)) @ moving) >= threshold).mean())
    generator = np.random.default_rng(seed)
    sums = np.zeros(resamples)
    patterns = _sign_patterns(8)
    # Eight signs per random byte: the 256 sums of eight numbers are computed once and looked up for all resamples.
    for start in range(0, len(moving), 8):
        eight = moving[start : start + 8]
        signed = patterns[:, : len(eight)] @ eight
        sums += signed.take(generator.integers(0, 256, resamples, dtype=np.uint8))
    return float((np.count_nonzero(np.abs(sums) >= threshold) + 1) / (resamples + 1))


def mcnemar_exact(only_a: int, only_b: int) -> float:
    """Return the two-sided p of the exact McNemar test, from the cases on which two yes/no evaluations disagree.

    Args:
        only_a, only_b: cases that only a, and that only b, got right.

    Returns:
        p, above 0, at most 1; 1 if they never disagree.

    Raises:
        ValueError: a count below 0.

    Reference: McNemar 1947; equal to statsmodels' mcnemar(exact=True).

    Example:
        >>> from yarus.metrics.statistics import mcnemar_exact
        >>> round(mcnemar_exact(2, 10), 3)
        0.039
    """
    if min(only_a, only_b) < 0:
        raise ValueError(f"counts must be at least 0, got {only_a} and {only_b}")
    from scipy.special import bdtr  # here, because it costs 0.1 s to import

    return min(1.0, max(SMALLEST_P, 2 * float(bdtr(min(only_a, only_b), only_a + only_b, 0.5))))


def newcombe_paired_interval(
    both: int, only_a: int, only_b: int, neither: int, *, confidence: float = 0.95
) -> Interval:
    """Return Newcombe's score interval of the difference b - a of two shares on the same cases (his method 10).

    Args:
        both, only_a, only_b, neither: counts of cases by who got them right.
        confidence: the interval's level, 0..1.

    Returns:
        Bounds within -1..1; (nan, nan) without cases.

    Raises:
        ValueError: a count below 0, or a level outside 0..1.

    Reference: Newcombe 1998, Improved confidence intervals for the difference between binomial proportions based on
    paired data.

    Example:
        >>> from yarus.metrics.statistics import newcombe_paired_interval
        >>> low, high = newcombe_paired_interval(both=20, only_a=2, only_b=10, neither=8)
        >>> round(low, 3), round(high, 3)
        (0.031, 0.353)
    """
    if min(both, only_a, only_b, neither) < 0:
        raise ValueError(f"counts must be at least 0, got {both}, {only_a}, {only_b} and {neither}")
    n = both + only_a + only_b + neither
    yes_a, yes_b = both + only_a, both + only_b
    low_a, high_a = wilson_interval(yes_a, n, confidence=confidence)
    low_b, high_b = wilson_interval(yes_b, n, confidence=confidence)
    if n == 0:
        return NO_INTERVAL
    # The correlation of both, shrunk towards 0 by half a case if it is positive.
    covariance = both * neither - only_a * only_b
    spread = yes_a * (n - yes_a) * yes_b * (n - yes_b)
    phi = min(covariance, max(covariance - n / 2, 0)) / spread**0.5 if spread else 0.0
    share_a, share_b = yes_a / n, yes_b / n
    below, above = share_b - low_b, high_a - share_a
    low = share_b - share_a - (below**2 - 2 * phi * below * above + above**2) ** 0.5
    above, below = high_b - share_b, share_a - low_a
    return Interval(low, share_b - share_a + (above**2 - 2 * phi * above * below + below**2) ** 0.5)


def holm(p_values: ArrayLike) -> Floats:
    """Return p values adjusted for multiple tests: the chance of any false alarm stays at the level of one test.

    Args:
        p_values: (m,) each 0..1, or NaN for a comparison that could not be made: it stays NaN and is not counted.

    Returns:
        (m,) adjusted values in the same order, 0..1, none smaller than before.

    Raises:
        ValueError: a value outside 0..1.

    Reference: Holm 1979, A simple sequentially rejective multiple test procedure; equal to statsmodels'
    multipletests(method="holm").

    Example:
        >>> from yarus.metrics.statistics import holm
        >>> holm([0.01, 0.04, 0.03])
        array([0.03, 0.06, 0.06])
    """
    unadjusted = np.asarray(p_values, dtype=np.float64)
    if ((unadjusted < 0) | (unadjusted > 1)).any():
        raise ValueError(f"p values must lie between 0 and 1, got {unadjusted.tolist()}")
    order = np.argsort(unadjusted)[: np.count_nonzero(~np.isnan(unadjusted))]  # NaN sorts last
    adjusted: Floats = np.full(unadjusted.shape, UNDEFINED)
    steps = np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(unadjusted[order] * steps), 1.0)
    return adjusted


def _sign_patterns(n: int) -> Floats:
    """Return (2 ** n, n) all patterns of -1 and 1."""
    bits = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    return np.where(bits, -1.0, 1.0)
