"""The server that a home's commands share, as processes: found, outliving them, ended, and never left over."""

import json
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import psutil
import pytest

from db.embedded import server as postgresql
from tasks.orchestration import home_server
from tests.support.command_line import ENGLISH, Command, CommandLine, environment, together
from tests.support.processes import delete, until

RUN = ("run", "tier0", "--limit", "20", "--json")
STAYS = {"YARUS_SERVER_IDLE_S": "600"}
FINAL = {"COMPLETED", "FAILED", "CRASHED", "CANCELLED"}


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[CommandLine]:
    """The command line on a home of its own, of which nothing is left."""
    home = tmp_path / "home"
    home.mkdir()
    yield CommandLine(home)
    home_server.stop(home)
    postgresql.stop(home)
    assert servers(home) == []


def servers(home: Path) -> list[psutil.Process]:
    """Prefect's servers of a home, and its PostgreSQL; what has ended and is not yet waited for is none."""
    found = []
    for process in psutil.process_iter():
        try:
            words, folder = process.cmdline(), process.environ().get("YARUS_HOME")
        except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            continue
        database = str(home / "postgres" / "data") in words
        if ("deployments.process" in words and folder == str(home)) or database:
            found.append(process)
    return found


def states(home: Path) -> list[str]:
    """The states of all task runs that Prefect has, of its file."""
    with closing(sqlite3.connect(home / "prefect" / "prefect.db")) as database:
        return [state for (state,) in database.execute("SELECT state_type FROM task_run")]


def known(home: Path, flow_run_id: str) -> str:
    """The state of a flow run at the server that runs for the home."""
    server = home_server.running(home)
    assert server is not None
    name, _, secret = (home / "prefect" / "password").read_text().partition(":")
    reply = httpx.get(f"{server.api}/flow_runs/{flow_run_id}", auth=(name, secret), timeout=60)
    return str(reply.raise_for_status().json()["state"]["type"])


def test_two_first_runs_at_once_share_a_server_and_the_next_finds_it(fresh: CommandLine) -> None:
    first = together(fresh, {name: Command(RUN, STAYS) for name in ("one", "other")})
    assert [ran.code for ran in first.values()] == [0, 0], first
    server = home_server.running(fresh.home)
    assert server is not None
    again = fresh(*RUN, env=STAYS)
    assert home_server.running(fresh.home) == server
    for ran in (*first.values(), again):
        assert known(fresh.home, ran.json["flow_run_id"]) == "COMPLETED"
    assert postgresql.is_running(fresh.home)
    checks = {check["what"]: check["found"] for check in fresh("doctor", "--json").json}
    assert server.api in checks["prefect"]
    assert "yarus stop" in checks["prefect"]
    assert fresh("stop", "--json").json == {"prefect": "stopped", "postgresql": "stopped"}
    assert set(states(fresh.home)) <= FINAL
    assert servers(fresh.home) == []


def test_without_idle_time_it_ends_with_the_command_and_has_recorded_every_task_run(fresh: CommandLine) -> None:
    parquet = fresh("run", "tier1", "--json").json
    until("end of the server", lambda: not servers(fresh.home))
    found = states(fresh.home)
    assert len(found) >= parquet["metrics"]["hit_rate@1"]["n_total"] // 100
    assert set(found) == {"COMPLETED"}


@pytest.mark.parametrize("moment", ["address", "password", "prefect.db-wal"])
def test_a_command_that_is_killed_while_it_starts_leaves_nothing(fresh: CommandLine, moment: str) -> None:
    started = fresh.start(*RUN)
    until(moment, lambda: (fresh.home / "prefect" / moment).exists())
    started.kill()
    started.communicate()
    until("end of both servers", lambda: not servers(fresh.home))
    assert fresh(*RUN).json["state"] == "completed"
    until("end of both", lambda: not servers(fresh.home))


def test_a_server_that_is_killed_is_started_again(fresh: CommandLine) -> None:
    fresh(*RUN, env=STAYS)
    server = home_server.running(fresh.home)
    assert server is not None
    psutil.Process(server.pid).kill()
    again = fresh(*RUN, env=STAYS).json
    assert home_server.running(fresh.home) not in (None, server)
    assert known(fresh.home, again["flow_run_id"]) == "COMPLETED"


def test_a_home_that_is_removed_takes_its_servers_along(fresh: CommandLine) -> None:
    fresh(*RUN, env=STAYS)
    assert len(servers(fresh.home)) == 2
    delete(fresh.home)
    until("end of the servers", lambda: not servers(fresh.home))
    fresh.home.mkdir()


def test_a_server_that_hangs_is_ended(fresh: CommandLine) -> None:
    fresh(*RUN, env=STAYS)
    server = home_server.running(fresh.home)
    assert server is not None
    psutil.Process(server.pid).suspend()
    assert fresh("stop", "--json").json["prefect"] == "stopped"
    assert not psutil.pid_exists(server.pid) or psutil.Process(server.pid).status() == psutil.STATUS_ZOMBIE


def test_a_file_where_the_home_should_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("no folder")
    refused = subprocess.run(
        [sys.executable, "-m", "flows", *RUN],
        env=environment(tmp_path / "home"),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (refused.returncode, refused.stdout) == (3, ""), refused.stderr
    assert str(tmp_path / "home") in refused.stderr
    assert "Traceback" not in refused.stderr


def test_ctrl_c_while_it_starts_ends_the_command(fresh: CommandLine) -> None:
    started = fresh.start(*RUN, env=STAYS)
    until("address", lambda: (fresh.home / "prefect" / "address").exists())
    time.sleep(0.5)
    started.send_signal(signal.SIGINT)
    out, err = started.communicate(timeout=60)
    assert (started.returncode, out) == (130, ""), err
    assert "Traceback" not in err


def test_ctrl_c_within_code_that_is_made_of_text_ends_the_command_as_elsewhere(fresh: CommandLine) -> None:
    """Imports run such code for every named tuple; a Ctrl-C in it `python -m` remembers, and dies of it at the end."""
    (fresh.home / "interrupted.py").write_text("""
from flows.__main__ import main
from tasks.orchestration import home_server
home_server.begin = lambda: exec("import os, signal, time; os.kill(os.getpid(), signal.SIGINT); time.sleep(60)")
main()
""")
    command = [sys.executable, "-m", "interrupted", *RUN]
    ended = subprocess.run(
        command, env=environment(fresh.home), cwd=fresh.home, capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr.strip()) == (130, "", "")


def test_runs_appear_at_the_server_of_serve(fresh: CommandLine) -> None:
    """One that is announced when the others start, though it answers later."""
    from tests.support.prefect_servers import Serve

    served = Serve(fresh.home)
    try:
        until("address", lambda: (fresh.home / "prefect" / "address").exists())
        ran = list(together(fresh, {name: Command(RUN) for name in ("one", "other")}).values())
        served.said("Ctrl-C")
        ran += [fresh(*RUN) for _ in range(3)]
        assert [document.code for document in ran] == [0] * 5
        for document in ran:
            assert served.run(json.loads(document.out)["flow_run_id"])["state_type"] == "COMPLETED"
        assert set(fresh("alerts", "apply", "--json").json["automations"].values()) == {"created"}
        assert fresh("stop", "--json").json == {"prefect": "serving", "postgresql": "in use"}
    finally:
        served.close()
        served.stop()


FULL = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv.pop()),) * 2)
from flows.__main__ import main
main()
"""
"""The command on a disk that takes no file longer than so many bytes."""


@pytest.mark.parametrize("room", [64_000, 400_000])
def test_a_disk_without_room_is_named_and_with_room_it_goes_on(fresh: CommandLine, room: int) -> None:
    postgresql.running(fresh.home)  # by a process that has room
    try:
        process = fresh.start(*RUN, str(room), env=ENGLISH, script=FULL)
        out, err = process.communicate(timeout=120)
        assert (process.returncode, out) == (3, ""), err
        assert f"no room in {fresh.home / 'prefect'}" in err
        assert "Traceback" not in err
        assert fresh(*RUN).json["state"] == "completed"
    finally:
        postgresql.release(fresh.home)
    until("end of both", lambda: not servers(fresh.home))
