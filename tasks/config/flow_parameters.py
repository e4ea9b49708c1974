"""Parameters of flows with several evaluations: nightly run, sweep, robustness probes."""

from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator, model_validator

from yarus.db.messages import Words
from yarus.tasks.config.factors import DEFAULT_PROBED_TIERS, PERTURBATIONS_BY_TIER, PerturbationKind, ProbedTier
from yarus.tasks.config.former_names import present_parameters
from yarus.tasks.config.naming import EvaluationId
from yarus.tasks.config.parameters import Parameters
from yarus.tasks.config.tiers import TIERS

if TYPE_CHECKING:
    TierName = str
else:  # the form in the Prefect UI lists the tiers
    TierName = Literal[tuple(TIERS)]


def _split_list(value: object) -> object:
    """Split a comma-separated text into a list without duplicates; other values pass."""
    parts = [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value
    if not isinstance(parts, list | tuple) or not all(isinstance(part, str | int) for part in parts):
        return parts
    return list(dict.fromkeys(parts))


T = TypeVar("T")
UniqueList = Annotated[list[T], BeforeValidator(_split_list)]
"""A list without duplicates, which may be given as comma-separated text."""


class NightlyParameters(Parameters):
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
    def _split_names(cls, value: object) -> object:
        return [name.strip() for name in value.split(",")] if isinstance(value, str) else value

    def of(self, tier: str) -> Parameters:
        """Return the parameters of one tier's evaluation within this run."""
        model = TIERS[tier].parameters
        inherited = {"source", "limit", "seed", "cases", "name", "tags", "runner", "claims", "nuggets", "citations"}
        return model(**self.model_dump(include=inherited & model.model_fields.keys()))


class SweepParameters(Parameters):
    """Systems against each other on the same questions: every combination of what is listed is an arm."""

    sources: UniqueList[str] = Field(
        [],
        title="Sources",
        description="The same questions over chunks that are cut otherwise; if empty: the source above",
        examples=[["pages_by_heading", "pages_by_500"]],
    )
    tier: Literal["tier1", "tier2", "tier3"] = Field("tier3", title="Tier", description="Tier that every arm evaluates")
    generators: UniqueList[str] = Field(
        [],
        title="Generators",
        description="Models at YARUS_GENERATOR__BASE_URL; if empty: the one in the settings",
        examples=[["qwen2.5-7b-instruct", "llama-3.1-8b-instruct"]],
    )
    prompts: UniqueList[str] = Field(
        [],
        title="Prompts",
        description="Files with the generator's prompt; if empty: YARUS_GENERATOR__PROMPT",
        examples=[["prompts/terse.txt", "prompts/careful.txt"]],
    )
    judges: UniqueList[str] = Field(
        [],
        title="Judges",
        description="Models at YARUS_JUDGE__BASE_URL; if empty: the one in the settings",
        examples=[["qwen2.5-72b-instruct"]],
    )
    embedders: UniqueList[str] = Field(
        [],
        title="Embedders",
        description="If empty: YARUS_EMBEDDER",
        examples=[["lexical", "intfloat/multilingual-e5-small", "http://127.0.0.1:8080/v1#bge-m3"]],
    )
    retrievers: UniqueList[str] = Field(
        [], title="Retrievers", description="If empty: YARUS_RETRIEVER", examples=[["dense", "fulltext"]]
    )
    rerankers: UniqueList[str] = Field(
        [],
        title="Re-rankers",
        description="If empty: YARUS_RERANKER; 'none' is an arm without one",
        examples=[["none", "BAAI/bge-reranker-v2-m3"]],
    )
    k: UniqueList[int] = Field(
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
    def _include_own_source(cls, value: list[str], info: ValidationInfo) -> list[str]:
        own_source = info.data.get("source")
        if value and own_source not in (*value, cls.model_fields["source"].default):
            raise ValueError(Words("--source {own} is none of them; leave it out", own=own_source))
        return value

    @model_validator(mode="after")
    def _use_first_source(self) -> "SweepParameters":
        """Set the sweep's own source, by which it is found, to one of the swept sources."""
        if self.sources and self.source not in self.sources:
            object.__setattr__(self, "source", self.sources[0])  # bypasses the frozen model
        return self


class RobustnessParameters(Parameters):
    """The same questions asked otherwise, or answered from bad contexts: does the system still find and answer well?"""

    perturbations: UniqueList[PerturbationKind] = Field(
        [*PERTURBATIONS_BY_TIER["tier1"]],
        title="Perturbations",
        description="Ways of changing the questions (tiers 1 and 3) or the contexts (tier 2)",
        min_length=1,
    )
    tiers: UniqueList[ProbedTier] = Field(
        [*DEFAULT_PROBED_TIERS],
        title="Tiers",
        description="tier1: change of rank; tier2: answers from bad contexts; tier3: change of answer",
        min_length=1,
    )
    resume: None = Field(
        None, title="Resume", description="Not for probes: start them again; no call is paid for twice"
    )

    @model_validator(mode="before")
    @classmethod
    def _fill_defaults(cls, values: Any) -> Any:
        """If only kinds are given, add the tiers that support them; if only tiers are, all kinds that these support."""
        values = present_parameters(values)
        if not isinstance(values, dict):
            return values
        kinds, tiers = (_split_list(values.get(name)) for name in ("perturbations", "tiers"))
        defaults: dict[str, list[str]] = {}
        if "tiers" not in values and isinstance(kinds, list):
            defaults["tiers"] = [
                tier for tier, supported in PERTURBATIONS_BY_TIER.items() if any(kind in supported for kind in kinds)
            ]
        elif "perturbations" not in values and isinstance(tiers, list):
            defaults["perturbations"] = list(
                dict.fromkeys(kind for tier in tiers for kind in PERTURBATIONS_BY_TIER.get(str(tier), ()))
            )
        return values | {name: names for name, names in defaults.items() if names}

    @field_validator("tiers")
    @classmethod
    def _check_combination(cls, tiers: list[str], info: ValidationInfo) -> list[str]:
        """Check that each kind is supported by a tier, and that each tier supports one of the kinds."""
        kinds = info.data.get("perturbations", ())
        for kind in kinds:
            if not any(kind in PERTURBATIONS_BY_TIER[tier] for tier in tiers):
                names = " or ".join(tier for tier, supported in PERTURBATIONS_BY_TIER.items() if kind in supported)
                raise ValueError(
                    Words("none of them knows the kind {kind!r}, which is of {knowing}", kind=kind, knowing=names)
                )
        for tier in tiers if kinds else ():
            if not set(kinds) & set(PERTURBATIONS_BY_TIER[tier]):
                raise ValueError(
                    Words(
                        "{tier} knows none of the kinds; it has {kinds}",
                        tier=tier,
                        kinds=", ".join(PERTURBATIONS_BY_TIER[tier]),
                    )
                )
        return tiers

    def kinds_of(self, tier: str) -> list[str]:
        """Return the kinds of this run that a tier supports."""
        return [kind for kind in self.perturbations if kind in PERTURBATIONS_BY_TIER[tier]]


FLOWS: dict[str, type[Parameters]] = {
    **{name: tier.parameters for name, tier in TIERS.items()},
    "nightly": NightlyParameters,
    "sweep": SweepParameters,
    "robustness": RobustnessParameters,
}
"""Every flow that can be run by name, with its parameters."""
