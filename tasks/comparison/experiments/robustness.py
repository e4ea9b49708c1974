"""Probe robustness: the same questions asked differently or answered from bad contexts, and the effect on metrics.

The places of the right passages are those of Liu et al. 2024, Lost in the middle: how language models use long contexts
(TACL 12, arXiv 2307.03172); the other contexts are RGB's (see metrics/contexts).
"""

from collections.abc import Hashable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from yarus.db.journal import FINISHED_STATES
from yarus.db.messages import Words
from yarus.metrics.statistics import Comparison
from yarus.metrics.table import METRICS as ROWS
from yarus.tasks.cases.table import column_values, float_column
from yarus.tasks.comparison.common_cases import match_cases
from yarus.tasks.comparison.experiments.arms import (
    SHARED_PARAMETERS,
    Arm,
    adjust_comparisons,
    compare_cases,
    evaluation_reference,
    read_arm_cases,
)
from yarus.tasks.comparison.experiments.experiments_schema import (
    ArmMetric,
    Outcome,
    Probe,
    RobustnessResult,
    Share,
    SweepPair,
)
from yarus.tasks.config.factors import PERTURBATIONS_BY_TIER
from yarus.tasks.config.flow_parameters import RobustnessParameters
from yarus.tasks.config.settings import get_settings
from yarus.tasks.config.tiers import TIERS
from yarus.tasks.evaluation.number_format import replace_non_finite
from yarus.tasks.evaluation.set_metrics import share_of_yes
from yarus.tasks.evaluation.summary import worst_state

METRICS: dict[str, tuple[str, ...]] = {
    "tier1": ("hit_rate@1", "hit_rate@10", "mrr"),
    "tier2": ("avg_answer_correctness", "avg_faithfulness", "avg_fact_recall"),
    "tier3": ("avg_e2e_score", "avg_semantic_similarity", "avg_rougeL_f"),
}
"""Metrics by which a change of the question or of its context is measured."""
RATES: dict[str, tuple[str, ...]] = {
    kind: tuple(name for name, row in ROWS.items() if kind in row.asked.partition("=")[2].split(","))
    for kind in PERTURBATIONS_BY_TIER["tier2"]
}
"""Additional metrics by which a change of the context is measured."""
GOLD_PLACES = ("gold_first", "gold_middle", "gold_last")
TIER_PARAMETERS = {"tier1": "perturbation", "tier2": "context_perturbation", "tier3": "perturbation"}
"""The parameter that changes the input of a tier."""
UNCHANGED = "as it is"
NO_MODEL = Words("a paraphrase needs a language model: set YARUS_GENERATOR__BASE_URL")


def plan_arms(parameters: RobustnessParameters) -> list[Arm]:
    """Return the arms of a probe: per tier the unchanged input, then every kind; paraphrases need a model."""
    shared, has_model = parameters.model_dump(include=SHARED_PARAMETERS), get_settings().generator.base_url is not None
    return [
        Arm(
            f"{tier}: {kind or UNCHANGED}",
            {"perturbation": kind},
            tier,
            TIERS[tier].parameters.model_validate(shared | {TIER_PARAMETERS[tier]: kind}),
        )
        for tier in parameters.tiers
        for kind in (None, *parameters.kinds_of(tier))
        if kind != "paraphrase" or has_model
    ]


def combine_outcomes(parameters: RobustnessParameters, outcomes: Sequence[Outcome]) -> RobustnessResult:
    """Return the result of the probes by tier and kind: paired differences from the unchanged question or context.

    Only cases that the change affects count: questions without «ё» show nothing about «ё», contexts without a number
    nothing about another number. `unchanged_share` is the share of them whose first result (tier 1) or answer (tiers 2
    and 3) stayed the same. Holm's p is over all kinds and metrics of a tier.
    """
    tiers: dict[str, dict[str, Probe]] = {}
    places: list[SweepPair] = []
    for tier in parameters.tiers:
        outcomes_by_kind = {outcome.get("perturbation"): outcome for outcome in outcomes if outcome["tier"] == tier}
        tiers[tier] = _probe_tier(parameters, tier, outcomes_by_kind, places)
    return {
        "state": worst_state([outcome["state"] for outcome in outcomes]),
        "source": parameters.source,
        "parameters": parameters.stored(),
        "metrics": {tier: list(METRICS[tier]) for tier in parameters.tiers},
        "tiers": tiers,
        "position_differences": places,
        "evaluations": [evaluation_reference(outcome) for outcome in outcomes],
    }


def _probe_tier(
    parameters: RobustnessParameters, tier: str, outcomes: dict[str | None, Outcome], places: list[SweepPair]
) -> dict[str, Probe]:
    """Return the probes of a tier; adds the differences between positions of the right passages to `places`."""
    unchanged_outcome = outcomes[None]
    unchanged = _read_finished(unchanged_outcome)
    probes: dict[str, Probe] = {}
    cases_by_kind: dict[str, pa.Table] = {}
    comparisons: dict[tuple[str, ...], Comparison] = {}
    for kind in parameters.kinds_of(tier):
        outcome = outcomes.get(kind)
        probes[kind] = _empty_probe(outcome, unchanged_outcome)
        changed = _read_finished(outcome)
        if unchanged is None or changed is None:
            continue
        before, after = match_cases(unchanged, changed)
        is_changed = (_changed_contexts if tier == "tier2" else _changed_questions)(before, after)
        probes[kind]["n"], probes[kind]["n_changed"] = len(before), int(is_changed.sum())
        before, after = before.filter(pa.array(is_changed)), after.filter(pa.array(is_changed))
        cases_by_kind[kind] = after
        probes[kind]["unchanged_share"] = _share_unchanged(tier, before, after)
        probes[kind]["rates"] = {name: _mean_rate(after, name) for name in RATES.get(kind, ())}
        for name in METRICS[tier] if len(before) else ():
            comparisons[kind, name] = compare_cases(before, after, ROWS[name], seed=parameters.seed)
    for a, b in combinations([kind for kind in GOLD_PLACES if kind in cases_by_kind], 2):
        before, after = match_cases(cases_by_kind[a], cases_by_kind[b])
        for name in METRICS[tier] if len(before) else ():
            comparisons[a, b, name] = compare_cases(before, after, ROWS[name], seed=parameters.seed)
    for key, document in adjust_comparisons(comparisons).items():
        if len(key) == 2:
            probes[key[0]]["metrics"][key[1]] = document
        else:
            places.append({"a": key[0], "b": key[1], "metric": key[2], **document})
    return probes


def _read_finished(outcome: Outcome | None) -> pa.Table | None:
    return read_arm_cases(outcome) if outcome is not None and outcome["state"] in FINISHED_STATES else None


def _empty_probe(outcome: Outcome | None, unchanged: Outcome) -> Probe:
    """Return the probe of a kind without results, with the reason if there will be none."""
    return {
        "state": outcome["state"] if outcome else "not_applicable",
        "error": (outcome["error"] or unchanged["error"]) if outcome else NO_MODEL,
        "evaluation_id": outcome["evaluation_id"] if outcome else None,
        "baseline_evaluation_id": unchanged["evaluation_id"],
        "n": 0,
        "n_changed": 0,
        "unchanged_share": None,
        "metrics": {},
        "rates": {},
    }


def _changed_questions(before: pa.Table, after: pa.Table) -> NDArray[np.bool_]:
    """Return which questions were asked differently and measured both times."""
    pairs = zip(column_values(before, "question"), column_values(after, "asked"), strict=True)
    return np.array([text is not None and text != question for question, text in pairs], dtype=bool)


def _changed_contexts(before: pa.Table, after: pa.Table) -> NDArray[np.bool_]:
    probes = column_values(after, "context_probe")
    return np.array([probe is not None and probe["untouched"] is None for probe in probes], dtype=bool)


def _share_unchanged(tier: str, before_cases: pa.Table, after_cases: pa.Table) -> Share | None:
    """Return the share of questions with the same first result, or the same answer, and its interval."""
    if tier == "tier1":
        before, after = (_first_results(cases) for cases in (before_cases, after_cases))
    else:
        before, after = (column_values(cases, "answer") for cases in (before_cases, after_cases))
    flags = [None if None in pair else pair[0] == pair[1] for pair in zip(before, after, strict=True)]
    return _describe_share(flags, column_values(before_cases, "group"))


def _mean_rate(cases: pa.Table, name: str) -> ArmMetric:
    """Return the mean of a yes/no column."""
    mean = _describe_share(float_column(cases, name), column_values(cases, "group"))
    reason = None if mean["n_scored"] else f"undefined: {ROWS[name].undefined}"
    return {**mean, "reason": reason}


def _describe_share(flags: Sequence[bool | None] | NDArray[np.float64], groups: Sequence[Hashable]) -> Share:
    estimate = share_of_yes(flags, groups)
    low, high = estimate.interval
    document: Share = {
        "value": estimate.value,
        "ci_low": low,
        "ci_high": high,
        "n_scored": estimate.n_scored,
        "n_total": len(groups),
    }
    return replace_non_finite(document)


def _first_results(cases: pa.Table) -> list[Any]:
    return [None if ranking is None else (ranking[:1] or [""])[0] for ranking in column_values(cases, "retrieved")]
