"""Check evaluations that are cancelled, by Ctrl-C or in Prefect, or lose their server: nothing partial, resumable."""

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

from tests.support.command_line import CommandLine, Document, make_environment
from tests.support.interrupted import (
    QUALITY,
    Server,
    add_delay,
    assert_no_partial_result,
    assert_stopped_in_time,
    find_running,
    list_evaluation_ids,
)
from tests.support.prefect_servers import get_error_messages, get_state, get_state_names, get_task_states, set_state
from tests.support.processes import find_free_port, is_port_open, wait_for
from yarus.db import journal
from yarus.deployments.prefect.server_process import SQLITE


def assert_same_results(resumed: Document, undisturbed: Document) -> None:
    assert resumed["state"] == "completed"
    for name in QUALITY:
        assert resumed["metrics"][name] == undisturbed["metrics"][name], name


@pytest.mark.slow("process: Ctrl-C")
@pytest.mark.parametrize(
    "how",
    [
        "Ctrl-C",
        pytest.param("SIGTERM", marks=pytest.mark.slow("breadth: another signal")),
        pytest.param("cancelled in the UI", marks=pytest.mark.slow("prefect: it hears of it when it asks")),
    ],
)
def test_stop_does_not_wait_for_slow_step(
    how: str,
    yarus: CommandLine,
    home: Path,
    engine: Engine,
    sluggish: tuple[str, ...],
    prefect_server: Server,
    undisturbed: Document,
) -> None:
    before = list_evaluation_ids(engine)
    process = yarus.fork(*sluggish, env=add_delay(prefect_server, 600))  # nothing waits for the first question
    row = wait_for("evaluation", lambda: not process.is_running() or find_running(engine, before))
    assert process.is_running(), process.ran()
    stopped_at = time.monotonic()
    if how != "cancelled in the UI":
        process.signal(signal.SIGINT if how == "Ctrl-C" else signal.SIGTERM)
    else:
        set_state(prefect_server, row["flow_run_id"], "CANCELLING", "Cancelling")
    out, err, code = process.ran()
    seconds = time.monotonic() - stopped_at
    assert (code, out) == (130, ""), err
    assert f"yarus run tier1 --resume {row['id']}" in err
    assert "Traceback" not in err
    assert_stopped_in_time(engine, home, row["id"], seconds)
    assert get_state(prefect_server, row["flow_run_id"]) == "CANCELLED"
    assert "Crashed" not in get_state_names(prefect_server, row["flow_run_id"])
    assert "Crashed" not in get_task_states(prefect_server, row["flow_run_id"])
    assert get_error_messages(prefect_server, row["flow_run_id"]) == []
    assert_same_results(
        yarus("run", "tier1", "--resume", row["id"], "--json", env=add_delay(prefect_server)).json, undisturbed
    )


IN_A_TERMINAL = """
import os
os.setsid()
from yarus.__main__ import main
main()
"""


@pytest.mark.slow("process: a server of its own, as a user's")
def test_ctrl_c_reaches_all_processes_of_command(
    yarus_alone: CommandLine, home: Path, engine: Engine, sluggish: tuple[str, ...]
) -> None:
    """Check that the command's own Prefect server lives long enough to be told."""
    before = list_evaluation_ids(engine)
    process = yarus_alone.start(*sluggish, env={"SLUGGISH_S": "600"}, script=IN_A_TERMINAL)
    row = wait_for("evaluation", lambda: process.poll() is not None or find_running(engine, before))
    assert process.poll() is None, process.communicate()
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert f"yarus run tier1 --resume {row['id']}" in err
    with closing(sqlite3.connect(home / "prefect" / "prefect.db")) as prefect:
        states = prefect.execute("SELECT state_type FROM flow_run WHERE id = ?", [row["flow_run_id"]]).fetchall()
    assert states == [("CANCELLED",)]
    assert journal.find_evaluation(engine, row["id"])["state"] == "cancelled"


@contextmanager
def serve_prefect(home: Path, port: int, name: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a separate Prefect server, to be killed."""
    variables = {"PREFECT_HOME": str(home / name), "PREFECT_SERVER_ANALYTICS_ENABLED": "false", "DO_NOT_TRACK": "1"}
    (home / name).mkdir()
    variables["PREFECT_API_DATABASE_CONNECTION_URL"] = f"{SQLITE}{home / name / 'prefect.db'}"
    command = [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, env=make_environment(home) | variables, cwd=home, **quiet) as server:
        try:
            yield server
        finally:
            server.kill()


@pytest.mark.slow("process: a server to be killed")
def test_killed_server_loses_no_evaluation(
    yarus: CommandLine,
    home: Path,
    engine: Engine,
    sluggish: tuple[str, ...],
    prefect_server: Server,
    undisturbed: Document,
) -> None:
    """Check that the evaluation finishes without the server, or is resumed with another one."""
    port = find_free_port()
    gate = home / "of a lost server.toml"
    gate.write_text("[[rule]]\nmetric = 'mrr'\nfloor = 1.0\n", encoding="utf-8")
    lost = {"PREFECT_API_URL": f"http://127.0.0.1:{port}/api", "PREFECT_CLIENT_MAX_RETRIES": "0"}
    lost |= {"YARUS_GATE_FILE": str(gate)}
    before = list_evaluation_ids(engine)
    with serve_prefect(home, port, "killed-server") as server:
        wait_for("server", lambda: is_port_open(port))
        process = yarus.fork(*sluggish, env=add_delay(lost, 0.03))
        row = wait_for("evaluation", lambda: not process.is_running() or find_running(engine, before))
        assert process.is_running(), process.ran()
        server.kill()
        server.wait()
    out, err, code = process.ran()
    after = journal.find_evaluation(engine, row["id"])
    if after["state"] == "completed":  # and reports it, even if Prefect could not be told
        assert code == 1, err  # because of its gate
        assert json.loads(out)["gate"]["failed"] == ["mrr: floor"]
        assert_same_results(json.loads(out), undisturbed)
        return
    assert (out, code, after["state"]) == ("", 3, "failed"), err
    assert f"yarus run tier1 --resume {row['id']}" in after["error"]
    assert_no_partial_result(engine, home, row["id"])
    assert_same_results(
        yarus("run", "tier1", "--resume", row["id"], "--json", env=add_delay(prefect_server)).json, undisturbed
    )
