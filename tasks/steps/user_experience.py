"""User experience: what a cache of good answers would have done, and whether dialogs stay on their topic."""

import asyncio
import math
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from prefect import task
from prefect.cache_policies import NO_CACHE

from yarus.db.words import Words
from yarus.metrics import dialogue
from yarus.metrics.metric import Metric
from yarus.metrics.statistics import mean_interval
from yarus.metrics.statistics.intervals import NO_INTERVAL
from yarus.metrics.table import metric
from yarus.tasks.cases.labels import GOOD
from yarus.tasks.cases.outcomes import fail
from yarus.tasks.cases.table import floats, values_of, with_columns
from yarus.tasks.cases.vocabulary import Status
from yarus.tasks.config.connections import database
from yarus.tasks.evaluation.batch import keep_batch
from yarus.tasks.evaluation.result_files import parquet
from yarus.tasks.evaluation.run import Run
from yarus.tasks.evaluation.set_metrics import Whole, not_measured
from yarus.tasks.evaluation.work_folder import read_cases
from yarus.tasks.models.embedding.cache import embed_each
from yarus.tasks.models.embedding.embedders import embedder
from yarus.tasks.models.embedding.parts import Vectors

NO_CACHE_YET = Words("no earlier question was rated 5")
THRESHOLDS = {"": 0.85, "@0.8": 0.8, "@0.9": 0.9, "@0.95": 0.95}


@task(task_run_name="measure_experience", cache_policy=NO_CACHE)
async def measure_experience(run: Run) -> dict[str, Whole]:
    """Scores every question of the evaluation against the earlier ones of the whole log, and every dialog."""
    return await asyncio.to_thread(_measure, run)


def _measure(run: Run) -> dict[str, Whole]:
    cases, log = read_cases(run), parquet(run.work / "log.parquet")
    model = embedder(run.config.similarity_embedder)
    vectors, wrong = embed_each(values_of(log, "question"), model, database())
    usable = np.linalg.norm(vectors, axis=1) > 0
    evaluated = pc.is_in(log["case_id"], value_set=cases["case_id"].combine_chunks()).to_numpy()
    places = np.flatnonzero(evaluated).tolist()
    no_vector = ((number, row) for number, row in enumerate(places) if not usable[row])
    cases = fail(cases, (_why_no_vector(number, wrong.get(row)) for number, row in no_vector))
    searched = usable & log["asked_at"].is_valid().to_numpy()
    kept = np.flatnonzero(searched[evaluated])
    cached, why = _cache(cases, kept, log.filter(searched), vectors[searched], evaluated[searched])
    cases = with_columns(cases, **cached)
    keep_batch(run, 0, cases)
    turns = np.nan_to_num(floats(cases, "turn"))
    inside = np.flatnonzero((turns > 0) & usable[evaluated])
    inside = inside[np.argsort(turns[inside], kind="stable")]
    asked = cases.select(["dialog", "group"]).take(inside)
    measured = vectors[evaluated][inside]
    by_dialog = {
        "context_preservation": dialogue.context_by_dialog,
        "multi_turn_consistency": dialogue.consistency_by_dialog,
    }
    over_dialogs = {
        name: _over_dialogs(metric(name), of, measured, asked, run.parameters.seed) for name, of in by_dialog.items()
    }
    return over_dialogs | {name: not_measured(reason) for name, reason in why.items()}


def _why_no_vector(number: int, error: str | None) -> tuple[int, Status, str]:
    if error is not None:
        return number, "judge_error", f"embedder: {error}"
    return number, "not_applicable", Words("the question has no vector")


def _cache(
    cases: pa.Table, kept: NDArray[np.intp], log: pa.Table, vectors: Vectors, evaluated: NDArray[np.bool_]
) -> tuple[dict[str, object], dict[str, str]]:
    """Hits and wrong hits of a cache of the earlier questions that were rated good, by threshold.

    A question before the first good rating is missed: the cache was empty then. Where all are before it, there was no
    cache whose hits could be counted: nothing is measured.

    Args:
        cases: the questions that are evaluated.
        kept: the rows of those that have a time and a vector.
        log: they and the others that a cache could hold, in the same order.
        vectors: of the log.
        evaluated: which rows of the log are those of `kept`.

    Returns:
        The columns of cases, and by metric why it has no value.
    """
    good = [score == GOOD for score in values_of(log, "score")]
    similarity, place = dialogue.nearest_earlier(vectors, log["asked_at"].to_numpy(), candidates=good, asked=evaluated)
    similarity, place = similarity[evaluated], place[evaluated]
    pages, ids = values_of(log, "page"), values_of(log, "case_id")
    own = cases["page"].take(kept).to_pylist()
    both = [(page, pages[at]) if at >= 0 else (None, None) for page, at in zip(own, place, strict=True)]
    right = np.array([math.nan if None in pair else float(pair[0] == pair[1]) for pair in both])
    columns: dict[str, object] = {
        "nearest_similarity": _placed(similarity, kept, len(cases)),
        "nearest_earlier": _named([ids[at] if at >= 0 else None for at in place], kept, len(cases)),
    }
    why: dict[str, str] = {}
    empty = not (place >= 0).any()
    for name, threshold in THRESHOLDS.items():
        hits = dialogue.cache_hits(similarity, threshold=threshold)
        wrong = np.where(hits & ~np.isnan(right), 1 - right, np.nan)
        measured = np.full(len(hits), np.nan) if empty else hits.astype(float)
        columns[f"cache_hit_rate{name}"] = _placed(measured, kept, len(cases))
        columns[f"cache_wrong_hit_rate{name}"] = _placed(wrong, kept, len(cases))
        if len(kept) and empty:
            why |= dict.fromkeys((f"cache_hit_rate{name}", f"cache_wrong_hit_rate{name}"), NO_CACHE_YET)
        elif len(kept) and not hits.any():
            why[f"cache_wrong_hit_rate{name}"] = Words("no question hits the cache")
    return columns, why


def _over_dialogs(
    declared: Metric,
    by_dialog: Callable[[Vectors, list[str]], NDArray[np.float64]],
    vectors: Vectors,
    asked: pa.Table,
    seed: int,
) -> Whole:
    """The mean over dialogs; those of one user are a group."""
    names = values_of(asked, "dialog")
    values = by_dialog(vectors, names) if names else np.zeros(0)
    n = int(np.count_nonzero(~np.isnan(values)))
    if not n:
        return Whole(math.nan, NO_INTERVAL, 0)
    users = dict(zip(reversed(names), reversed(values_of(asked, "group")), strict=True))
    groups = [users[name] for name in dict.fromkeys(names)]
    interval = mean_interval(values, seed=seed, low=declared.low, high=declared.high, groups=groups)
    return Whole(float(np.nanmean(values)), interval, n)


def _placed(values: NDArray[np.float64], kept: NDArray[np.intp], n: int) -> NDArray[np.float64]:
    out = np.full(n, np.nan)
    out[kept] = values
    return out


def _named(values: list[str | None], kept: NDArray[np.intp], n: int) -> list[str | None]:
    out: list[str | None] = [None] * n
    for row, value in zip(kept, values, strict=True):
        out[row] = value
    return out
