"""Compute the batches of an evaluation on the workers of a Dask cluster, through Prefect."""

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.client.orchestration import get_client
from prefect.settings import PREFECT_API_URL, temporary_settings
from threadpoolctl import threadpool_limits

from yarus.db import journal
from yarus.db.errors import InputError
from yarus.tasks.config.connections import database
from yarus.tasks.config.settings import get_settings
from yarus.tasks.evaluation.batch import P, Step, batch_name, evaluate_batch
from yarus.tasks.evaluation.identity import require_same_settings
from yarus.tasks.evaluation.resources import Resources
from yarus.tasks.evaluation.run import EvaluationRun
from yarus.tasks.evaluation.work_folder import download_files

if TYPE_CHECKING:
    from prefect_dask.task_runners import DaskTaskRunner

SCHEMES = ("tcp", "tls", "ucx", "ws", "wss")
LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")


def require_dask() -> None:
    """Check the requirements of Dask before anything is started.

    Raises:
        InputError: the package is not installed, the address is invalid, or its workers could not reach our database.
    """
    if find_spec("prefect_dask") is None:
        raise InputError("--runner dask: the package prefect-dask is not installed: pip install 'yarus[dask]'")
    settings = get_settings()
    address = settings.dask_address
    if address is None:
        return
    try:
        parts = urlsplit(address)
        valid = parts.scheme in SCHEMES and bool(parts.hostname) and parts.port is not None
    except ValueError:
        valid = False
    if not valid:
        raise InputError(
            "YARUS_DASK_ADDRESS={address!r}: expected the scheduler's address, such as tcp://host:8786", address=address
        )
    if settings.database_url is None and parts.hostname not in LOCAL_HOSTS:
        raise InputError(
            "YARUS_DASK_ADDRESS={address!r} is another machine, whose workers cannot reach the embedded database: "
            "set YARUS_DATABASE_URL to a PostgreSQL server that all machines reach, here and for the workers",
            address=address,
        )


async def run_on_dask(
    run: EvaluationRun[P], batches: Sequence[int], steps: Sequence[Step[P]], advance: Callable[[int], None]
) -> None:
    """Compute the batches on Dask's workers; if one dies, its batches go to the others.

    Args:
        run: with its cases loaded.
        batches: the numbers of the unfinished ones.
        steps: of the tier.
        advance: called after every batch, with its number.
    """
    async with _open_runner() as runner, asyncio.TaskGroup() as group:
        for batch in batches:
            group.create_task(_run_batch(runner, {"run": run, "batch": batch, "steps": steps}, advance))


@task(task_run_name=batch_name, cache_policy=NO_CACHE, retries=0)  # type: ignore[arg-type]  # as evaluate_batch
async def batch_on_worker(run: EvaluationRun[P], batch: int, steps: Sequence[Step[P]]) -> None:
    """Run one batch in a worker process, with one thread: there are as many workers as processors."""
    with hold_resources(run.id) as resources, threadpool_limits(1):
        run = replace(run, resources=resources)
        await asyncio.to_thread(_prepare, run)
        await evaluate_batch.fn(run, batch, steps)


@dataclass(eq=False)
class _WorkerResources:
    resources: Resources = field(default_factory=Resources)
    batches: int = 0
    """Batches in progress."""


MAX_IDLE_EVALUATIONS = 1
"""Evaluations without a running batch whose resources a worker keeps open for their next batch."""
_RESOURCES_LOCK = threading.Lock()


@contextmanager
def hold_resources(evaluation_id: str) -> Iterator[Resources]:
    """Hold the resources of an evaluation on this worker, shared by its batches; close those of long idle ones."""
    from distributed import get_worker

    by_evaluation: dict[str, _WorkerResources] = vars(get_worker()).setdefault("yarus_held", {})
    with _RESOURCES_LOCK:
        own = by_evaluation.pop(evaluation_id, None) or _WorkerResources()
        by_evaluation[evaluation_id] = own  # the newest is last
        own.batches += 1
        idle = [name for name, entry in by_evaluation.items() if not entry.batches]
        closed = [by_evaluation.pop(name) for name in idle[:-MAX_IDLE_EVALUATIONS]]
    for entry in closed:
        entry.resources.close()
    try:
        yield own.resources
    finally:
        with _RESOURCES_LOCK:
            own.batches -= 1


def _prepare(run: EvaluationRun) -> None:
    """Check that the worker has the same evaluation, and download its inputs.

    Raises:
        InputError: its settings name another database, or differ from those that the evaluation was started with.
    """
    try:
        row = journal.find_evaluation(database(), run.id)
    except InputError:
        raise InputError(
            "a Dask worker's database has no evaluation {evaluation}: start the workers with the same "
            "YARUS_DATABASE_URL, or on one machine with the same YARUS_HOME",
            evaluation=run.id,
        ) from None
    require_same_settings(row)
    if not (run.work / "cases.parquet").exists():
        download_files(run.id, run.work, batches=False)
    if not (run.work / "cases.parquet").exists():
        raise InputError(
            "a Dask worker does not see {work}: set YARUS_WORK_DIR, here and for the workers, to a folder or a URL "
            "that all of them reach",
            work=run.work,
        )


@asynccontextmanager
async def _open_runner() -> AsyncIterator["DaskTaskRunner"]:
    """Start a runner whose workers report to the same Prefect server, even if that server lives in this run."""
    from prefect_dask.task_runners import DaskTaskRunner

    address = get_settings().dask_address
    cluster_options = {"n_workers": os.cpu_count() or 1, "threads_per_worker": 1, "dashboard_address": None}
    runner = DaskTaskRunner(address=address) if address else DaskTaskRunner(cluster_kwargs=cluster_options)
    async with get_client() as client:
        api = str(client.api_url)
    with temporary_settings({PREFECT_API_URL: api}):
        await asyncio.to_thread(runner.__enter__)
        try:
            await asyncio.to_thread(lambda: runner.client)
            yield runner
        finally:
            await asyncio.to_thread(runner.__exit__, None, None, None)


async def _run_batch(runner: "DaskTaskRunner", parameters: dict[str, Any], advance: Callable[[int], None]) -> None:
    loop = asyncio.get_running_loop()
    is_done = asyncio.Event()
    future = await asyncio.to_thread(runner.submit, batch_on_worker, parameters)

    def wake(_: Any) -> None:
        loop.call_soon_threadsafe(is_done.set)

    future.add_done_callback(wake)
    await is_done.wait()
    await asyncio.to_thread(future.result)
    advance(parameters["batch"])
