"""What else sets one system apart from another: re-ranker, prompt, and changes of questions and contexts."""

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


class Reranked(BaseModel):
    """What a tier takes whose rankings may be ordered anew."""

    reranker: str | None = Field(
        None,
        title="Re-ranker",
        description="Orders what the retriever found anew: a cross-encoder of sentence-transformers, an http(s) URL, "
        "module:function, or 'none'; default: YARUS_RERANKER",
        examples=["none", "BAAI/bge-reranker-v2-m3", "http://127.0.0.1:8080/rerank", "my_search:rerank"],
    )
    rerank_depth: int = Field(
        50,
        title="Re-ranked",
        description="How many of the retriever's first chunks the re-ranker orders anew",
        ge=1,
        le=1_000,
        examples=[50, 100],
    )


class Prompted(BaseModel):
    """What a tier takes that has a model answer."""

    generator_prompt: str | None = Field(
        None,
        title="Generator's prompt",
        description="A file with $question and $context; default: YARUS_GENERATOR__PROMPT",
        examples=["prompts/terse.txt"],
    )


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
