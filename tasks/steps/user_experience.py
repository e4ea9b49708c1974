"""User experience: hit rates of a cache of good answers, and whether dialogs keep their topic."""

import asyncio
import math
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from prefect import task
from prefect.cache_policies import NO_CACHE

from yarus.db.messages import Words
from yarus.metrics import dialogue
from yarus.metrics.metric import Metric
from yarus.metrics.statistics import mean_interval
from yarus.metrics.statistics.intervals import NO_INTERVAL
from yarus.metrics.table import get_metric
from yarus.tasks.cases.labels import GOOD
from yarus.tasks.cases.outcomes import set_failures
from yarus.tasks.cases.table import column_values, float_column, set_columns
from yarus.tasks.cases.vocabulary import Status
from yarus.tasks.config.connections import database
from yarus.tasks.evaluation.batch import save_batch
from yarus.tasks.evaluation.result_files import read_parquet
from yarus.tasks.evaluation.run import EvaluationRun
from yarus.tasks.evaluation.set_metrics import SetValue, unmeasured_value
from yarus.tasks.evaluation.work_folder import read_cases
from yarus.tasks.models.embedding.cache import embed_texts_with_failures
from yarus.tasks.models.embedding.embedders import get_embedder
from yarus.tasks.models.embedding.partial_results import Vectors

NO_CACHE_YET = Words("no earlier question was rated 5")
THRESHOLDS = {"": 0.85, "@0.8": 0.8, "@0.9": 0.9, "@0.95": 0.95}


@task(task_run_name="measure_experience", cache_policy=NO_CACHE)
async def measure_experience(run: EvaluationRun) -> dict[str, SetValue]:
    """Score every question of the evaluation against the earlier ones of the whole log, and every dialog."""
    return await asyncio.to_thread(_measure, run)


def _measure(run: EvaluationRun) -> dict[str, SetValue]:
    cases, log = read_cases(run), read_parquet(run.work / "log.parquet")
    model = get_embedder(run.config.similarity_embedder)
    vectors, errors = embed_texts_with_failures(column_values(log, "question"), model, database())
    has_vector = np.linalg.norm(vectors, axis=1) > 0
    is_evaluated = pc.is_in(log["case_id"], value_set=cases["case_id"].combine_chunks()).to_numpy()
    rows = np.flatnonzero(is_evaluated).tolist()
    without_vector = ((number, row) for number, row in enumerate(rows) if not has_vector[row])
    cases = set_failures(cases, (_explain_missing_vector(number, errors.get(row)) for number, row in without_vector))
    searchable = has_vector & log["asked_at"].is_valid().to_numpy()
    searched = np.flatnonzero(searchable[is_evaluated])
    columns, reasons = _cache(cases, searched, log.filter(searchable), vectors[searchable], is_evaluated[searchable])
    cases = set_columns(cases, **columns)
    save_batch(run, 0, cases)
    turns = np.nan_to_num(float_column(cases, "turn"))
    dialog_rows = np.flatnonzero((turns > 0) & has_vector[is_evaluated])
    dialog_rows = dialog_rows[np.argsort(turns[dialog_rows], kind="stable")]
    dialog_cases = cases.select(["dialog", "group"]).take(dialog_rows)
    dialog_vectors = vectors[is_evaluated][dialog_rows]
    by_dialog = {
        "context_preservation": dialogue.context_similarity_by_dialog,
        "multi_turn_consistency": dialogue.consistency_by_dialog,
    }
    over_dialogs = {
        name: _mean_over_dialogs(get_metric(name), by_dialog_metric, dialog_vectors, dialog_cases, run.parameters.seed)
        for name, by_dialog_metric in by_dialog.items()
    }
    return over_dialogs | {name: unmeasured_value(reason) for name, reason in reasons.items()}


def _explain_missing_vector(number: int, error: str | None) -> tuple[int, Status, str]:
    if error is not None:
        return number, "judge_error", f"embedder: {error}"
    return number, "not_applicable", Words("the question has no vector")


def _cache(
    cases: pa.Table, rows: NDArray[np.intp], log: pa.Table, vectors: Vectors, evaluated: NDArray[np.bool_]
) -> tuple[dict[str, object], dict[str, str]]:
    """Compute hits and wrong hits of a cache of earlier questions that were rated good, by threshold.

    A question before the first good rating is a miss, because the cache was empty. If this is so for all questions,
    nothing is measured.

    Args:
        cases: the evaluated questions.
        rows: numbers of those with a time and a vector.
        log: these and the other questions that a cache could contain, in the same order.
        vectors: of the log.
        evaluated: mask of the log's rows that belong to `rows`.

    Returns:
        The columns of cases, and by metric the reason why it has no value.
    """
    is_good = [score == GOOD for score in column_values(log, "score")]
    similarity, position = dialogue.nearest_earlier_question(
        vectors, log["asked_at"].to_numpy(), candidates=is_good, asked=evaluated
    )
    similarity, position = similarity[evaluated], position[evaluated]
    pages, ids = column_values(log, "page"), column_values(log, "case_id")
    own_pages = cases["page"].take(rows).to_pylist()
    pairs = [(page, pages[row]) if row >= 0 else (None, None) for page, row in zip(own_pages, position, strict=True)]
    is_same_page = np.array([math.nan if None in pair else float(pair[0] == pair[1]) for pair in pairs])
    columns: dict[str, object] = {
        "nearest_similarity": _spread_numbers(similarity, rows, len(cases)),
        "nearest_earlier": _spread_texts([ids[row] if row >= 0 else None for row in position], rows, len(cases)),
    }
    reasons: dict[str, str] = {}
    is_empty = not (position >= 0).any()
    for name, threshold in THRESHOLDS.items():
        hits = dialogue.is_cache_hit(similarity, threshold=threshold)
        is_wrong = np.where(hits & ~np.isnan(is_same_page), 1 - is_same_page, np.nan)
        measured = np.full(len(hits), np.nan) if is_empty else hits.astype(float)
        columns[f"cache_hit_rate{name}"] = _spread_numbers(measured, rows, len(cases))
        columns[f"cache_wrong_hit_rate{name}"] = _spread_numbers(is_wrong, rows, len(cases))
        if len(rows) and is_empty:
            reasons |= dict.fromkeys((f"cache_hit_rate{name}", f"cache_wrong_hit_rate{name}"), NO_CACHE_YET)
        elif len(rows) and not hits.any():
            reasons[f"cache_wrong_hit_rate{name}"] = Words("no question hits the cache")
    return columns, reasons


def _mean_over_dialogs(
    declared: Metric,
    by_dialog: Callable[[Vectors, list[str]], NDArray[np.float64]],
    vectors: Vectors,
    dialog_cases: pa.Table,
    seed: int,
) -> SetValue:
    """Compute the mean over dialogs, grouped by user."""
    names = column_values(dialog_cases, "dialog")
    values = by_dialog(vectors, names) if names else np.zeros(0)
    n = int(np.count_nonzero(~np.isnan(values)))
    if not n:
        return SetValue(math.nan, NO_INTERVAL, 0)
    users = dict(zip(reversed(names), reversed(column_values(dialog_cases, "group")), strict=True))
    groups = [users[name] for name in dict.fromkeys(names)]
    interval = mean_interval(values, seed=seed, low=declared.low, high=declared.high, groups=groups)
    return SetValue(float(np.nanmean(values)), interval, n)


def _spread_numbers(values: NDArray[np.float64], rows: NDArray[np.intp], n: int) -> NDArray[np.float64]:
    result = np.full(n, np.nan)
    result[rows] = values
    return result


def _spread_texts(values: list[str | None], rows: NDArray[np.intp], n: int) -> list[str | None]:
    result: list[str | None] = [None] * n
    for row, value in zip(rows, values, strict=True):
        result[row] = value
    return result
