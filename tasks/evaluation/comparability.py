"""What must be equal for an evaluation to be resumed, and for two to be compared."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy.engine import RowMapping

from yarus.db.errors import InputError
from yarus.db.sources import PRODUCTION
from yarus.tasks.config.factors import RerankerService
from yarus.tasks.config.settings import settings
from yarus.tasks.evaluation.run import Run
from yarus.tasks.results.aggregate import measured_by

STEADY: tuple[str, ...] = ("embedder", "embedder_backend", "query_prefix", "passage_prefix", "similarity_embedder")
STEADY += ("retriever", "retriever_service", "sut", "sut_service", "sut_python", "refusals", "rubrics", "language")
STEADY += ("mask_calls", "embedder_model", "reranker", "reranker_model", "reranker_service")
STEADY_OF_ROLE = ("base_url", "model", "temperature", "max_tokens", "prompt", "extra_body")


def same_settings(row: RowMapping) -> None:
    """Makes sure that what is measured is the same as when the evaluation was begun.

    Raises:
        InputError: a setting that changes it was changed.
    """
    before, now = (steady(given) for given in (row["settings"], settings().public()))
    for name in sorted(before.keys() | now.keys()):
        if before.get(name) != now.get(name):
            variable = f"YARUS_{name.upper().replace('.', '__')}"
            raise InputError(
                "evaluation {id} was begun with {variable}={before!r}, now it is {now!r}; set it as it was, or run "
                "it anew",
                id=row["id"],
                variable=variable,
                before=before.get(name),
                now=now.get(name),
            )


def steady(public: dict[str, Any]) -> dict[str, Any]:
    """Those of an evaluation's settings that must stay while it lasts, because they change what it measures."""
    flat = {name: public[name] for name in STEADY if name in public}
    if flat.get("reranker_service") == RerankerService().model_dump(mode="json"):  # older evaluations know of none
        del flat["reranker_service"]
    for role in ("generator", "judge", "gate"):
        options = {name: value for name, value in public.get(role, {}).items() if value != {}}  # unset in older ones
        flat |= {f"{role}.{name}": value for name, value in options.items() if name in STEADY_OF_ROLE}
    return flat


DRAWN = "by hash"
"""How samples are drawn; before, every new question could exchange all of them."""
MEASURED_BY: tuple[str, ...] = (
    "unit",
    "twins",
    "k",
    "pool",
    "texts",
    "perturbation",
    "judge",
    "exam_of",
    "similarity_embedder",
)
MEASURED_BY += ("claims", "nuggets", "citations", "dialogs", "context_perturbation", "pool_reranked")
MEASURED_BY += ("contexts", "unreferenced", "own_documents", "sent")
"""What of the resolved parameters measures; the others belong to the system under test."""

LATER = {("judge_pipeline", "sut_error_rate")}
"""Tiers, and metrics that they were given later: their keys stay as they were."""


def is_rolling(run: Run) -> bool:
    """Whether its questions are those of a log that goes on, so that evaluations with others are compared with it."""
    return run.parameters.source == PRODUCTION and "cases" not in run.resolved


def comparability(run: Run, case_set_hash: str) -> dict[str, Any]:
    """Everything that must be equal for two evaluations' metrics to be compared.

    The system under test and its corpus are what is compared, so they are not in it.
    """
    found: Mapping[str, Any] = run.resolved
    rule = {"limit": run.parameters.limit, "seed": run.parameters.seed, "drawn": DRAWN} if run.parameters.limit else {}
    by_content = {"source": run.parameters.source, **rule} if is_rolling(run) else {"sha256": case_set_hash}
    if failed := getattr(run.parameters, "failed", None):  # a key of its own: what failed is no fair sample
        by_content["failed_in"] = rule["failed_in"] = failed
    labels = "annotation, else the log" if run.tier != "real_users" else "the log"
    return {
        "tier": run.tier,
        "cases": {**run.resolved["cases"], **rule} if "cases" in run.resolved else by_content,
        "metrics": [
            metric.signature_with(**metric_options(run))
            for metric in measured_by(run.tier, run.resolved)
            if metric.in_key and (run.tier, metric.name) not in LATER
        ],
        "labels": f"{labels}, filled by a judge" if "pool" in found else labels,
        **{name: found[name] for name in MEASURED_BY if name in found},
    }


def comparability_key(parts: dict[str, Any]) -> str:
    """The key that two evaluations share whose parts are equal: 16 hexadecimal digits."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def metric_options(run: Run) -> dict[str, Any]:
    """What stands in the metrics' signatures and is chosen by the evaluation."""
    named = {"depth": "k", "gain": "gain", "distance": "distance"}
    found: Mapping[str, Any] = run.resolved
    return {option: found[name] for option, name in named.items() if name in found}
