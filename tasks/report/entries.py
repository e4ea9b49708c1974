"""Evaluations in a report: numbers, cases, changes and history."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Engine, select
from sqlalchemy.engine import RowMapping

from yarus.db import journal
from yarus.db.errors import InputError, ResultsUnavailable
from yarus.db.tables import evaluation
from yarus.metrics.table import find_metric
from yarus.tasks.cases.privacy import pseudonyms
from yarus.tasks.cases.table import iterate_rows
from yarus.tasks.cases.vocabulary import MEASURED_STATUSES, STATUSES_BY_SEVERITY
from yarus.tasks.comparison.changes import displayed_verdicts
from yarus.tasks.config.former_names import STORED_PARAMETERS
from yarus.tasks.config.texts import translations
from yarus.tasks.config.tiers import TIERS, shown_headlines
from yarus.tasks.evaluation import result_files
from yarus.tasks.evaluation.config import EvaluationConfig
from yarus.tasks.evaluation.findings import failures, showing
from yarus.tasks.evaluation.findings.exam import exam_tables
from yarus.tasks.evaluation.guidance import case_kind, case_names, list_shown_features
from yarus.tasks.evaluation.number_format import (
    THIN_SPACE,
    format_difference_interval,
    format_grade,
    format_interval,
    format_metric,
    format_rounded,
)
from yarus.tasks.evaluation.repeats import REPEAT_PARAMETERS
from yarus.tasks.evaluation.summary import EvaluationSummary, MetricSummary, read_summary
from yarus.tasks.report import figures
from yarus.tasks.report.bars import value_bar
from yarus.tasks.report.case_list import MAX_REASON_CHARS, pack_cases, translate_reason
from yarus.tasks.report.embedded_data import Document
from yarus.tasks.report.metric_hints import metric_hint

FINDINGS_WITH_FIGURES = (showing, failures)
"""Findings that the page shows elsewhere, with a figure."""
MAX_REASONS = 4
"""Maximum number of reasons per status."""
TRACE_SETTINGS = ("sut", "retriever", "reranker", "generator_prompt", "answers_of")
"""Settings of answers that a case's trace shows."""
STAND_IN_MARK = "no language model"
REJECTED_STRATUM = "contradicted"
DETAIL_COLUMNS = ("settings", "parameters", "resolved", "versions")


@dataclass
class ReportEntry:
    """An evaluation in a report."""

    key: str
    """Name in the addresses of the page: the tier, or the id if the tier has several evaluations."""
    row: RowMapping
    summary: EvaluationSummary
    cases: pa.Table | None = None
    problem: str | None = None
    """Reason if there are no cases."""
    comparison: Document = field(default_factory=dict)
    """Comparison from `baseline_comparison` with `parquet` and `explained`; empty without a comparison."""

    @property
    def is_auxiliary(self) -> bool:
        """Return whether the evaluation is auxiliary: a repeat (also of failures), or a new judgement of an anchor."""
        marks = {STORED_PARAMETERS.get(name, name) for name in REPEAT_PARAMETERS}
        return bool(marks & journal.non_live_marks(self.row).keys()) or "failed_again" in self.summary

    @property
    def tier(self) -> str:
        """Return the evaluated tier."""
        return str(self.row["tier"])


def find_newest(engine: Engine) -> list[str]:
    """Return the newest evaluation of each tier of the most recent source, in the order of the tiers.

    Raises:
        InputError: there are no evaluations.
    """
    columns = evaluation.c
    finished = select(columns.id, columns.source).where(columns.state != "running", journal.IS_LIVE)
    finished = finished.order_by(columns.started_at.desc()).limit(1)
    # An evaluation of a few questions does not replace a complete one.
    is_complete = columns.parameters["limit"].astext.is_(None)
    with engine.connect() as connection:
        latest = connection.execute(finished).first()
        if latest is None:
            raise InputError("there is nothing to report yet; run an evaluation first: yarus run tier1, or yarus demo")
        evaluation_ids = []
        for tier in TIERS:
            of_tier = finished.where(columns.tier == tier, columns.source == latest.source)
            evaluation_ids += [connection.scalar(of_tier.where(is_complete)) or connection.scalar(of_tier)]
    return [name for name in evaluation_ids if name is not None]


def load_entries(engine: Engine, evaluation_ids: list[str]) -> list[ReportEntry]:
    """Return the evaluations with their cases, in the order of tiers, the newest of a tier first, auxiliary ones last.

    Raises:
        InputError: an evaluation does not exist.
    """
    rows = {row["id"]: row for row in (journal.find_evaluation(engine, name) for name in evaluation_ids)}
    order: list[str] = list(TIERS)
    loaded = [ReportEntry(row["id"], row, read_summary(engine, row["id"]), *_load_cases(row)) for row in rows.values()]
    loaded.sort(key=lambda entry: entry.row["started_at"], reverse=True)
    loaded.sort(key=lambda entry: (order.index(entry.tier), entry.is_auxiliary))
    newest_by_tier = {entry.tier: entry for entry in reversed(loaded)}
    for tier, entry in newest_by_tier.items():
        entry.key = tier
    return loaded


def entry_view(entry: ReportEntry) -> Document:
    """Return an evaluation for the templates."""
    summary, config, features = entry.summary, EvaluationConfig.of(entry.row), list_shown_features(entry.summary)
    compared = entry.comparison.get("metrics", {})
    verdicts = displayed_verdicts(entry.comparison) if compared else {}
    changes = {
        name: {**change, "verdict": verdicts[name]}
        for name, change in compared.items()
        if change["difference"] is not None
    }
    first = shown_headlines(entry.tier, summary["metrics"])
    names = [name for name in dict.fromkeys((*first, *summary["metrics"])) if name in summary["metrics"]]
    return {
        "key": entry.key,
        "id": entry.row["id"],
        "tier": entry.tier,
        "called": {"name": summary["name"], "tags": summary["tags"]},
        "summary": summary,
        "cases_are": {kind: name.capitalize() for kind, name in case_names(summary).items()},
        "case_kind": case_kind(summary),
        "started": f"{entry.row['started_at']:%Y-%m-%d %H:%M} UTC",
        "seconds": _format_seconds(entry.row),
        "metrics": [
            _metric_view(name, summary["metrics"][name], changes.get(name), is_headline=name in first) for name in names
        ],
        "strata": _stratum_views(summary.get("strata", {}), first),
        "statuses": _status_views(summary["statuses"], entry.cases),
        "stages": _stage_views(summary) if failures in features else [],
        "exam": exam_tables(summary) if "exam" in summary else None,
        "mistakes": list(_exam_mistakes(entry)),
        "findings": [
            sentence
            for feature in features
            if feature not in FINDINGS_WITH_FIGURES
            for sentence in feature.sentences(summary)
        ],
        "price": list(showing.sentences(summary)) if showing in features else [],
        "problem": entry.problem,
        "stand_ins": has_stand_ins(entry.row),
        "made": {name: getattr(config, name) for name in TRACE_SETTINGS},
        "cost": {name: entry.row[name] for name in ("tokens_in", "tokens_out", "cost_usd")},
        "figures": _entry_figures(entry),
        "pack": pack_cases(entry.cases) if entry.cases is not None else None,
        "foot": _evaluation_details(entry.row),
    }


def has_stand_ins(row: RowMapping) -> bool:
    """Return whether an offline stand-in replaced a language model."""
    config = EvaluationConfig.of(row)
    return STAND_IN_MARK in json.dumps([config.generator, config.judge])


def _load_cases(row: RowMapping) -> tuple[pa.Table | None, str | None]:
    if row["parquet"] is None:
        return None, pseudonyms.mask_message(row["error"] or str(row["state"]), row["source"])
    try:
        return pseudonyms.mask_cases(result_files.read_results(row["parquet"]), row["source"]), None
    except (ResultsUnavailable, InputError) as error:
        return None, str(error)[:MAX_REASON_CHARS]


def _metric_view(name: str, metric: MetricSummary, compared: Document | None, *, is_headline: bool) -> Document:
    declared = find_metric(name)
    bounds = declared.thresholds if declared else None
    return {
        "name": name,
        "value": metric["value"],
        "text": format_metric(name, metric["value"]),
        "interval": format_interval(name, metric),
        "bar": value_bar(name, metric),
        "n_scored": metric["n_scored"],
        "n_total": metric["n_total"],
        "bounds_missing": _format_bounds(name, metric),
        "reason": translate_reason(metric["reason"] or "—"),
        "grade": metric["grade"],
        "grade_text": format_grade(metric),
        "bounds": [f"{bound:g}" for bound in bounds] if bounds else [],
        "low": f"{declared.low:g}" if declared else None,
        "high": f"{declared.high:g}" if declared and declared.high != float("inf") else None,
        "better": declared.better if declared else "neither",
        "hint": metric_hint(name),
        "change": compared
        and {
            **compared,
            "text": format_metric(name, compared["difference"], sign=True),
            "between": format_difference_interval(name, compared),
        },
        "headline": is_headline,
        "main": is_headline or bool(metric["grade"]) or (compared or {}).get("verdict") in ("regressed", "changed"),
    }


def _format_bounds(name: str, metric: MetricSummary) -> str | None:
    """Format the bounds that unmeasured cases leave possible."""
    low, high = metric["bound_low"], metric["bound_high"]
    return None if low is None or high is None else f"{format_metric(name, low)}\N{EN DASH}{format_metric(name, high)}"


def _stratum_views(strata: Mapping[str, Mapping[str, MetricSummary]], first: list[str]) -> list[Document]:
    """Return the metrics shown first that all strata have; the head of the table lists their names."""
    names = [name for name in first if all(name in metrics for metrics in strata.values())]
    return [
        {
            "stratum": stratum,
            "values": [
                {
                    "name": name,
                    "text": format_metric(name, metrics[name]["value"]),
                    "bar": _stratum_bar(stratum, name, metrics[name]),
                }
                for name in names
            ],
            "n_scored": metrics[names[0]]["n_scored"],
            "n_total": metrics[names[0]]["n_total"],
        }
        for stratum, metrics in strata.items()
        if names
    ]


def _stratum_bar(stratum: str, name: str, metric: MetricSummary) -> Document | None:
    """Return the bar of a stratum without grades for rejected answers, because more is not better there."""
    stratum_bar = value_bar(name, metric)
    if stratum_bar and stratum == REJECTED_STRATUM:
        stratum_bar["zones"] = [zone | {"grade": ""} for zone in stratum_bar["zones"]]
    return stratum_bar


def _status_views(counts: dict[str, int], cases: pa.Table | None) -> list[Document]:
    """Return the number of cases per status with the most frequent reasons, measured statuses first."""
    total = sum(counts.values())
    reasons: dict[str, Counter[str]] = defaultdict(Counter)
    if cases is not None and "reason" in cases.column_names:
        for status, reason in iterate_rows(cases, "status", "reason"):
            if reason:
                reasons[status][reason] += 1
    return [
        {
            "status": status,
            "n": counts[status],
            "share": round(100 * counts[status] / total, 2),
            "measured": status in MEASURED_STATUSES,
            "reasons": [(translate_reason(reason), n) for reason, n in reasons[status].most_common(MAX_REASONS)],
        }
        for status in reversed(STATUSES_BY_SEVERITY)
        if counts.get(status)
    ]


def _exam_mistakes(entry: ReportEntry) -> Iterator[Document]:
    """Yield the exam answers with the largest errors of the judge, with their texts."""
    exam = entry.summary.get("exam", {})
    case_ids = {mistake["case_id"] for result in exam.values() for mistake in result["worst"]}
    if not case_ids or entry.cases is None:
        return
    mistaken = entry.cases.filter(pc.is_in(entry.cases["case_id"], value_set=pa.array(sorted(case_ids), pa.string())))
    cases = {case["case_id"]: case for case in mistaken.select(["case_id", "question", "exam"]).to_pylist()}
    for prompt, result in exam.items():
        for mistake in result["worst"]:
            case = cases.get(mistake["case_id"], {"question": "", "exam": []})
            answer = next((item["answer"] for item in case["exam"] or () if item["kind"] == mistake["kind"]), "")
            view = {"prompt": prompt, "kind": translations("exam_kinds", mistake["kind"]), "score": mistake["score"]}
            yield {**view, "question": case["question"], "answer": answer}


def _stage_views(summary: EvaluationSummary) -> list[Document]:
    stage_counts = summary["failures"]["counts"] if "failures" in summary else {}
    counts = {name: n for name, n in stage_counts.items() if n}
    max_count = max(counts.values(), default=0)
    return [
        {"stage": name, "n": n, "share": round(100 * n / max_count, 2)}
        for name, n in sorted(counts.items(), key=lambda item: -item[1])
    ]


def _entry_figures(entry: ReportEntry) -> Document:
    if entry.cases is None:
        return {}
    return {
        "distributions": figures.metric_histograms(entry.tier, entry.cases),
        "ranks": figures.rank_figure(entry.cases),
        "latency": figures.latency_figure(entry.cases),
        **(figures.risk_coverage_figures(entry.summary["showing"]) if "showing" in entry.summary else {}),
    }


def _format_seconds(row: RowMapping) -> str | None:
    if row["finished_at"] is None:
        return None
    return format_rounded((row["finished_at"] - row["started_at"]).total_seconds(), "count", ",").replace(
        ",", THIN_SPACE
    )


def _evaluation_details(row: RowMapping) -> Document:
    """Return details of how the numbers were made; the settings are stored without secrets."""
    texts = {name: json.dumps(row[name] or {}, ensure_ascii=False, indent=2, default=str) for name in DETAIL_COLUMNS}
    columns = ("comparability_key", "case_set_hash", "git_commit", "git_dirty", "flow_run_id", "parquet", "sut_label")
    return {**{name: row[name] for name in columns}, "documents": texts}
