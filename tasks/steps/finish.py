"""Finish an evaluation: write one Parquet file, then metrics and state in one transaction."""

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
from yarus.db.messages import Words
from yarus.db.stores.calls import evaluation_spending
from yarus.metrics.table import get_metric
from yarus.tasks.cases.labels import page_by_chunk
from yarus.tasks.cases.table import LONG_TEXT_COLUMNS, column_values
from yarus.tasks.cases.unmatched_labels import unmatched_unit
from yarus.tasks.cases.vocabulary import NO_PAGES_NOTE, Note
from yarus.tasks.comparison.paired_changes import paired_changes
from yarus.tasks.config.connections import database
from yarus.tasks.config.settings import get_settings
from yarus.tasks.dataset.labelling.corrected import store_corrections
from yarus.tasks.evaluation.aggregate import (
    MetricValue,
    aggregate_metrics,
    compute_coverage,
    count_statuses,
    list_metrics,
    split_by_stratum,
)
from yarus.tasks.evaluation.batch import read_batches
from yarus.tasks.evaluation.config import EvaluationConfig
from yarus.tasks.evaluation.findings.finding import MeasuredEvaluation
from yarus.tasks.evaluation.findings.findings import find_all
from yarus.tasks.evaluation.identity import (
    collect_sent_differences,
    comparability,
    comparability_key,
    is_rolling,
    metric_options,
)
from yarus.tasks.evaluation.judge_standing import exam_outcomes, judge_standings, metric_standing, read_newest_exams
from yarus.tasks.evaluation.result_files import publish_file, read_parquet, remove_result, write_batches
from yarus.tasks.evaluation.result_paths import result_path
from yarus.tasks.evaluation.run import EvaluationRun
from yarus.tasks.evaluation.set_metrics import SetValue
from yarus.tasks.evaluation.summary import EvaluationSummary, read_summary
from yarus.tasks.evaluation.work_folder import delete_upload, download_files, read_stored_corpus
from yarus.tasks.steps.question_mix import question_mix

log = logging.getLogger("yarus")
Measure = Callable[[pa.Table, int], Mapping[str, SetValue]]
"""Metrics over a set of cases, from the cases and a seed."""


def _measure_nothing(cases: pa.Table, seed: int) -> dict[str, SetValue]:
    return {}


@task(task_run_name="finish", cache_policy=NO_CACHE, retries=0)
async def finish(run: EvaluationRun, measure: Measure = _measure_nothing) -> EvaluationSummary:
    """Write the file, then metrics and final state in one transaction, and return the summary of the evaluation.

    No retries: after the transaction the batches are deleted, and before it `--resume` continues here.

    Args:
        run: with all of its batches done.
        measure: computes the tier's metrics that need all cases at once.
    """
    return await asyncio.to_thread(_finish, run, measure)


def _finish(run: EvaluationRun, measure: Measure) -> EvaluationSummary:
    engine = database()
    download_files(run.id, run.work, batches=True)  # batches that workers elsewhere have finished
    file = run.work / f"{run.id}.parquet"
    write_batches(read_batches(run), file, evaluation_id=run.id)
    cases = read_parquet(file, without=(*LONG_TEXT_COLUMNS, *_unneeded_columns(run.tier)))
    row = journal.find_evaluation(engine, run.id)
    observed = collect_sent_differences(run) | detect_streaming(cases)
    run = replace(run, config=run.config | observed)
    parts = comparability(run, row["case_set_hash"])
    key = comparability_key(parts)
    counts = count_statuses(cases)
    measured_share = compute_coverage(cases)
    seed = run.parameters.seed
    declared_metrics, options = list_metrics(run.tier, run.config), metric_options(run)
    values = [
        (stratum, value)
        for stratum, rows in split_by_stratum(cases).items()
        for value in aggregate_metrics(declared_metrics, rows, seed=seed, options=options, whole=measure(rows, seed))
    ]
    config = EvaluationConfig.of(row) | observed
    if reason := _why_unlabelled(config.notes):
        values = [(stratum, _explain_missing_labels(value, reason)) for stratum, value in values]
    bounds = {value.metric.name: (value.value, value.ci_low, value.ci_high) for _, value in values}
    findings = find_all(MeasuredEvaluation(run, cases, bounds)) | {"missing": _count_missing(values)}
    config |= EvaluationConfig(notes=[*config.notes, *note_unknown_ids(run, cases), *note_llm_labels(cases)])
    if "exam" in findings:
        config |= EvaluationConfig(examined=exam_outcomes(run.config, findings["exam"]))
    by_prompt = judge_standings(read_newest_exams(engine, [config]), config, row["started_at"])
    metrics = [value.row(stratum, metric_standing(value.metric.name, by_prompt)) for stratum, value in values]
    path = publish_file(file, result_path(get_settings().results_root, run.tier, run.id, row["started_at"]))
    is_valid = measured_share is not None and measured_share >= get_settings().min_coverage
    mix, sorted_cases = question_mix(engine, row, key, cases) if is_valid and is_rolling(run) else ({}, cases)
    paired = paired_changes(engine, row, key, sorted_cases, declared_metrics) if is_valid else None
    has_closed = journal.finish_evaluation(
        engine,
        run.id,
        "completed" if is_valid else "invalid",
        metrics,
        error=None if is_valid else _why_invalid(measured_share, cases),
        comparability_key=key,
        comparability=parts,
        statuses=counts,
        coverage=measured_share,
        parquet=path,
        **evaluation_spending(engine, run.id),
        resolved=config.stored() | findings | ({"paired": paired} if paired else {}) | ({"mix": mix} if mix else {}),
    )
    if has_closed:
        store_corrections(engine, run.id)
        shutil.rmtree(run.work, ignore_errors=True)
        delete_upload(run.id)
    elif journal.find_evaluation(engine, run.id)["state"] not in journal.FINISHED_STATES:
        remove_result(path)  # stopped: a file without metrics is incomplete
    return read_summary(engine, run.id)


def _unneeded_columns(tier: str) -> set[str]:
    """Return the columns that no metric of a tier needs: all cases are read at once."""
    unneeded = {"labelled", "judge_raw", "distances"}
    if tier == "judge":
        unneeded -= {"judge_raw"}  # the judge's replies
    if tier in get_metric("mrr").tiers:
        unneeded -= {"distances"}  # needed for the finding on missing labels
    return unneeded


def _why_unlabelled(notes: list[Note]) -> str | None:
    """Return why no question has a usable label for rankings, if the source is the reason; else None."""
    if any(note["note"] == NO_PAGES_NOTE for note in notes):
        return Words("retrieval is not measurable: the source has no pages")
    unit = unmatched_unit(notes)
    return unit and Words("no label matches a {unit} of the corpus", unit=unit)


def _explain_missing_labels(value: MetricValue, why: str) -> MetricValue:
    """Give a metric without a value for want of labels the reason; one with a value is unchanged."""
    if value.value is not None or value.metric.needs != "relevant":
        return value
    return value._replace(reason=why)


def _count_missing(values: list[tuple[str, MetricValue]]) -> dict[str, dict[str, int]]:
    """Count, by stratum and metric, failed cases that could have had a value."""
    counts: dict[str, dict[str, int]] = {}
    for stratum, value in values:
        if value.n_missing:
            counts.setdefault(stratum, {})[value.metric.name] = value.n_missing
    return counts


def detect_streaming(cases: pa.Table) -> EvaluationConfig:
    """Record whether the system under test has streamed; otherwise first-token metrics are always empty."""
    has_any = "first_token_ms" in cases.column_names and cases["first_token_ms"].null_count < len(cases)
    return EvaluationConfig(streams=True) if has_any else EvaluationConfig()


def _why_invalid(share: float | None, cases: pa.Table) -> str:
    least_coverage = get_settings().min_coverage
    if share is None:
        reasons = set(column_values(cases, "reason"))
        if len(reasons) == 1 and (reason := reasons.pop()):
            return Words("no case could be measured: {why}", why=reason)
        return Words("no case could be measured: none has a label that names something in the corpus")
    return Words(
        "only {share:.1%} of the cases that could be measured were; {wanted:.0%} are needed (YARUS_MIN_COVERAGE)",
        share=share,
        wanted=least_coverage,
    )


def note_unknown_ids(run: EvaluationRun, cases: pa.Table) -> list[Note]:
    """Return a note on retrieved results outside the corpus: the service has another corpus, or it has changed."""
    if "retrieved" not in cases.column_names:
        return []
    pages = page_by_chunk(read_stored_corpus(run))
    by_chunk = run.config.unit == "chunk"
    known_ids = pages.keys() if by_chunk else {chunk if page is None else page for chunk, page in pages.items()}
    ids = pc.list_flatten(cases["retrieved"])
    n_unknown = len(ids) - pc.sum(pc.is_in(ids, value_set=pa.array(known_ids, pa.string())), min_count=0).as_py()
    return [{"note": "unknown ids", "n": n_unknown}] if n_unknown else []


def note_llm_labels(cases: pa.Table) -> list[Note]:
    """Return a note on how many results a judge has graded."""
    if "pooled" not in cases.column_names:
        return []
    labels = pc.struct_field(pc.list_flatten(cases["pooled"]), "label")
    return [{"note": "labels filled", "n": labels.null_count}]
