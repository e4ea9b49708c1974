"""User experience: what a cache of good answers would have done, and whether dialogs stay on their topic."""

import asyncio
import math
from collections.abc import Callable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from prefect import task
from prefect.cache_policies import NO_CACHE

from db.errors import InputError
from metrics import dialogue
from metrics.statistics import bootstrap_statistic
from tasks.cases import with_columns
from tasks.connect import database
from tasks.embed import embed
from tasks.labels import GOOD
from tasks.load import read_cases
from tasks.models.embedders import Vectors, embedder
from tasks.persist import keep_batch
from tasks.run import Run
from tasks.score import UNKNOWN, Whole

THRESHOLDS = {"": 0.85, "@0.8": 0.8, "@0.9": 0.9, "@0.95": 0.95}


@task(task_run_name="measure the experience", cache_policy=NO_CACHE)
async def measure_experience(run: Run) -> dict[str, Whole]:
    """Scores every question against the earlier ones, and every dialog.

    Raises:
        InputError: no question of the log has a time.
    """
    return await asyncio.to_thread(_measure, run)


def _measure(run: Run) -> dict[str, Whole]:
    cases = read_cases(run)
    if not len(cases):
        raise InputError(
            f"source {run.parameters.source!r}: no question has created_at, so none is earlier than another"
        )
    vectors = embed(cases["question"].to_pylist(), embedder(run.resolved["similarity_embedder"]), database())
    usable = np.linalg.norm(vectors, axis=1) > 0
    cases = with_columns(
        cases,
        status=["ok" if use else "not_applicable" for use in usable],
        reason=[None if use else "the question has no vector" for use in usable],
    )
    kept = np.flatnonzero(usable)
    cases = with_columns(cases, **_cache(cases, kept, vectors[kept]))
    keep_batch(run, 0, cases)
    dialogs = cases["dialog"].take(kept).to_pylist()
    grouped = [row for row, dialog in enumerate(dialogs) if dialog is not None]
    names = [dialogs[row] for row in grouped]
    inside = vectors[kept][grouped]
    return {
        "context_preservation": _over_dialogs(dialogue.context_by_dialog, inside, names, run.parameters.seed),
        "multi_turn_consistency": _over_dialogs(dialogue.consistency_by_dialog, inside, names, run.parameters.seed),
    }


def _cache(cases: pa.Table, kept: NDArray[np.intp], vectors: Vectors) -> dict[str, object]:
    """Hits and wrong hits of a cache of the earlier questions that were rated good, by threshold."""
    rows = cases.take(kept)
    good = [score == GOOD for score in rows["score"].to_pylist()]
    times = rows["asked_at"].to_numpy()
    similarity, place = dialogue.nearest_earlier(vectors, times, candidates=good)
    pages, ids = rows["page"].to_pylist(), rows["case_id"].to_pylist()
    both = [(pages[row], pages[at]) if at >= 0 else (None, None) for row, at in enumerate(place)]
    right = np.array([math.nan if None in pair else float(pair[0] == pair[1]) for pair in both])
    columns: dict[str, object] = {
        "nearest_similarity": _placed(similarity, kept, len(cases)),
        "nearest_earlier": _named([ids[at] if at >= 0 else None for at in place], kept, len(cases)),
    }
    for name, threshold in THRESHOLDS.items():
        hits = dialogue.cache_hits(similarity, threshold=threshold)
        wrong = np.where(hits & ~np.isnan(right), 1 - right, np.nan)
        columns[f"cache_hit_rate{name}"] = _placed(hits.astype(float), kept, len(cases))
        columns[f"cache_wrong_hit_rate{name}"] = _placed(wrong, kept, len(cases))
    return columns


def _over_dialogs(
    by_dialog: Callable[[Vectors, list[str]], NDArray[np.float64]], vectors: Vectors, names: list[str], seed: int
) -> Whole:
    values = by_dialog(vectors, names) if names else np.zeros(0)
    values = values[~np.isnan(values)]
    if not len(values):
        return Whole(math.nan, UNKNOWN, 0)
    interval = bootstrap_statistic(lambda rows: float(values[rows].mean()), len(values), seed=seed)
    return Whole(float(values.mean()), interval, len(values))


def _placed(values: NDArray[np.float64], kept: NDArray[np.intp], n: int) -> NDArray[np.float64]:
    out = np.full(n, np.nan)
    out[kept] = values
    return out


def _named(values: list[str | None], kept: NDArray[np.intp], n: int) -> list[str | None]:
    out: list[str | None] = [None] * n
    for row, value in zip(kept, values, strict=True):
        out[row] = value
    return out
