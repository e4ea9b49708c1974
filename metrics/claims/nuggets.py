"""Nugget recall: how much of what a good answer must contain the answer has."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
PARTLY = 0.5
"""Score of a nugget that the answer has in part."""


class Nuggets(NamedTuple):
    """The nuggets of one case."""

    support: ArrayLike
    """(n,) 1 if the answer has the nugget, 0.5 if in part, 0 if not, NaN without a verdict."""
    vital: ArrayLike
    """(n,) true if a good answer must have it, false if it is okay to have."""


def nugget_recall(cases: Sequence[Nuggets | None], *, okay: bool = False, partial: bool = False) -> Floats:
    """Return the share of the nuggets that the answer has, as TREC RAG's AutoNuggetizer scores them.

    Its four scores: vital strict (the default), vital (`partial`), all strict (`okay`), all (both).

    Args:
        cases: of n cases; None if nuggets were not judged.
        okay: also count nuggets that are okay to have, not only vital ones.
        partial: a nugget that the answer has in part counts half; otherwise it counts 0.

    Returns:
        float64 (n,), 0 to 1, higher is better; NaN if there is no such nugget, or none with a verdict. A nugget
        without a verdict is left out.

    Raises:
        ValueError: different numbers of verdicts and nuggets, or a verdict other than 0, 0.5 and 1.

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
    return np.array([_covered_share(case, okay, partial) for case in cases], np.float64)


def _covered_share(case: Nuggets | None, okay: bool, partial: bool) -> float:
    if case is None:
        return np.nan
    support, vital = np.asarray(case.support, np.float64).reshape(-1), np.asarray(case.vital, bool).reshape(-1)
    if len(support) != len(vital):
        raise ValueError(f"{len(vital)} nuggets but verdicts on {len(support)}")
    judged = support[~np.isnan(support)]
    if not np.isin(judged, (0, PARTLY, 1)).all():
        raise ValueError(f"a nugget is supported 0, {PARTLY} or 1, not {judged[~np.isin(judged, (0, PARTLY, 1))][0]:g}")
    counted = support[~np.isnan(support) & (vital | okay)]
    scores = counted if partial else counted == 1
    return float(scores.mean()) if scores.size else np.nan
