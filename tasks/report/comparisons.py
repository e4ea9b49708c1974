"""Changes: each evaluation compared with the accepted one case by case, and the history of headline metrics."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import pyarrow as pa
from sqlalchemy import Engine

from yarus.db import journal
from yarus.db.errors import InputError
from yarus.tasks.cases.privacy import pseudonyms
from yarus.tasks.cases.table import column_values
from yarus.tasks.comparison.bands import Trend
from yarus.tasks.comparison.baseline_comparison import compare_or_explain, compare_with_accepted
from yarus.tasks.comparison.changes import build_statements, displayed_verdicts, is_invalid
from yarus.tasks.comparison.comparison_schema import Compared, Statement
from yarus.tasks.comparison.trend import trend
from yarus.tasks.config.texts import LANGUAGES, TranslatedText, texts, translations
from yarus.tasks.config.tiers import TIERS
from yarus.tasks.evaluation import result_files
from yarus.tasks.evaluation.findings.incomplete import has_one_label_per_question
from yarus.tasks.evaluation.number_format import format_difference_interval, format_metric
from yarus.tasks.report import figures
from yarus.tasks.report.bars import difference_bar
from yarus.tasks.report.case_list import encode_column, translate_reasons
from yarus.tasks.report.embedded_data import Document, pack_json
from yarus.tasks.report.entries import ReportEntry
from yarus.tasks.report.explanations import explanation_view

CHANGE_LISTS = ("regressed_cases", "improved_cases", "changed_status")
MAX_TREND_POINTS = 100
"""Maximum number of evaluations in a trend, the newest ones."""
SIDE_COLUMNS = ("answer", "status", "reason", "retrieved")
"""Columns of both sides of a changed case, in addition to the metrics."""


def add_comparisons(engine: Engine, entries: list[ReportEntry]) -> None:
    """Compare each evaluation with the next one of its tier in the report, or else with the accepted one.

    Auxiliary evaluations, such as anchors and repeats, are compared with their own kind only.
    """
    for entry, following in zip(entries, [*entries[1:], None], strict=True):
        is_next = following is not None and (following.tier, following.is_auxiliary) == (entry.tier, entry.is_auxiliary)
        if is_next and following:
            compared: Compared | None = compare_or_explain(engine, following.row["id"], entry.row, force=True)
        else:
            compared = compare_with_accepted(engine, entry.row)
        if compared is None:
            continue
        entry.comparison = {**compared}
        if "metrics" in compared:
            before_id = compared["a"]["evaluation_id"]
            entry.comparison["parquet"] = journal.find_evaluation(engine, before_id)["parquet"]
            entry.comparison["explained"] = explanation_view(engine, before_id, entry.row["id"])


def comparison_view(entry: ReportEntry) -> Document | None:
    """Return the comparison of an evaluation for the templates."""
    compared: Any = entry.comparison
    if not compared:
        return None
    sentences = [
        *build_statements([compared]),
        *(statement for statement in compared.get("statements", []) if statement["kind"] == "reach"),
    ]
    view = {"a": compared["a"], "said": sentences, "metrics": []}
    if "metrics" not in compared:
        return view
    view["n_common"] = compared["n_common"]
    if is_invalid(compared):
        return view
    headlines = TIERS[entry.tier].headlines
    first, verdicts = (*headlines, *TIERS[entry.tier].also_shown), displayed_verdicts(compared)
    metrics = [
        {
            "name": name,
            "headline": name in headlines,
            "main": name in first or verdicts[name] in ("regressed", "changed"),
            "a": format_metric(name, change["a"]),
            "b": format_metric(name, change["b"]),
            "difference": format_metric(name, change["difference"], sign=True),
            "bar": difference_bar(change),
            "between": format_difference_interval(name, change),
            "p": _format_p(change["p"], change["p_holm"]),
            "verdict": verdicts[name],
            "detectable": format_metric(name, change["min_detectable_effect"]),
            "n": change["n"],
        }
        for name, change in compared["metrics"].items()
    ]
    listed = CHANGE_LISTS if compared["comparable"] else ()
    cases_by_list = {name: _change_details(compared["cases"][name]) for name in listed}
    return view | {
        "explained": compared["explained"],
        "metrics": sorted(metrics, key=lambda metric: not metric["headline"]),
        "unjudged": _unequally_judged_text(compared),
        "filled": translations("comparison", "filled") if compared["b"]["system"].get("labels") == "filled" else None,
        "slices": _slice_views(compared["slices"], headlines[0]),
        "pack": _pack_pairs(entry, cases_by_list) if any(cases_by_list.values()) else None,
    }


def describe_changes(entries: list[ReportEntry]) -> tuple[list[Statement], TranslatedText | None]:
    """Return the statements of all tiers' comparisons and their start; None if there is no earlier evaluation."""
    compared: list[Any] = [entry.comparison for entry in entries if entry.comparison and entry.key == entry.tier]
    if not compared:
        return [], None
    started = datetime.fromisoformat(max(comparison["a"]["started_at"] for comparison in compared))
    sentences = build_statements(compared, named=True)
    if started.date() == max(entry.row["started_at"] for entry in entries).date():
        return sentences, translations("statements", "since", since=f"{started:%H:%M} UTC")
    months = {language: texts("report.page", language)["months"].split(",") for language in LANGUAGES}
    days = {language: f"{started.day} {names[started.month - 1]}" for language, names in months.items()}
    return sentences, {
        language: texts("statements", language)["since"].format(since=day) for language, day in days.items()
    }


def build_trends(engine: Engine, entries: list[ReportEntry]) -> list[Document]:
    """Return the histories of headline metrics with more than one evaluation."""
    histories = []
    for tier in dict.fromkeys(entry.tier for entry in entries):
        source = next(entry.row["source"] for entry in entries if entry.tier == tier)
        for name in TIERS[tier].headlines:
            history = _load_trend(engine, name, tier, source)
            if history and len(history["nights"]) > 1:
                noise = history["noise"]
                view = {"tier": tier, "metric": name, "first_out_of_band": history["first_out_of_band"]}
                histories.append(
                    {
                        **view,
                        "noise": noise and format_metric(name, noise["band"]),
                        "figure": figures.trend_figure(history),
                    }
                )
    return histories


def _load_trend(engine: Engine, metric: str, tier: str, source: str) -> Trend | None:
    try:
        return trend(engine, metric, tier=tier, source=source, last=MAX_TREND_POINTS)
    except InputError:  # the source has no values of the metric
        return None


def _slice_views(slices: Document, metric: str) -> list[Document]:
    """Return the difference of the main metric in each slice that is large enough."""
    return [
        {
            "slice": name,
            "value": value,
            "n": changes[metric]["n"],
            "text": format_metric(metric, changes[metric]["difference"], sign=True),
            "bar": difference_bar({"min_detectable_effect": None, **changes[metric]}),
            "between": format_difference_interval(metric, changes[metric]),
            "p": _format_p(changes[metric]["p"], None),
        }
        for name, values in slices.items()
        for value, changes in values.items()
        if changes.get(metric, {}).get("difference") is not None
    ]


def _format_p(p: float | None, p_holm: float | None) -> str:
    """Format Holm's p-value, or in brackets the p-value of the metric alone."""
    value = p if p_holm is None else p_holm
    if value is None:
        return "—"
    text = "<0.001" if value < 0.001 else f"{value:.3f}"
    return f"({text})" if p_holm is None else text


def _unequally_judged_text(compared: Document) -> TranslatedText | None:
    """Return a text about results that are judged to different extents; None if questions have one label each."""
    judged = compared["judged_share_difference"]
    sides = ({name: row[side] for name, row in compared["metrics"].items()} for side in ("a", "b"))
    if judged is None or all(has_one_label_per_question(compared["b"]["tier"], values) for values in sides):
        return None
    bounds = ", ".join(
        f"{name} {format_metric(name, limits['low'], sign=True)} … {format_metric(name, limits['high'], sign=True)}"
        for name, limits in judged["bounds"].items()
    )
    return translations("comparison", "unequally judged", a=f"{judged['a']:.1%}", b=f"{judged['b']:.1%}", bounds=bounds)


def _change_details(changed_cases: list[Document]) -> dict[str, Document]:
    """Return case -> number of equal changes, and the metrics that changed."""
    return {
        case["case_id"]: {
            "n": case["n"],
            "metric_changes": [
                f"{part['metric']} {format_metric(part['metric'], part['before'])} → "
                f"{format_metric(part['metric'], part['after'])}"
                for part in case.get("metric_changes", [])
            ],
        }
        for case in changed_cases
    }


def _pack_pairs(entry: ReportEntry, cases_by_list: dict[str, dict[str, Document]]) -> str | None:
    after = entry.cases
    if after is None:
        return None
    ids = list(dict.fromkeys(name for names in cases_by_list.values() for name in names))
    before = _select_cases(result_files.read_results(entry.comparison["parquet"]), ids)
    before, after = pseudonyms.mask_cases(before, entry.comparison["a"]["source"]), _select_cases(after, ids)
    return pack_json(
        {
            "ids": ids,
            "lists": {name: list(cases) for name, cases in cases_by_list.items()},
            "entries": cases_by_list,
            "shared": _encode_columns(after, ("question", "reference", "text")),
            "reasons": translate_reasons([before, after]),
            "a": _encode_columns(before, (*SIDE_COLUMNS, *_numeric_columns(before))),
            "b": _encode_columns(after, (*SIDE_COLUMNS, *_numeric_columns(after))),
        }
    )


def _select_cases(cases: pa.Table, ids: list[str]) -> pa.Table:
    """Return the cases with these ids, in order."""
    positions = {case_id: position for position, case_id in enumerate(column_values(cases, "case_id"))}
    return cases.take(pa.array([positions[case_id] for case_id in ids], pa.int64()))


def _numeric_columns(cases: pa.Table) -> list[str]:
    return [field.name for field in cases.schema if pa.types.is_float64(field.type)]


def _encode_columns(cases: pa.Table, names: Iterable[str]) -> Document:
    return {name: encode_column(cases[name]) for name in names if name in cases.column_names}
