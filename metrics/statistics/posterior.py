"""The interval of what follows from the shares of outcomes, some of them rare or unseen: F1, MCC, kappa."""

from collections.abc import Callable, Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from yarus.metrics.statistics.groups import Floats
from yarus.metrics.statistics.intervals import NO_INTERVAL, Interval, independent_cases

_BLOCK_CELLS = 2_000_000


def posterior_interval(
    parts: ArrayLike,
    statistic: Callable[[Floats], Floats],
    *,
    unseen: ArrayLike,
    seed: int,
    prior: float = 0.5,
    groups: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
    draws: int = 10_000,
) -> Interval:
    """Interval for a number that follows from totals over cases, of which each has one of a few outcomes.

    It is the middle of the values under shares of the outcomes that are drawn from their Dirichlet posterior. Resampled
    cases never have an outcome that was not seen, so that twenty right decisions would leave no doubt; here they do.

    Args:
        parts: (n, p) what each case adds to each total; equal rows are one outcome.
        statistic: totals (..., p), of fractions of cases, too -> values (...); NaN where it has no value.
        unseen: (u, p) outcomes that are possible although no case may show them.
        seed: of the draws.
        prior: how many cases each of `unseen` counts for beforehand; where they are all that there are, 0.5 (Jeffreys).
        groups: n labels of users, dialogs or pages; None marks a case that stands alone. The cases count for as many
            as what each of them moves the value by is worth.
        confidence: the interval's level, 0..1.
        draws: how many.

    Returns:
        Bounds in the unit of the statistic, its value between them; (nan, nan) where it has none.

    Raises:
        ValueError: groups of another length, a level outside 0..1.

    Reference: Jeffreys 1946; Rubin 1981, The Bayesian bootstrap; Brown, Cai and DasGupta 2001, Interval estimation for
    a binomial proportion.

    Example:
        >>> import numpy as np
        >>> from yarus.metrics.statistics import posterior_interval
        >>> found = np.eye(3)[[0] * 8 + [1] + [2]]  # TP, FP, FN
        >>> f1 = lambda totals: 2 * totals[..., 0] / (totals[..., 0] + totals.sum(axis=-1))
        >>> low, high = posterior_interval(found, f1, unseen=np.eye(3), seed=0)
        >>> round(low, 2), round(high, 2)
        (0.63, 0.97)
    """
    table, possible = (np.asarray(rows, dtype=np.float64) for rows in (parts, unseen))
    totals = table.sum(axis=0)
    if not len(table) or np.isnan(value := float(statistic(totals))):
        return NO_INTERVAL
    before = totals + prior * possible.sum(axis=0)
    distinct, place, counts = np.unique(table, axis=0, return_inverse=True, return_counts=True)
    moved = statistic(before + distinct) - statistic(before)  # by one more case of each outcome
    worth = independent_cases(moved[place.ravel()], groups, confidence)
    outcomes = np.vstack([distinct, possible])
    weights = np.concatenate([counts * (worth / len(table)), np.full(len(possible), prior)])
    generator = np.random.default_rng(seed)
    blocks = np.array_split(np.arange(draws), -(-draws * len(weights) // _BLOCK_CELLS))
    drawn = [statistic(generator.standard_gamma(weights, (len(block), len(weights))) @ outcomes) for block in blocks]
    low, high = np.quantile(np.concatenate(drawn), [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(min(float(low), value), max(float(high), value))
