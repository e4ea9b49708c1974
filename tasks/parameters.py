"""What a person chooses for one evaluation: one model a tier, which is also the form in the Prefect UI."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from metrics.table import Tier


class Parameters(BaseModel):
    """What every tier takes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: str = Field(
        "sample",
        title="Source",
        description="Where the questions come from: a loaded source, or 'production' for YARUS_SOURCE_URL",
        examples=["sample", "production"],
    )
    limit: int | None = Field(
        None, title="Limit", description="Evaluate a random sample of this many questions", ge=1, examples=[200]
    )
    seed: int = Field(0, title="Seed", description="Of the sample and of the resampling", ge=0)
    resume: str | None = Field(
        None, title="Resume", description="Id of an evaluation that did not finish; its own parameters hold"
    )


class Embedding(Parameters):
    """What a tier takes that needs vectors."""

    embedder: str | None = Field(
        None,
        title="Embedder",
        description="What turns texts into vectors; default: YARUS_EMBEDDER",
        examples=["lexical", "intfloat/multilingual-e5-small"],
    )
    vectors: Literal["auto", "stored", "computed"] = Field(
        "auto",
        title="Chunk vectors",
        description="'stored': those in the source; 'computed': the embedder's; 'auto': stored where there are any",
    )


class Tier0(Embedding):
    """Embedding quality: do texts of one page or topic lie together, and apart from the others?"""

    texts: Literal["chunks", "questions"] = Field(
        "chunks", title="Texts", description="Chunks by their page, or questions by their annotated topic"
    )
    distance: Literal["cosine", "euclidean"] = Field("cosine", title="Distance", description="Of the silhouette")


class Retrieval(Embedding):
    """What a tier takes that asks a retriever of ours."""

    retriever: str | None = Field(
        None, title="Retriever", description="Default: YARUS_RETRIEVER", examples=["dense", "fulltext", "hybrid"]
    )
    k: int = Field(10, title="Depth", description="Length of the rankings", ge=10, le=1_000)


class Tier1(Retrieval):
    """Retrieval: does the retriever find the chunks or pages that are labelled relevant?"""

    unit: Literal["auto", "chunk", "page"] = Field(
        "auto", title="Unit", description="What counts as found; 'auto': chunk where chunks are labelled, else page"
    )


class RealUsers(Retrieval):
    """Retrieval on the real log: does the retriever find the page that the bot showed, and that users confirmed?"""


class Generation(Parameters):
    """What a tier takes that gives a model a context."""

    context_tokens: int = Field(
        3_000, title="Context", description="Longest context, in tokens of about three characters", ge=100
    )


class Answering(Generation):
    """What a tier takes that gets answers and has them scored."""

    reuse_answers: str | None = Field(
        None,
        title="Reuse answers",
        description="Id of an evaluation of the same tier and source whose stored answers are scored again",
    )


class Tier2(Answering):
    """Generation on ideal context: does the model answer well when it is given the right chunks?"""

    repeats: int = Field(1, title="Repeats", description="Answers a question, for their consistency", ge=1, le=10)
    logprobs: bool = Field(False, title="Log-probabilities", description="Ask the generator for them, for perplexity")


class Tier3(Retrieval, Answering):
    """End to end: is the answer of the whole system as useful as the reference?"""

    sut: str | None = Field(
        None,
        title="System under test",
        description="'local' (our retriever and generator), an http(s) URL, or module:function; default: YARUS_SUT",
    )
    unit: Literal["auto", "chunk", "page"] = Field("auto", title="Unit", description="What counts as found")
    k: int = Field(1, title="Depth", description="Chunks given to the generator", ge=1, le=100)


class Judging(Generation):
    """What a tier takes that judges logged answers against their page."""


class Judge(Judging):
    """The judge itself: does it say the same twice, and is it moved by what should not matter?"""

    repeats: int = Field(2, title="Repeats", description="Times every answer is judged, past the store", ge=2, le=10)
    probes: bool = Field(True, title="Bias probes", description="Judge changed versions of every answer too")


class JudgePipeline(Judging):
    """The production judge: are the right answers shown, and only they?"""


class Ux(Parameters):
    """User experience: would a cache of answers help or mislead, and do dialogs stay on their topic?"""


TIERS: dict[Tier, type[Parameters]] = {
    "tier0": Tier0,
    "tier1": Tier1,
    "tier2": Tier2,
    "tier3": Tier3,
    "real_users": RealUsers,
    "judge": Judge,
    "judge_pipeline": JudgePipeline,
    "ux": Ux,
}


class Nightly(Parameters):
    """Every tier in order over one source."""

    tiers: list[Tier] = Field(list(TIERS), title="Tiers", description="Which, in this order", min_length=1)
    resume: None = Field(None, title="Resume", description="A night is not resumed; resume its evaluations one by one")

    @field_validator("tiers", mode="before")
    @classmethod
    def _names(cls, value: object) -> object:
        return [name.strip() for name in value.split(",")] if isinstance(value, str) else value

    def shared(self) -> dict[str, Any]:
        """What every tier is given."""
        return self.model_dump(include={"source", "limit", "seed"})


FLOWS: dict[str, type[Parameters]] = {**{str(tier): model for tier, model in TIERS.items()}, "nightly": Nightly}
"""Every flow that can be run by name, and its parameters."""
