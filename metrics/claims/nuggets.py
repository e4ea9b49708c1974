"""Nuggets: how much the answer has of what a good answer must contain."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
PARTLY = 0.5
"""What a nugget is worth that the answer has in part."""


class Nuggets(NamedTuple):
    """The nuggets of one case."""

    support: ArrayLike
    """(n,) 1 where the answer has the nugget, 0.5 where it has a part, 0 where not, NaN without a verdict."""
    vital: ArrayLike
    """(n,) true where a good answer must have it, false where it is okay to have."""


def nugget_recall(cases: Sequence[Nuggets | None], *, okay: bool = False, partial: bool = False) -> Floats:
    """Share of the nuggets that the answer has, as TREC RAG's AutoNuggetizer scores them.

    Its four scores: vital strict (as it is called here), vital (`partial`), all strict (`okay`), all (both).

    Args:
        cases: of n cases; None where nothing was asked.
        okay: count those too that are okay to have, not the vital ones alone.
        partial: one that the answer has in part is worth a half; without, nothing.

    Returns:
        float64 (n,), 0 to 1, higher is better; NaN where there is no such nugget, or none with a verdict. A nugget
        without a verdict is left out.

    Raises:
        ValueError: other numbers of verdicts than of nuggets, or a verdict that is none of 0, 0.5 and 1.

    Reference:
        Pradeep et al. 2024, Initial nugget evaluation results for the TREC 2024 RAG track with the AutoNuggetizer
        framework (arXiv 2411.09607).

    Stored as: `avg_nugget_recall`, `avg_nugget_recall_partial`, `avg_nugget_recall_all`,
    `avg_nugget_recall_all_partial` (metrics/table/nuggets.py).

    Example:
        >>> from yarus.metrics.claims import Nuggets, nugget_recall
        >>> case = Nuggets([1, 0.5, 0], [True, True, False])
        >>> nugget_recall([case, None]), nugget_recall([case], okay=True, partial=True)
        (array([0.5, nan]), array([0.5]))
    """
    return np.array([_share(case, okay, partial) for case in cases], np.float64)


def _share(case: Nuggets | None, okay: bool, partial: bool) -> float:
    if case is None:
        return np.nan
    support, vital = np.asarray(case.support, np.float64).reshape(-1), np.asarray(case.vital, bool).reshape(-1)
    if len(support) != len(vital):
        raise ValueError(f"{len(vital)} nuggets but verdicts on {len(support)}")
    known = support[~np.isnan(support)]
    if not np.isin(known, (0, PARTLY, 1)).all():
        raise ValueError(f"a nugget is supported 0, {PARTLY} or 1, not {known[~np.isin(known, (0, PARTLY, 1))][0]:g}")
    counted = support[~np.isnan(support) & (vital | okay)]
    worth = counted if partial else counted == 1
    return float(worth.mean()) if worth.size else np.nan
