"""Match the common cases of two evaluations, check comparability, and list the cases that broke or were fixed."""

import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from sqlalchemy import Engine
from sqlalchemy.engine import RowMapping

from yarus.db import journal
from yarus.db.errors import InputError
from yarus.db.messages import Words, join_messages
from yarus.metrics.metric import Metric
from yarus.tasks.cases.sampling import merge_entries
from yarus.tasks.cases.table import CASE_COLUMNS, LONG_TEXT_COLUMNS, float_column
from yarus.tasks.cases.vocabulary import HEADLINE_STRATUM
from yarus.tasks.comparison.changes import flatten
from yarus.tasks.comparison.comparison_schema import ChangedCases, ChangedMetric, ChangedStatus, KeyDifference
from yarus.tasks.comparison.metric_values import required_columns
from yarus.tasks.config.former_names import present_setting, present_value
from yarus.tasks.evaluation import result_files
from yarus.tasks.evaluation.aggregate import select_stratum

MIN_CASE_CHANGE = 0.25
"""A larger change of one case's value counts as broken or fixed; for yes/no values, any change does."""

BASE_COLUMNS: tuple[str, ...] = ("case_id", "question", "status", "group", "stratum", "cluster", "topic", "page")
BASE_COLUMNS += ("outcome", "unmeasurable", "answerable", "judged@10", "if_right", "turn")
"""Columns by which cases are paired, sliced and named, and the share of judged results."""


EARLIER_LOOKUPS = {
    "previous": (journal.find_previous, Words("no earlier completed one with the same comparability key")),
    "baseline": (
        journal.find_baseline,
        Words("no accepted one before it with the same comparability key; accept one: yarus gate --accept EVALUATION"),
    ),
}
"""Names of earlier evaluations: how each is found, and the message if it does not exist."""


class CommonCases(NamedTuple):
    """The common cases of two evaluations, in the same order."""

    a: pa.Table
    b: pa.Table


def resolve_evaluations(engine: Engine, a: str, b: str) -> tuple[RowMapping, RowMapping]:
    """Return the evaluations before and after.

    Args:
        engine: the engine of Yarus's database.
        a: its id, the beginning or end of it, `last`, `baseline` (what b is judged against) or `previous`.
        b: an id likewise, or `last`.

    Raises:
        InputError: there is no evaluation of that name.
    """
    after = journal.find_evaluation(engine, b)
    if a in EARLIER_LOOKUPS:
        find_earlier, reason = EARLIER_LOOKUPS[a]
        earlier = find_earlier(engine, after["id"])
        if earlier is None:
            raise InputError("evaluation {evaluation} has {none}", evaluation=after["id"], none=reason)
        a = earlier
    return journal.find_evaluation(engine, a), after


def require_cases(row: RowMapping) -> None:
    """Check that an evaluation got far enough to have cases.

    Raises:
        InputError: it has no cases; the message has its state and error.
    """
    if row["parquet"] is None:
        reason = f": {row['error']}" if row["error"] else ""
        raise InputError(
            "evaluation {id} is {state} and has no cases to compare{why}", id=row["id"], state=row["state"], why=reason
        )


def read_cases(row: RowMapping, metrics: Iterable[Metric] | None = None, *columns: str) -> pa.Table:
    """Read the cases of an evaluation.

    Args:
        row: the row of the evaluation.
        metrics: read only the columns that these metrics are compared and sliced by; None: all but long texts.
        columns: more columns to read.

    Raises:
        ResultsUnavailable: its file is missing, damaged or another evaluation's.
    """
    if metrics is None:
        return result_files.read_results(row["parquet"], without=LONG_TEXT_COLUMNS)
    column_names = {*BASE_COLUMNS, *columns, *(name for metric in metrics for name in required_columns(metric))}
    return result_files.read_results(row["parquet"], without=CASE_COLUMNS.keys() - column_names)


def select_headline_cases(cases: pa.Table) -> pa.Table:
    """Return the cases that decide an evaluation: those of its headline stratum, if it has strata."""
    return select_stratum(cases, HEADLINE_STRATUM)


def match_cases(a: pa.Table, b: pa.Table) -> CommonCases:
    """Return the cases that both have, in the order of the first."""
    if a["case_id"].equals(b["case_id"]):
        return CommonCases(a, b)
    positions = pc.index_in(a["case_id"], value_set=b["case_id"].combine_chunks())
    return CommonCases(a.filter(pc.is_valid(positions)), b.take(positions.drop_null()))


def changed_cases(pairs: CommonCases, metrics: list[Metric]) -> ChangedCases:
    """Return the cases that broke, were fixed, or changed their status.

    Args:
        pairs: the common cases.
        metrics: the metrics whose values are compared; metrics without a value per case are skipped.
    """
    moved: dict[int, list[tuple[float, ChangedMetric]]] = {}
    for metric in metrics:
        for row, gain, values in _find_moved(pairs, metric):
            moved.setdefault(row, []).append((gain, values))
    rows = sorted(moved, key=lambda row: -max(abs(gain) for gain, _ in moved[row]))
    descriptions = pairs.a.select(("case_id", "question")).take(pa.array(rows, pa.int64())).to_pylist()
    entries = [
        (moved[row][0][0], case | {"metric_changes": [values for _, values in moved[row]]})
        for row, case in zip(rows, descriptions, strict=True)
    ]
    return {
        "regressed_cases": merge_entries([entry for gain, entry in entries if gain < 0]),
        "improved_cases": merge_entries([entry for gain, entry in entries if gain > 0]),
        "changed_status": _list_changed_status(pairs),
    }


def _find_moved(pairs: CommonCases, metric: Metric) -> Iterator[tuple[int, float, ChangedMetric]]:
    """Yield (row, gain, values) of the cases whose value of a metric changed by much."""
    if metric.better == "neither":
        return
    before, after = (float_column(side, metric.column) for side in pairs)
    gains: NDArray[np.float64] = (after - before) * (1 if metric.better == "higher" else -1)
    for row in np.flatnonzero(np.abs(np.nan_to_num(gains)) > MIN_CASE_CHANGE).tolist():
        values: ChangedMetric = {"metric": metric.name, "before": float(before[row]), "after": float(after[row])}
        yield row, float(gains[row]), values


def _list_changed_status(pairs: CommonCases) -> list[ChangedStatus]:
    cases = pairs.a.select(("case_id", "question"))
    cases = cases.append_column("before", pairs.a["status"]).append_column("after", pairs.b["status"])
    return merge_entries(cases.filter(pc.not_equal(cases["before"], cases["after"])).to_pylist(), "before", "after")


def find_key_differences(a: RowMapping, b: RowMapping) -> list[KeyDifference]:
    """Return the parts of the comparability key in which two evaluations differ; none if they are comparable.

    Lists, such as the metrics' signatures, are reduced to the entries that differ. If the tiers differ, only they are.
    """
    if a["comparability_key"] is not None and a["comparability_key"] == b["comparability_key"]:
        return []
    if a["tier"] != b["tier"]:
        return [{"part": "tier", "a": a["tier"], "b": b["tier"]}]
    parts_a, parts_b = (dict(flatten(row["comparability"] or {})) for row in (a, b))
    names = sorted(name for name in {**parts_a, **parts_b} if parts_a.get(name) != parts_b.get(name))
    differing = [_describe_difference(name, parts_a.get(name), parts_b.get(name)) for name in names]
    if a["source"] != b["source"]:
        differing.insert(0, {"part": "source", "a": a["source"], "b": b["source"]})
    return differing or [{"part": "comparability_key", "a": a["comparability_key"], "b": b["comparability_key"]}]


def may_have_same_cases(part: str) -> bool:
    """Return whether the case set may be the same although this part of the key differs."""
    return part != "source" and part.split(".")[0] != "cases"


def _describe_difference(part: str, a: Any, b: Any) -> KeyDifference:
    if isinstance(a, list) and isinstance(b, list):
        a, b = [entry for entry in a if entry not in b], [entry for entry in b if entry not in a]
    return {"part": part, "a": a, "b": b}


def not_comparable_error(a: RowMapping, b: RowMapping, differs: list[KeyDifference]) -> InputError:
    """Return the error that explains why two evaluations cannot be compared, and how to compare them."""
    parts_by_name = {part["part"]: part for part in differs}
    if tiers := parts_by_name.get("tier"):
        return InputError(
            "evaluations {before} and {after} cannot be compared: their tiers differ, {one} and {other}; choose two "
            "evaluations of one tier",
            before=a["id"],
            after=b["id"],
            one=tiers["a"],
            other=tiers["b"],
        )
    if unit := parts_by_name.get("unit"):
        return InputError(
            "evaluations {before} and {after} cannot be compared: one counts a {of_before} as found, the other a "
            "{of_after}. Run one of them as the other was run: --unit {of_before}, or --unit {of_after}. --force sets "
            "the numbers side by side",
            before=a["id"],
            after=b["id"],
            of_before=unit["a"],
            of_after=unit["b"],
        )
    return InputError(
        "evaluations {before} and {after} cannot be compared: {differs}. --force compares them anyway",
        before=a["id"],
        after=b["id"],
        differs=join_messages(
            Words(
                "{part} is {before} and {after}",
                part=present_setting(part["part"]),
                before=json.dumps(present_value(part["part"], part["a"]), ensure_ascii=False),
                after=json.dumps(present_value(part["part"], part["b"]), ensure_ascii=False),
            )
            for part in differs
        ),
    )
