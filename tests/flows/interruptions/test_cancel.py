"""Evaluations that are cancelled, by Ctrl-C or in Prefect, or lose their server: no half result, and they go on."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Engine

from tests.support.command_line import CommandLine, Document, environment
from tests.support.interrupted import QUALITY, Server, known, no_half_result, running, stopped_in_time, variables
from tests.support.prefect_servers import errors_of, history_of, set_state, state_of, task_states_of
from tests.support.processes import answers, free_port, until
from yarus.db import journal
from yarus.deployments.prefect.server_process import SQLITE


def same(resumed: Document, whole: Document) -> None:
    assert resumed["state"] == "completed"
    for name in QUALITY:
        assert resumed["metrics"][name] == whole["metrics"][name], name


@pytest.mark.slow("process: Ctrl-C")
@pytest.mark.parametrize(
    "how",
    [
        "Ctrl-C",
        pytest.param("SIGTERM", marks=pytest.mark.slow("breadth: another signal")),
        pytest.param("cancelled in the UI", marks=pytest.mark.slow("prefect: it hears of it when it asks")),
    ],
)
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
    process = yarus.fork(*sluggish, env=variables(prefect_server, 600))  # nobody waits for the first question
    row = until("evaluation", lambda: not process.is_running() or running(engine, before))
    assert process.is_running(), process.ran()
    begun = time.monotonic()
    if how != "cancelled in the UI":
        process.signal(signal.SIGINT if how == "Ctrl-C" else signal.SIGTERM)
    else:
        set_state(prefect_server, row["flow_run_id"], "CANCELLING", "Cancelling")
    out, err, code = process.ran()
    took = time.monotonic() - begun
    assert (code, out) == (130, ""), err
    assert f"yarus run tier1 --resume {row['id']}" in err
    assert "Traceback" not in err
    stopped_in_time(engine, home, row["id"], took)
    assert state_of(prefect_server, row["flow_run_id"]) == "CANCELLED"
    assert "Crashed" not in history_of(prefect_server, row["flow_run_id"])
    assert "Crashed" not in task_states_of(prefect_server, row["flow_run_id"])
    assert errors_of(prefect_server, row["flow_run_id"]) == []
    same(yarus("run", "tier1", "--resume", row["id"], "--json", env=variables(prefect_server)).json, undisturbed)


IN_A_TERMINAL = """
import os
os.setsid()
from yarus.__main__ import main
main()
"""


@pytest.mark.slow("process: a server of its own, as a user's")
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
    (home / name).mkdir()
    own["PREFECT_API_DATABASE_CONNECTION_URL"] = f"{SQLITE}{home / name / 'prefect.db'}"
    command = [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, env=environment(home) | own, cwd=home, **quiet) as server:
        try:
            yield server
        finally:
            server.kill()


@pytest.mark.slow("process: a server to be killed")
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
    lost = {"PREFECT_API_URL": f"http://127.0.0.1:{port}/api", "PREFECT_CLIENT_MAX_RETRIES": "0"}
    lost |= {"YARUS_GATE_FILE": str(gate)}
    before = known(engine)
    with serving(home, port, "killed-server") as server:
        until("server", lambda: answers(port))
        process = yarus.fork(*sluggish, env=variables(lost, 0.03))
        row = until("evaluation", lambda: not process.is_running() or running(engine, before))
        assert process.is_running(), process.ran()
        server.kill()
        server.wait()
    out, err, code = process.ran()
    after = journal.find(engine, row["id"])
    if after["state"] == "completed":  # and says so, whatever Prefect could be told
        assert code == 1, err  # by its gate
        assert json.loads(out)["gate"]["failed"] == ["mrr: floor"]
        same(json.loads(out), undisturbed)
        return
    assert (out, code, after["state"]) == ("", 3, "failed"), err
    assert f"yarus run tier1 --resume {row['id']}" in after["error"]
    no_half_result(engine, home, row["id"])
    same(yarus("run", "tier1", "--resume", row["id"], "--json", env=variables(prefect_server)).json, undisturbed)
