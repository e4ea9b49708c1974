"""All batches through the steps, here or on a Dask cluster, and their progress in Prefect's UI."""

import asyncio
import logging
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence, Set
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import httpx
from prefect.artifacts import acreate_progress_artifact, aupdate_progress_artifact
from prefect.client.orchestration import PrefectClient
from prefect.context import FlowRunContext
from prefect.exceptions import PrefectException
from threadpoolctl import threadpool_limits
from typing_extensions import TypedDict

from yarus.db import journal
from yarus.db.stores.calls import bought
from yarus.db.words import Words
from yarus.tasks.config.connections import database
from yarus.tasks.config.settings import settings
from yarus.tasks.evaluation.batch import P, Step, batch_file, evaluate_batch, n_failed
from yarus.tasks.evaluation.config import EvaluationConfig
from yarus.tasks.evaluation.dask import on_dask
from yarus.tasks.evaluation.result_files import parquet
from yarus.tasks.evaluation.run import Run
from yarus.tasks.evaluation.work_folder import batch_sizes, download, upload
from yarus.tasks.models.progress import Part, Progress, clock, counting, line, showing

log = logging.getLogger("yarus")

LONG = 4
"""Batches of an evaluation whose run bears its size."""
EVERY_S = 5.0
"""An update costs Prefect's server 20 ms of CPU; what ends sooner is never shown there."""
LINES_S = 30.0
"""Between two lines of the log."""
PATIENCE_S = 10
SLOW_S = 600.0
"""Remaining time from which a faster way is suggested."""
SURE = 5
"""Replies after which the estimate of the remaining time is used."""
IS_PROGRESS = {"progress": True}
"""What a line of the log bears that a terminal need not repeat."""
WAITS: Mapping[str, Callable[[EvaluationConfig], bool]] = {
    **dict.fromkeys(("retrieve", "answer", "answer_ideal", "judge", "judge_again", "decide"), lambda _: True),
    "fill": lambda config: config.pool is not None,
    "judge_dialogs": lambda config: config.dialogs is not None,
    "check_claims": lambda config: bool(config.claims or config.citations),
    "find_nuggets": lambda config: config.nuggets is not None,
    "examine": lambda config: config.exam_of is not None,
}
"""The steps that a case may wait for, and of which evaluations."""


@asynccontextmanager
async def progress(run: Run, done: Set[int], steps: Sequence[str]) -> AsyncIterator[Progress]:
    """Shows how far an evaluation is: in the terminal, in the log, and in Prefect where it lasts.

    Args:
        run: with its cases loaded.
        done: batches that an earlier try has finished.
        steps: the names of the tier's steps.
    """
    waited = tuple(step for step in steps if step in WAITS and WAITS[step](run.config))
    found = Progress(run.tier, run.parameters.source, run.n_cases, waited or tuple(steps[-1:]))
    if done:
        await asyncio.to_thread(_skip, run, done, found)
    if run.n_batches > LONG:
        await show_size(run.tier, run.parameters.source, run.n_cases)
    shown: list[UUID] = []
    telling = asyncio.create_task(_tell(found, artifact_key(run.tier, run.parameters.source, "progress"), shown))
    try:
        with showing(found):
            yield found
    finally:
        telling.cancel()
    for artifact in shown:
        await best_effort(aupdate_progress_artifact(artifact, **_told(found)))


def _skip(run: Run, done: Set[int], found: Progress) -> None:
    """Counts what an earlier try has done, and what that has cost."""
    for batch in done:
        statuses = parquet(batch_file(run, batch), columns=["status"])["status"]
        found.skip(len(statuses))
        found.failed = (found.failed or 0) + n_failed(statuses)
    spent = bought(database(), run.id)
    found.bought((spent["tokens_in"], spent["tokens_out"]), spent["cost_usd"])


async def _tell(found: Progress, key: str, shown: list[UUID]) -> None:
    """Updates Prefect's artifact and writes lines into the log, until it is cancelled; adds the artifact's id."""
    said, hinted = time.monotonic(), False
    while True:
        await asyncio.sleep(EVERY_S)
        told = _told(found)
        if not hinted and (hint := _suggest_faster(found)):
            hinted = True
            log.info("%s", hint)
        if time.monotonic() - said >= LINES_S:
            said = time.monotonic()
            log.info("%s", told["description"], extra=IS_PROGRESS)
        if shown:
            await best_effort(aupdate_progress_artifact(shown[0], **told))
        elif (made := await best_effort(acreate_progress_artifact(key=key, **told))) is not None:
            shown.append(made)


def _suggest_faster(found: Progress) -> str | None:
    """Suggest what would be faster if the remaining calls take long; None if not."""
    if found.waited < SURE or found.replies == found.calls or (found.left_s or 0) < SLOW_S:
        return None
    left, each = found.calls - found.replies, found.seconds_per_call or 0
    smaller = (
        Words("--exam and --limit take fewer questions")
        if found.tier == "judge"
        else Words("--limit takes fewer questions")
    )
    return Words(
        "{left} calls are left at {each:.1f} s each: {time}. Faster: {smaller}; a server that answers several at once, "
        "with __CONCURRENCY above 1; a smaller model. What is answered is kept, Ctrl-C loses nothing",
        left=left, each=each, time=clock(left * each), smaller=smaller,
    )  # fmt: skip


class ShownProgress(TypedDict):
    """What Prefect's artifact shows."""

    progress: float
    """Percent."""
    description: str


def _told(found: Progress) -> ShownProgress:
    return {"progress": round(100 * found.share, 1), "description": line(found, settings().language)}


async def show_size(tier: str, source: str, n_cases: int) -> None:
    """Names the flow run by tier, source and number of cases, which is known only now."""
    context = FlowRunContext.get()
    if context is not None and context.flow_run is not None and isinstance(context.client, PrefectClient):
        await best_effort(context.client.update_flow_run(context.flow_run.id, name=f"{tier} {source} · {n_cases}"))


async def best_effort(request: Awaitable[Any]) -> Any:
    """What Prefect's server answered; None where it did not, for the record is ours.

    Its patience is in seconds in which this process ran: one that was suspended (Ctrl-Z, a debugger) finds the answer
    waiting when it goes on.
    """
    asked = asyncio.ensure_future(request)
    try:
        for _ in range(PATIENCE_S):
            if (await asyncio.wait({asked}, timeout=1.0))[0]:
                return asked.result()
        raise TimeoutError
    except (httpx.HTTPError, PrefectException, TimeoutError) as error:
        log.warning(
            "the results could not be shown on Prefect's server (%s); they are stored completely", type(error).__name__
        )
        return None
    finally:
        asked.cancel()


def artifact_key(*parts: str) -> str:
    """A key as Prefect allows it: small letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", "-".join(parts).lower()).strip("-")


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
