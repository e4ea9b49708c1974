"""Two evaluations on their common cases: what changed, whether it is more than chance, and in which cases."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from sqlalchemy import Engine
from sqlalchemy.engine import RowMapping
from threadpoolctl import threadpool_limits

from db import journal
from db.errors import InputError, unknown
from metrics.metric import Metric
from metrics.statistics import holm
from metrics.statistics.numbers import Compared
from metrics.statistics.paired import compare_numbers
from metrics.statistics.unpaired import compare_independent
from metrics.table import metric
from tasks.cases import pseudonyms
from tasks.comparison.common_cases import Pairs, changed_cases, common, headline, read_cases, require_cases
from tasks.comparison.documents import (
    ChangedCases,
    Changes,
    EvaluationComparison,
    KeyDifference,
    MetricComparison,
    Side,
    Sides,
)
from tasks.comparison.noise_floor import noise
from tasks.comparison.slices import compare_slices
from tasks.comparison.totals import numbers
from tasks.config.tiers import TIERS
from tasks.results.aggregate import measured_by
from tasks.results.summary import system_of

SEED = 0
NOTHING: ChangedCases = {"broke": [], "fixed": [], "changed_status": []}


def compare(engine: Engine, a: str, b: str, *, force: bool = False, only: Sequence[str] = ()) -> EvaluationComparison:
    """Compares two evaluations of one tier on the cases that both have.

    Args:
        engine: of our own database.
        a: the evaluation before: its id, the beginning or end of it, `last`, or `previous` (b's predecessor).
        b: the evaluation after.
        force: compare even where the comparability keys differ: paired where the case set is the same, else over all
            cases of each side, unpaired.
        only: metrics to compare; all of the tier by default.

    Raises:
        InputError: no such evaluation or metric, no cases, nothing in common, or not comparable and not forced.
    """
    after = journal.find(engine, b)
    before = journal.find(engine, _previous(engine, after["id"]) if a == "previous" else a)
    for row in (before, after):
        require_cases(row)
    declared = _declared(before, after, only)
    differs = differences(before, after)
    if differs and not force:
        raise InputError(_refusal(before, after, differs))
    sides = Pairs(*(headline(read_cases(row, declared.values())) for row in (before, after)))
    pairs = common(*sides)
    paired = bool(len(pairs.a)) and all(_same_cases(part["part"]) for part in differs)
    if not paired and not force:
        raise InputError(
            f"evaluations {before['id']} and {after['id']} have no case in common; --force compares them unpaired"
        )
    document: Sides = {
        "a": _side(before),
        "b": _side(after),
        "comparable": not differs,
        "differs": differs,
        "paired": paired,
        "n_common": len(pairs.a),
        "noise": {} if differs else noise(engine, after["comparability_key"]),
    }
    with threadpool_limits(1):  # threads add up in another order: the same comparison would differ in the last digits
        found = compare_pairs(pairs, after["tier"], declared, only) if paired else compare_sides(sides, declared)
    return {**document, **as_shown(found, after["source"])}


def compare_pairs(pairs: Pairs, tier: str, declared: Mapping[str, Metric], only: Sequence[str]) -> Changes:
    """The comparison of common cases: metrics, cases, slices, small_slices."""
    found, reasons = numbers(declared.values(), *pairs)
    groups = _groups(pairs.a)
    main = [name for name in only or TIERS[tier].headlines if name in declared]
    within = {name: found[name] for name in main if name in found}
    slices, small = compare_slices(pairs, within, groups=groups, seed=SEED)
    return {
        "metrics": _metrics(declared, compare_numbers(found, seed=SEED, groups=groups), reasons),
        "cases": changed_cases(pairs, [declared[name] for name in main]),
        "slices": slices,
        "small_slices": small,
    }


def compare_sides(sides: Pairs, declared: Mapping[str, Metric]) -> Changes:
    """The comparison of different cases: metrics only."""
    found, reasons = numbers(declared.values(), *sides)
    counts = [name for name in found if declared[name].unit == "count"]
    reasons |= dict.fromkeys(counts, "counts of different cases say nothing about each other")
    found = {name: number for name, number in found.items() if name not in counts}
    compared = compare_independent(found, seed=SEED, groups=(_groups(sides.a), _groups(sides.b)))
    return {
        "metrics": _metrics(declared, compared, reasons),
        "cases": NOTHING,
        "slices": {},
        "small_slices": {},
    }


def as_shown(found: Changes, source: str) -> Changes:
    """The comparison as people may see it: the questions of cases, and the names of slices."""
    ways = pseudonyms.ways(source)
    slices = {
        name: {ways.get(name, str)(value): said for value, said in values.items()}
        for name, values in found["slices"].items()
    }
    return {**found, "cases": pseudonyms.document(found["cases"], source), "slices": slices}


def _declared(a: RowMapping, b: RowMapping, only: Sequence[str]) -> dict[str, Metric]:
    """The metrics that both tiers have, or those of them that were asked for."""
    tiers = [row["tier"] for row in (a, b)]
    declared = {row.name: row for row in measured_by(tiers[0], a["resolved"]) if tiers[1] in row.tiers}
    if not declared:
        raise InputError(f"tiers {tiers[0]} and {tiers[1]} have no metric in common: there is nothing to compare")
    for name in only:
        try:
            metric(name)
        except ValueError as error:
            raise InputError(str(error)) from None
        if name not in declared:
            raise unknown(f"metric of {tiers[0]}:", name, declared)
    return {name: declared[name] for name in only} if only else declared


def _groups(cases: pa.Table) -> list[str | None]:
    groups: list[str | None] = cases["group"].to_pylist()
    return groups


def _metrics(
    declared: Mapping[str, Metric],
    compared: Mapping[str, Compared],
    reasons: Mapping[str, str],
) -> dict[str, MetricComparison]:
    """The document of every metric; Holm over those that are better in one direction."""
    family = [name for name in compared if declared[name].better != "neither"]
    adjusted = dict(zip(family, holm([compared[name].comparison.p for name in family]), strict=True))
    return {
        name: _metric(compared[name], adjusted.get(name)) if name in compared else _not_compared(reasons[name])
        for name in declared
    }


def _metric(one: Compared, p_holm: float | None) -> MetricComparison:
    found = one.comparison if p_holm is None else replace(one.comparison.adjusted(p_holm), p=one.comparison.p)
    reason = None
    if np.isnan(found.p):
        reason = f"{found.n} cases were measured on both sides" if found.n < 2 else found.method.removeprefix("none: ")
    return {
        "a": _number(one.a),
        "b": _number(one.b),
        "difference": _number(found.difference),
        "ci_low": _number(found.interval.low),
        "ci_high": _number(found.interval.high),
        "p": _number(found.p),
        "p_holm": None if p_holm is None else _number(p_holm),
        "verdict": found.verdict,
        "smallest_detectable": _number(found.smallest_detectable),
        "margin": _number(found.margin),
        "n": found.n,
        "n_missing": found.n_missing,
        "method": found.method,
        "reason": reason,
    }


def _not_compared(reason: str) -> MetricComparison:
    return {
        "a": None,
        "b": None,
        "difference": None,
        "ci_low": None,
        "ci_high": None,
        "p": None,
        "p_holm": None,
        "verdict": "inconclusive",
        "smallest_detectable": None,
        "margin": None,
        "n": 0,
        "n_missing": 0,
        "method": "none",
        "reason": reason,
    }


def differences(a: RowMapping, b: RowMapping) -> list[KeyDifference]:
    """The parts of the comparability key in which two evaluations differ, with both values; none if they compare.

    Of lists (the metrics' signatures) only the entries that differ are given. Where the tiers differ, only they are.
    """
    if a["comparability_key"] is not None and a["comparability_key"] == b["comparability_key"]:
        return []
    if a["tier"] != b["tier"]:
        return [{"part": "tier", "a": a["tier"], "b": b["tier"]}]
    one, other = (dict(_parts(row["comparability"] or {})) for row in (a, b))
    names = sorted(name for name in {**one, **other} if one.get(name) != other.get(name))
    parts = [_apart(name, one.get(name), other.get(name)) for name in names]
    if a["source"] != b["source"]:
        parts.insert(0, {"part": "source", "a": a["source"], "b": b["source"]})
    return parts or [{"part": "comparability_key", "a": a["comparability_key"], "b": b["comparability_key"]}]


def _same_cases(part: str) -> bool:
    """Whether the case set may be the same although this part of the key differs."""
    return part != "source" and part.split(".")[0] != "cases"


def _apart(part: str, a: Any, b: Any) -> KeyDifference:
    if isinstance(a, list) and isinstance(b, list):
        a, b = [entry for entry in a if entry not in b], [entry for entry in b if entry not in a]
    return {"part": part, "a": a, "b": b}


def _parts(value: Any, name: str = "") -> list[tuple[str, Any]]:
    """What a nested document says, by dotted names."""
    if not isinstance(value, dict):
        return [(name, value)]
    return [pair for key in value for pair in _parts(value[key], f"{name}.{key}" if name else key)]


def _refusal(a: RowMapping, b: RowMapping, differs: list[KeyDifference]) -> str:
    said = "; ".join(
        f"{part['part']} is {json.dumps(part['a'], ensure_ascii=False)} and {json.dumps(part['b'], ensure_ascii=False)}"
        for part in differs
    )
    return f"evaluations {a['id']} and {b['id']} cannot be compared: {said}. --force compares them anyway"


def _previous(engine: Engine, evaluation_id: str) -> str:
    found = journal.previous(engine, evaluation_id)
    if found is None:
        raise InputError(f"evaluation {evaluation_id} has no earlier completed one with the same comparability key")
    return found


def _side(row: RowMapping) -> Side:
    return {
        "evaluation_id": row["id"],
        "started_at": row["started_at"].isoformat(),
        "tier": row["tier"],
        "source": row["source"],
        "sut_label": row["sut_label"],
        "state": row["state"],
        "comparability_key": row["comparability_key"],
        "system": system_of(row),
    }


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
