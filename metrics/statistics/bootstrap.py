"""Bootstrap intervals of means, of statistics of totals, and of any other statistic.

Each is seeded, and keeps the results of the resamples in memory, not the resampled cases.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from yarus.metrics.statistics.groups import Floats, Ints, group_codes, group_totals, measured_values
from yarus.metrics.statistics.intervals import (
    NO_INTERVAL,
    SMALLEST_P,
    STANDARD_NORMAL,
    Interval,
    grouped_mean_interval,
    normal_quantile,
)

# Drawing a row costs about 2 ns, a category of a multinomial about 35: with few distinct rows the latter is cheaper.
_DRAWS_PER_CATEGORY = 16
_BLOCK_CELLS = 2_000_000


def bootstrap_interval(
    values: ArrayLike,
    *,
    seed: int,
    confidence: float = 0.95,
    resamples: int = 10_000,
    method: Literal["bca", "percentile"] = "bca",
    groups: Sequence[Hashable] | None = None,
) -> Interval:
    """Return the bootstrap interval of a mean; with groups, Student's t (`grouped_mean_interval`).

    Resampled groups that are few, or of unequal size, cover too little: 83 to 92 % instead of 95 %.

    Args:
        values: (n,) one value per case; NaN (not measured) is left out.
        seed: of the resampling; the same seed gives the same interval.
        confidence: the interval's level, 0..1.
        resamples: how often to resample.
        method: "bca" (bias-corrected and accelerated, second-order accurate) or "percentile".
        groups: n labels of users, dialogs or pages; None marks a case without a group.

    Returns:
        Bounds in the unit of the values; (v, v) if all values are v; (nan, nan) below two measured cases or groups.

    Raises:
        ValueError: groups of another length than values, a level outside 0..1, fewer than 1 resample, an unknown
            method, an infinite value.

    Reference: Efron 1987, Better bootstrap confidence intervals; scipy.stats.bootstrap up to Monte-Carlo error.

    Example:
        >>> from yarus.metrics.statistics import bootstrap_interval
        >>> low, high = bootstrap_interval([0.2, 0.4, 0.4, 0.5, 0.6, 0.9], seed=0)
        >>> round(low, 2), round(high, 2)
        (0.37, 0.7)
    """
    measured, labels = measured_values(values, groups)
    _check(confidence, resamples, method)
    if labels is not None and len(set(group_codes(labels, len(measured)).tolist())) < len(measured):
        return grouped_mean_interval(measured, labels, confidence=confidence)
    table = np.column_stack([measured, np.ones_like(measured)])
    interval = bootstrap_totals(
        table, _mean_of_totals, seed=seed, confidence=confidence, resamples=resamples, method=method
    )
    if np.isnan(interval.low) or np.ptp(measured):
        return interval
    # Without the rounding error of a sum: the mean of three times 0.1 is 0.1.
    return Interval(float(measured.min()), float(measured.max()))


def bootstrap_totals(
    parts: ArrayLike,
    statistic: Callable[[Floats], Floats],
    *,
    seed: int,
    confidence: float = 0.95,
    resamples: int = 10_000,
    method: Literal["bca", "percentile"] = "percentile",
    groups: Sequence[Hashable] | None = None,
) -> Interval:
    """Return the bootstrap interval of a statistic of totals over cases: F1, MCC, kappa, corpus BLEU, any ratio.

    For F1, parts are the columns (is TP, is FP, is FN) and the statistic is `lambda t: 2 * t[..., 0] / (2 * t[..., 0] +
    t[..., 1] + t[..., 2])`. All resamples go through one call of the statistic.

    Args:
        parts: (n, p) what each case adds to each total.
        statistic: totals (..., p) -> values (...); NaN if undefined.
        seed, confidence, resamples, method: as in `bootstrap_interval`.
        groups: n labels of users, dialogs or pages; whole groups are resampled. None marks a case without a group.

    Returns:
        Bounds in the unit of the statistic, over the resamples on which it is defined; (nan, nan) below two cases or
        groups, or if the statistic of the cases themselves is undefined.

    Raises:
        ValueError: as `bootstrap_interval`; parts that are not (n, p) or not finite.

    Example:
        >>> import numpy as np
        >>> from yarus.metrics.statistics import bootstrap_totals
        >>> latencies_and_tokens = np.array([[120.0, 10], [300, 20], [80, 10], [450, 30]])
        >>> low, high = bootstrap_totals(latencies_and_tokens, lambda t: t[..., 0] / t[..., 1], seed=0)
        >>> round(low, 1), round(high, 1)
        (10.0, 15.0)
    """
    table = np.asarray(parts, dtype=np.float64)
    if table.ndim != 2 or not np.isfinite(table).all():
        raise ValueError(f"parts must be a finite table (cases, totals), got shape {table.shape} or values not finite")
    _check(confidence, resamples, method)
    units = table if groups is None else group_totals(table, group_codes(groups, len(table)))
    if len(units) < 2:
        return NO_INTERVAL
    totals = units.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = float(statistic(totals))
        draws = statistic(_resampled_totals(units, resamples, np.random.default_rng(seed)))
        jackknife = statistic(totals - units) if method == "bca" else None
    return resampled_interval(value, draws, jackknife, confidence)


def bootstrap_statistic(
    statistic: Callable[[Ints], float],
    n: int,
    *,
    seed: int,
    confidence: float = 0.95,
    resamples: int = 2_000,
    groups: Sequence[Hashable] | None = None,
) -> Interval:
    """Return the percentile bootstrap interval of any statistic of rows, with one call of the statistic per resample.

    For statistics of totals, `bootstrap_totals` is much faster.

    Args:
        statistic: row numbers, (m,) with repeats, m = n without groups -> the number; NaN if undefined.
        n: number of rows.
        seed, confidence, resamples, groups: as in `bootstrap_totals`.

    Returns:
        Bounds in the unit of the statistic, over the resamples on which it is defined; (nan, nan) below two rows or
        groups, or if the statistic of all rows is undefined.

    Raises:
        ValueError: groups that are not n labels, a level outside 0..1, fewer than 1 resample.

    Example:
        >>> import numpy as np
        >>> from yarus.metrics.statistics import bootstrap_statistic
        >>> values = np.array([1.0, 2.0, 2.0, 3.0, 9.0])
        >>> low, high = bootstrap_statistic(lambda rows: float(np.median(values[rows])), len(values), seed=0)
        >>> low, high
        (1.0, 9.0)
    """
    _check(confidence, resamples)
    codes = np.arange(n) if groups is None else group_codes(groups, n)
    members = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
    if len(members) < 2:
        return NO_INTERVAL
    generator = np.random.default_rng(seed)
    resampled = (generator.integers(0, len(members), len(members)) for _ in range(resamples))
    if len(members) < n:
        resampled = (np.concatenate([members[unit] for unit in units]) for units in resampled)
    draws = np.array([statistic(rows) for rows in resampled])
    return resampled_interval(float(statistic(np.arange(n))), draws, None, confidence)


def _check(confidence: float, resamples: int, method: str = "percentile") -> None:
    normal_quantile(confidence)
    if method not in ("bca", "percentile"):
        raise ValueError(f"no bootstrap method {method!r}; there are 'bca' and 'percentile'")
    if resamples < 1:
        raise ValueError(f"resamples must be at least 1, got {resamples}")


def _mean_of_totals(totals: Floats) -> Floats:
    means: Floats = totals[..., 0] / totals[..., 1]
    return means


def _resampled_totals(units: Floats, resamples: int, generator: np.random.Generator) -> Floats:
    """Return (resamples, p) totals of as many rows as there are, drawn with replacement."""
    n = len(units)
    distinct, counts = np.unique(units, axis=0, return_counts=True)
    if len(distinct) * _DRAWS_PER_CATEGORY <= n:
        blocks = np.array_split(np.arange(resamples), -(-resamples * len(distinct) // _BLOCK_CELLS))
        return np.concatenate([generator.multinomial(n, counts / n, size=len(block)) @ distinct for block in blocks])
    totals = np.tile(units[0] * n, (resamples, 1))
    varying = [column for column in range(units.shape[1]) if np.ptp(units[:, column])]
    totals[:, varying] = 0.0
    # One draw for all resamples at a time: the table stays in the cache, and memory does not grow with the cases.
    sums, columns = totals.T.copy(), units.T.copy()
    for _ in range(n):
        rows = generator.integers(0, n, resamples)
        for column in varying:
            sums[column] += columns[column].take(rows)
    return sums.T


def resampled_interval(value: float, draws: Floats, jackknife: Floats | None, confidence: float) -> Interval:
    """Return the percentile interval of the draws, or BCa if jackknife values are given.

    Example:
        >>> import numpy as np
        >>> from yarus.metrics.statistics.bootstrap import resampled_interval
        >>> low, high = resampled_interval(0.5, np.linspace(0, 1, 101), None, 0.9)
        >>> round(low, 2), round(high, 2)
        (0.05, 0.95)
    """
    defined = draws[~np.isnan(draws)]
    if np.isnan(value) or not defined.size:
        return NO_INTERVAL
    tail = (1 - confidence) / 2
    if jackknife is None:
        return _percentile_interval(defined, tail, 1 - tail)
    # Sums in another order differ in the last digits; ties with the value count half, as in scipy.
    slack = 1e-12 * max(1.0, abs(value))
    below = (np.mean(defined < value - slack) + np.mean(defined <= value + slack)) / 2
    bias = STANDARD_NORMAL.inv_cdf(float(np.clip(below, 0.5 / defined.size, 1 - 0.5 / defined.size)))
    influence = np.nanmean(jackknife) - jackknife[~np.isnan(jackknife)]
    spread = float((influence**2).sum()) ** 1.5
    acceleration = float((influence**3).sum()) / (6 * max(spread, SMALLEST_P))
    shifted = (bias + z for z in (STANDARD_NORMAL.inv_cdf(tail), STANDARD_NORMAL.inv_cdf(1 - tail)))
    low, high = (STANDARD_NORMAL.cdf(bias + z / max(1 - acceleration * z, 1e-9)) for z in shifted)
    return _percentile_interval(defined, low, high)


def _percentile_interval(draws: Floats, low: float, high: float) -> Interval:
    bounds = np.quantile(draws, [low, high])
    return Interval(float(bounds[0]), float(bounds[1]))
