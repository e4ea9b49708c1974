"""Build the tables and texts of Prefect's artifacts from the summary of an evaluation."""

import asyncio
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from prefect.artifacts import acreate_link_artifact, acreate_markdown_artifact, acreate_table_artifact
from prefect.context import FlowRunContext
from sqlalchemy import Engine

from yarus.db import journal
from yarus.db.errors import InputError
from yarus.deployments.prefect.events import emit_finished, report_page_url
from yarus.metrics.table import METRICS
from yarus.tasks.cases.privacy import pseudonyms as pseudonymise
from yarus.tasks.cases.sampling import count_distinct_questions
from yarus.tasks.cases.table import CASE_COLUMNS, column_values
from yarus.tasks.comparison.baseline_comparison import compare_with_accepted, inconclusive_reason
from yarus.tasks.comparison.changes import build_statements, compared_metrics, displayed_verdicts, format_statement
from yarus.tasks.config.connections import database
from yarus.tasks.config.settings import get_settings
from yarus.tasks.config.texts import LANGUAGES, texts
from yarus.tasks.config.texts.messages import told
from yarus.tasks.config.tiers import TIERS, shown_headlines
from yarus.tasks.evaluation import number_format, result_files
from yarus.tasks.evaluation import summary as report
from yarus.tasks.evaluation.batches import artifact_key, name_flow_run, request_best_effort
from yarus.tasks.evaluation.guidance import advise_next_step, lead_sentence, summary_sentence
from yarus.tasks.evaluation.number_format import format_grade, format_plain_interval, format_rounded, metric_unit
from yarus.tasks.evaluation.summary import EvaluationSummary, NightDocument, evaluations_with_metrics, has_metrics

N_WORST = 10
Changes = Mapping[str, Any]
"""`since`, `metrics`, `found` and `problem`, as `read_changes` returns them."""
NO_CHANGES: Changes = {"since": None, "metrics": {}, "found": None, "problem": None}
CODE_ENDS = r"[`|\r\n]"
"""Characters that would end code in a cell, or the cell."""
MAX_TEXT = 160
"""Longest question or answer in a table, in characters."""
MAX_REASON = 1_000


def read_changes(engine: Engine, summary: EvaluationSummary) -> Changes:
    """Return the changes since the accepted evaluation that this one is judged against.

    Returns:
        `since`: its day by language, or None. `metrics`: name -> difference, interval and verdict; only the difference
        if the metric is not compared case by case. `found`: the comparison. `problem`: why it is inconclusive.
    """
    if summary["state"] not in ("completed", "invalid"):
        return NO_CHANGES
    row = journal.find_evaluation(engine, summary["evaluation_id"])
    comparison = compare_with_accepted(engine, row)
    metrics = compared_metrics(comparison) if comparison else {}
    if metrics and comparison:
        before = _measured_values(report.read_summary(engine, comparison["a"]["evaluation_id"]))
        now = _measured_values(summary)
        uncompared = [name for name in now if name in before and name not in metrics]
        metrics |= {name: {"difference": now[name] - before[name], "verdict": None} for name in uncompared}
    since = dict.fromkeys(LANGUAGES, comparison["a"]["started_at"][:10]) if comparison else None  # the day, of ISO 8601
    return {"since": since, "metrics": metrics, "found": comparison, "problem": inconclusive_reason(comparison, row)}


def _measured_values(summary: EvaluationSummary) -> dict[str, float]:
    return {name: metric["value"] for name, metric in summary["metrics"].items() if metric["value"] is not None}


def metric_rows(summary: EvaluationSummary, changes: Changes, language: str) -> list[dict[str, str]]:
    """Return the table of metrics, one row per metric, in words."""
    words = texts("artifacts", language)
    return [
        {
            words["metric"]: name,
            words["value"]: format_value(name, metric["value"]),
            words["interval"]: format_plain_interval(metric, partial(format_value, name)),
            words["grade"]: (format_grade(metric) or {}).get(language, ""),
            words["change"]: _format_change(name, changes, words),
            words["measured"]: f"{metric['n_scored']} / {metric['n_total']}",
        }
        for name, metric in summary["metrics"].items()
    ]


def verdict_text(summary: EvaluationSummary, changes: Changes, language: str, report_url: str | None) -> str:
    """Return the verdict: the meaning of the numbers, the next step, changes, worst cases and the report."""
    words = texts("artifacts", language)
    problem = [changes["problem"][language]] if changes["problem"] else []
    answer = [summary_sentence(summary)[language]] if summary["state"] != "invalid" else []
    sentences = [*answer, *problem, advise_next_step(summary)[0][language]]
    if summary["state"] == "invalid":
        sentences.insert(0, f"**{words['invalid']}**: {told(summary['error'] or '', language)}.")
    parts = [" ".join(_end_sentence(text) for text in sentences)]
    parts += [*_sections([changes], language), f"### {words['worst']}", _worst_cases_table(summary, words)]
    note = [texts("pseudonyms", language)["note"]] if pseudonymise.should_mask(summary["source"]) else []
    return "\n\n".join([*parts, *note, _report_link(summary["evaluation_id"], report_url, words)])


def night_changes(engine: Engine, night: NightDocument) -> list[Changes]:
    """Return the changes of each evaluation of a night since the accepted one, as `read_changes` returns them."""
    return [read_changes(engine, summary) if has_metrics(summary) else NO_CHANGES for summary in night["evaluations"]]


def tier_rows(night: NightDocument, changes: Sequence[Changes], language: str) -> list[Sequence[str]]:
    """Return the rows of a night's table: each tier's headline metrics."""
    words = texts("artifacts", language)
    rows: list[Sequence[str]] = []
    for summary, tier_changes in zip(night["evaluations"], changes, strict=True):
        tier = texts(f"tiers.{summary['tier']}", language)["sentence"]
        if not has_metrics(summary):
            state = words.get(summary["state"], summary["state"])
            rows.append((tier, f"**{state}**", _escape(told(summary["error"] or "", language))))
            continue
        unmeasured: dict[str, list[str]] = {}
        for name in shown_headlines(summary["tier"], summary["metrics"]):
            metric = summary["metrics"][name]
            if metric["value"] is None:
                unmeasured.setdefault(metric["reason"] or "", []).append(name)
                continue
            label = (format_grade(metric) or {}).get(language, "")
            change = _format_change(name, tier_changes, words)
            counted = f"{metric['n_scored']} / {metric['n_total']}"
            interval = format_plain_interval(metric, partial(format_value, name))
            rows.append((tier, name, format_value(name, metric["value"]), interval, counted, label, change))
            tier = ""
        for reason, names in unmeasured.items():
            rows.append((tier, ", ".join(names), "—", _escape(told(reason, language), MAX_REASON)))
            tier = ""
        if tier_changes["problem"]:
            rows.append(("", f"**{words['inconclusive']}**", _escape(tier_changes["problem"][language], MAX_REASON)))
    return rows


def night_text(night: NightDocument, changes: Sequence[Changes], language: str, address: str) -> str:
    """Return the text of a night: the weakest tier, changes, every tier's headline metrics, gates and the report."""
    words = texts("artifacts", language)
    summaries = evaluations_with_metrics(night)
    names = [words[name] for name in ("tier", "metric", "value", "interval", "measured", "grade", "change")]
    gates = [gate_markdown(summary, language) for summary in summaries if "gate" in summary]
    table = _markdown_table(names, tier_rows(night, changes, language))
    parts = [_end_sentence(lead_sentence(night["evaluations"])[language]), *_sections(changes, language), table, *gates]
    return "\n\n".join([*parts, f"{words['report']}: {address}"])


def gate_text(summary: EvaluationSummary, language: str) -> str:
    """Return the gate's result for an evaluation: which rules failed, and why something could not be judged."""
    words, gate = texts("artifacts", language), summary["gate"]
    reasons = "; ".join([*gate["failed"], *filter(None, [told(gate.get("reason", ""), language)])])
    verdict_line = f"{summary['evaluation_id']}: {words['gate']} {gate['file']}: {words[gate['verdict']]}"
    return f"{verdict_line}: {reasons}" if reasons else verdict_line


def gate_markdown(summary: EvaluationSummary, language: str) -> str:
    """Return the gate's result as a paragraph of an artifact."""
    return _escape(gate_text(summary, language), MAX_REASON)


def format_value(name: str, value: float | None) -> str:
    """Format the value of a metric for people; a dash if it was not measured."""
    return "—" if value is None else format_rounded(value, metric_unit(name), ",")


def _format_change(name: str, changes: Changes, words: dict[str, str]) -> str:
    """Format a difference, with interval and verdict if it was compared case by case; else why there is none."""
    change = changes["metrics"].get(name)
    if change is None or change["difference"] is None:
        return words["not compared"] if changes["since"] or changes["problem"] else words["first"]
    difference = number_format.format_metric(name, change["difference"], sign=True)
    if change["verdict"] is None:
        return difference
    interval = number_format.format_difference_interval(name, change)
    return f"{difference} ({interval}), {words[displayed_verdicts(changes['found'])[name]]}"


def _sections(changes: Sequence[Changes], language: str) -> Iterator[str]:
    """Yield the statements of the comparisons, one per line under their title; nothing without comparisons."""
    comparisons = [change["found"] for change in changes if change["found"]]
    if comparisons:
        since = max(change["since"][language] for change in changes if change["since"])
        yield f"### {texts('statements', language)['since'].format(since=since)}"
        statements = build_statements(comparisons, named=len(changes) > 1)
        yield "\n".join(f"- {_escape(format_statement(statement, language), MAX_REASON)}" for statement in statements)


def _worst_cases_table(summary: EvaluationSummary, words: dict[str, str]) -> str:
    """Return the table of measured cases that are furthest from the best value."""
    column = TIERS[summary["tier"]].worst_by
    declared = next((metric for metric in METRICS.values() if metric.column == column), None)
    columns = ("case_id", "question", "text", column)
    cases = result_files.read_results(
        summary["parquet"] or "", without=[name for name in CASE_COLUMNS if name not in columns]
    )
    if declared is None or column not in cases.column_names:
        return words["none"]
    worst_first = "ascending" if declared.better == "higher" else "descending"
    best = declared.high if declared.better == "higher" else declared.low
    rows = cases.filter(pc.is_valid(cases[column]))
    rows = rows.take(pc.sort_indices(rows, sort_keys=[(column, worst_first)]))
    counts = dict(islice(count_distinct_questions(column_values(rows, "question")).items(), N_WORST))
    rows = rows.take(pa.array(list(counts), pa.int64()))
    rows = pseudonymise.mask_cases(rows, summary["source"]).to_pylist()
    table_rows = [
        (
            f"`{re.sub(CODE_ENDS, ' ', row['case_id'])}`",
            _escape(row.get("question") or row.get("text") or "") + (f" ×{n}" if n > 1 else ""),
            format_value(declared.name, row[column]),
        )
        for row, n in zip(rows, counts.values(), strict=True)
        if row[column] != best
    ]
    return _markdown_table(["id", words["case"], column], table_rows) if table_rows else words["none"]


def _report_link(evaluation_id: str, report_url: str | None, words: dict[str, str]) -> str:
    if report_url is None:
        return f"{words['report']}: `yarus report {evaluation_id}`"
    return f"[{words['report']}]({report_url.rstrip('/')}/{evaluation_id}.html)"


def _markdown_table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [names, ["---"] * len(names), *([*row, *[""] * (len(names) - len(row))] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _end_sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _escape(text: str, longest: int = MAX_TEXT) -> str:
    """Escape a user's text for one cell: no markup, no line breaks, not too long."""
    short = " ".join(text.split())
    short = short if len(short) <= longest else f"{short[: longest - 1]}…"
    return re.sub(r"([\\`*_\[\]<>|#!~])", r"\\\1", short)


log = logging.getLogger("yarus")


async def show_results(summary: EvaluationSummary) -> None:
    """Show the metrics of a finished evaluation as a table, and the verdict with the worst cases as a text."""
    if FlowRunContext.get() is None:
        return
    language, tier, source = get_settings().language, summary["tier"], summary["source"]
    await name_flow_run(tier, source, summary["n_cases"] or 0)
    changes = await asyncio.to_thread(read_changes, database(), summary)
    emit_finished(summary, changes)
    table = metric_rows(summary, changes, language)
    text = await asyncio.to_thread(verdict_text, summary, changes, language, get_settings().report_url)
    name = summary["evaluation_id"]
    await request_best_effort(
        acreate_table_artifact(table, key=artifact_key(tier, source, "metrics"), description=name)
    )
    await request_best_effort(
        acreate_markdown_artifact(text, key=artifact_key(tier, source, "verdict"), description=name)
    )
    await _show_report_link(report_page_url(f"{name}.html"), tier, source, name)


async def show_gate(summary: EvaluationSummary) -> None:
    """Show the result of the gate of YARUS_GATE_FILE, if it has a rule for the tier."""
    if "gate" in summary and FlowRunContext.get() is not None:
        text, name = gate_markdown(summary, get_settings().language), summary["evaluation_id"]
        key = artifact_key(summary["tier"], summary["source"], "gate")
        await request_best_effort(acreate_markdown_artifact(text, key=key, description=name))


async def write_night_report(night: NightDocument) -> Path | None:
    """Write the report of a night; None if nothing was measured or it cannot be written: the night is complete."""
    from yarus.tasks.report.write import write_report

    names = [summary["evaluation_id"] for summary in evaluations_with_metrics(night)]
    try:
        return (await asyncio.to_thread(write_report, database(), names)).path if names else None
    except (InputError, OSError) as error:
        log.warning("the report of the night could not be written: %s", error)
        return None


async def show_night(night: NightDocument, source: str, page: Path | None) -> None:
    """Show the results of every tier of a night in one text.

    Args:
        night: the state and the summaries.
        source: the source of the questions.
        page: its report.
    """
    if FlowRunContext.get() is not None:
        language = get_settings().language
        changes = await asyncio.to_thread(night_changes, database(), night)
        address = report_page_url(page.name) if page else None
        text = night_text(night, changes, language, address or str(page or "—"))
        await request_best_effort(
            acreate_markdown_artifact(text, key=artifact_key("nightly", source, "summary"), description=source)
        )
        await _show_report_link(address, "nightly", source, source)


async def _show_report_link(address: str | None, flow: str, source: str, description: str) -> None:
    """Show the address of a run's report, if reports are served."""
    if address:
        text = texts("artifacts", get_settings().language)["report"]
        key = artifact_key(flow, source, "report")
        await request_best_effort(acreate_link_artifact(address, link_text=text, key=key, description=description))
