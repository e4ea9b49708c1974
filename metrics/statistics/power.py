"""How large a difference has to be for a comparison of this size to find it."""

from collections.abc import Hashable, Sequence
from functools import lru_cache
from math import ceil, log2

import numpy as np
from numpy.typing import ArrayLike

from metrics.statistics.groups import Floats, group_codes, group_totals
from metrics.statistics.intervals import NORMAL, UNDEFINED

POWER = 0.8
"""Share of repetitions in which a difference is to be found."""


def smallest_detectable_difference(
    differences: ArrayLike,
    *,
    alpha: float = 0.05,
    power: float = POWER,
    yes_no: bool = False,
    groups: Sequence[Hashable] | None = None,
) -> float:
    """The true mean difference that a paired test of these cases would find with the given power.

    Args:
        differences: (n,) one difference a complete pair; their spread, not their mean, decides.
        alpha: level of the two-sided test.
        power: share of repetitions in which the difference is to be found.
        yes_no: whether the values were yes/no (differences -1, 0, 1): then for the exact McNemar test.
        groups: n labels of cases that belong together.

    Returns:
        The difference, above 0, in the unit of the metric; NaN where no difference could be found: too few pairs for
        any p below alpha, or pairs that do not vary at all, which say nothing about the spread.

    Raises:
        ValueError: alpha or power outside 0..1, groups of another length.

    Reference: Connett, Smith and McHugh 1987, Sample size and power for pair-matched case-control studies.

    Example:
        >>> from metrics.statistics import smallest_detectable_difference
        >>> round(smallest_detectable_difference([0.1, -0.2, 0.3, 0.0, 0.1, -0.1, 0.2, 0.0]), 3)
        0.159
        >>> round(smallest_detectable_difference([0, 1, 0, -1] * 25, yes_no=True), 3)  # of 100 cases 50 changed
        0.203
    """
    for name, share in (("alpha", alpha), ("power", power)):
        if not 0 < share < 1:
            raise ValueError(f"{name} must lie between 0 and 1, got {share}")
    pairs = np.asarray(differences, dtype=np.float64)
    if yes_no and groups is None:
        return _detectable_share(len(pairs), int(np.count_nonzero(pairs)), alpha, power)
    codes = np.arange(len(pairs)) if groups is None else group_codes(groups, len(pairs))
    units = group_totals(np.column_stack([pairs, np.ones_like(pairs)]), codes)
    # n signs have 2 ** n patterns; even the most extreme two of them are not rare enough below this n.
    if len(units) < fewest_pairs(alpha):
        return UNDEFINED
    residuals = units[:, 0] - pairs.mean() * units[:, 1]
    error = float(np.sqrt((residuals**2).sum() * len(units) / (len(units) - 1))) / len(pairs)
    # Equal differences leave a spread of rounding only.
    return detectable(error if error > 1e-12 * np.abs(pairs).max() else 0.0, alpha=alpha, power=power)


def detectable(error: float, *, alpha: float, power: float = POWER) -> float:
    """The difference that a two-sided test at level alpha finds, from its standard error; NaN without one.

    Example:
        >>> from metrics.statistics.power import detectable
        >>> round(detectable(0.02, alpha=0.05), 3)
        0.056
    """
    return (NORMAL.inv_cdf(1 - alpha / 2) + NORMAL.inv_cdf(power)) * error if error > 0 else UNDEFINED


def fewest_pairs(alpha: float) -> int:
    """The smallest number of pairs, all in one direction, with p at most alpha.

    Example:
        >>> from metrics.statistics.power import fewest_pairs
        >>> fewest_pairs(0.05)  # five signs that agree have p = 2 / 32
        6
    """
    return ceil(1 - log2(alpha))


def _detectable_share(n: int, changed: int, alpha: float, power: float) -> float:
    """By bisection, the difference of two shares at which the exact McNemar test of n pairs has this power.

    As many pairs change as did here, or as many as the difference itself needs.
    """
    if not (_most_against(n, alpha) >= 0).any():  # not even if all change for the better
        return UNDEFINED
    low, high = 0.0, 1.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        found = _mcnemar_power(n, max(changed / n, middle), middle, alpha) >= power
        low, high = (low, middle) if found else (middle, high)
    return high


def _mcnemar_power(n: int, changing: float, difference: float, alpha: float) -> float:
    """Chance that p < alpha where this share of n pairs changes and the shares differ by `difference`."""
    from scipy.special import bdtr  # here, because it costs 0.1 s to import

    # Beyond eight standard deviations, each at most half of the root of n, nothing is left to sum.
    expected, reach = n * changing, 4 * np.sqrt(n)
    fewest, most = max(1, int(expected - reach)), min(n, int(expected + reach))
    counts = np.arange(fewest, most + 1)
    chances = np.diff(bdtr(np.arange(fewest - 1.0, most + 1.0), n, changing))
    against = _most_against(n, alpha)[counts - 1]
    found = np.where(against >= 0, bdtr(against, counts, (1 - difference / changing) / 2), 0.0)
    return float((chances * found).sum())


@lru_cache
def _most_against(n: int, alpha: float) -> Floats:
    """For 1..n changes, the largest number of them against the trend with which they are still significant."""
    from scipy.special import bdtr, bdtrik

    counts = np.arange(1, n + 1)
    against = np.floor(np.nan_to_num(bdtrik(alpha / 2, counts, 0.5)))
    against -= 2 * bdtr(against, counts, 0.5) >= alpha
    return np.asarray(against)
