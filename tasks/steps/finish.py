"""The end of an evaluation: one Parquet file, then metrics and state in one transaction."""

import asyncio
import logging
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
from prefect import task
from prefect.cache_policies import NO_CACHE

from yarus.db import journal
from yarus.db.stores.calls import bought
from yarus.db.words import Words
from yarus.metrics.table import metric
from yarus.tasks.cases.labels import pages_of
from yarus.tasks.cases.table import LONG, values_of
from yarus.tasks.cases.unmatched_labels import unmatched_unit
from yarus.tasks.cases.vocabulary import NO_PAGES, Note
from yarus.tasks.comparison.paired_changes import paired_changes
from yarus.tasks.config.connections import database
from yarus.tasks.config.settings import settings
from yarus.tasks.dataset.labelling.corrected import correct
from yarus.tasks.evaluation.aggregate import Value, coverage, measured_by, statuses, strata, summarise
from yarus.tasks.evaluation.batch import batches_of
from yarus.tasks.evaluation.config import EvaluationConfig
from yarus.tasks.evaluation.findings.finding import Evaluated
from yarus.tasks.evaluation.findings.findings import find_all
from yarus.tasks.evaluation.identity import (
    collect_sent_differences,
    comparability,
    comparability_key,
    is_rolling,
    metric_options,
)
from yarus.tasks.evaluation.result_files import parquet, publish, remove, write_batches
from yarus.tasks.evaluation.result_paths import result_path
from yarus.tasks.evaluation.run import Run
from yarus.tasks.evaluation.set_metrics import Whole
from yarus.tasks.evaluation.standings import examined, exams_of, standing_of, standings
from yarus.tasks.evaluation.summary import EvaluationSummary, summary
from yarus.tasks.evaluation.work_folder import delete, download, read_stored_corpus
from yarus.tasks.steps.question_mix import question_mix

log = logging.getLogger("yarus")
Measure = Callable[[pa.Table, int], Mapping[str, Whole]]
"""Metrics over a set of cases, from the cases and a seed."""


def _nothing_more(cases: pa.Table, seed: int) -> dict[str, Whole]:
    return {}


@task(task_run_name="finish", cache_policy=NO_CACHE, retries=0)
async def finish(run: Run, measure: Measure = _nothing_more) -> EvaluationSummary:
    """Writes the file, then metrics and final state in one transaction; returns the summary of the evaluation.

    No retries: after the transaction the batches are gone, and before it `--resume` goes on here.

    Args:
        run: with all of its batches done.
        measure: computes the tier's metrics that need all cases at once.
    """
    return await asyncio.to_thread(_finish, run, measure)


def _finish(run: Run, measure: Measure) -> EvaluationSummary:
    engine = database()
    download(run.id, run.work, batches=True)  # those that workers elsewhere have done
    file = run.work / f"{run.id}.parquet"
    write_batches(batches_of(run), file, evaluation_id=run.id)
    cases = parquet(file, without=(*LONG, *_unread(run.tier)))
    row = journal.find(engine, run.id)
    learned = collect_sent_differences(run) | streaming(cases)
    run = replace(run, config=run.config | learned)
    parts = comparability(run, row["case_set_hash"])
    key = comparability_key(parts)
    counts = statuses(cases)
    share = coverage(cases)
    seed = run.parameters.seed
    declared_metrics, options = measured_by(run.tier, run.config), metric_options(run)
    values = [
        (stratum, value)
        for stratum, rows in strata(cases).items()
        for value in summarise(declared_metrics, rows, seed=seed, options=options, whole=measure(rows, seed))
    ]
    config = EvaluationConfig.of(row) | learned
    if why := _why_unlabelled(config.notes):
        values = [(stratum, _without_labels(value, why)) for stratum, value in values]
    bounds = {value.metric.name: (value.value, value.ci_low, value.ci_high) for _, value in values}
    findings = find_all(Evaluated(run, cases, bounds)) | {"missing": _missing(values)}
    config |= EvaluationConfig(notes=[*config.notes, *unknown_ids(run, cases), *filled_up(cases)])
    if "exam" in findings:
        config |= EvaluationConfig(examined=examined(run.config, findings["exam"]))
    by_prompt = standings(exams_of(engine, [config]), config, row["started_at"])
    metrics = [value.row(stratum, standing_of(value.metric.name, by_prompt)) for stratum, value in values]
    path = publish(file, result_path(settings().results_root, run.tier, run.id, row["started_at"]))
    valid = share is not None and share >= settings().min_coverage
    mix, sorted_cases = question_mix(engine, row, key, cases) if valid and is_rolling(run) else ({}, cases)
    paired = paired_changes(engine, row, key, sorted_cases, declared_metrics) if valid else None
    closed = journal.close(
        engine,
        run.id,
        "completed" if valid else "invalid",
        metrics,
        error=None if valid else _why_invalid(share, cases),
        comparability_key=key,
        comparability=parts,
        statuses=counts,
        coverage=share,
        parquet=path,
        **bought(engine, run.id),
        resolved=config.stored() | findings | ({"paired": paired} if paired else {}) | ({"mix": mix} if mix else {}),
    )
    if closed:
        correct(engine, run.id)
        shutil.rmtree(run.work, ignore_errors=True)
        delete(run.id)
    elif journal.find(engine, run.id)["state"] not in journal.FINISHED:  # stopped: a file without metrics is none
        remove(path)
    return summary(engine, run.id)


def _unread(tier: str) -> set[str]:
    """Columns that no metric of a tier is made of: all cases are read at once."""
    unread = {"labelled", "judge_raw", "distances"}
    if tier == "judge":
        unread -= {"judge_raw"}  # what it replied
    if tier in metric("mrr").tiers:
        unread -= {"distances"}  # by which missing labels are looked at
    return unread


def _why_unlabelled(notes: list[Note]) -> str | None:
    """Why no question has a label that a ranking can be compared with, if the source is the reason; else None."""
    if any(note["note"] == NO_PAGES for note in notes):
        return Words("retrieval is not measurable: the source has no pages")
    unit = unmatched_unit(notes)
    return unit and Words("no label matches a {unit} of the corpus", unit=unit)


def _without_labels(value: Value, why: str) -> Value:
    """The metric, and if it has no value for want of labels, the reason; what has none in a part of the cases stays."""
    if value.value is not None or value.metric.needs != "relevant":
        return value
    return value._replace(reason=why)


def _missing(values: list[tuple[str, Value]]) -> dict[str, dict[str, int]]:
    """By stratum and metric, how many cases failed that could have had a value; none where none did."""
    found: dict[str, dict[str, int]] = {}
    for stratum, value in values:
        if value.n_missing:
            found.setdefault(stratum, {})[value.metric.name] = value.n_missing
    return found


def streaming(cases: pa.Table) -> EvaluationConfig:
    """Says so if the system under test has streamed: else the metrics of first words would be empty everywhere."""
    has_any = "first_token_ms" in cases.column_names and cases["first_token_ms"].null_count < len(cases)
    return EvaluationConfig(streams=True) if has_any else EvaluationConfig()


def _why_invalid(share: float | None, cases: pa.Table) -> str:
    wanted = settings().min_coverage
    if share is None:
        reasons = set(values_of(cases, "reason"))
        if len(reasons) == 1 and (why := reasons.pop()):
            return Words("no case could be measured: {why}", why=why)
        return Words("no case could be measured: none has a label that names something in the corpus")
    return Words(
        "only {share:.1%} of the cases that could be measured were; {wanted:.0%} are needed (YARUS_MIN_COVERAGE)",
        share=share,
        wanted=wanted,
    )


def unknown_ids(run: Run, cases: pa.Table) -> list[Note]:
    """A note on what was retrieved but is not in the corpus: by a service with another one, or since it changed."""
    if "retrieved" not in cases.column_names:
        return []
    pages = pages_of(read_stored_corpus(run))
    by_chunk = run.config.unit == "chunk"
    there = pages.keys() if by_chunk else {chunk if page is None else page for chunk, page in pages.items()}
    retrieved = pc.list_flatten(cases["retrieved"])
    unknown = len(retrieved) - pc.sum(pc.is_in(retrieved, value_set=pa.array(there, pa.string())), min_count=0).as_py()
    return [{"note": "unknown ids", "n": unknown}] if unknown else []


def filled_up(cases: pa.Table) -> list[Note]:
    """A note on how many results a judge has graded."""
    if "pooled" not in cases.column_names:
        return []
    labels = pc.struct_field(pc.list_flatten(cases["pooled"]), "label")
    return [{"note": "labels filled", "n": labels.null_count}]
