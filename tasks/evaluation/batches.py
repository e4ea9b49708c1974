"""All batches through the steps, here or on a Dask cluster."""

import asyncio
import logging
from collections.abc import Sequence

from threadpoolctl import threadpool_limits

from yarus.db import journal
from yarus.tasks.config.connections import database
from yarus.tasks.evaluation.batch import P, Step, batch_file, evaluate_batch
from yarus.tasks.evaluation.dask import on_dask
from yarus.tasks.evaluation.progress import progress
from yarus.tasks.evaluation.run import Run
from yarus.tasks.evaluation.work_folder import batch_sizes
from yarus.tasks.evaluation.work_store import download, upload
from yarus.tasks.progress.counts import Part, counting

log = logging.getLogger("yarus")

IN_FLIGHT = 2
"""Batches at once: one computes while another waits for the disk or the database."""


async def in_batches(run: Run[P], steps: Sequence[Step[P]]) -> None:
    """Sends the cases through the steps, batch by batch; a batch that was finished before is not done again."""
    await asyncio.to_thread(_exchange, run)
    done = await asyncio.to_thread(journal.batches_done, database(), run.id)
    gate = asyncio.Semaphore(IN_FLIGHT)

    waiting = [batch for batch in range(run.n_batches) if batch not in done or not batch_file(run, batch).exists()]

    async def one(batch: int) -> None:
        async with gate:
            counting(parts[batch])
            advance(batch, await evaluate_batch(run, batch, steps))

    def advance(batch: int, failed: int | None) -> None:
        parts[batch].end(failed)
        log.debug("batch %d of %d is done", batch + 1, run.n_batches)

    try:
        async with progress(run, {*range(run.n_batches)} - {*waiting}, [step.__name__ for step in steps]) as found:
            parts = [Part(found, size) for size in await asyncio.to_thread(batch_sizes, run)]
            if run.parameters.runner == "dask":
                return await on_dask(run, waiting, steps, lambda batch: advance(batch, None))
            # The batches are the threads: within a product others would spin, waiting for its end.
            with threadpool_limits(1, user_api="blas"):
                async with asyncio.TaskGroup() as group:
                    for batch in waiting:
                        group.create_task(one(batch))
    except BaseExceptionGroup as failed:  # the first batch that failed ended the others
        raise failed.exceptions[0] from None


def _exchange(run: Run) -> None:
    """Gives others what the batches are computed from, and gets the batches that they have done."""
    upload(run.id, (file for file in run.work.iterdir() if not file.name.startswith(".")))
    download(run.id, run.work, batches=True)
