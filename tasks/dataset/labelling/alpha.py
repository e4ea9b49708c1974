"""Agreement of all annotators: Krippendorff's alpha with its interval; their names."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from typing_extensions import TypedDict

from yarus.db.errors import InputError
from yarus.metrics.statistics import posterior_interval
from yarus.metrics.statistics.groups import Floats
from yarus.metrics.statistics.krippendorff import alpha_of, alpha_parts, krippendorff_alpha

OUTCOMES = alpha_parts([[0, 1, 0, 1], [0, 1, 1, 0]])
"""What two can say who say yes or no."""
MANY = 1e6
"""Labels of which alpha is that of all there could be: it takes one off, and of a label or less it has no value."""


class Alpha(TypedDict):
    """Agreement of all annotators: 1 is the same, 0 chance, below 0 less than chance."""

    n: int
    """Cases that two or more have labelled."""
    alpha: float | None
    ci_low: float | None
    ci_high: float | None
    reason: str | None
    """Why there is none."""


def alpha(said: Sequence[Mapping[str, float]], groups: Sequence[Any]) -> Alpha:
    """Krippendorff's alpha of what annotators have said.

    Args:
        said: of each case, annotator -> label.
        groups: of the cases; None for one that stands alone.
    """
    names = sorted({name for of in said for name in of})
    table = np.array([[of.get(name, np.nan) for of in said] for name in names]).reshape(len(names), len(said))
    both = (~np.isnan(table)).sum(axis=0) > 1
    n, found = int(both.sum()), krippendorff_alpha(table)
    if found != found:
        why = "all say the same" if n else "no question in common"
        return {"n": n, "alpha": None, "ci_low": None, "ci_high": None, "reason": why}
    own = [group for group, kept in zip(groups, both, strict=True) if kept]
    parts = alpha_parts(table)[both]
    low, high = posterior_interval(parts, _of_many, unseen=OUTCOMES, seed=0, groups=own)
    return {"n": n, "alpha": found, "ci_low": min(low, found), "ci_high": max(high, found), "reason": None}


def _of_many(totals: Floats) -> Floats:
    return alpha_of(totals * (MANY / totals[..., :1]))


def is_annotator(name: str) -> bool:
    """Whether it can be the name of an annotator."""
    return re.fullmatch(r"[\w .@-]{1,60}", name) is not None


def annotator(given: str) -> str:
    """The name without spaces around it.

    Raises:
        InputError: it is no name: not 1 to 60 letters, digits, spaces and `. @ - _`.
    """
    name = given.strip()
    if not is_annotator(name):
        raise InputError(
            "no name of an annotator: {given!r}; 1 to 60 letters, digits, spaces and . @ - _ are", given=given[:80]
        )
    return name
