"""The Pareto front of several systems: quality against cost and latency."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from yarus.metrics.metric import Direction


def pareto_front(objectives: ArrayLike, *, better: Sequence[Direction]) -> NDArray[np.bool_]:
    """Return whether each system is undominated: no other is at least as good in every objective and better in one.

    An objective that is unknown for every system is left out. A system with an unknown value in one of the others is
    incomparable: it is not on the front, and does not dominate any other.

    Args:
        objectives: (n, m) one row per system, one column per objective; NaN if unknown.
        better: m times "higher" or "lower".

    Returns:
        (n,) true for the systems on the front; equal systems are on it together.

    Raises:
        ValueError: different numbers of directions and objectives, or an objective without a better direction.

    Reference: Pareto 1896, Cours d'économie politique; Kung, Luccio, Preparata 1975, On finding the maxima of a set of
    vectors.

    Example:
        >>> from yarus.metrics.pareto import pareto_front
        >>> quality_and_cost = [[0.9, 3.0], [0.8, 1.0], [0.7, 2.0]]
        >>> pareto_front(quality_and_cost, better=["higher", "lower"])  # the third is worse and dearer
        array([ True,  True, False])
    """
    values = np.asarray(objectives, dtype=np.float64)
    if values.ndim != 2 or values.shape[1] != len(better):
        raise ValueError(f"objectives of shape {values.shape} and {len(better)} directions do not belong together")
    if set(better) - {"higher", "lower"}:
        raise ValueError(f"every objective needs a better direction, got {list(better)}")
    signed = np.where(np.asarray(better) == "higher", values, -values)
    signed = signed[:, ~np.isnan(signed).all(axis=0)]
    is_comparable = ~np.isnan(signed).any(axis=1) if signed.shape[1] else np.zeros(len(values), dtype=bool)
    comparable = signed[is_comparable]
    is_at_least = (comparable[:, None, :] >= comparable[None, :, :]).all(axis=2)  # row at least as good as column
    is_better = (comparable[:, None, :] > comparable[None, :, :]).any(axis=2)
    front = np.zeros(len(values), dtype=bool)
    front[is_comparable] = ~(is_at_least & is_better).any(axis=0)
    return front
