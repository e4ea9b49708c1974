"""The interval of statistics of the shares of outcomes, some of them rare or unseen: F1, MCC, kappa."""

from collections.abc import Callable, Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from yarus.metrics.statistics.groups import Floats
from yarus.metrics.statistics.intervals import NO_INTERVAL, Interval, effective_sample_size

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
    """Return the interval of a statistic of totals over cases, each of which has one of a few outcomes.

    It is the central interval of the statistic under shares drawn from their Dirichlet posterior. Resampled cases never
    have an unseen outcome, so that twenty right decisions would leave no doubt; posterior shares do.

    Args:
        parts: (n, p) contribution of each case to each total; equal rows are one outcome.
        statistic: totals (..., p), also of fractions of cases -> values (...); NaN if undefined.
        unseen: (u, p) outcomes that are possible although no case may show them.
        seed: of the draws.
        prior: prior weight in cases of each of `unseen`; 0.5 (Jeffreys) if they are all possible outcomes.
        groups: n labels of users, dialogs or pages; None marks a case without a group. The effective number of cases is
            that of their influences on the value.
        confidence: the interval's level, 0..1.
        draws: number of draws.

    Returns:
        Bounds in the unit of the statistic, its value between them; (nan, nan) if undefined.

    Raises:
        ValueError: groups of another length, a level outside 0..1.

    Reference: Jeffreys 1946; Rubin 1981, The Bayesian bootstrap; Brown, Cai and DasGupta 2001, Interval estimation for
    a binomial proportion.

    Example:
        >>> import numpy as np
        >>> from yarus.metrics.statistics import posterior_interval
        >>> outcomes = np.eye(3)[[0] * 8 + [1] + [2]]  # TP, FP, FN
        >>> f1 = lambda totals: 2 * totals[..., 0] / (totals[..., 0] + totals.sum(axis=-1))
        >>> low, high = posterior_interval(outcomes, f1, unseen=np.eye(3), seed=0)
        >>> round(low, 2), round(high, 2)
        (0.63, 0.97)
    """
    table, possible = (np.asarray(rows, dtype=np.float64) for rows in (parts, unseen))
    totals = table.sum(axis=0)
    if not len(table) or np.isnan(value := float(statistic(totals))):
        return NO_INTERVAL
    pseudo_totals = totals + prior * possible.sum(axis=0)
    distinct, positions, counts = np.unique(table, axis=0, return_inverse=True, return_counts=True)
    influences = statistic(pseudo_totals + distinct) - statistic(pseudo_totals)  # by one more case of each outcome
    n_effective = effective_sample_size(influences[positions.ravel()], groups, confidence)
    outcomes = np.vstack([distinct, possible])
    weights = np.concatenate([counts * (n_effective / len(table)), np.full(len(possible), prior)])
    generator = np.random.default_rng(seed)
    blocks = np.array_split(np.arange(draws), -(-draws * len(weights) // _BLOCK_CELLS))
    values = [statistic(generator.standard_gamma(weights, (len(block), len(weights))) @ outcomes) for block in blocks]
    low, high = np.quantile(np.concatenate(values), [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(min(float(low), value), max(float(high), value))
