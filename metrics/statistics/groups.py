"""Cases that come in groups (users, dialogs, pages): measured values, numbers of the groups, and totals per group."""

from collections.abc import Hashable, Sequence
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


def measured_values(values: ArrayLike, groups: Sequence[Hashable] | None) -> tuple[Floats, list[Hashable] | None]:
    """Return the values that are not NaN, and their groups.

    Example:
        >>> from math import nan
        >>> from yarus.metrics.statistics.groups import measured_values
        >>> measured_values([0.5, nan, 1.0], ["anna", "anna", "boris"])
        (array([0.5, 1. ]), ['anna', 'boris'])
    """
    cases = np.asarray(values, dtype=np.float64)
    if cases.ndim != 1 or np.isinf(cases).any():
        raise ValueError(
            f"values must be one finite number or NaN a case, got shape {cases.shape} or an infinite value"
        )
    if groups is not None and len(groups) != len(cases):
        raise ValueError(f"{len(cases)} values but {len(groups)} groups")
    is_measured = ~np.isnan(cases)
    labels = None if groups is None else list(compress(groups, is_measured))
    return cases[is_measured], labels


def group_codes(groups: Sequence[Hashable], n: int) -> Ints:
    """Return numbers 0.. of the groups in order of appearance; None and NaN (no user, no dialog) are single groups.

    Example:
        >>> from yarus.metrics.statistics.groups import group_codes
        >>> group_codes(["anna", "boris", "anna", None, None], 5)
        array([0, 1, 0, 2, 3])
    """
    if len(groups) != n:
        raise ValueError(f"{n} cases but {len(groups)} groups")
    numbers: dict[Any, int] = {}
    labels = (object() if group is None or group != group else group for group in groups)
    return np.array([numbers.setdefault(label, len(numbers)) for label in labels], dtype=np.intp)


def group_totals(parts: Floats, codes: Ints) -> Floats:
    """Return (groups, p) sums of the rows (n, p) of each group, which `codes` (n,) numbers from 0.

    Example:
        >>> import numpy as np
        >>> from yarus.metrics.statistics.groups import group_totals
        >>> group_totals(np.array([[1.0, 1.0], [0.0, 1.0], [1.0, 1.0]]), np.array([0, 0, 1]))
        array([[1., 2.],
               [1., 1.]])
    """
    return np.column_stack([np.bincount(codes, weights=column) for column in parts.T])


def effective_groups(codes: Ints) -> float:
    """Return the effective number of groups: n^2 / sum of the squared group sizes; 0 without cases.

    Reference: Kish 1965, Survey sampling.

    Example:
        >>> import numpy as np
        >>> from yarus.metrics.statistics.groups import effective_groups
        >>> effective_groups(np.array([0, 0, 1, 1, 2, 2])), effective_groups(np.array([0, 0, 0, 0, 1, 2]))
        (3.0, 2.0)
    """
    sizes = np.bincount(codes)
    return len(codes) ** 2 / float((sizes**2).sum()) if len(codes) else 0.0


def jackknife_error(values: Floats, codes: Ints) -> tuple[float, float]:
    """Return the standard error of the mean over cases in groups, and the effective number of groups (Kish).

    Args:
        values: (n,) one value per case.
        codes: (n,) the number of each case's group, from 0.

    Returns:
        The spread of the means that leave one group out, NaN below two groups; n^2 / sum of the squared group sizes.

    Reference: Tukey 1958; Kish 1965, Survey sampling.

    Example:
        >>> import numpy as np
        >>> from yarus.metrics.statistics.groups import jackknife_error
        >>> error, groups = jackknife_error(np.array([0.1, 0.3, 0.6, 0.6, 0.9, 0.5]), np.array([0, 0, 1, 1, 2, 2]))
        >>> round(error, 3), groups
        (0.153, 3.0)
    """
    n = len(values)
    if not n:
        return float("nan"), 0.0
    sums, sizes = group_totals(np.column_stack([values - values.mean(), np.ones(n)]), codes).T
    m, effective = len(sizes), effective_groups(codes)
    if m < 2:
        return float("nan"), effective
    without = sums / (n - sizes)  # the mean of all minus the mean without the group
    return float(np.sqrt((m - 1) / m * (without**2).sum())), effective
