"""One batch of cases through the steps."""

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
from yarus.tasks.cases.table import declared
from yarus.tasks.cases.vocabulary import FAILED
from yarus.tasks.config.connections import database
from yarus.tasks.config.parameters import Parameters
from yarus.tasks.evaluation.result_files import parquet, write_batches
from yarus.tasks.evaluation.run import Run
from yarus.tasks.evaluation.work_folder import read_cases, upload
from yarus.tasks.models.progress import tick

P = TypeVar("P", bound=Parameters)
log = logging.getLogger("yarus")
Step = Callable[[Run[P], pa.Table], pa.Table | Awaitable[pa.Table]]


def batch_name(parameters: dict[str, Any]) -> str:
    """What Prefect's run view calls a batch: its number and its steps, as the flow names them."""
    run, batch, steps = (parameters[name] for name in ("run", "batch", "steps"))
    return f"batch {batch + 1} of {run.n_batches}: {', '.join(step.__name__ for step in steps)}"


# Prefect's type of such a function is one that no function has.
@task(task_run_name=batch_name, cache_policy=NO_CACHE, retries=0)  # type: ignore[arg-type]
async def evaluate_batch(run: Run[P], batch: int, steps: Sequence[Step[P]]) -> int:
    """Sends one batch of cases through the steps and keeps the result; returns how many of them failed.

    One task run for all of its steps, since each costs Prefect's server 20 ms. No retries, whatever Prefect's settings
    say: every call is tried by itself (`RetryPolicy`), and a system under test would be asked all of it again.
    """
    cases = read_cases(run, batch)
    with pseudonyms.errors(run.parameters.source):
        for step in steps:
            began = time.monotonic()
            cases = await (step(run, cases) if iscoroutinefunction(step) else asyncio.to_thread(step, run, cases))
            tick(step.__name__, n=len(cases))
            log.debug("batch %d: %s took %.1f s", batch + 1, step.__name__, time.monotonic() - began)
    await asyncio.to_thread(keep_batch, run, batch, cases)
    return n_failed(cases["status"])


def n_failed(statuses: pa.ChunkedArray) -> int:
    """How many cases have a status that says that something stood in the way."""
    failed: int = pc.sum(pc.is_in(statuses, value_set=pa.array(FAILED, pa.string())), min_count=0).as_py()
    return failed


def keep_batch(run: Run, batch: int, cases: pa.Table) -> None:
    """Writes the file of a finished batch, then its line in the journal.

    Raises:
        KeyError: a column is not declared.
    """
    for name in cases.column_names:
        declared(name)
    file = batch_file(run, batch)
    write_batches([cases], file)
    upload(run.id, [file])
    journal.batch_done(database(), run.id, batch)


def batches_of(run: Run) -> Iterator[pa.Table]:
    """The cases of all batches, in order; every one must be there."""
    for batch in range(run.n_batches):
        yield parquet(batch_file(run, batch))


def batch_file(run: Run, batch: int) -> Path:
    """Where the cases of a finished batch are kept until the evaluation has its one file."""
    return run.work / f"batch-{batch:04d}.parquet"
