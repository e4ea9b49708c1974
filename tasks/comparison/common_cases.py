"""The common cases of two evaluations: whether they compare, which cases broke and which were fixed."""

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
from yarus.db.words import Words, joined
from yarus.metrics.metric import Metric
from yarus.tasks.cases.sampling import listed_once
from yarus.tasks.cases.table import COLUMNS, LONG, floats
from yarus.tasks.cases.vocabulary import HEADLINE_STRATUM
from yarus.tasks.comparison.changes import flat
from yarus.tasks.comparison.comparison_schema import ChangedCases, ChangedStatus, KeyDifference, MovedMetric
from yarus.tasks.comparison.totals import needs
from yarus.tasks.evaluation import result_files
from yarus.tasks.evaluation.aggregate import within

FELL = 0.25
"""A change of one case's value that is larger counts as broken or fixed; of yes/no, any does."""

OF_EVERY_CASE: tuple[str, ...] = ("case_id", "question", "status", "group", "stratum", "cluster", "topic", "page")
OF_EVERY_CASE += ("outcome", "unmeasurable", "answerable", "judged@10", "if_right", "turn")
"""What cases are paired, sliced and named by, and how far their results are judged."""


EARLIER = {
    "previous": (journal.previous, Words("no earlier completed one with the same comparability key")),
    "baseline": (
        journal.baseline,
        Words("no accepted one before it with the same comparability key; yarus gate --accept"),
    ),
}
"""What is asked for by a word, and what is said where there is none."""


class Pairs(NamedTuple):
    """The common cases of two evaluations, in the same order."""

    a: pa.Table
    b: pa.Table


def evaluations_of(engine: Engine, a: str, b: str) -> tuple[RowMapping, RowMapping]:
    """The evaluations before and after.

    Args:
        engine: of our own database.
        a: its id, the beginning or end of it, `last`, `baseline` (what b is judged against) or `previous`.
        b: an id likewise, or `last`.

    Raises:
        InputError: there is none of that name.
    """
    after = journal.find(engine, b)
    if a in EARLIER:
        choose, none = EARLIER[a]
        earlier = choose(engine, after["id"])
        if earlier is None:
            raise InputError("evaluation {evaluation} has {none}", evaluation=after["id"], none=none)
        a = earlier
    return journal.find(engine, a), after


def require_cases(row: RowMapping) -> None:
    """Checks that an evaluation came so far as to have cases.

    Raises:
        InputError: it did not; its state and error are said.
    """
    if row["parquet"] is None:
        why = f": {row['error']}" if row["error"] else ""
        raise InputError(
            "evaluation {id} is {state} and has no cases to compare{why}", id=row["id"], state=row["state"], why=why
        )


def read_cases(row: RowMapping, metrics: Iterable[Metric] | None = None, *others: str) -> pa.Table:
    """The cases of an evaluation.

    Args:
        row: of the evaluation.
        metrics: only the columns that these are compared and sliced by; None: all but long texts.
        others: more columns that are wanted.

    Raises:
        ResultsUnavailable: its file is gone, damaged or another one's.
    """
    if metrics is None:
        return result_files.read(row["parquet"], without=LONG)
    needed = {*OF_EVERY_CASE, *others, *(name for metric in metrics for name in needs(metric))}
    return result_files.read(row["parquet"], without=COLUMNS.keys() - needed)


def headline(cases: pa.Table) -> pa.Table:
    """The cases that an evaluation is judged by: those of its headline stratum, where it has strata."""
    return within(cases, HEADLINE_STRATUM)


def common(a: pa.Table, b: pa.Table) -> Pairs:
    """The cases that both have, in the order of the first."""
    if a["case_id"].equals(b["case_id"]):
        return Pairs(a, b)
    places = pc.index_in(a["case_id"], value_set=b["case_id"].combine_chunks())
    return Pairs(a.filter(pc.is_valid(places)), b.take(places.drop_null()))


def changed_cases(pairs: Pairs, metrics: list[Metric]) -> ChangedCases:
    """The cases that broke, were fixed, or changed their status.

    Args:
        pairs: the common cases.
        metrics: those by whose values cases are looked at; one that no single case has is passed over.
    """
    moved: dict[int, list[tuple[float, MovedMetric]]] = {}
    for metric in metrics:
        for row, gain, one in _moved(pairs, metric):
            moved.setdefault(row, []).append((gain, one))
    rows = sorted(moved, key=lambda row: -max(abs(gain) for gain, _ in moved[row]))
    named = pairs.a.select(("case_id", "question")).take(pa.array(rows, pa.int64())).to_pylist()
    entries = [
        (moved[row][0][0], case | {"moved": [one for _, one in moved[row]]})
        for row, case in zip(rows, named, strict=True)
    ]
    return {
        "broke": listed_once([entry for gain, entry in entries if gain < 0]),
        "fixed": listed_once([entry for gain, entry in entries if gain > 0]),
        "changed_status": _changed_status(pairs),
    }


def _moved(pairs: Pairs, metric: Metric) -> Iterator[tuple[int, float, MovedMetric]]:
    """(row, gain, values) of the cases whose value of a metric went up or down by much."""
    if metric.better == "neither":
        return
    before, after = (floats(side, metric.column) for side in pairs)
    gains: NDArray[np.float64] = (after - before) * (1 if metric.better == "higher" else -1)
    for row in np.flatnonzero(np.abs(np.nan_to_num(gains)) > FELL).tolist():
        values: MovedMetric = {"metric": metric.name, "before": float(before[row]), "after": float(after[row])}
        yield row, float(gains[row]), values


def _changed_status(pairs: Pairs) -> list[ChangedStatus]:
    cases = pairs.a.select(("case_id", "question"))
    cases = cases.append_column("before", pairs.a["status"]).append_column("after", pairs.b["status"])
    return listed_once(cases.filter(pc.not_equal(cases["before"], cases["after"])).to_pylist(), "before", "after")


def differences(a: RowMapping, b: RowMapping) -> list[KeyDifference]:
    """The parts of the comparability key in which two evaluations differ, with both values; none if they compare.

    Of lists (the metrics' signatures) only the entries that differ are given. Where the tiers differ, only they are.
    """
    if a["comparability_key"] is not None and a["comparability_key"] == b["comparability_key"]:
        return []
    if a["tier"] != b["tier"]:
        return [{"part": "tier", "a": a["tier"], "b": b["tier"]}]
    one, other = (dict(flat(row["comparability"] or {})) for row in (a, b))
    names = sorted(name for name in {**one, **other} if one.get(name) != other.get(name))
    parts = [_apart(name, one.get(name), other.get(name)) for name in names]
    if a["source"] != b["source"]:
        parts.insert(0, {"part": "source", "a": a["source"], "b": b["source"]})
    return parts or [{"part": "comparability_key", "a": a["comparability_key"], "b": b["comparability_key"]}]


def same_cases(part: str) -> bool:
    """Whether the case set may be the same although this part of the key differs."""
    return part != "source" and part.split(".")[0] != "cases"


def _apart(part: str, a: Any, b: Any) -> KeyDifference:
    if isinstance(a, list) and isinstance(b, list):
        a, b = [entry for entry in a if entry not in b], [entry for entry in b if entry not in a]
    return {"part": part, "a": a, "b": b}


def refusal(a: RowMapping, b: RowMapping, differs: list[KeyDifference]) -> InputError:
    """The error that says why two evaluations cannot be compared, and what to do."""
    named = {part["part"]: part for part in differs}
    if unit := named.get("unit"):
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
        differs=joined(
            Words(
                "{part} is {before} and {after}",
                part=part["part"],
                before=json.dumps(part["a"], ensure_ascii=False),
                after=json.dumps(part["b"], ensure_ascii=False),
            )
            for part in differs
        ),
    )
