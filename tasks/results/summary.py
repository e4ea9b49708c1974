"""What an evaluation came to, from the journal: one document for programs, tables for people."""

import json
import math
from typing import Any

from sqlalchemy import Engine

from db import journal
from metrics.table import METRICS
from tasks.cases import pseudonyms
from tasks.cases.table import STRATA
from tasks.results import parquet_files

Document = dict[str, Any]
HEADLINE_STRATUM = "confirmed"
"""The stratum whose metrics are the evaluation's, where a tier has strata."""


def summary(engine: Engine, evaluation_id: str) -> Document:
    """The evaluation as `yarus run --json` prints it.

    Returns:
        evaluation_id, tier, state, parquet, comparability_key, metrics (and strata and failures where the tier has
        them), and what explains them: source, cases, statuses, coverage, system, notes, error.
    """
    row = journal.find(engine, evaluation_id)
    strata: dict[str, Document] = {}
    order = {name: position for position, name in enumerate(METRICS)}
    for metric in sorted(journal.metrics_of(engine, row["id"]), key=lambda metric: order.get(metric["metric"], 999)):
        kept = ("value", "reason", "ci_low", "ci_high", "n_scored", "n_total", "grade")
        strata.setdefault(metric["stratum"], {})[metric["metric"]] = {name: metric[name] for name in kept}
    metrics = strata.get("", strata.get(HEADLINE_STRATUM, {}))
    strata = {name: strata[name] for name in ("all", *STRATA) if name in strata}
    resolved = row["resolved"] or {}
    document = {
        "evaluation_id": row["id"],
        "tier": row["tier"],
        "state": row["state"],
        "error": row["error"] and pseudonyms.text(row["error"], row["source"]),
        "parquet": row["parquet"] and parquet_files.existing_path(row["parquet"]),
        "comparability_key": row["comparability_key"],
        "source": row["source"],
        "started_at": row["started_at"].isoformat(),
        "finished_at": row["finished_at"].isoformat() if row["finished_at"] else None,
        "n_cases": row["n_cases"],
        "case_set_hash": row["case_set_hash"],
        "cases": resolved.get("cases"),
        "statuses": row["statuses"] or {},
        "coverage": row["coverage"],
        "system": {name: value for name, value in resolved.items() if name not in ("notes", "failures", "cases")},
        "sut_label": row["sut_label"],
        "flow_run_id": row["flow_run_id"],
        "notes": resolved.get("notes", []),
        "metrics": metrics,
    }
    document |= {"failures": resolved["failures"]} if "failures" in resolved else {}
    return document | ({"strata": strata} if strata else {})


def together(summaries: list[Document]) -> Document:
    """Several evaluations as one document, in the worst of their states."""
    states = [summary["state"] for summary in summaries]
    worst = next((state for state in ("failed", "cancelled", "invalid") if state in states), "completed")
    return {"state": worst, "evaluations": summaries}


def as_json(document: Any) -> str:
    """The document as text; what is not measured is null."""
    return json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False, default=str)


def finite(value: Any) -> Any:
    """The value of a case with None for every number in it, at any depth, that JSON has not: an infinite distance."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: finite(part) for name, part in value.items()}
    return [finite(part) for part in value] if isinstance(value, list | tuple) else value
