"""What a person chooses for one evaluation: one model a tier, which is also the form in the Prefect UI."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

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


TIERS: dict[Tier, type[Parameters]] = {"tier0": Tier0, "tier1": Tier1, "real_users": RealUsers}
