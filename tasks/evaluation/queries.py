"""The conditions of `yarus cases --where`."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Engine

from yarus.db import journal
from yarus.db.errors import InputError, unknown
from yarus.db.words import Words
from yarus.tasks.cases.vocabulary import SEVERITY
from yarus.tasks.evaluation import result_files


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
        raise InputError(
            "evaluation {id} is {state} and has no cases yet; {error}",
            id=row["id"],
            state=row["state"],
            error=row["error"] or "",
        )
    cases = result_files.read(row["parquet"])
    for condition in conditions:
        cases = cases.filter(matching(cases, condition))
    return cases


def where(condition: Mapping[str, Any]) -> str:
    """A condition of guidance as `yarus cases --where` takes it.

    Args:
        condition: `metric` with `min` or `max`, else one column with its value.
    """
    if "metric" not in condition:
        ((name, value),) = condition.items()
        return f"{name}={value}"
    sign, bound = ("<=", condition["max"]) if "max" in condition else (">=", condition["min"])
    return f"{condition['metric']}{sign}{bound:g}"


def matching(cases: pa.Table, condition: str) -> pa.ChunkedArray:
    """Which cases a condition such as `status!=ok` or `mrr<0.5` is true of."""
    parsed = re.fullmatch(r"\s*(.+?)\s*(!=|<=|>=|=|<|>|~)\s*(.*?)\s*", condition)
    if parsed is None:
        raise InputError(
            "condition {condition!r}: expected COLUMN=VALUE, or != < <= > >= ~ in place of =", condition=condition
        )
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
