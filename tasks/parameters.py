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


class Retrieval(Parameters):
    """What a tier takes that asks a retriever of ours."""

    retriever: str | None = Field(
        None, title="Retriever", description="Default: YARUS_RETRIEVER", examples=["dense", "fulltext"]
    )
    embedder: str | None = Field(
        None,
        title="Embedder",
        description="Of a retriever that needs vectors; default: YARUS_EMBEDDER",
        examples=["lexical", "intfloat/multilingual-e5-small"],
    )
    vectors: Literal["auto", "stored", "computed"] = Field(
        "auto",
        title="Chunk vectors",
        description="'stored': those in the source; 'computed': the embedder's; 'auto': stored where there are any",
    )
    unit: Literal["auto", "chunk", "page"] = Field(
        "auto", title="Unit", description="What counts as found; 'auto': chunk where chunks are labelled, else page"
    )
    k: int = Field(10, title="Depth", description="Length of the rankings", ge=10, le=1_000)


class Tier1(Retrieval):
    """Retrieval: does the retriever find the chunks or pages that are labelled relevant?"""


TIERS: dict[Tier, type[Parameters]] = {"tier1": Tier1}
