"""Check evaluations of a worker that is killed, or cancelled in Prefect: nothing partial, and a retry resumes."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import psutil
import pytest
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.actions import WorkPoolCreate
from sqlalchemy import Engine, select

from tests.support.command_line import Document, make_environment
from tests.support.forked import ForkedCommand
from tests.support.interrupted import (
    QUALITY,
    Server,
    add_delay,
    assert_no_partial_result,
    assert_stopped_in_time,
    find_running,
    list_evaluation_ids,
)
from tests.support.prefect_servers import get_error_messages, get_state, get_state_names, set_state
from tests.support.processes import wait_for
from yarus.db import journal
from yarus.db.tables import evaluation

pytestmark = [pytest.mark.slow("prefect: workers, and processes of theirs"), pytest.mark.timeout(600)]


def kill_worker(worker: ForkedCommand) -> None:
    """Kill a worker with the runs that it has started, which would otherwise go on."""
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(worker.pid)
        for victim in [*process.children(recursive=True), process]:
            victim.kill()


@contextmanager
def run_worker(home: Path, server: Server, seconds: float) -> Iterator[ForkedCommand]:
    """Run a worker of the pool `killed`, with a retriever that takes that many seconds per question."""
    variables = add_delay(server, seconds) | {"PREFECT_WORKER_QUERY_SECONDS": "1", "PYTHONPATH": str(home)}
    words = ("worker", "start", "--pool", "killed", "--type", "process")
    worker = ForkedCommand(words, make_environment(home) | variables, home, "from prefect.cli import app; app()")
    try:
        yield worker
    finally:
        kill_worker(worker)
        worker.ran()


def deploy(server: Server, flow: str, parameters: Document) -> str:
    """Create a run of a flow that waits for a worker, and return its id."""

    async def create() -> str:
        async with PrefectClient(server["PREFECT_API_URL"]) as client:
            await client.create_work_pool(WorkPoolCreate(name="killed", type="process"), overwrite=True)
            flow_id = await client.create_flow_from_name(flow)
            deployment = await client.create_deployment(
                flow_id, "to be killed", work_pool_name="killed", entrypoint=f"yarus.flows.{flow}:{flow}"
            )
            # If a busy server answers 503 although the run exists, Prefect's client repeats the request.
            run = await client.create_flow_run_from_deployment(
                deployment, parameters={"parameters": parameters}, idempotency_key=str(uuid4())
            )
            return str(run.id)

    return asyncio.run(create())


def assert_same_results(engine: Engine, name: str, undisturbed: Document) -> None:
    metrics = {row["metric"]: row for row in journal.read_metrics(engine, name)}
    for metric in QUALITY:
        assert metrics[metric]["value"] == undisturbed["metrics"][metric]["value"], metric


LIMIT, OTHER_LIMIT = {"limit": 150}, {"limit": 140}
"""Numbers of questions by which the nights' evaluations are distinguished."""


class Run(NamedTuple):
    """A run whose worker was killed, and that was retried."""

    id: str
    left: Document
    """The evaluation that was killed."""
    done: dict[str, Any]
    """Evaluations that were finished before the kill: id -> time."""
    after: set[str]
    """All its evaluations in the end."""


@pytest.fixture(scope="module")
def retried(home: Path, engine: Engine, sluggish: tuple[str, ...], prefect_server: Server) -> dict[str, Run]:
    """Kill the worker of a tier's run and of two nights, then retry them as in the UI."""
    before = list_evaluation_ids(engine)
    server = prefect_server | {"YARUS_RETRIEVER": "sluggish:retrieve"}
    ids = {
        "tier": deploy(server, "tier1", LIMIT | {"retriever": "sluggish:retrieve"}),
        "night": deploy(server, "nightly", LIMIT | {"tiers": ["tier0", "tier1"]}),
        "night with another setting": deploy(server, "nightly", OTHER_LIMIT | {"tiers": ["tier1"]}),
    }

    def list_evaluations() -> dict[str, list[Document]]:
        """Return the evaluations of each run."""
        with engine.connect() as connection:
            rows = connection.execute(select(evaluation).where(evaluation.c.id.not_in(before))).mappings()
            rows_by_name: dict[str, list[Document]] = {name: [] for name in ids}
            for row in rows:
                fewer = row["parameters"]["limit"] == OTHER_LIMIT["limit"]
                night = "night with another setting" if fewer else "night"
                rows_by_name["tier" if row["flow_run_id"] == ids["tier"] else night].append(dict(row))
        return rows_by_name

    def is_asking(row: Document) -> bool:
        return row["state"] == "running" and row["tier"] == "tier1" and "k" in (row["resolved"] or {})

    def all_ask() -> bool:
        return all(any(map(is_asking, rows)) for rows in list_evaluations().values())

    with run_worker(home, server, 60) as worker:
        wait_for("evaluation of each", all_ask, seconds=200)
        kill_worker(worker)
    killed = list_evaluations()
    unfinished = {name: next(filter(is_asking, rows)) for name, rows in killed.items()}
    for row in unfinished.values():
        assert_no_partial_result(engine, home, row["id"])
    for flow_run_id in ids.values():
        set_state(server, flow_run_id, "SCHEDULED", "AwaitingRetry")
    asyncio.run(set_variables(server, ids["night with another setting"], {"YARUS_RETRIEVER": "fulltext"}))
    with run_worker(home, server, 0):
        wait_for("end", lambda: {get_state(server, each) for each in ids.values()} == {"COMPLETED"}, seconds=200)
    ended = list_evaluations()
    return {
        name: Run(
            flow_run_id,
            unfinished[name],
            {row["id"]: row["finished_at"] for row in killed[name] if row["finished_at"]},
            {row["id"] for row in ended[name]},
        )
        for name, flow_run_id in ids.items()
    }


async def set_variables(server: Server, flow_run_id: str, variables: dict[str, str]) -> None:
    """Set variables for a scheduled run."""
    async with PrefectClient(server["PREFECT_API_URL"]) as client:
        await client.update_flow_run(UUID(flow_run_id), job_variables={"env": variables})


def test_retry_resumes_run_of_killed_worker(engine: Engine, retried: dict[str, Run], undisturbed: Document) -> None:
    run = retried["tier"]
    assert run.left["flow_run_id"] == run.id
    assert run.after == {run.left["id"]}  # no new one was started
    assert_same_results(engine, run.left["id"], undisturbed)


def test_night_retry_with_new_setting_starts_anew(engine: Engine, retried: dict[str, Run]) -> None:
    """Leave the unfinished evaluation, because resuming it would mix two settings."""
    run = retried["night with another setting"]
    [anew] = run.after - {run.left["id"]}
    assert journal.find_evaluation(engine, anew)["state"] == "completed"
    assert journal.find_evaluation(engine, run.left["id"])["state"] == "failed"


def test_night_retry_resumes_unfinished_tier(engine: Engine, retried: dict[str, Run], undisturbed: Document) -> None:
    """Do not repeat completed tiers, and resume the unfinished one."""
    run = retried["night"]
    [(completed_id, finished_at)] = run.done.items()
    assert run.after == {completed_id, run.left["id"]}
    assert journal.find_evaluation(engine, run.left["id"])["state"] == "completed"
    assert journal.find_evaluation(engine, completed_id)["finished_at"] == finished_at
    assert_same_results(engine, run.left["id"], undisturbed)


def test_worker_run_is_cancelled_in_ui(
    home: Path, engine: Engine, sluggish: tuple[str, ...], prefect_server: Server
) -> None:
    before = list_evaluation_ids(engine)
    flow_run_id = deploy(prefect_server, "tier1", {"limit": 150, "retriever": "sluggish:retrieve"})
    with run_worker(home, prefect_server, 600) as worker:  # nothing waits for the first question
        row = wait_for("evaluation", lambda: find_running(engine, before))
        runs = [run for run in psutil.Process(worker.pid).children(recursive=True) if "postgres" not in run.name()]
        set_state(prefect_server, flow_run_id, "CANCELLING", "Cancelling")
        stopped_at = time.monotonic()
        _, alive = psutil.wait_procs(runs, timeout=60)
        seconds = time.monotonic() - stopped_at
        assert runs
        assert alive == []
        wait_for("end", lambda: get_state(prefect_server, flow_run_id) == "CANCELLED")
    assert "Crashed" not in get_state_names(prefect_server, flow_run_id)
    assert get_error_messages(prefect_server, flow_run_id) == []
    assert_stopped_in_time(engine, home, row["id"], seconds)
