"""What an evaluation came to, from the journal: one document for programs, tables for people."""

import json
import math
import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Engine

from db import journal
from db.errors import InputError, unknown
from metrics.table import METRICS
from tasks import files, shown
from tasks.cases import SEVERITY, STRATA

Document = dict[str, Any]
HEADLINE = "confirmed"
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
    metrics = strata.get("", strata.get(HEADLINE, {}))
    strata = {name: strata[name] for name in ("all", *STRATA) if name in strata}
    resolved = row["resolved"] or {}
    document = {
        "evaluation_id": row["id"],
        "tier": row["tier"],
        "state": row["state"],
        "error": row["error"] and shown.text(row["error"], row["source"]),
        "parquet": row["parquet"] and files.present(row["parquet"]),
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


def cases_where(engine: Engine, evaluation_id: str, conditions: Sequence[str]) -> pa.Table:
    """The cases of an evaluation that meet all conditions.

    Args:
        engine: of our own database.
        evaluation_id: or the beginning or end of it, or `last`.
        conditions: `COLUMN=VALUE`, also with != < <= > >= and ~ (contains); the value `null` is no value.

    Raises:
        InputError: it has no file, a condition is not of that form, or names no column of it.
        ResultsUnavailable: its file cannot be read.
    """
    row = journal.find(engine, evaluation_id)
    if row["parquet"] is None:
        raise InputError(f"evaluation {row['id']} is {row['state']} and has no cases yet; {row['error'] or ''}")
    cases = files.read(row["parquet"])
    for condition in conditions:
        cases = cases.filter(_mask(cases, condition))
    return cases


def _mask(cases: pa.Table, condition: str) -> pa.ChunkedArray:
    parsed = re.fullmatch(r"\s*(.+?)\s*(!=|<=|>=|=|<|>|~)\s*(.*?)\s*", condition)
    if parsed is None:
        raise InputError(f"condition {condition!r}: expected COLUMN=VALUE, or != < <= > >= ~ in place of =")
    name, sign, value = parsed.groups()
    if name not in cases.column_names:
        raise unknown("column", name, cases.column_names)
    if name == "status" and sign in ("=", "!=") and value not in (*SEVERITY, "null"):
        raise unknown("status", value, SEVERITY)
    column = cases[name]
    if value == "null" and sign in ("=", "!="):
        return pc.is_null(column) if sign == "=" else pc.is_valid(column)
    if sign == "~":
        return pc.match_substring(_text(column), value, ignore_case=True)
    try:
        wanted = pa.scalar(value).cast(column.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        way_out = f"; in a list, look for it: {name}~{value}" if pa.types.is_list(column.type) else ""
        raise InputError(f"condition {condition!r}: {value!r} is no {column.type}{way_out}") from None
    compare = {
        "=": pc.equal,
        "!=": pc.not_equal,
        "<": pc.less,
        "<=": pc.less_equal,
        ">": pc.greater,
        ">=": pc.greater_equal,
    }
    return compare[sign](column, wanted)


def _text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The values as text; those of a list one after another, records as JSON."""
    kind = column.type
    if pa.types.is_list(kind) and not pa.types.is_nested(kind.value_type):
        return pc.binary_join(pc.cast(column, pa.list_(pa.string())), " ")
    if pa.types.is_nested(kind):
        written = (
            None if one is None else json.dumps(one, ensure_ascii=False, default=str) for one in column.to_pylist()
        )
        return pa.chunked_array([pa.array(written, pa.string())])
    return pc.cast(column, pa.string())
