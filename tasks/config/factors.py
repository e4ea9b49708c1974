"""How a re-ranker is asked, and the ways of changing questions and contexts."""

from typing import Literal, get_args

from pydantic import BaseModel, Field, SecretStr

NO_RERANKER = "none"
"""Chosen for an evaluation, it leaves out the re-ranker of the settings."""


class RerankerService(BaseModel, extra="forbid", allow_inf_nan=False):
    """How to ask a re-ranker that is an HTTP service; by default as Cohere, Jina, vLLM and Infinity have it.

    Replies are read as these and Text Embeddings Inference write them.
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
"""Ways of asking the same: typing errors, «е» for «ё», lower case, wrong keyboard layout, other words."""
ContextPerturbation = Literal[
    "distractors", "gold_first", "gold_middle", "gold_last", "gold_removed", "counterfactual", "injection"
]
"""Bad contexts: passages of other pages among the right ones, the right ones before, amid or behind these, or not at
all; another number or date in them; an instruction in them.
"""
Kind = Literal[Perturbation, ContextPerturbation]
KINDS: dict[str, tuple[Kind, ...]] = {
    "tier1": get_args(Perturbation),
    "tier2": get_args(ContextPerturbation),
    "tier3": get_args(Perturbation),
}
"""What each tier can be given changed."""
ProbedTier = Literal["tier1", "tier2", "tier3"]
QUESTIONS: tuple[ProbedTier, ...] = ("tier1", "tier3")
"""The tiers that are probed where nothing is chosen."""
