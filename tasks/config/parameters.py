"""Parameters of one evaluation: one model per tier, which is also the form in the Prefect UI."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from yarus.tasks.config.factors import ContextPerturbation, Perturbation
from yarus.tasks.config.former_names import present_parameters, stored_parameters
from yarus.tasks.config.forms import append_examples
from yarus.tasks.config.naming import EvaluationId, EvaluationName, EvaluationTags, RetryFailed

ParameterValues = dict[str, Any]
"""Values of some parameters, by name."""
JudgeModel = Annotated[
    str | None,
    Field(
        title="Judge's model",
        description="Asked for at YARUS_JUDGE__BASE_URL; default: YARUS_JUDGE__MODEL",
        examples=["qwen2.5-72b-instruct"],
    ),
]


class Parameters(BaseModel):
    """Parameters of every tier."""

    model_config = ConfigDict(extra="forbid", frozen=True, json_schema_extra=append_examples)

    source: str = Field(
        "sample",
        title="Source",
        description="Source of the questions: a loaded one, or 'production' for YARUS_SOURCE_URL",
        examples=["sample", "production"],
    )
    limit: int | None = Field(
        None, title="Limit", description="Evaluate a random sample of this many questions", ge=1, examples=[200]
    )
    seed: int = Field(
        0, title="Seed", description="Random seed of the sample and of the bootstrap", ge=0, examples=[0, 42]
    )
    cases: str | None = Field(
        None,
        title="Case set",
        description="Name of a frozen case set (yarus dataset freeze): its questions and labels, on the live corpus",
        examples=["july_hard"],
    )
    name: EvaluationName = None
    tags: EvaluationTags = []
    runner: Literal["local", "dask"] = Field(
        "local", title="Runner", description="Where batches are computed; 'dask': by the workers of YARUS_DASK_ADDRESS"
    )
    resume: EvaluationId | None = Field(
        None,
        title="Resume",
        description="Id of an evaluation that did not finish; its own parameters are used",
        examples=["tier1-20261120-030000-4f2a"],
    )

    @model_validator(mode="before")
    @classmethod
    def _rename(cls, values: Any) -> Any:
        """Read stored parameters, of evaluations and of Prefect's deployments, by their former names."""
        return present_parameters(values)

    def stored(self) -> ParameterValues:
        """Return the parameters as evaluations store them: as JSON, by their former names."""
        return stored_parameters(self.model_dump(mode="json"))


class EmbeddingParameters(Parameters):
    """Parameters of tiers that embed texts."""

    embedder: str | None = Field(
        None,
        title="Embedder",
        description="Model that turns texts into vectors; default: YARUS_EMBEDDER",
        examples=["lexical", "intfloat/multilingual-e5-small", "http://127.0.0.1:8080/v1#bge-m3"],
    )
    vectors: Literal["auto", "stored", "computed"] = Field(
        "auto",
        title="Chunk vectors",
        description="'stored': those in the source; 'computed': the embedder's; 'auto': stored if there are any",
    )


class Tier0(EmbeddingParameters):
    """Embedding quality: do texts of one page or topic lie together, and apart from the others?"""

    texts: Literal["chunks", "questions"] = Field(
        "chunks", title="Texts", description="Chunks grouped by page, or questions grouped by annotated topic"
    )
    distance: Literal["cosine", "euclidean"] = Field("cosine", title="Distance", description="Of the silhouette")


class RetrievalParameters(EmbeddingParameters):
    """Parameters of tiers that use Yarus's own retrievers."""

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
        description="Number of the retriever's first chunks that the re-ranker reorders",
        ge=1,
        le=1_000,
        examples=[50, 100],
    )
    retriever: str | None = Field(
        None, title="Retriever", description="Default: YARUS_RETRIEVER", examples=["dense", "fulltext", "hybrid"]
    )
    k: int = Field(10, title="Depth", description="Length of the rankings", ge=10, le=1_000, examples=[10, 100])
    merge_duplicates: bool = Field(
        True,
        title="Merge duplicates",
        description="Chunks or pages that say the same count as one: a label on one is on all",
    )


class PerturbationParameters(Parameters):
    """Parameters of tiers that ask the system the source's questions."""

    perturbation: Perturbation | None = Field(
        None, title="Perturbation", description="Change every question in this way before it is asked"
    )


class RecheckParameters(Parameters):
    """Parameters of tiers whose results vary between runs, because they call models or systems."""

    recheck: EvaluationId | None = Field(
        None,
        title="Recheck",
        description="Id of an evaluation whose changed questions are asked again: does what changed persist?",
        examples=["tier2-20261120-030000-4f2a"],
    )
    retry_failed: RetryFailed = None


class LLMLabelParameters(RetrievalParameters, RecheckParameters):
    """Parameters of tiers whose labels a judge may complete."""

    labels: Literal["given", "llm"] = Field(
        "given",
        title="Labels",
        description="'llm': the judge grades the results that nobody has judged; people's labels correct it",
    )
    pool: str | None = Field(
        None,
        title="Pool",
        description="Other retrievers, by commas, whose results are judged too, so that this one compares with them",
        examples=["fulltext,hybrid"],
    )
    judge_model: JudgeModel = None


class Tier1(LLMLabelParameters, PerturbationParameters):
    """Retrieval: does the retriever find the chunks or pages that are labelled relevant?"""

    unit: Literal["auto", "chunk", "page"] = Field(
        "auto", title="Unit", description="Unit of results; 'auto': chunk if chunks are labelled, else page"
    )


class RealUsers(LLMLabelParameters):
    """Retrieval on the real log: does the retriever find the page that the bot showed, and that users confirmed?"""


class GenerationParameters(RecheckParameters):
    """Parameters of tiers that give a model a context."""

    context_tokens: int = Field(
        3_000,
        title="Context",
        description="Longest context, in tokens of about three characters",
        ge=100,
        examples=[3_000],
    )
    repeat_of: EvaluationId | None = Field(
        None,
        title="Repeat of",
        description="Id of an evaluation to repeat with new model calls: the difference is noise",
        examples=["tier2-20261120-030000-4f2a"],
    )


class AnswerParameters(GenerationParameters):
    """Parameters of tiers that get answers and score them."""

    generator_prompt: str | None = Field(
        None,
        title="Generator's prompt",
        description="A file with $question and $context; default: YARUS_GENERATOR__PROMPT",
        examples=["prompts/terse.txt"],
    )
    reuse_answers: EvaluationId | None = Field(
        None,
        title="Reuse answers",
        description="Id of an evaluation of the same tier and source whose stored answers are scored again",
        examples=["tier2-20261120-030000-4f2a"],
    )
    anchor: EvaluationId | None = Field(
        None,
        title="Anchor",
        description="Id of an evaluation whose stored answers are judged again: the difference is the judge's drift",
        examples=["tier3-20261101-030000-9c1e"],
    )
    claims: bool = Field(
        False, title="Claims", description="Have the judge check every claim of answer and reference: 2 to 3 more calls"
    )
    nuggets: bool = Field(
        False,
        title="Nuggets",
        description="Have the judge look for the questions' nuggets in the answer: one more call",
    )
    generator_model: str | None = Field(
        None,
        title="Generator's model",
        description="Name of a model at YARUS_GENERATOR__BASE_URL; default: YARUS_GENERATOR__MODEL",
        examples=["qwen2.5-7b-instruct"],
    )
    judge_model: JudgeModel = None


class Tier2(AnswerParameters):
    """Generation on ideal context: does the model answer well when it is given the right chunks?"""

    sut: Literal["local", "recorded"] | None = Field(
        None, title="System under test", description="'local': our generator; 'recorded': the answers in the source"
    )
    repeats: int = Field(
        1, title="Repeats", description="Answers per question, to measure their consistency", ge=1, le=10, examples=[3]
    )
    logprobs: bool = Field(
        False, title="Log-probabilities", description="Request them from the generator, for perplexity"
    )
    context_perturbation: ContextPerturbation | None = Field(
        None, title="Context perturbation", description="Change every context in this way before it is answered from"
    )


class Tier3(RetrievalParameters, AnswerParameters, PerturbationParameters):
    """End to end: is the answer of the whole system as useful as the reference?"""

    sut: str | None = Field(
        None,
        title="System under test",
        description="'local' (ours), 'recorded' (the source's answers), a URL, openai:URL or module:function; "
        "default: YARUS_SUT",
        examples=["local", "http://127.0.0.1:8000/ask", "my_bot:answer"],
    )
    unit: Literal["auto", "chunk", "page"] = Field("auto", title="Unit", description="Unit of results")
    k: int = Field(1, title="Depth", description="Chunks given to the generator", ge=1, le=100, examples=[1, 5])
    citations: bool = Field(
        False,
        title="Citations",
        description="Have the judge check the named pages, as 'claims' does: a call a case",
    )


class LoggedAnswerParameters(GenerationParameters):
    """Parameters of tiers that judge logged answers against their page."""


class JudgeQuality(LoggedAnswerParameters):
    """The judge itself: does it say the same twice, and is it moved by what should not matter?"""

    repeats: int = Field(
        2,
        title="Repeats",
        description="Times every answer is judged, without reusing stored replies",
        ge=2,
        le=10,
        examples=[2, 5],
    )
    bias_probes: bool = Field(True, title="Bias probes", description="Also judge changed versions of every answer")
    exam: int = Field(
        60,
        title="Exam",
        description="Questions whose sound and damaged answers every judged prompt is examined with; 0 for no exam",
        ge=0,
        le=10_000,
        examples=[60, 200],
    )
    parallel_source: str | None = Field(
        None,
        title="Parallel source",
        description="A source with the same questions, by id, in another language: how far that moves the judge",
        examples=["xquad_en"],
    )
    judge_model: JudgeModel = None


class JudgePipeline(LoggedAnswerParameters):
    """The production judge: are the right answers shown, and only they?"""

    repeats: int = Field(
        1,
        title="Repeats",
        description="Times the gate is asked about every answer; the first decides, all say how sure it is",
        ge=1,
        le=16,
        examples=[5],
    )
    logprobs: bool = Field(
        False, title="Log-probabilities", description="Request them from the gate: they say how sure it is"
    )


class Ux(Parameters):
    """User experience: would a cache of answers help or mislead, and do dialogs stay on their topic?"""

    limit: int | None = Field(
        None,
        title="Limit",
        description="Evaluate a random sample of about this many questions, in whole dialogs, against the whole log",
        ge=1,
        examples=[200],
    )
