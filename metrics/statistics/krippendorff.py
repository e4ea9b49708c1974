"""How far several people agree who have not all labelled the same cases."""

import numpy as np
from numpy.typing import ArrayLike

from yarus.metrics.statistics.groups import Floats
from yarus.metrics.statistics.intervals import UNDEFINED


def krippendorff_alpha(values: ArrayLike) -> float:
    """Krippendorff's alpha with the interval metric: 1 - observed over expected disagreement, both squared differences.

    Of labels 0 and 1 that is the same as with the nominal metric.

    Args:
        values: (annotators, cases), NaN where somebody has not labelled a case.

    Returns:
        At most 1: 1 is agreement, 0 is chance, below 0 people disagree more than by chance. NaN where no case has two
        labels, or all labels are equal.

    Raises:
        ValueError: not a table, or an infinite label.

    Reference: Krippendorff 2011, Computing Krippendorff's alpha-reliability.

    Example:
        >>> from math import nan
        >>> from yarus.metrics.statistics.krippendorff import krippendorff_alpha
        >>> anna, boris = [1.0, 0.0, 1.0, nan, 0.0], [1.0, 0.0, 0.5, 1.0, 0.0]
        >>> round(krippendorff_alpha([anna, boris]), 3)
        0.873
    """
    return float(alpha_of(alpha_parts(values).sum(axis=0)))


def alpha_parts(values: ArrayLike) -> Floats:
    """(cases, 4) what each case adds to alpha: labels, their sum and sum of squares, and its own disagreement.

    Example:
        >>> from yarus.metrics.statistics.krippendorff import alpha_parts
        >>> alpha_parts([[1.0, 0.0], [0.0, float("nan")]])
        array([[2., 1., 1., 2.],
               [0., 0., 0., 0.]])
    """
    table = np.asarray(values, dtype=np.float64)
    if table.ndim != 2 or np.isinf(table).any():
        raise ValueError(f"give a finite label, or NaN, an annotator and case; got shape {table.shape}")
    counts = (~np.isnan(table)).sum(axis=0)
    sums, squares = np.nansum(table, axis=0), np.nansum(table**2, axis=0)
    pairable = counts > 1
    apart = 2 * (counts * squares - sums**2) / np.maximum(counts - 1, 1)
    return np.asarray(np.column_stack([counts, sums, squares, apart]) * pairable[:, None], dtype=np.float64)


def alpha_of(totals: Floats) -> Floats:
    """`krippendorff_alpha` from totals (..., 4) of `alpha_parts`: of a set, or of its resamples, all at once.

    Example:
        >>> from yarus.metrics.statistics.krippendorff import alpha_of, alpha_parts
        >>> float(alpha_of(alpha_parts([[1.0, 0.0], [1.0, 0.0]]).sum(axis=0)))
        1.0
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        n, sums, squares, apart = (totals[..., place] for place in range(4))
        by_chance = 2 * (n * squares - sums**2) / (n - 1)
        return np.asarray(np.where((n > 1) & (by_chance > 1e-12), 1 - apart / by_chance, UNDEFINED))
