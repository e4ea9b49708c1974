"""The tables and texts of Prefect's artifacts, from the summary of an evaluation; Markdown that says what it means."""

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
from yarus.deployments.prefect.events import report_page, tell_finished
from yarus.metrics.table import METRICS
from yarus.tasks.cases.privacy import pseudonyms as to_people
from yarus.tasks.cases.sampling import once
from yarus.tasks.cases.table import COLUMNS, values_of
from yarus.tasks.comparison.changes import line, statements
from yarus.tasks.comparison.changes import measured as compared_metrics
from yarus.tasks.comparison.since import since_accepted, why_inconclusive
from yarus.tasks.config.connections import database
from yarus.tasks.config.settings import settings
from yarus.tasks.config.texts import LANGUAGES, texts
from yarus.tasks.config.texts.messages import told
from yarus.tasks.config.tiers import TIERS
from yarus.tasks.evaluation import numbers, result_files
from yarus.tasks.evaluation import summary as report
from yarus.tasks.evaluation.batches import artifact_key, best_effort, show_size
from yarus.tasks.evaluation.guidance import lead, next_step, says
from yarus.tasks.evaluation.numbers import grade_text, plain_interval, rounded, unit_of
from yarus.tasks.evaluation.summary import EvaluationSummary, Night, has_metrics, measured

WORST = 10
Changes = Mapping[str, Any]
"""`since`, `metrics`, `found` and `problem`, as `changes_since` gives them."""
NOTHING: Changes = {"since": None, "metrics": {}, "found": None, "problem": None}
CODE_ENDS = r"[`|\r\n]"
"""What would end code in a cell, or the cell."""
LONGEST = 160
"""Characters of a question or answer in a table."""
LONGEST_REASON = 1_000


def changes_since(engine: Engine, summary: EvaluationSummary) -> Changes:
    """What changed since the evaluation that was accepted for this one to be judged against.

    Returns:
        since: its day by language, or None; metrics: name -> difference, interval and verdict, or of those that are not
        compared case by case the difference alone; found: the comparison; problem: why it is inconclusive.
    """
    if summary["state"] not in ("completed", "invalid"):
        return NOTHING
    row = journal.find(engine, summary["evaluation_id"])
    found = since_accepted(engine, row)
    metrics = compared_metrics(found) if found else {}
    if metrics and found:
        then = _values(report.summary(engine, found["a"]["evaluation_id"]))
        now = _values(summary)
        alone = [name for name in now if name in then and name not in metrics]
        metrics |= {name: {"difference": now[name] - then[name], "verdict": None} for name in alone}
    since = dict.fromkeys(LANGUAGES, found["a"]["started_at"][:10]) if found else None  # the day, of ISO 8601
    return {"since": since, "metrics": metrics, "found": found, "problem": why_inconclusive(found, row)}


def _values(summary: EvaluationSummary) -> dict[str, float]:
    return {name: metric["value"] for name, metric in summary["metrics"].items() if metric["value"] is not None}


def metric_rows(summary: EvaluationSummary, changes: Changes, language: str) -> list[dict[str, str]]:
    """The table of metrics: one row each, in words."""
    words = texts("artifacts", language)
    return [
        {
            words["metric"]: name,
            words["value"]: shown(name, metric["value"]),
            words["interval"]: plain_interval(metric, partial(shown, name)),
            words["grade"]: (grade_text(metric) or {}).get(language, ""),
            words["change"]: _change(name, changes, words),
            words["measured"]: f"{metric['n_scored']} / {metric['n_total']}",
        }
        for name, metric in summary["metrics"].items()
    ]


def verdict_text(summary: EvaluationSummary, changes: Changes, language: str, report_url: str | None) -> str:
    """What the numbers say, what to do next, what changed, the worst cases, where the report is."""
    words = texts("artifacts", language)
    problem = [changes["problem"][language]] if changes["problem"] else []
    sentences = [says(summary)[language], *problem, next_step(summary)[0][language]]
    if summary["state"] == "invalid":
        sentences.insert(0, f"**{words['invalid']}**: {told(summary['error'] or '', language)}.")
    parts = [" ".join(_sentence(text) for text in sentences)]
    parts += [*_changed([changes], language), f"### {words['worst']}", _worst(summary, words)]
    note = [texts("pseudonyms", language)["note"]] if to_people.has_pseudonyms(summary["source"]) else []
    return "\n\n".join([*parts, *note, _report(summary["evaluation_id"], report_url, words)])


def night_changes(engine: Engine, night: Night) -> list[Changes]:
    """What changed in each evaluation of a night since the accepted one, as `changes_since` gives it."""
    return [changes_since(engine, one) if has_metrics(one) else NOTHING for one in night["evaluations"]]


def tier_rows(night: Night, changes: Sequence[Changes], language: str) -> list[Sequence[str]]:
    """The rows of a night's table: each tier's headline metrics."""
    words = texts("artifacts", language)
    rows: list[Sequence[str]] = []
    for summary, found in zip(night["evaluations"], changes, strict=True):
        tier = texts(f"tiers.{summary['tier']}", language)["sentence"]
        if not has_metrics(summary):
            state = words.get(summary["state"], summary["state"])
            rows.append((tier, f"**{state}**", _plain(told(summary["error"] or "", language))))
            continue
        for name in TIERS[summary["tier"]].headlines:
            metric = summary["metrics"][name]
            label = (grade_text(metric) or {}).get(language, "")
            change = _change(name, found, words)
            counted = f"{metric['n_scored']} / {metric['n_total']}"
            interval = plain_interval(metric, partial(shown, name))
            rows.append((tier, name, shown(name, metric["value"]), interval, counted, label, change))
            tier = ""
        if found["problem"]:
            rows.append(("", f"**{words['inconclusive']}**", _plain(found["problem"][language], LONGEST_REASON)))
    return rows


def night_text(night: Night, changes: Sequence[Changes], language: str, address: str) -> str:
    """The weakest tier in a sentence, what changed, every tier's headline metrics, its gate, where the report is."""
    words = texts("artifacts", language)
    whole = measured(night)
    names = [words[name] for name in ("tier", "metric", "value", "interval", "measured", "grade", "change")]
    gates = [gate_markdown(summary, language) for summary in whole if "gate" in summary]
    table = _table(names, tier_rows(night, changes, language))
    parts = [_sentence(lead(night["evaluations"])[language]), *_changed(changes, language), table, *gates]
    return "\n\n".join([*parts, f"{words['report']}: {address}"])


def gate_text(summary: EvaluationSummary, language: str) -> str:
    """What the gate says of an evaluation: which rules failed, and why something could not be judged."""
    words, gate = texts("artifacts", language), summary["gate"]
    why = "; ".join([*gate["failed"], *filter(None, [told(gate.get("reason", ""), language)])])
    said = f"{summary['evaluation_id']}: {words['gate']} {gate['file']}: {words[gate['verdict']]}"
    return f"{said}: {why}" if why else said


def gate_markdown(summary: EvaluationSummary, language: str) -> str:
    """The same as a paragraph of an artifact."""
    return _plain(gate_text(summary, language), LONGEST_REASON)


def shown(name: str, value: float | None) -> str:
    """A value of a metric as people read it; a dash where it was not measured."""
    return "—" if value is None else rounded(value, unit_of(name), ",")


def _change(name: str, changes: Changes, words: dict[str, str]) -> str:
    """A difference, with its interval and verdict where it was compared case by case; else why there is none."""
    found = changes["metrics"].get(name)
    if found is None or found["difference"] is None:
        return words["not compared"] if changes["since"] or changes["problem"] else words["first"]
    difference = numbers.shown(name, found["difference"], sign=True)
    if found["verdict"] is None:
        return difference
    return f"{difference} ({numbers.between(name, found)}), {words[found['verdict']]}"


def _changed(changes: Sequence[Changes], language: str) -> Iterator[str]:
    """What the comparisons say, a line each under their title; nothing where there is none."""
    found = [one["found"] for one in changes if one["found"]]
    if found:
        since = max(one["since"][language] for one in changes if one["since"])
        yield f"### {texts('statements', language)['since'].format(since=since)}"
        said = statements(found, named=len(changes) > 1)
        yield "\n".join(f"- {_plain(line(one, language), LONGEST_REASON)}" for one in said)


def _worst(summary: EvaluationSummary, words: dict[str, str]) -> str:
    """The measured cases that are furthest from the best value."""
    column = TIERS[summary["tier"]].worst_by
    declared = next((metric for metric in METRICS.values() if metric.column == column), None)
    wanted = ("case_id", "question", "text", column)
    cases = result_files.read(summary["parquet"] or "", without=[name for name in COLUMNS if name not in wanted])
    if declared is None or column not in cases.column_names:
        return words["none"]
    worst_first = "ascending" if declared.better == "higher" else "descending"
    best = declared.high if declared.better == "higher" else declared.low
    rows = cases.filter(pc.is_valid(cases[column]))
    rows = rows.take(pc.sort_indices(rows, sort_keys=[(column, worst_first)]))
    times = dict(islice(once(values_of(rows, "question")).items(), WORST))
    rows = rows.take(pa.array(list(times), pa.int64()))
    rows = to_people.cases(rows, summary["source"]).to_pylist()
    found = [
        (
            f"`{re.sub(CODE_ENDS, ' ', row['case_id'])}`",
            _plain(row.get("question") or row.get("text") or "") + (f" ×{n}" if n > 1 else ""),
            shown(declared.name, row[column]),
        )
        for row, n in zip(rows, times.values(), strict=True)
        if row[column] != best
    ]
    return _table(["id", words["case"], column], found) if found else words["none"]


def _report(evaluation_id: str, report_url: str | None, words: dict[str, str]) -> str:
    if report_url is None:
        return f"{words['report']}: `yarus report {evaluation_id}`"
    return f"[{words['report']}]({report_url.rstrip('/')}/{evaluation_id}.html)"


def _table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [names, ["---"] * len(names), *([*row, *[""] * (len(names) - len(row))] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _plain(text: str, longest: int = LONGEST) -> str:
    """A user's text in one cell: no markup, no line breaks, not too long."""
    short = " ".join(text.split())
    short = short if len(short) <= longest else f"{short[: longest - 1]}…"
    return re.sub(r"([\\`*_\[\]<>|#!~])", r"\\\1", short)


log = logging.getLogger("yarus")


async def show_results(summary: EvaluationSummary) -> None:
    """Shows the metrics of a finished evaluation as a table, and the verdict with the worst cases as a text."""
    if FlowRunContext.get() is None:
        return
    language, tier, source = settings().language, summary["tier"], summary["source"]
    await show_size(tier, source, summary["n_cases"] or 0)
    changes = await asyncio.to_thread(changes_since, database(), summary)
    tell_finished(summary, changes)
    table = metric_rows(summary, changes, language)
    text = await asyncio.to_thread(verdict_text, summary, changes, language, settings().report_url)
    name = summary["evaluation_id"]
    await best_effort(acreate_table_artifact(table, key=artifact_key(tier, source, "metrics"), description=name))
    await best_effort(acreate_markdown_artifact(text, key=artifact_key(tier, source, "verdict"), description=name))
    await _link(report_page(f"{name}.html"), tier, source, name)


async def show_gate(summary: EvaluationSummary) -> None:
    """Shows what the gate of YARUS_GATE_FILE says of an evaluation, where it has a rule for its tier."""
    if "gate" in summary and FlowRunContext.get() is not None:
        text, name = gate_markdown(summary, settings().language), summary["evaluation_id"]
        key = artifact_key(summary["tier"], summary["source"], "gate")
        await best_effort(acreate_markdown_artifact(text, key=key, description=name))


async def report_of(night: Night) -> Path | None:
    """Writes the report of a night; None where nothing was measured, or it cannot be written: the night is whole."""
    from yarus.tasks.report.write import report

    names = [summary["evaluation_id"] for summary in measured(night)]
    try:
        return await asyncio.to_thread(report, database(), names) if names else None
    except (InputError, OSError) as error:
        log.warning("the report of the night could not be written: %s", error)
        return None


async def show_night(night: Night, source: str, page: Path | None) -> None:
    """Shows what every tier of a night came to, in one text.

    Args:
        night: the state and the summaries.
        source: where the questions came from.
        page: its report.
    """
    if FlowRunContext.get() is not None:
        language = settings().language
        changes = await asyncio.to_thread(night_changes, database(), night)
        served = report_page(page.name) if page else None
        text = night_text(night, changes, language, served or str(page or "—"))
        await best_effort(
            acreate_markdown_artifact(text, key=artifact_key("nightly", source, "summary"), description=source)
        )
        await _link(served, "nightly", source, source)


async def _link(address: str | None, flow: str, source: str, of: str) -> None:
    """Shows where the report of a run is read, where it is served."""
    if address:
        text = texts("artifacts", settings().language)["report"]
        key = artifact_key(flow, source, "report")
        await best_effort(acreate_link_artifact(address, link_text=text, key=key, description=of))
