"""Agreement of all annotators: Krippendorff's alpha with its interval, and annotator names."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from typing_extensions import TypedDict

from yarus.db.errors import InputError
from yarus.metrics.statistics import posterior_interval
from yarus.metrics.statistics.groups import Floats
from yarus.metrics.statistics.krippendorff import alpha_from_totals, alpha_parts, krippendorff_alpha

UNSEEN = alpha_parts([[0, 1, 0, 1], [0, 1, 1, 0]])
"""Parts of alpha for the possible labels of two annotators who answer yes or no."""
LARGE_SAMPLE = 1e6
"""Number of labels at which the finite-sample correction of alpha vanishes."""


class AlphaEstimate(TypedDict):
    """Agreement of all annotators: 1 is the same, 0 chance, below 0 less than chance."""

    n: int
    """Cases that two or more have labelled."""
    alpha: float | None
    ci_low: float | None
    ci_high: float | None
    reason: str | None
    """Why there is none."""


def annotator_alpha(labels: Sequence[Mapping[str, float]], groups: Sequence[Any]) -> AlphaEstimate:
    """Return Krippendorff's alpha of the annotators' labels.

    Args:
        labels: annotator -> label per case.
        groups: group of each case; None for a single case.
    """
    names = sorted({name for case in labels for name in case})
    table = np.array([[case.get(name, np.nan) for case in labels] for name in names]).reshape(len(names), len(labels))
    is_paired = (~np.isnan(table)).sum(axis=0) > 1
    n, value = int(is_paired.sum()), krippendorff_alpha(table)
    if value != value:
        reason = "all say the same" if n else "no question in common"
        return {"n": n, "alpha": None, "ci_low": None, "ci_high": None, "reason": reason}
    paired_groups = [group for group, paired in zip(groups, is_paired, strict=True) if paired]
    parts = alpha_parts(table)[is_paired]
    low, high = posterior_interval(parts, _large_sample_alpha, unseen=UNSEEN, seed=0, groups=paired_groups)
    return {"n": n, "alpha": value, "ci_low": min(low, value), "ci_high": max(high, value), "reason": None}


def _large_sample_alpha(totals: Floats) -> Floats:
    return alpha_from_totals(totals * (LARGE_SAMPLE / totals[..., :1]))


def is_annotator_name(name: str) -> bool:
    """Return whether the text is a valid annotator name."""
    return re.fullmatch(r"[\w .@-]{1,60}", name) is not None


def parse_annotator(text: str) -> str:
    """Return the annotator name without surrounding spaces.

    Raises:
        InputError: the name is not 1 to 60 letters, digits, spaces and `. @ - _`.
    """
    name = text.strip()
    if not is_annotator_name(name):
        raise InputError(
            "no name of an annotator: {given!r}; 1 to 60 letters, digits, spaces and . @ - _ are", given=text[:80]
        )
    return name
