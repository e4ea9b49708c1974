"""Citation metrics: whether the pages that a system cites support its answer."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def citation_precision(cases: Sequence[ArrayLike | None]) -> Floats:
    """Return the share of the cited pages that support a statement of the answer.

    As in ALCE (Gao et al. 2023, arXiv 2305.14627), with every statement taken to cite all of the answer's pages. A page
    is right if it alone supports one of them.

    Args:
        cases: of n cases, (statements, pages): 1 if the page supports the statement, 0 if not, NaN if unknown; None
            without an answer, or if the system does not report what it used.

    Returns:
        float64 (n,), 0 to 1, higher is better; NaN if no page is cited, or none has all of its verdicts. A statement
        without any verdict is left out, and then a page with a missing one.

    Stored as: `avg_citation_precision` (metrics/table/citations.py).

    Example:
        >>> from yarus.metrics.claims import citation_precision
        >>> citation_precision([[[1, 0], [0, 0]], None])
        array([0.5, nan])
    """
    return np.array([_share_with_yes(case, 0) for case in cases], np.float64)


def citation_recall(cases: Sequence[ArrayLike | None]) -> Floats:
    """Return the share of the statements that some cited page supports; ALCE also counts support by two pages together.

    Args:
        cases: as in `citation_precision`; (statements, 0) if no page was cited: then nothing is supported.

    Returns:
        float64 (n,), 0 to 1, higher is better; NaN if the answer has no statements, or a verdict on any page is
        missing: it may support what the others do not. A statement without any verdict is left out.

    Stored as: `avg_citation_recall` (metrics/table/citations.py).

    Example:
        >>> from yarus.metrics.claims import citation_recall
        >>> import numpy as np
        >>> citation_recall([[[1, 0], [0, 0]], np.empty((2, 0)), None])
        array([0.5, 0. , nan])
    """
    return np.array([_share_with_yes(case, 1) for case in cases], np.float64)


def citation_known(cases: Sequence[Sequence[bool] | None]) -> Floats:
    """Return the share of the cited pages that exist in the corpus.

    Args:
        cases: of n cases, whether the corpus has each page; None without an answer, or if the system reports no pages.

    Returns:
        float64 (n,), 0 to 1, higher is better; NaN if no page is cited.

    Stored as: `avg_citation_known` (metrics/table/citations.py).

    Example:
        >>> from yarus.metrics.claims import citation_known
        >>> citation_known([[True, False], [], None])
        array([0.5, nan, nan])
    """
    return np.array([np.mean(case) if case else np.nan for case in cases], np.float64)


def _share_with_yes(case: ArrayLike | None, axis: int) -> float:
    """Return the share of rows (axis 1) or columns (axis 0) with a 1; exclusions do not depend on the verdicts."""
    if case is None:
        return np.nan
    verdicts = np.asarray(case, np.float64)
    if verdicts.ndim != 2:
        raise ValueError(f"expected (statements, pages), got {verdicts.ndim} dimensions")
    if verdicts.shape[1]:
        verdicts = verdicts[~np.isnan(verdicts).all(axis=1)]  # a statement without a verdict
    if axis == 0:
        verdicts = verdicts[:, ~np.isnan(verdicts).any(axis=0)]
    supported = (verdicts == 1).any(axis=axis)
    return float(supported.mean()) if len(verdicts) and supported.size and not np.isnan(verdicts).any() else np.nan
