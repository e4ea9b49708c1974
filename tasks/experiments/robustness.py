"""Robustness: the same questions asked otherwise, and what that does to ranks and answers."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from db.journal import FINISHED
from metrics.statistics import Comparison, Interval
from tasks.comparison.common_cases import common
from tasks.config.flow_parameters import Robustness
from tasks.config.settings import settings
from tasks.config.tiers import TIERS
from tasks.experiments.arms import (
    SHARED,
    Arm,
    adjusted,
    cases_of,
    compared,
    named,
    number,
    reference,
)
from tasks.experiments.documents import Outcome, Probe, RobustnessResult, Share
from tasks.results.set_metrics import share
from tasks.results.summary import worst

METRICS: dict[str, tuple[str, ...]] = {
    "tier1": ("hit_rate@1", "hit_rate@10", "mrr"),
    "tier3": ("avg_e2e_score", "avg_semantic_similarity", "avg_rougeL_f"),
}
"""What a change of the question is measured by."""
AS_IS = "as it is"
NO_MODEL = "a paraphrase needs a language model: set YARUS_GENERATOR__BASE_URL"


def arms(parameters: Robustness) -> list[Arm]:
    """The evaluations of a probe: by tier the questions as they are, then every kind; no paraphrase without a model."""
    shared = parameters.model_dump(include=SHARED)
    kinds = [None, *(kind for kind in parameters.kinds if kind != "paraphrase" or _has_model())]
    return [
        Arm(
            f"{tier}: {kind or AS_IS}",
            {"perturbation": kind},
            tier,
            TIERS[tier].parameters.model_validate(shared | {"perturbation": kind}),
        )
        for tier in parameters.tiers
        for kind in kinds
    ]


def combined(parameters: Robustness, outcomes: Sequence[Outcome]) -> RobustnessResult:
    """What the probes come to, by tier and kind: paired differences from the question as it was.

    Only questions that the change touches count: those without «ё» say nothing about «ё». `same` is the share of them
    whose first result (tier 1) or answer (tier 3) stayed the same. Holm's p is over all kinds and metrics of a tier.
    """
    tiers: dict[str, dict[str, Probe]] = {}
    for tier in parameters.tiers:
        of_tier = {said.get("perturbation"): said for said in outcomes if said["tier"] == tier}
        tiers[tier] = _tier(parameters, tier, of_tier)
    return {
        "state": worst([said["state"] for said in outcomes]),
        "source": parameters.source,
        "parameters": parameters.model_dump(mode="json"),
        "metrics": {tier: list(METRICS[tier]) for tier in parameters.tiers},
        "tiers": tiers,
        "evaluations": [reference(said) for said in outcomes],
    }


def _has_model() -> bool:
    return settings().generator.base_url is not None


def _tier(parameters: Robustness, tier: str, outcomes: dict[str | None, Outcome]) -> dict[str, Probe]:
    before = outcomes[None]
    plain = cases_of(before) if before["state"] in FINISHED else None
    found: dict[str, Probe] = {}
    comparisons: dict[tuple[str, str], Comparison] = {}
    for kind in parameters.kinds:
        said = outcomes.get(kind)
        found[kind] = _nothing(said, before)
        changed = cases_of(said) if said is not None and said["state"] in FINISHED else None
        if plain is None or changed is None:
            continue
        one, other = common(plain, changed)
        touched = _touched(one, other)
        found[kind]["n"], found[kind]["n_changed"] = len(one), int(touched.sum())
        one, other = one.filter(pa.array(touched)), other.filter(pa.array(touched))
        found[kind]["same"] = _same(tier, one, other)
        for name in METRICS[tier] if len(one) else ():
            comparisons[kind, name] = compared(one, other, named(name), seed=parameters.seed)
    for (kind, name), document in adjusted(comparisons).items():
        found[kind]["metrics"][name] = document
    return found


def _nothing(said: Outcome | None, before: Outcome) -> Probe:
    """A kind before anything is known of it, and why nothing will be."""
    return {
        "state": said["state"] if said else "not_applicable",
        "error": (said["error"] or before["error"]) if said else NO_MODEL,
        "evaluation_id": said["evaluation_id"] if said else None,
        "asked_as_is": before["evaluation_id"],
        "n": 0,
        "n_changed": 0,
        "same": None,
        "metrics": {},
    }


def _touched(one: pa.Table, other: pa.Table) -> NDArray[np.bool_]:
    """Which questions were asked otherwise, and could be measured both times."""
    pairs = zip(one["question"].to_pylist(), other["asked"].to_pylist(), strict=True)
    return np.array([asked is not None and asked != question for question, asked in pairs], dtype=bool)


def _same(tier: str, one: pa.Table, other: pa.Table) -> Share | None:
    """The share of questions that got the same first result, or the same answer, with its interval."""
    if tier == "tier1":
        before, after = (_firsts(cases) for cases in (one, other))
    else:
        before, after = (cases["answer"].to_pylist() for cases in (one, other))
    flags = [None if None in pair else pair[0] == pair[1] for pair in zip(before, after, strict=True)]
    value, interval, n, _ = share(flags, one["group"].to_pylist())
    low, high = Interval(*interval)
    return {"value": number(value), "ci_low": number(low), "ci_high": number(high), "n_scored": n, "n_total": len(one)}


def _firsts(cases: pa.Table) -> list[Any]:
    return [None if ranking is None else (ranking[:1] or [""])[0] for ranking in cases["retrieved"].to_pylist()]
