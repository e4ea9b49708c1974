"""Conditions of `yarus cases --where`."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Engine

from yarus.db import journal
from yarus.db.errors import InputError, unknown
from yarus.db.messages import Words
from yarus.tasks.cases.vocabulary import STATUSES_BY_SEVERITY
from yarus.tasks.evaluation import result_files


def filter_cases(engine: Engine, evaluation_id: str, conditions: Sequence[str]) -> pa.Table:
    """Return the cases of an evaluation that meet all conditions.

    Args:
        engine: of our own database.
        evaluation_id: or the beginning or end of it, or `last`.
        conditions: `COLUMN=VALUE`, also with != < <= > >= and ~ (contains); the value `null` means missing.

    Raises:
        InputError: it has no file, a condition is not of that form, or names no column of it.
        ResultsUnavailable: its file cannot be read.
    """
    row = journal.find_evaluation(engine, evaluation_id)
    if row["parquet"] is None:
        raise InputError(
            "evaluation {id} is {state} and has no cases yet; {error}",
            id=row["id"],
            state=row["state"],
            error=row["error"] or "",
        )
    cases = result_files.read_results(row["parquet"])
    for condition in conditions:
        cases = cases.filter(match_condition(cases, condition))
    return cases


def format_conditions(condition: Mapping[str, Any]) -> list[str]:
    """Format a condition of guidance as values of `yarus cases --where`; all of them must hold.

    Args:
        condition: `metric` with `min`, `max` or both, else one column with its value.
    """
    if "metric" not in condition:
        ((name, value),) = condition.items()
        return [f"{name}={value}"]
    signs = {"min": ">=", "max": "<="}
    return [f"{condition['metric']}{sign}{condition[end]:g}" for end, sign in signs.items() if end in condition]


def list_columns(conditions: Sequence[str]) -> list[str]:
    """Return the columns that conditions are about, each once."""
    return list(dict.fromkeys(_parse_condition(condition)[0] for condition in conditions))


def _parse_condition(condition: str) -> tuple[str, str, str]:
    """Return the column, the sign and the value of a condition."""
    parsed = re.fullmatch(r"\s*(.+?)\s*(!=|<=|>=|=|<|>|~)\s*(.*?)\s*", condition)
    if parsed is None:
        raise InputError(
            "condition {condition!r}: expected COLUMN=VALUE, or != < <= > >= ~ in place of =", condition=condition
        )
    name, sign, value = parsed.groups()
    return name, sign, value


def match_condition(cases: pa.Table, condition: str) -> pa.ChunkedArray:
    """Return the mask of cases that a condition such as `status!=ok` or `mrr<0.5` is true for."""
    name, sign, value = _parse_condition(condition)
    if name not in cases.column_names:
        raise unknown("column", name, cases.column_names)
    if name == "status" and sign in ("=", "!=") and value not in (*STATUSES_BY_SEVERITY, "null"):
        raise unknown("status", value, STATUSES_BY_SEVERITY)
    column = cases[name]
    if value == "null" and sign in ("=", "!="):
        return pc.is_null(column) if sign == "=" else pc.is_valid(column)
    if sign == "~":
        return pc.match_substring(_to_text(column), value, ignore_case=True)
    try:
        operand = pa.scalar(value).cast(column.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        way_out = (
            Words("; in a list, look for it: {name}~{value}", name=name, value=value)
            if pa.types.is_list(column.type)
            else ""
        )
        raise InputError(
            "condition {condition!r}: {value!r} is not a valid {kind}{way_out}",
            condition=condition,
            value=value,
            kind=column.type,
            way_out=way_out,
        ) from None
    compare = {
        "=": pc.equal,
        "!=": pc.not_equal,
        "<": pc.less,
        "<=": pc.less_equal,
        ">": pc.greater,
        ">=": pc.greater_equal,
    }
    return compare[sign](column, operand)


def _to_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert values to text; items of lists are joined by spaces, records become JSON."""
    kind = column.type
    if pa.types.is_list(kind) and not pa.types.is_nested(kind.value_type):
        return pc.binary_join(pc.cast(column, pa.list_(pa.string())), " ")
    if pa.types.is_nested(kind):
        texts = (
            None if item is None else json.dumps(item, ensure_ascii=False, default=str) for item in column.to_pylist()
        )
        return pa.chunked_array([pa.array(texts, pa.string())])
    return pc.cast(column, pa.string())
