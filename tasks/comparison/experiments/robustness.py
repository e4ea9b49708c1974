"""Robustness: the same questions asked otherwise, or answered from bad contexts; what that does to ranks and answers.

The places of the right passages are those of Liu et al. 2024, Lost in the middle: how language models use long
contexts (TACL 12, arXiv 2307.03172); the other contexts are RGB's (see metrics/contexts).
"""

from collections.abc import Hashable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from yarus.db.journal import FINISHED
from yarus.db.words import Words
from yarus.metrics.statistics import Comparison
from yarus.metrics.table import METRICS as ROWS
from yarus.tasks.cases.table import floats, values_of
from yarus.tasks.comparison.common_cases import common
from yarus.tasks.comparison.experiments.arms import SHARED, Arm, adjusted, cases_of, compared, reference
from yarus.tasks.comparison.experiments.experiments_schema import (
    ArmMetric,
    Outcome,
    Probe,
    RobustnessResult,
    Share,
    SweepPair,
)
from yarus.tasks.config.factors import KINDS
from yarus.tasks.config.flow_parameters import Robustness
from yarus.tasks.config.settings import settings
from yarus.tasks.config.tiers import TIERS
from yarus.tasks.evaluation.numbers import finite
from yarus.tasks.evaluation.set_metrics import share
from yarus.tasks.evaluation.summary import worst

METRICS: dict[str, tuple[str, ...]] = {
    "tier1": ("hit_rate@1", "hit_rate@10", "mrr"),
    "tier2": ("avg_answer_correctness", "avg_faithfulness", "avg_fact_recall"),
    "tier3": ("avg_e2e_score", "avg_semantic_similarity", "avg_rougeL_f"),
}
"""What a change of the question, or of its context, is measured by."""
RATES: dict[str, tuple[str, ...]] = {
    kind: tuple(name for name, row in ROWS.items() if kind in row.asked.partition("=")[2].split(","))
    for kind in KINDS["tier2"]
}
"""What a change of the context is measured by beside that."""
PLACES = ("gold_first", "gold_middle", "gold_last")
OF_TIER = {"tier1": "perturbation", "tier2": "context_perturbation", "tier3": "perturbation"}
"""The parameter that changes what a tier is given."""
AS_IS = "as it is"
NO_MODEL = Words("a paraphrase needs a language model: set YARUS_GENERATOR__BASE_URL")


def arms(parameters: Robustness) -> list[Arm]:
    """The evaluations of a probe: by tier the questions as they are, then every kind; no paraphrase without a model."""
    shared, has_model = parameters.model_dump(include=SHARED), settings().generator.base_url is not None
    return [
        Arm(
            f"{tier}: {kind or AS_IS}",
            {"perturbation": kind},
            tier,
            TIERS[tier].parameters.model_validate(shared | {OF_TIER[tier]: kind}),
        )
        for tier in parameters.tiers
        for kind in (None, *parameters.kinds_of(tier))
        if kind != "paraphrase" or has_model
    ]


def combined(parameters: Robustness, outcomes: Sequence[Outcome]) -> RobustnessResult:
    """What the probes come to, by tier and kind: paired differences from the question, or the context, as it was.

    Only cases that the change touches count: questions without «ё» say nothing about «ё», contexts without a number
    nothing about another one. `same` is the share of them whose first result (tier 1) or answer (tiers 2 and 3) stayed
    the same. Holm's p is over all kinds and metrics of a tier.
    """
    tiers: dict[str, dict[str, Probe]] = {}
    places: list[SweepPair] = []
    for tier in parameters.tiers:
        of_tier = {said.get("perturbation"): said for said in outcomes if said["tier"] == tier}
        tiers[tier] = _tier(parameters, tier, of_tier, places)
    return {
        "state": worst([said["state"] for said in outcomes]),
        "source": parameters.source,
        "parameters": parameters.model_dump(mode="json"),
        "metrics": {tier: list(METRICS[tier]) for tier in parameters.tiers},
        "tiers": tiers,
        "places": places,
        "evaluations": [reference(said) for said in outcomes],
    }


def _tier(
    parameters: Robustness, tier: str, outcomes: dict[str | None, Outcome], places: list[SweepPair]
) -> dict[str, Probe]:
    """The probes of a tier; what differs between places of the right passages is added to `places`."""
    before = outcomes[None]
    plain = _finished(before)
    found: dict[str, Probe] = {}
    touching: dict[str, pa.Table] = {}
    comparisons: dict[tuple[str, ...], Comparison] = {}
    for kind in parameters.kinds_of(tier):
        said = outcomes.get(kind)
        found[kind] = _nothing(said, before)
        changed = _finished(said)
        if plain is None or changed is None:
            continue
        one, other = common(plain, changed)
        touched = (_touched_context if tier == "tier2" else _touched)(one, other)
        found[kind]["n"], found[kind]["n_changed"] = len(one), int(touched.sum())
        one, other = one.filter(pa.array(touched)), other.filter(pa.array(touched))
        touching[kind] = other
        found[kind]["same"] = _same(tier, one, other)
        found[kind]["rates"] = {name: _rate(other, name) for name in RATES.get(kind, ())}
        for name in METRICS[tier] if len(one) else ():
            comparisons[kind, name] = compared(one, other, ROWS[name], seed=parameters.seed)
    for a, b in combinations([kind for kind in PLACES if kind in touching], 2):
        one, other = common(touching[a], touching[b])
        for name in METRICS[tier] if len(one) else ():
            comparisons[a, b, name] = compared(one, other, ROWS[name], seed=parameters.seed)
    for key, document in adjusted(comparisons).items():
        if len(key) == 2:
            found[key[0]]["metrics"][key[1]] = document
        else:
            places.append({"a": key[0], "b": key[1], "metric": key[2], **document})
    return found


def _finished(said: Outcome | None) -> pa.Table | None:
    return cases_of(said) if said is not None and said["state"] in FINISHED else None


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
        "rates": {},
    }


def _touched(one: pa.Table, other: pa.Table) -> NDArray[np.bool_]:
    """Which questions were asked otherwise, and could be measured both times."""
    pairs = zip(values_of(one, "question"), values_of(other, "asked"), strict=True)
    return np.array([asked is not None and asked != question for question, asked in pairs], dtype=bool)


def _touched_context(one: pa.Table, other: pa.Table) -> NDArray[np.bool_]:
    probes = values_of(other, "context_probe")
    return np.array([probe is not None and probe["untouched"] is None for probe in probes], dtype=bool)


def _same(tier: str, one: pa.Table, other: pa.Table) -> Share | None:
    """The share of questions that got the same first result, or the same answer, with its interval."""
    if tier == "tier1":
        before, after = (_firsts(cases) for cases in (one, other))
    else:
        before, after = (values_of(cases, "answer") for cases in (one, other))
    flags = [None if None in pair else pair[0] == pair[1] for pair in zip(before, after, strict=True)]
    return _share(flags, values_of(one, "group"))


def _rate(cases: pa.Table, name: str) -> ArmMetric:
    """The mean of a column of yes and no."""
    found = _share(floats(cases, name), values_of(cases, "group"))
    reason = None if found["n_scored"] else f"undefined: {ROWS[name].undefined}"
    return {**found, "reason": reason}


def _share(flags: Sequence[bool | None] | NDArray[np.float64], groups: Sequence[Hashable]) -> Share:
    found = share(flags, groups)
    low, high = found.interval
    shown: Share = {
        "value": found.value,
        "ci_low": low,
        "ci_high": high,
        "n_scored": found.n_scored,
        "n_total": len(groups),
    }
    return finite(shown)


def _firsts(cases: pa.Table) -> list[Any]:
    return [None if ranking is None else (ranking[:1] or [""])[0] for ranking in values_of(cases, "retrieved")]
