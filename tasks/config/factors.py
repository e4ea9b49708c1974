"""What else may set one system apart from another: a re-ranker, and the prompt of the generator."""

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
