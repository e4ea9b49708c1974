"""Claims of answer and reference, each checked against the other text and against every passage that was retrieved.

What these numbers mean, and how they are made of verdicts, is RAGChecker's (Ru et al. 2024, arXiv 2408.08067). Where
it gives 0 because there is nothing to measure, these are NaN: no claim, no passage, no recalled claim. A claim without
a verdict is left out; it is never taken for false.
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
    """What was found of one case's claims: 1 supported, 0 not, NaN without a verdict."""

    answer_in_reference: ArrayLike
    """(a,) the answer's claims: does the reference say so."""
    reference_in_answer: ArrayLike
    """(r,) the reference's claims: does the answer say so."""
    answer_in_passages: ArrayLike
    """(a, p) the answer's claims by retrieved passage: does the passage say so."""
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
    """Every metric of claims, of every case.

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
        cases: of n cases; None where nothing was checked.

    Returns:
        Name -> float64 (n,), 0 to 1; NaN where there is nothing to measure.

    Raises:
        ValueError: verdicts of one text differ in number.

    Example:
        >>> from yarus.metrics.claims import Verdicts, claim_metrics
        >>> case = Verdicts([1, 0], [1], [[1, 0], [0, 0]], [[1, 0]])
        >>> found = claim_metrics([case])
        >>> {name: found[name].tolist() for name in ("claim_precision", "hallucination", "context_precision")}
        {'claim_precision': [0.5], 'hallucination': [0.5], 'context_precision': [0.5]}
    """
    made = [dict.fromkeys(NAMES, np.nan) if case is None else _metrics(case) for case in cases]
    return {name: np.array([one[name] for one in made], np.float64) for name in NAMES}


def _metrics(case: Verdicts) -> dict[str, float]:
    correct, had = (np.asarray(side, np.float64).reshape(-1) for side in case[:2])
    said = _matrix(case.answer_in_passages, correct, "answer")
    needed = _matrix(case.reference_in_passages, had, "reference")
    faithful, recalled = _any(said, 1), _any(needed, 1)
    precision, recall = mean_defined(correct), mean_defined(had)
    # A product is NaN where either has no verdict, also beside a 0: what is left would be the lower half.
    return {
        "claim_precision": precision,
        "claim_recall": recall,
        "claim_f1": 0.0 if precision + recall == 0 else 2 * precision * recall / (precision + recall),
        "retrieved_claim_recall": mean_defined(recalled),
        "context_precision": mean_defined(_any(needed[~np.isnan(needed).all(axis=1)], 0)) if needed.size else np.nan,
        "context_utilization": mean_defined(had[recalled == 1]),
        "noise_sensitivity": mean_defined(faithful * (1 - correct)) if had.size else np.nan,
        "hallucination": mean_defined((1 - faithful) * (1 - correct)),
        "self_knowledge": mean_defined((1 - faithful) * correct),
        "claim_faithfulness": mean_defined(faithful),
    }


def _matrix(verdicts: ArrayLike, of: Floats, text: str) -> Floats:
    """The verdicts by passage; of no passage where there is none."""
    given = np.asarray(verdicts, np.float64)
    if given.size == 0:
        return np.empty((len(of), 0))
    if given.ndim != 2 or len(given) != len(of):
        raise ValueError(f"{len(of)} claims of the {text} but verdicts of {len(given)} against the passages")
    return given


def _any(verdicts: Floats, axis: int) -> Floats:
    """Whether any is 1; NaN where none is and one has no verdict, or there is none."""
    if verdicts.shape[axis] == 0:
        return np.full(verdicts.shape[1 - axis], np.nan)
    found = (verdicts == 1).any(axis=axis)
    return np.where(found, 1.0, np.where(np.isnan(verdicts).any(axis=axis), np.nan, 0.0))
