"""Settings of re-rankers, and the perturbations of questions and contexts."""

from typing import Literal, get_args

from pydantic import BaseModel, Field, SecretStr

NO_RERANKER = "none"
"""Value of `reranker` that turns off the re-ranker of the settings."""


class RerankerService(BaseModel, extra="forbid", allow_inf_nan=False):
    """How to call a re-ranker over HTTP; by default as Cohere, Jina, vLLM and Infinity expect it.

    The default paths also read replies of Text Embeddings Inference.
    """

    request: str = Field(
        '{"model": "$model", "query": "$question", "documents": "$texts"}',
        description="JSON sent by POST; without YARUS_RERANKER_MODEL it has no model",
    )
    indices: str = Field(
        "(results || data || @)[].index",
        description="JMESPath of the scored texts' places, from 0; 'none': scores come in the order of the texts",
    )
    scores: str = Field(
        "(results || data || @)[].not_null(relevance_score, score)",
        description="JMESPath of their scores, higher is better",
    )
    headers: dict[str, SecretStr] = Field({}, description="HTTP headers; never logged or stored")
    timeout_s: float = Field(30.0, gt=0)
    concurrency: int = Field(8, ge=1)


Perturbation = Literal["typos", "yo", "lower", "layout", "paraphrase"]
"""Perturbations of questions: typing errors, «е» for «ё», lower case, wrong keyboard layout, other words."""
ContextPerturbation = Literal[
    "distractors", "gold_first", "gold_middle", "gold_last", "gold_removed", "counterfactual", "injection"
]
"""Perturbations of contexts: passages of other pages among the right ones; the right ones before, amid or after these,
or removed; a changed number or date; an injected instruction.
"""
PerturbationKind = Literal[Perturbation, ContextPerturbation]
PERTURBATIONS_BY_TIER: dict[str, tuple[PerturbationKind, ...]] = {
    "tier1": get_args(Perturbation),
    "tier2": get_args(ContextPerturbation),
    "tier3": get_args(Perturbation),
}
"""Tier -> the perturbations that it supports."""
ProbedTier = Literal["tier1", "tier2", "tier3"]
DEFAULT_PROBED_TIERS: tuple[ProbedTier, ...] = ("tier1", "tier3")
"""Tiers that are probed by default."""
