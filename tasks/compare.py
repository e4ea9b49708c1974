"""Two evaluations on their common cases: what changed, whether it is more than chance, and in which cases."""

import json
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlalchemy import Engine
from sqlalchemy.engine import RowMapping

from db import journal
from db.errors import InputError
from metrics.metric import Metric
from metrics.statistics import Comparison, compare_paired, holm
from metrics.table import metrics_of
from tasks import files
from tasks.report import HEADLINE, Document

Floats = NDArray[np.float64]


def compare(engine: Engine, a: str, b: str, *, force: bool = False) -> Document:
    """Compares two evaluations of one tier.

    Args:
        engine: of our own database.
        a: the evaluation before: its id, the beginning or end of it, `last`, or `previous` (b's predecessor).
        b: the evaluation after.
        force: compare even where the comparability keys differ.

    Returns:
        a, b, comparable, differs, paired, n_common, metrics, cases, slices.

    Raises:
        InputError: no such evaluation, no cases, nothing in common, or not comparable and not forced.
    """
    after = journal.find(engine, b)
    before = journal.find(engine, _previous(engine, after["id"]) if a == "previous" else a)
    differs = differences(before, after)
    if differs and not force:
        raise InputError(_refusal(before, after, differs))
    sides = (_cases(before), _cases(after))
    one, other = _common(*sides)
    if not len(one):
        raise InputError(f"evaluations {before['id']} and {after['id']} have no case in common")
    return {
        "a": _side(before),
        "b": _side(after),
        "comparable": not differs,
        "differs": differs,
        "paired": True,
        "n_common": len(one),
        "metrics": _metrics(before["tier"], one, other),
        "cases": {"broke": [], "fixed": [], "changed_status": []},
        "slices": {},
    }


def differences(a: RowMapping, b: RowMapping) -> list[Document]:
    """The parts of the comparability key in which two evaluations differ, with both values; none if they compare."""
    if a["comparability_key"] is not None and a["comparability_key"] == b["comparability_key"]:
        return []
    one, other = (dict(_parts(row["comparability"] or {})) for row in (a, b))
    names = [name for name in {**one, **other} if one.get(name) != other.get(name)]
    return [{"part": name, "a": one.get(name), "b": other.get(name)} for name in names]


def _parts(value: Any, name: str = "") -> list[tuple[str, Any]]:
    """What a nested document says, by dotted names."""
    if not isinstance(value, dict):
        return [(name, value)]
    return [pair for key in value for pair in _parts(value[key], f"{name}.{key}" if name else key)]


def _refusal(a: RowMapping, b: RowMapping, differs: list[Document]) -> str:
    said = "; ".join(
        f"{part['part']} is {json.dumps(part['a'], ensure_ascii=False)} and {json.dumps(part['b'], ensure_ascii=False)}"
        for part in differs
    )
    return f"evaluations {a['id']} and {b['id']} cannot be compared: {said}. --force shows them all the same"


def _previous(engine: Engine, evaluation_id: str) -> str:
    found = journal.previous(engine, evaluation_id)
    if found is None:
        raise InputError(f"evaluation {evaluation_id} has no earlier completed one with the same comparability key")
    return found


def _side(row: RowMapping) -> Document:
    kept = ("tier", "source", "sut_label", "state", "comparability_key")
    system = {name: value for name, value in (row["resolved"] or {}).items() if name not in ("notes", "failures")}
    return {
        "evaluation_id": row["id"],
        "started_at": row["started_at"].isoformat(),
        **{name: row[name] for name in kept},
        "system": system,
    }


def _cases(row: RowMapping) -> pa.Table:
    if row["parquet"] is None:
        raise InputError(f"evaluation {row['id']} is {row['state']} and has no cases; {row['error'] or ''}")
    try:
        return files.read(row["parquet"])
    except (OSError, pa.ArrowInvalid) as error:
        raise InputError(f"evaluation {row['id']}: its file {row['parquet']} cannot be read: {error}") from None


def _common(a: pa.Table, b: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The cases that both have, in the order of the first."""
    places = {case: place for place, case in enumerate(b["case_id"].to_pylist())}
    pairs = [(at, places[case]) for at, case in enumerate(a["case_id"].to_pylist()) if case in places]
    return a.take([pair[0] for pair in pairs]), b.take([pair[1] for pair in pairs])


def _headline(a: pa.Table, b: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The cases of the stratum that an evaluation is judged by, where there are strata."""
    if "stratum" not in a.column_names:
        return a, b
    kept = [s == HEADLINE == t for s, t in zip(a["stratum"].to_pylist(), b["stratum"].to_pylist(), strict=True)]
    return a.filter(pa.array(kept)), b.filter(pa.array(kept))


def _metrics(tier: Any, one: pa.Table, other: pa.Table) -> Document:
    one, other = _headline(one, other)
    groups = one["group"].to_pylist()
    declared = [m for m in metrics_of(tier) if m.aggregate == "mean" and m.column in one.column_names]
    compared = {}
    for metric in declared:
        a, b = (side[metric.column].to_numpy().astype(np.float64) for side in (one, other))
        compared[metric.name] = a, b, compare_paired(a, b, seed=0, better=metric.better, groups=groups)
    return _adjusted({m.name: m for m in declared}, compared)


def _adjusted(declared: dict[str, Metric], compared: dict[str, tuple[Floats, Floats, Comparison]]) -> Document:
    family = [name for name in compared if declared[name].better != "neither"]
    adjusted = dict(zip(family, holm([compared[name][2].p for name in family]), strict=True))
    document = {}
    for name, (a, b, found) in compared.items():
        kept = ~(np.isnan(a) | np.isnan(b))
        p = adjusted.get(name, found.p)
        document[name] = {
            "a": _number(a[kept].mean() if kept.any() else np.nan),
            "b": _number(b[kept].mean() if kept.any() else np.nan),
            "difference": _number(found.difference),
            "ci_low": _number(found.interval.low),
            "ci_high": _number(found.interval.high),
            "p": _number(found.p),
            "p_holm": _number(p) if name in adjusted else None,
            "verdict": found.adjusted(p).verdict,
            "smallest_detectable": _number(found.smallest_detectable),
            "n": found.n,
            "n_missing": found.n_missing,
            "method": found.method,
            "reason": None,
        }
    return document


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
