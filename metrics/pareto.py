"""Which of several systems nobody beats: the Pareto front of quality against cost and latency."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from yarus.metrics.metric import Direction


def pareto_front(objectives: ArrayLike, *, better: Sequence[Direction]) -> NDArray[np.bool_]:
    """Whether no other system is at least as good in every objective and better in one.

    An objective that is unknown for every system is left out. A system with an unknown value in one of the others
    cannot be placed: it is not on the front, and keeps nobody from it.

    Args:
        objectives: (n, m) one row a system, one column an objective; NaN where unknown.
        better: m times "higher" or "lower".

    Returns:
        (n,) true for the systems on the front; equal systems are on it together.

    Raises:
        ValueError: another number of directions than of objectives, or an objective without a better direction.

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
    placed = ~np.isnan(signed).any(axis=1) if signed.shape[1] else np.zeros(len(values), dtype=bool)
    known = signed[placed]
    at_least = (known[:, None, :] >= known[None, :, :]).all(axis=2)  # row is at least as good as column
    ahead = (known[:, None, :] > known[None, :, :]).any(axis=2)
    front = np.zeros(len(values), dtype=bool)
    front[placed] = ~(at_least & ahead).any(axis=0)
    return front
