"""The claim metrics of tiers 2 and 3, if enabled: a judge extracts claims of answer and reference and checks each."""

from yarus.metrics.metric import Direction, Metric

_PAPER = "Ru et al. 2024, RAGChecker: a fine-grained framework for diagnosing retrieval-augmented generation"
_TRUST = (
    "As far as the judge, who finds the claims and checks them; no exam covers that yet. Read some of them in the "
    "report before you act on the figure."
)
_LOST = "the judge's reply could not be read"
_NO_ANSWER = f"no answer, or a refusal; no claim in it; {_LOST}"
_NO_REFERENCE = f"no reference; no claim in it; {_LOST}"
_NO_CONTEXT = "no context"


def _claim_metric(
    name: str, tool_name: str, measures: str, formula: str, undefined: str, reading: str, better: Direction = "higher"
) -> Metric:
    return Metric(
        name=f"avg_{name}",
        tiers=("tier2", "tier3"),
        function="claims.claim_metrics",
        column=name,
        measures=measures,
        formula=f"{formula}; mean over cases",
        better=better,
        kind="judged",
        opinion="support",
        signature=f"avg_{name}|v:1",
        equals=f"RAGChecker: {tool_name}; no value where it says 0 for want of anything to measure",
        source=_PAPER,
        undefined=undefined,
        trust=_TRUST,
        reading=reading,
        asked="claims",
        later=True,
    )


CLAIMS = (
    _claim_metric(
        "claim_precision",
        "precision",
        "How many of the answer's claims the reference makes too.",
        "claims of the answer that the reference supports / claims of the answer",
        f"{_NO_ANSWER}; no reference",
        "Low with high faithfulness: the answer says more than the reference, which may be right and unasked for, or "
        "the context is wrong.",
    ),
    _claim_metric(
        "claim_recall",
        "recall",
        "How many of the reference's claims the answer makes too.",
        "claims of the reference that the answer supports / claims of the reference",
        _NO_REFERENCE,
        "1: nothing of the reference is missing, in whatever words. A refusal has none of them: 0.",
    ),
    _claim_metric(
        "claim_f1",
        "f1",
        "Precision and recall of the answer's claims in one.",
        "harmonic mean of claim_precision and claim_recall of a case",
        f"{_NO_ANSWER}; no reference, or no claim in it",
        "The one figure of the answer's content; precision and recall say what is wrong with it.",
    ),
    _claim_metric(
        "claim_faithfulness",
        "faithfulness",
        "How many of the answer's claims some passage of the context makes.",
        "claims of the answer that a passage supports / claims of the answer",
        f"{_NO_ANSWER}; {_NO_CONTEXT}",
        "1: nothing was made up. The sentences that make the others are marked in the report.",
    ),
    _claim_metric(
        "hallucination",
        "hallucination",
        "How many of the answer's claims stand neither in the context nor in the reference.",
        "claims of the answer that neither a passage nor the reference supports / claims of the answer",
        f"{_NO_ANSWER}; no reference; {_NO_CONTEXT}",
        "Made up, and not right by chance: the generator's doing.",
        "lower",
    ),
    _claim_metric(
        "self_knowledge",
        "self_knowledge",
        "How many of the answer's claims the reference makes and no passage.",
        "claims of the answer that the reference supports and no passage / claims of the answer",
        f"{_NO_ANSWER}; no reference; {_NO_CONTEXT}",
        "Right, but from the model's memory: it will be wrong where memory is. High: retrieval does not bring it.",
        "neither",
    ),
    _claim_metric(
        "noise_sensitivity",
        "noise_sensitivity_in_relevant + noise_sensitivity_in_irrelevant",
        "How many of the answer's claims stand in the context and are not the reference's.",
        "claims of the answer that a passage supports and the reference does not / claims of the answer",
        f"{_NO_ANSWER}; no reference, or no claim in it; {_NO_CONTEXT}",
        "The generator took over what was beside the point: ask for less context, or a prompt that chooses better.",
        "lower",
    ),
    _claim_metric(
        "context_utilization",
        "context_utilization",
        "How many of the reference's claims that the context has the answer makes too.",
        "claims of the reference that a passage and the answer support / those that a passage supports",
        f"{_NO_REFERENCE}; none of them in the context",
        "Low: the context had it and the generator left it out.",
    ),
    _claim_metric(
        "retrieved_claim_recall",
        "claim_recall",
        "How many of the reference's claims some passage of the context makes.",
        "claims of the reference that a passage supports / claims of the reference",
        f"{_NO_REFERENCE}; {_NO_CONTEXT}",
        "What a generator could get right at most. In tier 3 low: retrieval; in tier 2 low: the labels, or the "
        "reference says more than the pages.",
    ),
    _claim_metric(
        "context_precision",
        "context_precision",
        "How many of the context's passages make a claim of the reference.",
        "passages that support a claim of the reference / passages of the context",
        f"{_NO_REFERENCE}; {_NO_CONTEXT}",
        "Low: most of what the generator reads does not help. With k=1 it is near the hit rate.",
    ),
)
