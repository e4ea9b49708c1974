"""What a person chooses for a flow of several evaluations: a night, a sweep, the probes of robustness."""

from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator, model_validator

from yarus.db.words import Words
from yarus.tasks.config.factors import KINDS, QUESTIONS, Kind, ProbedTier
from yarus.tasks.config.naming import EvaluationId
from yarus.tasks.config.parameters import Parameters
from yarus.tasks.config.tiers import TIERS

if TYPE_CHECKING:
    TierName = str
else:  # the form in the Prefect UI lists them
    TierName = Literal[tuple(TIERS)]


def _listed(value: object) -> object:
    """A list from words parted by commas; nothing twice."""
    parts = [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value
    if not isinstance(parts, list | tuple) or not all(isinstance(part, str | int) for part in parts):
        return parts
    return list(dict.fromkeys(parts))


T = TypeVar("T")
OnceEach = Annotated[list[T], BeforeValidator(_listed)]
"""A list without repetitions, also given as words with commas between them."""


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
        passed_on = {"source", "limit", "seed", "cases", "name", "tags", "runner", "claims", "nuggets", "citations"}
        return kind(**self.model_dump(include=passed_on & kind.model_fields.keys()))


class Sweep(Parameters):
    """Systems against each other on the same questions: every combination of what is listed is an arm."""

    sources: OnceEach[str] = Field(
        [],
        title="Sources",
        description="The same questions over chunks that are cut otherwise; if empty: the source above",
        examples=[["pages_by_heading", "pages_by_500"]],
    )
    tier: Literal["tier1", "tier2", "tier3"] = Field("tier3", title="Tier", description="Tier that every arm evaluates")
    generators: OnceEach[str] = Field(
        [],
        title="Generators",
        description="Models at YARUS_GENERATOR__BASE_URL; if empty: the one in the settings",
        examples=[["qwen2.5-7b-instruct", "llama-3.1-8b-instruct"]],
    )
    prompts: OnceEach[str] = Field(
        [],
        title="Prompts",
        description="Files with the generator's prompt; if empty: YARUS_GENERATOR__PROMPT",
        examples=[["prompts/terse.txt", "prompts/careful.txt"]],
    )
    judges: OnceEach[str] = Field(
        [],
        title="Judges",
        description="Models at YARUS_JUDGE__BASE_URL; if empty: the one in the settings",
        examples=[["qwen2.5-72b-instruct"]],
    )
    embedders: OnceEach[str] = Field(
        [],
        title="Embedders",
        description="If empty: YARUS_EMBEDDER",
        examples=[["lexical", "intfloat/multilingual-e5-small", "http://127.0.0.1:8080/v1#bge-m3"]],
    )
    retrievers: OnceEach[str] = Field(
        [], title="Retrievers", description="If empty: YARUS_RETRIEVER", examples=[["dense", "fulltext"]]
    )
    rerankers: OnceEach[str] = Field(
        [],
        title="Re-rankers",
        description="If empty: YARUS_RERANKER; 'none' is an arm without one",
        examples=[["none", "BAAI/bge-reranker-v2-m3"]],
    )
    k: OnceEach[int] = Field(
        [], title="Depths", description="Lengths of the rankings; if empty: the tier's default", examples=[[1, 3]]
    )
    resume: str | None = Field(
        None,
        title="Resume",
        description="Id of a sweep that did not finish; its own parameters are used",
        examples=["tier1-20261120-030000-4f2a"],
    )

    @field_validator("sources")
    @classmethod
    def _with_its_own(cls, value: list[str], info: ValidationInfo) -> list[str]:
        own = info.data.get("source")
        if value and own not in (*value, cls.model_fields["source"].default):
            raise ValueError(Words("--source {own} is none of them; leave it out", own=own))
        return value

    @model_validator(mode="after")
    def _of_the_first(self) -> "Sweep":
        """Its own source, by which it is found again, is one of those that it sweeps."""
        if self.sources and self.source not in self.sources:
            object.__setattr__(self, "source", self.sources[0])  # of what is frozen for others
        return self


class Robustness(Parameters):
    """The same questions asked otherwise, or answered from bad contexts: does the system still find and answer well?"""

    kinds: OnceEach[Kind] = Field(
        [*KINDS["tier1"]],
        title="Kinds",
        description="Ways of changing the questions (tiers 1 and 3) or the contexts (tier 2)",
        min_length=1,
    )
    tiers: OnceEach[ProbedTier] = Field(
        [*QUESTIONS],
        title="Tiers",
        description="tier1: change of rank; tier2: answers from bad contexts; tier3: change of answer",
        min_length=1,
    )
    resume: None = Field(
        None, title="Resume", description="Not for probes: start them again; no call is paid for twice"
    )

    @model_validator(mode="before")
    @classmethod
    def _fill(cls, given: Any) -> Any:
        """Where only kinds are chosen, the tiers that know them; where only tiers are, all kinds that these know."""
        if not isinstance(given, dict):
            return given
        kinds, tiers = (_listed(given.get(name)) for name in ("kinds", "tiers"))
        filled: dict[str, list[str]] = {}
        if "tiers" not in given and isinstance(kinds, list):
            filled["tiers"] = [tier for tier, known in KINDS.items() if any(kind in known for kind in kinds)]
        elif "kinds" not in given and isinstance(tiers, list):
            filled["kinds"] = list(dict.fromkeys(kind for tier in tiers for kind in KINDS.get(str(tier), ())))
        return given | {name: some for name, some in filled.items() if some}

    @field_validator("tiers")
    @classmethod
    def _something_to_do(cls, tiers: list[str], info: ValidationInfo) -> list[str]:
        """Every kind is known by some tier, every tier knows one of them."""
        kinds = info.data.get("kinds", ())
        for kind in kinds:
            if not any(kind in KINDS[tier] for tier in tiers):
                knowing = " or ".join(tier for tier, known in KINDS.items() if kind in known)
                raise ValueError(
                    Words("none of them knows the kind {kind!r}, which is of {knowing}", kind=kind, knowing=knowing)
                )
        for tier in tiers if kinds else ():
            if not set(kinds) & set(KINDS[tier]):
                raise ValueError(
                    Words("{tier} knows none of the kinds; it has {kinds}", tier=tier, kinds=", ".join(KINDS[tier]))
                )
        return tiers

    def kinds_of(self, tier: str) -> list[str]:
        """Those of the kinds that a tier knows."""
        return [kind for kind in self.kinds if kind in KINDS[tier]]


FLOWS: dict[str, type[Parameters]] = {
    **{name: tier.parameters for name, tier in TIERS.items()},
    "nightly": Nightly,
    "sweep": Sweep,
    "robustness": Robustness,
}
"""Every flow that can be run by name, and its parameters."""
