"""Citations: do the pages that a system names support what it says?"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def citation_precision(cases: Sequence[ArrayLike | None]) -> Floats:
    """Share of the named pages that support something that the answer says.

    As ALCE's (Gao et al. 2023, arXiv 2305.14627), where every statement cites all of the answer's pages, and a page is
    right if it alone supports one of them.

    Args:
        cases: of n cases, (statements, pages): 1 where the page supports the statement, 0 where not, NaN where that is
            not known; None where there is no answer, or the system does not say what it used.

    Returns:
        float64 (n,), 0 to 1, higher is better; NaN where no page is named, or of none it is known. A page of which it
        is not known, and a statement without any verdict, are left out.

    Stored as: `avg_citation_precision` (metrics/table/citations.py).

    Example:
        >>> from yarus.metrics.claims import citation_precision
        >>> citation_precision([[[1, 0], [0, 0]], None])
        array([0.5, nan])
    """
    return np.array([_share(case, 0) for case in cases], np.float64)


def citation_recall(cases: Sequence[ArrayLike | None]) -> Floats:
    """Share of what the answer says that some named page supports; as ALCE's, but for what only two pages say together.

    Args:
        cases: as `citation_precision` takes them; (statements, 0) where no page was named: nothing is supported then.

    Returns:
        float64 (n,), 0 to 1, higher is better; NaN where the answer says nothing, and where of any page it is not
        known: it may support what the others do not. A statement without any verdict is left out.

    Stored as: `avg_citation_recall` (metrics/table/citations.py).

    Example:
        >>> from yarus.metrics.claims import citation_recall
        >>> import numpy as np
        >>> citation_recall([[[1, 0], [0, 0]], np.empty((2, 0)), None])
        array([0.5, 0. , nan])
    """
    return np.array([_share(case, 1) for case in cases], np.float64)


def citation_known(cases: Sequence[Sequence[bool] | None]) -> Floats:
    """Share of the named pages that the corpus has.

    Args:
        cases: of n cases, whether it has each page; None where the system has not answered, or says nothing of pages.

    Returns:
        float64 (n,), 0 to 1, higher is better; NaN where no page is named.

    Stored as: `avg_citation_known` (metrics/table/citations.py).

    Example:
        >>> from yarus.metrics.claims import citation_known
        >>> citation_known([[True, False], [], None])
        array([0.5, nan, nan])
    """
    return np.array([np.mean(case) if case else np.nan for case in cases], np.float64)


def _share(case: ArrayLike | None, axis: int) -> float:
    """Share of the rows (axis 1) or columns (axis 0) with a 1. What is left out does not depend on what was found."""
    if case is None:
        return np.nan
    given = np.asarray(case, np.float64)
    if given.ndim != 2:
        raise ValueError(f"expected (statements, pages), got {given.ndim} dimensions")
    if given.shape[1]:
        given = given[~np.isnan(given).all(axis=1)]  # a statement without a verdict
    if axis == 0:
        given = given[:, ~np.isnan(given).any(axis=0)]
    found = (given == 1).any(axis=axis)
    return float(found.mean()) if len(given) and found.size and not np.isnan(given).any() else np.nan
