"""Metrics of claims: each claim of answer and reference is checked against the other text and every retrieved passage.

The metrics and their formulas are RAGChecker's (Ru et al. 2024, arXiv 2408.08067). If there is nothing to measure (no
claim, no passage, no recalled claim), RAGChecker returns 0 and these return NaN. A claim without a verdict is left out;
it never counts as false.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from yarus.metrics.claims.citations import citation_known, citation_precision, citation_recall
from yarus.metrics.claims.nuggets import Nuggets, nugget_recall
from yarus.metrics.embedding.vectors import mean_defined

__all__ = ["NAMES", "Nuggets", "Verdicts", "citation_known", "citation_precision", "citation_recall", "claim_metrics"]
__all__ += ["nugget_recall"]

Floats = NDArray[np.float64]


class Verdicts(NamedTuple):
    """Verdicts on the claims of one case: 1 supported, 0 not, NaN without a verdict."""

    answer_in_reference: ArrayLike
    """(a,) the answer's claims: whether the reference states them."""
    reference_in_answer: ArrayLike
    """(r,) the reference's claims: whether the answer states them."""
    answer_in_passages: ArrayLike
    """(a, p) the answer's claims by retrieved passage: whether the passage states them."""
    reference_in_passages: ArrayLike
    """(r, p) the reference's claims by retrieved passage."""


NAMES = (
    "claim_precision",
    "claim_recall",
    "claim_f1",
    "retrieved_claim_recall",
    "context_precision",
    "context_utilization",
    "noise_sensitivity",
    "hallucination",
    "self_knowledge",
    "claim_faithfulness",
)


def claim_metrics(cases: Sequence[Verdicts | None]) -> dict[str, Floats]:
    """Return every claim metric of every case.

    claim_precision         share of the answer's claims that the reference has
    claim_recall            share of the reference's claims that the answer has
    claim_f1                their harmonic mean
    retrieved_claim_recall  share of the reference's claims that some passage has
    context_precision       share of the passages that have a claim of the reference
    context_utilization     share of the reference's claims in the passages that the answer has
    noise_sensitivity       share of the answer's claims that a passage has and the reference has not
    hallucination           share of the answer's claims that neither a passage nor the reference has
    self_knowledge          share of the answer's claims that no passage has, but the reference
    claim_faithfulness      share of the answer's claims that some passage has

    Stored as: `avg_claim_precision`, `avg_claim_recall`, `avg_claim_f1`, `avg_claim_faithfulness`,
    `avg_hallucination`, `avg_self_knowledge`, `avg_noise_sensitivity`, `avg_context_utilization`,
    `avg_retrieved_claim_recall`, `avg_context_precision` (metrics/table/claims.py).

    Args:
        cases: of n cases; None if nothing was checked.

    Returns:
        Name -> float64 (n,), 0 to 1; NaN if there is nothing to measure.

    Raises:
        ValueError: verdicts of one text differ in number.

    Example:
        >>> from yarus.metrics.claims import Verdicts, claim_metrics
        >>> case = Verdicts([1, 0], [1], [[1, 0], [0, 0]], [[1, 0]])
        >>> values = claim_metrics([case])
        >>> {name: values[name].tolist() for name in ("claim_precision", "hallucination", "context_precision")}
        {'claim_precision': [0.5], 'hallucination': [0.5], 'context_precision': [0.5]}
    """
    rows = [dict.fromkeys(NAMES, np.nan) if case is None else _case_metrics(case) for case in cases]
    return {name: np.array([row[name] for row in rows], np.float64) for name in NAMES}


def _case_metrics(case: Verdicts) -> dict[str, float]:
    correct, included = (np.asarray(side, np.float64).reshape(-1) for side in case[:2])
    answer_by_passage = _verdict_matrix(case.answer_in_passages, correct, "answer")
    reference_by_passage = _verdict_matrix(case.reference_in_passages, included, "reference")
    faithful, recalled = _any_yes(answer_by_passage, 1), _any_yes(reference_by_passage, 1)
    precision, recall = mean_defined(correct), mean_defined(included)
    # A product is NaN if either factor has no verdict, even if the other is 0: the rest would be biased downwards.
    return {
        "claim_precision": precision,
        "claim_recall": recall,
        "claim_f1": 0.0 if precision + recall == 0 else 2 * precision * recall / (precision + recall),
        "retrieved_claim_recall": mean_defined(recalled),
        "context_precision": mean_defined(
            _any_yes(reference_by_passage[~np.isnan(reference_by_passage).all(axis=1)], 0)
        )
        if reference_by_passage.size
        else np.nan,
        "context_utilization": mean_defined(included[recalled == 1]),
        "noise_sensitivity": mean_defined(faithful * (1 - correct)) if included.size else np.nan,
        "hallucination": mean_defined((1 - faithful) * (1 - correct)),
        "self_knowledge": mean_defined((1 - faithful) * correct),
        "claim_faithfulness": mean_defined(faithful),
    }


def _verdict_matrix(verdicts: ArrayLike, claims: Floats, text: str) -> Floats:
    """Return the verdicts by passage; without columns if there are no passages."""
    matrix = np.asarray(verdicts, np.float64)
    if matrix.size == 0:
        return np.empty((len(claims), 0))
    if matrix.ndim != 2 or len(matrix) != len(claims):
        raise ValueError(f"{len(claims)} claims of the {text} but verdicts of {len(matrix)} against the passages")
    return matrix


def _any_yes(verdicts: Floats, axis: int) -> Floats:
    """Return whether any is 1; NaN if none is and a verdict is missing, or if there are none."""
    if verdicts.shape[axis] == 0:
        return np.full(verdicts.shape[1 - axis], np.nan)
    has_support = (verdicts == 1).any(axis=axis)
    return np.where(has_support, 1.0, np.where(np.isnan(verdicts).any(axis=axis), np.nan, 0.0))
