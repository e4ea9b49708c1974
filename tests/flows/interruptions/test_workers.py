"""Evaluations of a worker that is killed, or cancelled in Prefect: no half result, and a retry goes on."""

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

from tests.support.command_line import Document, environment
from tests.support.forked import Forked
from tests.support.interrupted import QUALITY, Server, known, no_half_result, running, stopped_in_time, variables
from tests.support.prefect_servers import errors_of, history_of, set_state, state_of
from tests.support.processes import until
from yarus.db import journal
from yarus.db.tables import evaluation

pytestmark = pytest.mark.slow("prefect: workers, and processes of theirs")


def kill(worker: Forked) -> None:
    """Kills a worker with the runs that it has begun, which would go on without it."""
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(worker.pid)
        for each in [*process.children(recursive=True), process]:
            each.kill()


@contextmanager
def working(home: Path, server: Server, seconds: float) -> Iterator[Forked]:
    """A worker of the pool `killed`, by a retriever that takes so many seconds a question."""
    given = variables(server, seconds) | {"PREFECT_WORKER_QUERY_SECONDS": "1", "PYTHONPATH": str(home)}
    words = ("worker", "start", "--pool", "killed", "--type", "process")
    worker = Forked(words, environment(home) | given, home, "from prefect.cli import app; app()")
    try:
        yield worker
    finally:
        kill(worker)
        worker.ran()


def deployed(server: Server, flow: str, given: Document) -> str:
    """A run of a flow that waits for a worker; its id."""

    async def create() -> str:
        async with PrefectClient(server["PREFECT_API_URL"]) as client:
            await client.create_work_pool(WorkPoolCreate(name="killed", type="process"), overwrite=True)
            flow_id = await client.create_flow_from_name(flow)
            deployment = await client.create_deployment(
                flow_id, "to be killed", work_pool_name="killed", entrypoint=f"yarus.flows.{flow}:{flow}"
            )
            # Of a busy server, which answers 503 when the run is there already, Prefect's client asks again.
            run = await client.create_flow_run_from_deployment(
                deployment, parameters={"parameters": given}, idempotency_key=str(uuid4())
            )
            return str(run.id)

    return asyncio.run(create())


def as_whole(engine: Engine, name: str, whole: Document) -> None:
    metrics = {found["metric"]: found for found in journal.metrics_of(engine, name)}
    for metric in QUALITY:
        assert metrics[metric]["value"] == whole["metrics"][metric]["value"], metric


SOME, FEWER = {"limit": 150}, {"limit": 140}
"""By the number of questions the nights' evaluations are told apart."""


class Run(NamedTuple):
    """A run whose worker was killed, and that was retried."""

    id: str
    left: Document
    """The evaluation that was killed."""
    done: dict[str, Any]
    """Evaluations that were finished before it: id -> when."""
    after: set[str]
    """All its evaluations in the end."""


@pytest.fixture(scope="module")
def retried(home: Path, engine: Engine, sluggish: tuple[str, ...], prefect_server: Server) -> dict[str, Run]:
    """A tier's run and two nights: what they left when their worker was killed, and what Retry in the UI made of it."""
    before = known(engine)
    server = prefect_server | {"YARUS_RETRIEVER": "sluggish:retrieve"}
    ids = {
        "tier": deployed(server, "tier1", SOME | {"retriever": "sluggish:retrieve"}),
        "night": deployed(server, "nightly", SOME | {"tiers": ["tier0", "tier1"]}),
        "night with another setting": deployed(server, "nightly", FEWER | {"tiers": ["tier1"]}),
    }

    def begun() -> dict[str, list[Document]]:
        """The evaluations of each run."""
        with engine.connect() as connection:
            rows = connection.execute(select(evaluation).where(evaluation.c.id.not_in(before))).mappings()
            found: dict[str, list[Document]] = {name: [] for name in ids}
            for row in rows:
                fewer = row["parameters"]["limit"] == FEWER["limit"]
                night = "night with another setting" if fewer else "night"
                found["tier" if row["flow_run_id"] == ids["tier"] else night].append(dict(row))
        return found

    def asks(row: Document) -> bool:
        return row["state"] == "running" and row["tier"] == "tier1" and "k" in (row["resolved"] or {})

    def all_ask() -> bool:
        return all(any(map(asks, rows)) for rows in begun().values())

    with working(home, server, 60) as worker:
        until("evaluation of each", all_ask, seconds=200)
        kill(worker)
    killed = begun()
    left = {name: next(filter(asks, rows)) for name, rows in killed.items()}
    for row in left.values():
        no_half_result(engine, home, row["id"])
    for flow_run_id in ids.values():
        set_state(server, flow_run_id, "SCHEDULED", "AwaitingRetry")
    asyncio.run(set_variables(server, ids["night with another setting"], {"YARUS_RETRIEVER": "fulltext"}))
    with working(home, server, 0):
        until("end", lambda: {state_of(server, each) for each in ids.values()} == {"COMPLETED"}, seconds=200)
    ended = begun()
    return {
        name: Run(
            flow_run_id,
            left[name],
            {row["id"]: row["finished_at"] for row in killed[name] if row["finished_at"]},
            {row["id"] for row in ended[name]},
        )
        for name, flow_run_id in ids.items()
    }


async def set_variables(server: Server, flow_run_id: str, variables: dict[str, str]) -> None:
    """Has a run that is scheduled begin with these."""
    async with PrefectClient(server["PREFECT_API_URL"]) as client:
        await client.update_flow_run(UUID(flow_run_id), job_variables={"env": variables})


def test_the_worker_is_killed_and_prefects_retry_goes_on(
    engine: Engine, retried: dict[str, Run], undisturbed: Document
) -> None:
    run = retried["tier"]
    assert run.left["flow_run_id"] == run.id
    assert run.after == {run.left["id"]}  # none was begun anew
    as_whole(engine, run.left["id"], undisturbed)


def test_a_night_is_retried_with_another_setting(engine: Engine, retried: dict[str, Run]) -> None:
    """What was begun would be half another one's: it is left, and the tier evaluated anew."""
    run = retried["night with another setting"]
    [anew] = run.after - {run.left["id"]}
    assert journal.find(engine, anew)["state"] == "completed"
    assert journal.find(engine, run.left["id"])["state"] == "failed"


def test_a_night_is_retried_from_where_it_was_left(
    engine: Engine, retried: dict[str, Run], undisturbed: Document
) -> None:
    """What was completed is not evaluated again, what was begun goes on."""
    run = retried["night"]
    [(done, finished_at)] = run.done.items()
    assert run.after == {done, run.left["id"]}
    assert journal.find(engine, run.left["id"])["state"] == "completed"
    assert journal.find(engine, done)["finished_at"] == finished_at
    as_whole(engine, run.left["id"], undisturbed)


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
