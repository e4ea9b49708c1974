"""The last steps: batches on disk as they finish, then one Parquet file, then the metrics in SQL."""

import asyncio
import hashlib
import json
import logging
import shutil
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any

import pyarrow as pa
from prefect import task
from prefect.cache_policies import NO_CACHE

from db import journal
from db.calls import bought
from tasks import shown
from tasks.artifacts import progress, show_results
from tasks.cases import LONG, declared
from tasks.connect import database
from tasks.failures import failures
from tasks.files import parquet, place, publish, remove, write_batches, write_whole
from tasks.load import read_cases, statuses
from tasks.report import summary
from tasks.retrieve import unknown_ids
from tasks.run import Run
from tasks.score import Whole, coverage, measured_by, strata, summarise
from tasks.settings import settings
from tasks.shared_work import clear, fetch, give

log = logging.getLogger("yarus")
Measure = Callable[[pa.Table, int], Mapping[str, Whole]]
"""Metrics over a set of cases, from the cases and a seed."""
Step = Callable[[Run, pa.Table], pa.Table | Awaitable[pa.Table]]
MEASURING = ("unit", "k", "texts", "perturbation", "judge", "similarity_embedder")
"""What of the resolved parameters measures; the others belong to the system under test."""
IN_FLIGHT = 2
"""Batches at once: one computes while another waits for the disk or the database."""


async def in_batches(run: Run, steps: Sequence[Step]) -> None:
    """Sends the cases through the steps, batch by batch; a batch that was finished before is not done again."""
    await asyncio.to_thread(_exchange, run)
    done = await asyncio.to_thread(journal.batches_done, database(), run.id)
    gate = asyncio.Semaphore(IN_FLIGHT)

    waiting = [batch for batch in range(run.n_batches) if batch not in done or not _batch_file(run, batch).exists()]

    async def one(batch: int) -> None:
        async with gate:
            await evaluate_batch(run, batch, steps)
            log.info("batch %d of %d is done", batch + 1, run.n_batches)
            await advance()

    try:
        async with progress(run, run.n_batches - len(waiting)) as advance:
            if run.parameters.runner == "dask":
                from tasks.scale import on_dask  # here, because Dask may not be installed, and scale needs this module

                return await on_dask(run, waiting, steps, advance)
            async with asyncio.TaskGroup() as group:
                for batch in waiting:
                    group.create_task(one(batch))
    except BaseExceptionGroup as failed:  # the first batch that failed ended the others
        raise failed.exceptions[0] from None


@task(task_run_name="batch {batch}", cache_policy=NO_CACHE)
async def evaluate_batch(run: Run, batch: int, steps: Sequence[Step]) -> None:
    """Sends one batch of cases through the steps and keeps the result."""
    cases = read_cases(run, batch)
    with shown.errors(run.parameters.source):
        for step in steps:
            cases = await (step(run, cases) if iscoroutinefunction(step) else asyncio.to_thread(step, run, cases))
    await asyncio.to_thread(keep_batch, run, batch, cases)


def _nothing_more(cases: pa.Table, seed: int) -> dict[str, Whole]:
    return {}


@task(task_run_name="finish", cache_policy=NO_CACHE)
async def finish(run: Run, measure: Measure = _nothing_more) -> dict[str, Any]:
    """Writes the file, then metrics and final state in one transaction; returns the summary of the evaluation.

    Args:
        run: with all of its batches done.
        measure: computes the tier's metrics that need all cases at once.
    """
    done = await asyncio.to_thread(_finish, run, measure)
    await show_results(run, done)
    return done


def comparability(run: Run, case_set_hash: str) -> dict[str, Any]:
    """Everything that must be equal for two evaluations' metrics to be compared.

    The system under test and its corpus are what is compared, so they are not in it.
    """
    rolling = run.parameters.source == "production"
    rule = {"limit": run.parameters.limit, "seed": run.parameters.seed} if run.parameters.limit else {}
    by_content = {"source": run.parameters.source, **rule} if rolling else {"sha256": case_set_hash}
    return {
        "tier": run.tier,
        "cases": run.resolved["cases"] | rule if "cases" in run.resolved else by_content,
        "metrics": [metric.signature_with(**_options(run)) for metric in measured_by(run.tier, run.resolved)],
        "labels": "annotation, else the log" if run.tier != "real_users" else "the log",
        **{name: run.resolved[name] for name in MEASURING if name in run.resolved},
    }


def keep_batch(run: Run, batch: int, cases: pa.Table) -> None:
    """Writes the file of a finished batch, then its line in the journal.

    Raises:
        KeyError: a column is not declared.
    """
    for name in cases.column_names:
        declared(name)
    file = _batch_file(run, batch)
    write_whole(cases, file)
    give(run.id, [file])
    journal.batch_done(database(), run.id, batch)


def _finish(run: Run, measure: Measure) -> dict[str, Any]:
    engine = database()
    fetch(run.id, run.work, batches=True)  # those that workers elsewhere have done
    file = run.work / f"{run.id}.parquet"
    write_batches(_batches(run), file, evaluation_id=run.id)
    # All at once, so without texts that no metric is made of; only where the judge is judged do its replies count.
    unread = ("question", "labelled", "distances", *(() if run.tier == "judge" else ("judge_raw",)))
    cases = parquet(file, without=(*LONG, *unread))
    row = journal.find(engine, run.id)
    parts = comparability(run, row["case_set_hash"])
    key = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]
    counts = statuses(cases)
    share = coverage(counts)
    seed = run.parameters.seed
    declared_metrics = measured_by(run.tier, run.resolved)
    metrics = [
        value.row(stratum)
        for stratum, rows in strata(cases).items()
        for value in summarise(declared_metrics, rows, seed=seed, options=_options(run), whole=measure(rows, seed))
    ]
    path = publish(file, place(settings().results_root, run.tier, run.id, row["started_at"]))
    valid = share is not None and share >= settings().min_coverage
    closed = journal.close(
        engine,
        run.id,
        "completed" if valid else "invalid",
        metrics,
        error=None if valid else _why_invalid(share),
        comparability_key=key,
        comparability=parts,
        statuses=counts,
        coverage=share,
        parquet=path,
        **bought(engine, run.id),
        resolved=row["resolved"] | _found_out(run, cases, row["resolved"]["notes"]),
    )
    if closed:
        shutil.rmtree(run.work, ignore_errors=True)
        clear(run.id)
    elif journal.find(engine, run.id)["state"] not in journal.FINISHED:  # stopped: a file without metrics is none
        remove(path)
    return summary(engine, run.id)


def _found_out(run: Run, cases: pa.Table, notes: list[dict[str, Any]]) -> dict[str, Any]:
    """What only the whole table of cases tells, beside the metrics."""
    found: dict[str, Any] = {"notes": [*notes, *unknown_ids(run, cases)]}
    return found | ({"failures": failures(cases)} if "failure" in cases.column_names else {})


def _why_invalid(share: float | None) -> str:
    wanted = settings().min_coverage
    if share is None:
        return "no case could be measured: none has a label that names something in the corpus"
    return f"only {share:.1%} of the cases that could be measured were; {wanted:.0%} are needed (YARUS_MIN_COVERAGE)"


def _options(run: Run) -> dict[str, Any]:
    """What stands in the metrics' signatures and is chosen by the evaluation."""
    named = {"depth": "k", "gain": "gain", "distance": "distance"}
    return {option: run.resolved[name] for option, name in named.items() if name in run.resolved}


def _batches(run: Run) -> Iterator[pa.Table]:
    for batch in range(run.n_batches):
        yield parquet(_batch_file(run, batch))


def _exchange(run: Run) -> None:
    """Gives others what the batches are computed from, and gets the batches that they have done."""
    give(run.id, (file for file in run.work.iterdir() if not file.name.startswith(".")))
    fetch(run.id, run.work, batches=True)


def _batch_file(run: Run, batch: int) -> Path:
    return run.work / f"batch-{batch:04d}.parquet"
