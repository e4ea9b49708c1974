"""Evaluations of a worker that is killed, or cancelled in Prefect: no half result, and a retry goes on."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
from sqlalchemy import Engine

from db import journal
from tests.support.command_line import Document, environment
from tests.support.interrupted import QUALITY, Server, known, no_half_result, running, stopped_in_time, variables
from tests.support.prefect_servers import errors_of, history_of, set_state, state_of
from tests.support.processes import until


def kill(worker: "subprocess.Popen[bytes]") -> None:
    """Kills a worker with the runs that it has begun, which would go on without it."""
    with suppress(psutil.NoSuchProcess):
        for process in [*psutil.Process(worker.pid).children(recursive=True), worker]:
            process.kill()


@contextmanager
def working(home: Path, server: Server, seconds: float) -> Iterator[subprocess.Popen[bytes]]:
    """A worker of the pool `killed`, by a retriever that takes so many seconds a question."""
    given = variables(server, seconds) | {"PREFECT_WORKER_QUERY_SECONDS": "1", "PYTHONPATH": str(home)}
    command = [sys.executable, "-m", "prefect", "worker", "start", "--pool", "killed", "--type", "process"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, env=environment(home) | given, cwd=home, **quiet) as worker:
        try:
            yield worker
        finally:
            kill(worker)


def deployed(server: Server, flow: str, given: Document) -> str:
    """A run of a flow that waits for a worker; its id."""
    from prefect.client.orchestration import PrefectClient
    from prefect.client.schemas.actions import WorkPoolCreate

    async def create() -> str:
        async with PrefectClient(server["PREFECT_API_URL"]) as client:
            await client.create_work_pool(WorkPoolCreate(name="killed", type="process"), overwrite=True)
            flow_id = await client.create_flow_from_name(flow)
            deployment = await client.create_deployment(
                flow_id, "to be killed", work_pool_name="killed", entrypoint=f"flows.{flow}:{flow}"
            )
            run = await client.create_flow_run_from_deployment(deployment, parameters={"parameters": given})
            return str(run.id)

    return asyncio.run(create())


def as_whole(engine: Engine, name: str, whole: Document) -> None:
    metrics = {found["metric"]: found for found in journal.metrics_of(engine, name)}
    for metric in QUALITY:
        assert metrics[metric]["value"] == whole["metrics"][metric]["value"], metric


def retried(server: Server, flow_run_id: str) -> None:
    """What Retry does in the UI."""
    set_state(server, flow_run_id, "SCHEDULED", "AwaitingRetry")


def test_the_worker_is_killed_and_prefects_retry_goes_on(
    home: Path,
    engine: Engine,
    sluggish: tuple[str, ...],
    prefect_server: Server,
    undisturbed: Document,
) -> None:
    before = known(engine)
    flow_run_id = deployed(prefect_server, "tier1", {"limit": 150, "retriever": "sluggish:retrieve"})
    with working(home, prefect_server, 60) as worker:
        row = until("evaluation", lambda: running(engine, before))
        kill(worker)
    assert row["flow_run_id"] == flow_run_id
    no_half_result(engine, home, row["id"])
    retried(prefect_server, flow_run_id)
    with working(home, prefect_server, 0):
        until("end", lambda: journal.find(engine, row["id"])["state"] == "completed")
        until("end", lambda: state_of(prefect_server, flow_run_id) == "COMPLETED")
    assert {row["id"]} == known(engine) - before  # none was begun anew
    as_whole(engine, row["id"], undisturbed)


def test_a_night_is_retried_with_another_setting(
    home: Path, engine: Engine, sluggish: tuple[str, ...], prefect_server: Server
) -> None:
    """What was begun would be half another one's: it is left, and the tier evaluated anew."""
    before = known(engine)
    flow_run_id = deployed(prefect_server, "nightly", {"limit": 150, "tiers": ["tier1"]})
    with working(home, prefect_server | {"YARUS_RETRIEVER": "sluggish:retrieve"}, 60) as worker:
        left = until("evaluation", lambda: running(engine, before))
        kill(worker)
    retried(prefect_server, flow_run_id)
    with working(home, prefect_server | {"YARUS_RETRIEVER": "fulltext"}, 0):
        until("end", lambda: state_of(prefect_server, flow_run_id) == "COMPLETED")
    [anew] = known(engine) - before - {left["id"]}
    assert journal.find(engine, anew)["state"] == "completed"
    assert journal.find(engine, left["id"])["state"] == "failed"


def test_a_run_of_a_worker_is_cancelled_in_the_ui(
    home: Path, engine: Engine, sluggish: tuple[str, ...], prefect_server: Server
) -> None:
    before = known(engine)
    flow_run_id = deployed(prefect_server, "tier1", {"limit": 150, "retriever": "sluggish:retrieve"})
    with working(home, prefect_server, 600) as worker:  # nobody waits for the first question
        row = until("evaluation", lambda: running(engine, before))
        runs = [one for one in psutil.Process(worker.pid).children(recursive=True) if "postgres" not in one.name()]
        set_state(prefect_server, flow_run_id, "CANCELLING", "Cancelling")
        begun = time.monotonic()
        _, alive = psutil.wait_procs(runs, timeout=60)
        took = time.monotonic() - begun
        assert runs
        assert alive == []
        until("end", lambda: state_of(prefect_server, flow_run_id) == "CANCELLED")
    assert "Crashed" not in history_of(prefect_server, flow_run_id)
    assert errors_of(prefect_server, flow_run_id) == []
    stopped_in_time(engine, home, row["id"], took)


def test_a_night_is_retried_from_where_it_was_left(
    home: Path,
    engine: Engine,
    sluggish: tuple[str, ...],
    prefect_server: Server,
    undisturbed: Document,
) -> None:
    """What was completed is not evaluated again, what was begun goes on."""
    before = known(engine)
    server = prefect_server | {"YARUS_RETRIEVER": "sluggish:retrieve"}
    flow_run_id = deployed(server, "nightly", {"limit": 150, "tiers": ["tier0", "tier1"]})
    with working(home, server, 60) as worker:
        row = until("evaluation", lambda: running(engine, before))
        kill(worker)
    assert row["tier"] == "tier1"
    [done] = known(engine) - before - {row["id"]}
    finished_at = journal.find(engine, done)["finished_at"]
    retried(server, flow_run_id)
    with working(home, server, 0):
        until("end", lambda: state_of(server, flow_run_id) == "COMPLETED")
    assert known(engine) - before == {done, row["id"]}
    assert journal.find(engine, row["id"])["state"] == "completed"
    assert journal.find(engine, done)["finished_at"] == finished_at
    as_whole(engine, row["id"], undisturbed)
