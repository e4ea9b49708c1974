"""What changed: each evaluation beside the accepted one, case by case, and the history of its main metrics."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import pyarrow as pa
from sqlalchemy import Engine

from yarus.db import journal
from yarus.db.errors import InputError
from yarus.tasks.cases.privacy import pseudonyms as to_people
from yarus.tasks.cases.table import values_of
from yarus.tasks.comparison.bands import Trend
from yarus.tasks.comparison.changes import is_invalid, statements
from yarus.tasks.comparison.comparison_schema import Compared, Statement
from yarus.tasks.comparison.since import compared_with, since_accepted
from yarus.tasks.comparison.trend import trend
from yarus.tasks.config.texts import LANGUAGES, Text, texts, translations
from yarus.tasks.config.tiers import TIERS
from yarus.tasks.evaluation import result_files
from yarus.tasks.evaluation.numbers import between, shown
from yarus.tasks.report import figures
from yarus.tasks.report.bars import difference_bar
from yarus.tasks.report.case_list import column, in_russian
from yarus.tasks.report.embedded_data import Document, packed
from yarus.tasks.report.entries import Entry
from yarus.tasks.report.explanations import explained

LISTS = ("broke", "fixed", "changed_status")
NIGHTS = 100
"""Evaluations of a trend that are drawn, the newest."""
SIDE = ("answer", "status", "reason", "retrieved")
"""What is shown of both sides of a changed case beside the metrics."""


def add_comparisons(engine: Engine, entries: list[Entry]) -> None:
    """Compares every evaluation with the next one of the same tier in the report, or else with the accepted one.

    What is aside, an anchor or a repeat, is compared with its own kind only.
    """
    for entry, following in zip(entries, [*entries[1:], None], strict=True):
        asked = following is not None and (following.tier, following.aside) == (entry.tier, entry.aside)
        if asked and following:
            found: Compared | None = compared_with(engine, following.row["id"], entry.row, force=True)
        else:
            found = since_accepted(engine, entry.row)
        if found is None:
            continue
        entry.comparison = {**found}
        if "metrics" in found:
            before = found["a"]["evaluation_id"]
            entry.comparison["parquet"] = journal.find(engine, before)["parquet"]
            entry.comparison["explained"] = explained(engine, before, entry.row["id"], force=asked)


def comparison(entry: Entry) -> Document | None:
    """The comparison of an evaluation as the templates read it."""
    found: Any = entry.comparison
    if not found:
        return None
    said = [*statements([found]), *(one for one in found.get("statements", []) if one["kind"] == "reach")]
    told = {"a": found["a"], "said": said, "metrics": []}
    if "metrics" not in found:
        return told
    told["n_common"] = found["n_common"]
    if is_invalid(found):
        return told
    headline = TIERS[entry.tier].headlines
    metrics = [
        {
            "name": name,
            "headline": name in headline,
            "main": name in headline or one["verdict"] in ("regressed", "changed"),
            "a": shown(name, one["a"]),
            "b": shown(name, one["b"]),
            "difference": shown(name, one["difference"], sign=True),
            "bar": difference_bar(one),
            "between": between(name, one),
            "p": _p(one["p"], one["p_holm"]),
            "verdict": one["verdict"] if one["difference"] is not None else "not compared",
            "detectable": shown(name, one["smallest_detectable"]),
            "n": one["n"],
        }
        for name, one in found["metrics"].items()
    ]
    listed = {name: _listed(found["cases"][name]) for name in LISTS}
    return told | {
        "explained": found["explained"],
        "metrics": sorted(metrics, key=lambda metric: not metric["headline"]),
        "unjudged": _unjudged(found["unequally_judged"]),
        "filled": translations("comparison", "filled") if found["b"]["system"].get("labels") == "filled" else None,
        "slices": _slices(found["slices"], headline[0]),
        "pack": _pack(entry, listed) if any(listed.values()) else None,
    }


def changes(entries: list[Entry]) -> tuple[list[Statement], Text | None]:
    """What the comparisons of the tiers say, and since when; None where there is nothing before."""
    found: list[Any] = [entry.comparison for entry in entries if entry.comparison and entry.key == entry.tier]
    if not found:
        return [], None
    before = datetime.fromisoformat(max(one["a"]["started_at"] for one in found))
    said = statements(found, named=True)
    if before.date() == max(entry.row["started_at"] for entry in entries).date():
        return said, translations("statements", "since", since=f"{before:%H:%M} UTC")
    months = {language: texts("report.page", language)["months"].split(",") for language in LANGUAGES}
    days = {language: f"{before.day} {names[before.month - 1]}" for language, names in months.items()}
    return said, {language: texts("statements", language)["since"].format(since=day) for language, day in days.items()}


def trends(engine: Engine, entries: list[Entry]) -> list[Document]:
    """The histories of the headline metrics that have more than one night."""
    found = []
    for tier in dict.fromkeys(entry.tier for entry in entries):
        source = next(entry.row["source"] for entry in entries if entry.tier == tier)
        for name in TIERS[tier].headlines:
            history = _history(engine, name, tier, source)
            if history and len(history["nights"]) > 1:
                noise = history["noise"]
                kept = {"tier": tier, "metric": name, "first_out": history["first_out"]}
                found.append({**kept, "noise": noise and shown(name, noise["band"]), "figure": figures.trend(history)})
    return found


def _history(engine: Engine, metric: str, tier: str, source: str) -> Trend | None:
    try:
        return trend(engine, metric, tier=tier, source=source, last=NIGHTS)
    except InputError:  # the source has never measured it
        return None


def _slices(slices: Document, metric: str) -> list[Document]:
    """The difference of the main metric in each part of the cases that is large enough."""
    return [
        {
            "slice": name,
            "value": value,
            "n": told[metric]["n"],
            "text": shown(metric, told[metric]["difference"], sign=True),
            "bar": difference_bar({"smallest_detectable": None, **told[metric]}),
            "between": between(metric, told[metric]),
            "p": _p(told[metric]["p"], None),
        }
        for name, values in slices.items()
        for value, told in values.items()
        if told.get(metric, {}).get("difference") is not None
    ]


def _p(p: float | None, p_holm: float | None) -> str:
    """Holm's, or in brackets that of the metric alone."""
    given = p if p_holm is None else p_holm
    if given is None:
        return "—"
    said = "<0.001" if given < 0.001 else f"{given:.3f}"
    return f"({said})" if p_holm is None else said


def _unjudged(found: Document | None) -> Text | None:
    """That the sides' results are not judged equally far, and what differences this leaves possible."""
    if found is None:
        return None
    bounds = ", ".join(
        f"{name} {shown(name, one['low'], sign=True)} … {shown(name, one['high'], sign=True)}"
        for name, one in found["bounds"].items()
    )
    return translations("comparison", "unequally judged", a=f"{found['a']:.1%}", b=f"{found['b']:.1%}", bounds=bounds)


def _listed(listed: list[Document]) -> dict[str, Document]:
    """Case -> how many cases asked the same and changed alike, and the metrics that moved."""
    return {
        one["case_id"]: {
            "n": one["n"],
            "moved": [
                f"{part['metric']} {shown(part['metric'], part['before'])} → {shown(part['metric'], part['after'])}"
                for part in one.get("moved", [])
            ],
        }
        for one in listed
    }


def _pack(entry: Entry, listed: dict[str, dict[str, Document]]) -> str | None:
    after = entry.cases
    if after is None:
        return None
    ids = list(dict.fromkeys(name for names in listed.values() for name in names))
    before = _these(result_files.read(entry.comparison["parquet"]), ids)
    before, after = to_people.cases(before, entry.comparison["a"]["source"]), _these(after, ids)
    return packed(
        {
            "ids": ids,
            "lists": {name: list(of) for name, of in listed.items()},
            "entries": listed,
            "shared": _columns(after, ("question", "reference", "text")),
            "reasons": in_russian([before, after]),
            "a": _columns(before, (*SIDE, *_numbers(before))),
            "b": _columns(after, (*SIDE, *_numbers(after))),
        }
    )


def _these(cases: pa.Table, ids: list[str]) -> pa.Table:
    """The cases of these ids, in their order."""
    places = {case: place for place, case in enumerate(values_of(cases, "case_id"))}
    return cases.take(pa.array([places[case] for case in ids], pa.int64()))


def _numbers(cases: pa.Table) -> list[str]:
    return [field.name for field in cases.schema if pa.types.is_float64(field.type)]


def _columns(cases: pa.Table, names: Iterable[str]) -> Document:
    return {name: column(cases[name]) for name in names if name in cases.column_names}
