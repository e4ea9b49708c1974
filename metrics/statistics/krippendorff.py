"""Agreement of several annotators who have not all labelled the same cases."""

import numpy as np
from numpy.typing import ArrayLike

from yarus.metrics.statistics.groups import Floats
from yarus.metrics.statistics.intervals import UNDEFINED


def krippendorff_alpha(values: ArrayLike) -> float:
    """Return Krippendorff's alpha with the interval metric: 1 - observed / expected squared differences.

    For labels 0 and 1 it equals alpha with the nominal metric.

    Args:
        values: (annotators, cases), NaN if an annotator has not labelled a case.

    Returns:
        At most 1: 1 is agreement, 0 is chance, below 0 annotators disagree more than by chance. NaN if no case has two
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
    return float(alpha_from_totals(alpha_parts(values).sum(axis=0)))


def alpha_parts(values: ArrayLike) -> Floats:
    """Return (cases, 4) contributions to alpha: labels, their sum and sum of squares, and the disagreement of the case.

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
    disagreements = 2 * (counts * squares - sums**2) / np.maximum(counts - 1, 1)
    return np.asarray(np.column_stack([counts, sums, squares, disagreements]) * pairable[:, None], dtype=np.float64)


def alpha_from_totals(totals: Floats) -> Floats:
    """Return `krippendorff_alpha` from totals (..., 4) of `alpha_parts`: of a set, or of its resamples, all at once.

    Example:
        >>> from yarus.metrics.statistics.krippendorff import alpha_from_totals, alpha_parts
        >>> float(alpha_from_totals(alpha_parts([[1.0, 0.0], [1.0, 0.0]]).sum(axis=0)))
        1.0
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        n, sums, squares, disagreement = (totals[..., column] for column in range(4))
        expected = 2 * (n * squares - sums**2) / (n - 1)
        return np.asarray(np.where((n > 1) & (expected > 1e-12), 1 - disagreement / expected, UNDEFINED))
