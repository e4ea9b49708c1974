"""Run one batch of cases through the steps."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from prefect import task
from prefect.cache_policies import NO_CACHE

from yarus.db import journal
from yarus.tasks.cases.privacy import pseudonyms
from yarus.tasks.cases.table import column_spec
from yarus.tasks.cases.vocabulary import FAILED_STATUSES
from yarus.tasks.config.connections import database
from yarus.tasks.config.parameters import Parameters
from yarus.tasks.evaluation.result_files import read_parquet, write_batches
from yarus.tasks.evaluation.run import EvaluationRun
from yarus.tasks.evaluation.work_folder import read_cases, upload_files
from yarus.tasks.models.progress import count_step

P = TypeVar("P", bound=Parameters)
log = logging.getLogger("yarus")
Step = Callable[[EvaluationRun[P], pa.Table], pa.Table | Awaitable[pa.Table]]


def batch_name(parameters: dict[str, Any]) -> str:
    """Return the task run name of a batch: its number and the names of its steps."""
    run, batch, steps = (parameters[name] for name in ("run", "batch", "steps"))
    return f"batch {batch + 1} of {run.n_batches}: {', '.join(step.__name__ for step in steps)}"


# Prefect's declared type of such a function fits no function.
@task(task_run_name=batch_name, cache_policy=NO_CACHE, retries=0)  # type: ignore[arg-type]
async def evaluate_batch(run: EvaluationRun[P], batch: int, steps: Sequence[Step[P]]) -> int:
    """Run one batch of cases through the steps, store the result, and return the number of failed cases.

    All steps are one task run, because each costs Prefect's server 20 ms. It has no retries, whatever Prefect's
    settings say: each call is retried by itself (`RetryPolicy`), and a system under test would be asked everything
    again.
    """
    cases = read_cases(run, batch)
    with pseudonyms.mask_errors(run.parameters.source):
        for step in steps:
            began = time.monotonic()
            cases = await (step(run, cases) if iscoroutinefunction(step) else asyncio.to_thread(step, run, cases))
            count_step(step.__name__, n=len(cases))
            log.debug("batch %d: %s took %.1f s", batch + 1, step.__name__, time.monotonic() - began)
    await asyncio.to_thread(save_batch, run, batch, cases)
    return count_failed(cases["status"])


def count_failed(statuses: pa.ChunkedArray) -> int:
    """Count the cases with a status that means failure."""
    failed: int = pc.sum(pc.is_in(statuses, value_set=pa.array(FAILED_STATUSES, pa.string())), min_count=0).as_py()
    return failed


def save_batch(run: EvaluationRun, batch: int, cases: pa.Table) -> None:
    """Write the file of a finished batch, then its line in the journal.

    Raises:
        KeyError: a column is not declared.
    """
    for name in cases.column_names:
        column_spec(name)
    file = batch_file(run, batch)
    write_batches([cases], file)
    upload_files(run.id, [file])
    journal.record_batch(database(), run.id, batch)


def read_batches(run: EvaluationRun) -> Iterator[pa.Table]:
    """Yield the cases of all batches, in order; every one must be there."""
    for batch in range(run.n_batches):
        yield read_parquet(batch_file(run, batch))


def batch_file(run: EvaluationRun, batch: int) -> Path:
    """Return the path of a finished batch, used until the evaluation has its single file."""
    return run.work / f"batch-{batch:04d}.parquet"
