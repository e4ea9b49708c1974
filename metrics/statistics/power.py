"""The smallest difference that a comparison of a given size detects."""

from functools import lru_cache
from math import ceil, log2

import numpy as np
from numpy.typing import ArrayLike

from yarus.metrics.statistics.groups import Floats
from yarus.metrics.statistics.intervals import STANDARD_NORMAL, UNDEFINED
from yarus.metrics.statistics.significance import mcnemar_exact

POWER = 0.8
"""Share of repetitions that must detect a difference."""
ALL_CHANGED_SHARE = 0.95
"""Share of changed pairs above which a difference is taken to move all pairs, and not a few of them far."""
TREND_P = 0.05
"""A p below which changes in one direction are more than noise."""


def min_detectable_effect(
    differences: ArrayLike,
    *,
    alpha: float = 0.05,
    power: float = POWER,
    yes_no: bool = False,
    margin: float = 0.0,
    span: float = 0.0,
) -> float:
    """Return the true mean difference that a paired test of such cases detects with the given power.

    The cases are independent; for cases in groups see `yarus.metrics.statistics.power_in_groups`. A difference adds to
    the noise of these pairs, because it changes cases that had not changed before. So it has to be larger than the
    noise alone suggests.

    Args:
        differences: (n,) one difference per complete pair; their noise, not their mean, decides.
        alpha: level of the two-sided test; of m tests under Holm's method that of the first, alpha / m.
        power: share of repetitions that must detect the difference.
        yes_no: whether the values were yes/no (differences -1, 0, 1): then for the exact McNemar test.
        margin: a tolerated loss: the result is then the excess over it, and includes the noise of the margin's loss.
        span: the largest possible difference of two values, for the size of an unseen change; 0: not known.

    Returns:
        The difference, above 0, in the unit of the metric; NaN if no difference could be detected: too few pairs for
        any p below alpha, or pairs that do not vary at all, which do not show their spread.

    Raises:
        ValueError: alpha or power outside 0..1.

    Reference: Connett, Smith and McHugh 1987, Sample size and power for pair-matched case-control studies.

    Example:
        >>> from yarus.metrics.statistics import min_detectable_effect
        >>> round(min_detectable_effect([0.1, -0.2, 0.3, 0.0, 0.1, -0.1, 0.2, 0.0]), 3)
        0.285
        >>> round(min_detectable_effect([0, 1, 0, -1] * 25, yes_no=True), 3)  # of 100 cases 50 changed
        0.248
    """
    for name, share in (("alpha", alpha), ("power", power)):
        if not 0 < share < 1:
            raise ValueError(f"{name} must lie between 0 and 1, got {share}")
    pairs = np.asarray(differences, dtype=np.float64)
    if yes_no and not margin:
        return _detectable_share(len(pairs), _count_noisy(pairs), alpha, power)
    n = len(pairs)
    # n signs have 2 ** n patterns; even the most extreme two of them are not rare enough below this n.
    if n < min_pairs(alpha):
        return UNDEFINED
    error = float(pairs.std(ddof=1)) / n**0.5
    changed = pairs[pairs != 0]
    if len(changed) == n and error <= 1e-12 * np.abs(pairs).max():  # a spread by rounding only
        return UNDEFINED
    jump = float((changed**2).sum() / np.abs(changed).sum()) if len(changed) else span
    jump = jump if len(changed) < ALL_CHANGED_SHARE * n else 0.0
    return detectable_difference(
        float(np.hypot(error, (jump * margin / n) ** 0.5)), alpha=alpha, power=power, jump=jump, n=n
    )


def detectable_difference(error: float, *, alpha: float, power: float = POWER, jump: float = 0.0, n: int = 1) -> float:
    """Return the difference that a two-sided test at level alpha detects, from its standard error; NaN without noise.

    If the difference changes unchanged cases by `jump` each, rather than moving all of them, a difference d adds
    jump * d / n to the variance of the mean.

    Example:
        >>> from yarus.metrics.statistics.power import detectable_difference
        >>> round(detectable_difference(0.02, alpha=0.05), 3)
        0.056
        >>> round(detectable_difference(0.02, alpha=0.05, jump=1.0, n=100), 3)
        0.108
    """
    if not max(error, jump) > 0:
        return UNDEFINED
    z = STANDARD_NORMAL.inv_cdf(1 - alpha / 2) + STANDARD_NORMAL.inv_cdf(power)
    half = z**2 * jump / n / 2  # d = z * sqrt(error ** 2 + jump * d / n)
    return float(half + np.hypot(half, z * error))


def min_pairs(alpha: float) -> int:
    """Return the smallest number of pairs, all in one direction, with p at most alpha.

    Example:
        >>> from yarus.metrics.statistics.power import min_pairs
        >>> min_pairs(0.05)  # five signs that agree have p = 2 / 32
        6
    """
    return ceil(1 - log2(alpha))


def _count_noisy(pairs: Floats) -> int:
    """Return how many pairs changed by chance: all, or twice the rarer direction if one direction prevails."""
    worse, better = int((pairs < 0).sum()), int((pairs > 0).sum())
    return 2 * min(worse, better) if mcnemar_exact(worse, better) < TREND_P else worse + better


def _detectable_share(n: int, noisy: int, alpha: float, power: float) -> float:
    """Return, by bisection, the difference of two shares at which the exact McNemar test of n pairs has this power."""
    if not (_most_against(n, alpha) >= 0).any():  # not even if all change for the better
        return UNDEFINED
    low, high = 0.0, 1.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        is_detected = _mcnemar_power(n, min(1.0, noisy / n + middle), middle, alpha) >= power
        low, high = (low, middle) if is_detected else (middle, high)
    return high


def _mcnemar_power(n: int, changing: float, difference: float, alpha: float) -> float:
    """Return the probability of p < alpha if this share of n pairs changes and the shares differ by `difference`."""
    from scipy.special import bdtr  # here, because it costs 0.1 s to import

    # Beyond eight standard deviations (each at most sqrt(n) / 2) nothing is left to sum.
    expected, reach = n * changing, 4 * np.sqrt(n)
    fewest, most = max(1, int(expected - reach)), min(n, int(expected + reach))
    counts = np.arange(fewest, most + 1)
    probabilities = np.diff(bdtr(np.arange(fewest - 1.0, most + 1.0), n, changing))
    against = _most_against(n, alpha)[counts - 1]
    powers = np.where(against >= 0, bdtr(against, counts, (1 - difference / changing) / 2), 0.0)
    return float((probabilities * powers).sum())


@lru_cache
def _most_against(n: int, alpha: float) -> Floats:
    """Return, for 1..n changes, the largest number against the trend that is still significant."""
    from scipy.special import bdtr, bdtrik

    counts = np.arange(1, n + 1)
    against = np.floor(np.nan_to_num(bdtrik(alpha / 2, counts, 0.5)))
    against -= 2 * bdtr(against, counts, 0.5) >= alpha
    return np.asarray(against)
