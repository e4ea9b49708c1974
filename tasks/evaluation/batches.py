"""Run all batches through the steps, here or on a Dask cluster, with progress in Prefect's UI."""

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
from yarus.db.messages import Words
from yarus.db.stores.calls import evaluation_spending
from yarus.tasks.config.connections import database
from yarus.tasks.config.settings import get_settings
from yarus.tasks.evaluation.batch import P, Step, batch_file, count_failed, evaluate_batch
from yarus.tasks.evaluation.config import EvaluationConfig
from yarus.tasks.evaluation.dask import run_on_dask
from yarus.tasks.evaluation.result_files import read_parquet
from yarus.tasks.evaluation.run import EvaluationRun
from yarus.tasks.evaluation.work_folder import batch_sizes, download_files, upload_files
from yarus.tasks.models.progress import (
    BatchProgress,
    Progress,
    format_duration,
    format_progress_line,
    set_current_batch,
    track_progress,
)

log = logging.getLogger("yarus")

SIZE_IN_NAME_ABOVE = 4
"""Batches of an evaluation above which its run is named by size."""
UPDATE_INTERVAL_S = 5.0
"""An update costs Prefect's server 20 ms of CPU; shorter evaluations show no progress there."""
LOG_INTERVAL_S = 30.0
"""Seconds between two lines of the log."""
REQUEST_TIMEOUT_S = 10
SUGGEST_ABOVE_S = 600.0
"""Remaining time from which a faster way is suggested."""
MIN_REPLIES = 5
"""Replies needed before the estimate of the remaining time is used."""
IS_PROGRESS = {"progress": True}
"""Mark of log lines that the terminal need not repeat."""
WAITING_STEPS: Mapping[str, Callable[[EvaluationConfig], bool]] = {
    **dict.fromkeys(("retrieve", "answer", "answer_ideal", "judge", "judge_again", "decide"), lambda _: True),
    "fill": lambda config: config.pool is not None,
    "judge_dialogs": lambda config: config.dialogs is not None,
    "check_claims": lambda config: bool(config.claims or config.citations),
    "find_nuggets": lambda config: config.nuggets is not None,
    "examine": lambda config: config.exam_of is not None,
}
"""Steps that a case may wait for, and in which evaluations."""


@asynccontextmanager
async def progress(run: EvaluationRun, done: Set[int], steps: Sequence[str]) -> AsyncIterator[Progress]:
    """Show the progress of an evaluation: in the terminal, in the log, and in Prefect if it lasts.

    Args:
        run: with its cases loaded.
        done: batches that an earlier try has finished.
        steps: the names of the tier's steps.
    """
    waited_steps = tuple(step for step in steps if step in WAITING_STEPS and WAITING_STEPS[step](run.config))
    tracker = Progress(run.tier, run.parameters.source, run.n_cases, waited_steps or tuple(steps[-1:]))
    if done:
        await asyncio.to_thread(_count_finished, run, done, tracker)
    if run.n_batches > SIZE_IN_NAME_ABOVE:
        await name_flow_run(run.tier, run.parameters.source, run.n_cases)
    ids: list[UUID] = []
    reporting = asyncio.create_task(_report(tracker, artifact_key(run.tier, run.parameters.source, "progress"), ids))
    try:
        with track_progress(tracker):
            yield tracker
    finally:
        reporting.cancel()
    for artifact_id in ids:
        await request_best_effort(aupdate_progress_artifact(artifact_id, **_progress_document(tracker)))


def _count_finished(run: EvaluationRun, done: Set[int], tracker: Progress) -> None:
    """Count what an earlier try has finished, and what that cost."""
    for batch in done:
        statuses = read_parquet(batch_file(run, batch), columns=["status"])["status"]
        tracker.skip(len(statuses))
        tracker.failed = (tracker.failed or 0) + count_failed(statuses)
    spent = evaluation_spending(database(), run.id)
    tracker.bought((spent["tokens_in"], spent["tokens_out"]), spent["cost_usd"])


async def _report(tracker: Progress, key: str, ids: list[UUID]) -> None:
    """Update Prefect's artifact and log progress until cancelled; append the artifact's id."""
    last_logged, has_hinted = time.monotonic(), False
    while True:
        await asyncio.sleep(UPDATE_INTERVAL_S)
        document = _progress_document(tracker)
        if not has_hinted and (hint := _suggest_faster(tracker)):
            has_hinted = True
            log.info("%s", hint)
        if time.monotonic() - last_logged >= LOG_INTERVAL_S:
            last_logged = time.monotonic()
            log.info("%s", document["description"], extra=IS_PROGRESS)
        if ids:
            await request_best_effort(aupdate_progress_artifact(ids[0], **document))
        elif (artifact_id := await request_best_effort(acreate_progress_artifact(key=key, **document))) is not None:
            ids.append(artifact_id)


def _suggest_faster(tracker: Progress) -> str | None:
    """Suggest faster options if the remaining calls take long; None if not."""
    if tracker.waited < MIN_REPLIES or tracker.replies == tracker.calls or (tracker.left_s or 0) < SUGGEST_ABOVE_S:
        return None
    left, each = tracker.calls - tracker.replies, tracker.seconds_per_call or 0
    smaller = (
        Words("--exam and --limit take fewer questions")
        if tracker.tier == "judge"
        else Words("--limit takes fewer questions")
    )
    return Words(
        "{left} calls are left at {each:.1f} s each: {time}. Faster: {smaller}; a server that answers several at once, "
        "with __CONCURRENCY above 1; a smaller model. What is answered is kept, Ctrl-C loses nothing",
        left=left, each=each, time=format_duration(left * each), smaller=smaller,
    )  # fmt: skip


class ShownProgress(TypedDict):
    """Content of Prefect's progress artifact."""

    progress: float
    """Percent."""
    description: str


def _progress_document(tracker: Progress) -> ShownProgress:
    return {
        "progress": round(100 * tracker.share, 1),
        "description": format_progress_line(tracker, get_settings().language),
    }


async def name_flow_run(tier: str, source: str, n_cases: int) -> None:
    """Name the flow run by tier, source and number of cases, once the number is known."""
    context = FlowRunContext.get()
    if context is not None and context.flow_run is not None and isinstance(context.client, PrefectClient):
        name = f"{tier} {source} · {n_cases}"
        await request_best_effort(context.client.update_flow_run(context.flow_run.id, name=name))


async def request_best_effort(request: Awaitable[Any]) -> Any:
    """Return the answer of Prefect's server, or None if there is none: results do not depend on it.

    The timeout counts seconds in which this process ran: a suspended process (Ctrl-Z, a debugger) finds the answer
    waiting when it continues.
    """
    pending = asyncio.ensure_future(request)
    try:
        for _ in range(REQUEST_TIMEOUT_S):
            if (await asyncio.wait({pending}, timeout=1.0))[0]:
                return pending.result()
        raise TimeoutError
    except (httpx.HTTPError, PrefectException, TimeoutError) as error:
        log.warning(
            "the results could not be shown on Prefect's server (%s); they are stored completely", type(error).__name__
        )
        return None
    finally:
        pending.cancel()


def artifact_key(*parts: str) -> str:
    """Return a key that Prefect allows: small letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", "-".join(parts).lower()).strip("-")


PARALLEL_BATCHES = 2
"""Batches at once: one computes while another waits for the disk or the database."""


async def run_in_batches(run: EvaluationRun[P], steps: Sequence[Step[P]]) -> None:
    """Run the cases through the steps, batch by batch; batches finished before are skipped."""
    await asyncio.to_thread(_exchange, run)
    finished = await asyncio.to_thread(journal.read_finished_batches, database(), run.id)
    slots = asyncio.Semaphore(PARALLEL_BATCHES)

    pending = [batch for batch in range(run.n_batches) if batch not in finished or not batch_file(run, batch).exists()]

    async def run_batch(batch: int) -> None:
        async with slots:
            set_current_batch(parts[batch])
            advance(batch, await evaluate_batch(run, batch, steps))

    def advance(batch: int, failed: int | None) -> None:
        parts[batch].end(failed)
        log.debug("batch %d of %d is done", batch + 1, run.n_batches)

    try:
        async with progress(run, {*range(run.n_batches)} - {*pending}, [step.__name__ for step in steps]) as tracker:
            parts = [BatchProgress(tracker, size) for size in await asyncio.to_thread(batch_sizes, run)]
            if run.parameters.runner == "dask":
                return await run_on_dask(run, pending, steps, lambda batch: advance(batch, None))
            # Batches run in threads already: more threads within a matrix product would only spin.
            with threadpool_limits(1, user_api="blas"):
                async with asyncio.TaskGroup() as group:
                    for batch in pending:
                        group.create_task(run_batch(batch))
    except BaseExceptionGroup as failed:  # the first failed batch has ended the others
        raise failed.exceptions[0] from None


def _exchange(run: EvaluationRun) -> None:
    """Upload what the batches are computed from, and download the batches that others have finished."""
    upload_files(run.id, (file for file in run.work.iterdir() if not file.name.startswith(".")))
    download_files(run.id, run.work, batches=True)
