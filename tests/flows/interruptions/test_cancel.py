"""Evaluations that are cancelled in Prefect, or lose their worker or server: no half result, and they go on."""

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from sqlalchemy import Engine, select

from db import journal
from db.tables import evaluation, evaluation_metric
from tests.support.command_line import CommandLine, Document, environment
from tests.support.prefect_servers import state_of
from tests.support.processes import answers, free_port, until

Server = dict[str, str]
STOP_S = 10
QUALITY = ("hit_rate@1", "mrr", "recall@10", "ndcg@10")
SAMPLE = ("--limit", "150")
SLUGGISH = """
import os, time, zlib
def retrieve(question, k):
    time.sleep(float(os.environ["SLUGGISH_S"]))
    start = zlib.crc32(question.encode()) % 90
    return [(str(number), rank) for rank, number in enumerate(range(start, start + k))]
"""


@pytest.fixture(scope="module")
def sluggish(home: Path) -> tuple[str, ...]:
    """Words of an evaluation by a retriever that takes SLUGGISH_S for a question."""
    (home / "sluggish.py").write_text(SLUGGISH, encoding="utf-8")
    return ("run", "tier1", *SAMPLE, "--retriever", "sluggish:retrieve", "--json")


def variables(server: Mapping[str, str], seconds: float = 0) -> dict[str, str]:
    return {**server, "SLUGGISH_S": str(seconds)}


@pytest.fixture(scope="module")
def undisturbed(yarus: CommandLine, sluggish: tuple[str, ...], prefect_server: Server) -> Document:
    return yarus(*sluggish, env=variables(prefect_server)).json


def running(engine: Engine, before: set[str]) -> Any:
    """A new evaluation whose cases are loaded, and that is about to ask the retriever."""
    wanted = select(evaluation).where(evaluation.c.state == "running", evaluation.c.id.not_in(before))
    with engine.connect() as connection:
        rows = connection.execute(wanted.where(evaluation.c.resolved["k"].is_not(None))).mappings()
        return rows.first()


def known(engine: Engine) -> set[str]:
    with engine.connect() as connection:
        return set(connection.scalars(select(evaluation.c.id)))


def no_half_result(engine: Engine, home: Path, name: str) -> None:
    with engine.connect() as connection:
        metrics = connection.execute(select(evaluation_metric).where(evaluation_metric.c.evaluation_id == name)).all()
    assert metrics == []
    assert list((home / "results").rglob(f"*{name}*")) == []


def stopped_in_time(engine: Engine, home: Path, name: str, seconds: float) -> None:
    """Soon, without half a result, and saying how to go on."""
    assert seconds < 3 * STOP_S  # 10 s on a machine that is not busy with other things
    stopped = journal.find(engine, name)
    assert stopped["state"] == "cancelled"
    assert f"yarus run tier1 --resume {name}" in stopped["error"]
    no_half_result(engine, home, name)


def same(resumed: Document, whole: Document) -> None:
    assert resumed["state"] == "completed"
    for name in QUALITY:
        assert resumed["metrics"][name] == whole["metrics"][name], name


def set_state(server: Server, flow_run_id: str, state: str, name: str) -> None:
    body = {"state": {"type": state, "name": name}, "force": True}
    url = f"{server['PREFECT_API_URL']}/flow_runs/{flow_run_id}/set_state"
    httpx.post(url, json=body, timeout=30).raise_for_status()


@pytest.mark.parametrize("how", ["cancelled in the UI", "Ctrl-C"])
def test_a_step_that_nothing_interrupts_does_not_hold_up_the_stop(
    how: str,
    yarus: CommandLine,
    home: Path,
    engine: Engine,
    sluggish: tuple[str, ...],
    prefect_server: Server,
    undisturbed: Document,
) -> None:
    before = known(engine)
    process = yarus.start(*sluggish, env=variables(prefect_server, 600))  # nobody waits for the first question
    row = until("evaluation", lambda: process.poll() is not None or running(engine, before))
    assert process.poll() is None, process.communicate()
    begun = time.monotonic()
    if how == "Ctrl-C":
        process.send_signal(signal.SIGINT)
    else:
        set_state(prefect_server, row["flow_run_id"], "CANCELLING", "Cancelling")
    out, err = process.communicate(timeout=60)
    took = time.monotonic() - begun
    assert (process.returncode, out) == (130, ""), err
    assert f"yarus run tier1 --resume {row['id']}" in err
    assert "Traceback" not in err
    stopped_in_time(engine, home, row["id"], took)
    assert state_of(prefect_server, row["flow_run_id"]) == "CANCELLED"
    same(yarus("run", "tier1", "--resume", row["id"], "--json", env=variables(prefect_server)).json, undisturbed)


IN_A_TERMINAL = """
import os
os.setsid()
from flows.__main__ import main
main()
"""


def test_ctrl_c_in_a_terminal_which_reaches_every_process_of_the_command(
    yarus_alone: CommandLine, home: Path, engine: Engine, sluggish: tuple[str, ...]
) -> None:
    """The Prefect server that the command has started lives long enough to hear of it."""
    before = known(engine)
    process = yarus_alone.start(*sluggish, env={"SLUGGISH_S": "600"}, script=IN_A_TERMINAL)
    row = until("evaluation", lambda: process.poll() is not None or running(engine, before))
    assert process.poll() is None, process.communicate()
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert f"yarus run tier1 --resume {row['id']}" in err
    with closing(sqlite3.connect(home / "prefect" / "prefect.db")) as prefect:
        told = prefect.execute("SELECT state_type FROM flow_run WHERE id = ?", [row["flow_run_id"]]).fetchall()
    assert told == [("CANCELLED",)]
    assert journal.find(engine, row["id"])["state"] == "cancelled"


@contextmanager
def serving(home: Path, port: int, name: str) -> Iterator[subprocess.Popen[bytes]]:
    """A Prefect server of one's own, to be killed."""
    own = {"PREFECT_HOME": str(home / name), "PREFECT_SERVER_ANALYTICS_ENABLED": "false", "DO_NOT_TRACK": "1"}
    command = [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, env=environment(home) | own, cwd=home, **quiet) as server:
        try:
            yield server
        finally:
            server.kill()


def test_the_server_is_killed_in_the_middle(
    yarus: CommandLine,
    home: Path,
    engine: Engine,
    sluggish: tuple[str, ...],
    prefect_server: Server,
    undisturbed: Document,
) -> None:
    """The results are ours: the evaluation finishes without the server, or is resumed with another."""
    port = free_port()
    gate = home / "of a lost server.toml"
    gate.write_text("[[rule]]\nmetric = 'mrr'\nfloor = 1.0\n", encoding="utf-8")
    lost = {"PREFECT_API_URL": f"http://127.0.0.1:{port}/api", "PREFECT_CLIENT_MAX_RETRIES": "1"}
    lost |= {"YARUS_GATE_FILE": str(gate)}
    before = known(engine)
    with serving(home, port, "killed-server") as server:
        until("server", lambda: answers(port))
        process = yarus.start(*sluggish, env=variables(lost, 0.03))
        row = until("evaluation", lambda: process.poll() is not None or running(engine, before))
        assert process.poll() is None, process.communicate()
        server.kill()
        server.wait()
    out, err = process.communicate(timeout=120)
    after = journal.find(engine, row["id"])
    if after["state"] == "completed":  # and says so, whatever Prefect could be told
        assert process.returncode == 1, err  # by its gate
        assert json.loads(out)["gate"]["failed"] == ["mrr: floor"]
        same(json.loads(out), undisturbed)
        return
    assert (out, process.returncode, after["state"]) == ("", 3, "failed"), err
    assert f"yarus run tier1 --resume {row['id']}" in after["error"]
    no_half_result(engine, home, row["id"])
    same(yarus("run", "tier1", "--resume", row["id"], "--json", env=variables(prefect_server)).json, undisturbed)


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
