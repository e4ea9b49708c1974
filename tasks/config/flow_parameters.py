"""What a person chooses for a flow of several evaluations: a night, a sweep, the probes of robustness."""

from typing import TYPE_CHECKING, Literal, get_args

from pydantic import Field, field_validator

from tasks.config.parameters import EvaluationId, Parameters, Perturbation
from tasks.config.tiers import TIERS

if TYPE_CHECKING:
    TierName = str
else:  # the form in the Prefect UI lists them
    TierName = Literal[tuple(TIERS)]


class Nightly(Parameters):
    """Every tier in order over one source."""

    tiers: list[TierName] = Field(list(TIERS), title="Tiers", description="Tiers to run, in this order", min_length=1)
    anchor: EvaluationId | None = Field(
        None,
        title="Anchor",
        description="Id of an evaluation of tier2 or tier3 whose stored answers are judged again every night",
        examples=["tier3-20261101-030000-9c1e"],
    )
    claims: bool = Field(
        False, title="Claims", description="Have the judge check every claim, in the tiers that get answers"
    )
    nuggets: bool = Field(
        False,
        title="Nuggets",
        description="Have the judge look for the questions' nuggets, in the tiers that get answers",
    )
    citations: bool = Field(False, title="Citations", description="Have the judge check the named pages, in tier 3")
    resume: None = Field(
        None, title="Resume", description="Not for a night: use Prefect's Retry, or resume its evaluations"
    )

    @field_validator("tiers", mode="before")
    @classmethod
    def _names(cls, value: object) -> object:
        return [name.strip() for name in value.split(",")] if isinstance(value, str) else value

    def of(self, tier: str) -> Parameters:
        """What a tier is given of it."""
        kind = TIERS[tier].parameters
        passed_on = {"source", "limit", "seed", "cases", "runner", "claims", "nuggets", "citations"}
        return kind(**self.model_dump(include=passed_on & kind.model_fields.keys()))


class Sweep(Parameters):
    """Models, retrievers and depths against each other on the same cases: every combination is an arm."""

    tier: Literal["tier1", "tier2", "tier3"] = Field("tier3", title="Tier", description="Tier that every arm evaluates")
    generators: list[str] = Field(
        [],
        title="Generators",
        description="Models at YARUS_GENERATOR__BASE_URL; if empty: the one in the settings",
        examples=[["qwen2.5-7b-instruct", "llama-3.1-8b-instruct"]],
    )
    judges: list[str] = Field(
        [],
        title="Judges",
        description="Models at YARUS_JUDGE__BASE_URL; if empty: the one in the settings",
        examples=[["qwen2.5-72b-instruct"]],
    )
    embedders: list[str] = Field(
        [],
        title="Embedders",
        description="If empty: YARUS_EMBEDDER",
        examples=[["lexical", "intfloat/multilingual-e5-small", "http://127.0.0.1:8080/v1#bge-m3"]],
    )
    retrievers: list[str] = Field(
        [], title="Retrievers", description="If empty: YARUS_RETRIEVER", examples=[["dense", "fulltext"]]
    )
    k: list[int] = Field(
        [], title="Depths", description="Lengths of the rankings; if empty: the tier's default", examples=[[1, 3]]
    )
    resume: str | None = Field(
        None,
        title="Resume",
        description="Id of a sweep that did not finish; its own parameters are used",
        examples=["tier1-20261120-030000-4f2a"],
    )

    @field_validator("generators", "judges", "embedders", "retrievers", "k", mode="before")
    @classmethod
    def _once_each(cls, value: object) -> object:
        return _listed(value)


class Robustness(Parameters):
    """The same questions asked otherwise: does the system still find and answer the same?"""

    kinds: list[Perturbation] = Field(
        list(get_args(Perturbation)), title="Kinds", description="Ways of changing the questions", min_length=1
    )
    tiers: list[Literal["tier1", "tier3"]] = Field(
        ["tier1", "tier3"], title="Tiers", description="tier1: change of rank; tier3: change of answer", min_length=1
    )
    resume: None = Field(
        None, title="Resume", description="Not for probes: start them again; no call is paid for twice"
    )

    @field_validator("kinds", "tiers", mode="before")
    @classmethod
    def _once_each(cls, value: object) -> object:
        return _listed(value)


def _listed(value: object) -> object:
    """A list from words parted by commas; nothing twice."""
    parts = [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value
    return list(dict.fromkeys(parts)) if isinstance(parts, list | tuple) else parts


FLOWS: dict[str, type[Parameters]] = {
    **{name: tier.parameters for name, tier in TIERS.items()},
    "nightly": Nightly,
    "sweep": Sweep,
    "robustness": Robustness,
}
"""Every flow that can be run by name, and its parameters."""
