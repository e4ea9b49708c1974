"""The shared server of a home as a process: found, surviving its commands, ended, and never left over."""

import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import psutil
import pytest

from tests.support.command_line import ENGLISH, Command, CommandLine, make_environment, run_here, run_in_parallel
from tests.support.forked import ForkedCommand
from tests.support.json_schemas import check_json
from tests.support.processes import delete_folder, find_free_port, wait_for
from yarus.db.embedded import server as postgresql
from yarus.deployments.prefect import home_server

RUN = ("run", "tier0", "--limit", "20", "--json")
STAYS = {"YARUS_SERVER_IDLE_TIMEOUT_S": "600"}
FINAL = {"COMPLETED", "FAILED", "CRASHED", "CANCELLED"}


@contextmanager
def new_home(folder: Path) -> Iterator[CommandLine]:
    """Yield the command line on a new home in that folder, and check that nothing is left running."""
    home = folder / "home"
    home.mkdir()
    yield CommandLine(home)
    home_server.stop_server(home)
    postgresql.stop_server(home)
    assert servers(home) == []


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[CommandLine]:
    """Yield the command line on a home of one test."""
    with new_home(tmp_path) as command_line:
        yield command_line


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    """Yield the command line on a home of several tests, whose servers may go on running."""
    with new_home(tmp_path_factory.mktemp("shared")) as command_line:
        yield command_line


@pytest.fixture(scope="module")
def removed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    """Yield the command line of a home that is removed while its servers run."""
    with new_home(tmp_path_factory.mktemp("removed")) as command_line:
        command_line(*RUN, env=STAYS)
        assert len(servers(command_line.home)) == 2
        delete_folder(command_line.home)
        yield command_line


def servers(home: Path) -> list[psutil.Process]:
    """Return the running Prefect servers of a home, and its PostgreSQL; zombies do not count."""
    processes = []
    for process in psutil.process_iter():
        try:
            command_words, folder = process.cmdline(), process.environ().get("YARUS_HOME")
        except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            continue
        database = str(home / "postgres" / "data") in command_words
        if ("yarus.deployments.process" in command_words and folder == str(home)) or database:
            processes.append(process)
    return processes


def is_prefect(process: psutil.Process) -> bool:
    try:
        return "yarus.deployments.process" in process.cmdline()
    except psutil.NoSuchProcess:  # it ended in the meantime
        return False


def task_run_states(home: Path) -> list[str]:
    """Return the states of all task runs in Prefect's file."""
    with closing(sqlite3.connect(home / "prefect" / "prefect.db")) as database:
        return [state for (state,) in database.execute("SELECT state_type FROM task_run")]


def flow_run_state(home: Path, flow_run_id: str) -> str:
    """Return the state of a flow run, from the home's server."""
    server = home_server.find_server(home)
    assert server is not None
    name, _, secret = (home / "prefect" / "password").read_text().partition(":")
    reply = httpx.get(f"{server.api}/flow_runs/{flow_run_id}", auth=(name, secret), timeout=60)
    return str(reply.raise_for_status().json()["state"]["type"])


@pytest.mark.slow("process: a server whose home is removed")
def test_server_ends_when_its_home_is_removed(removed: CommandLine) -> None:
    """Run first: the PostgreSQL may take a minute to follow, and the last test waits for that."""
    wait_for("end of Prefect's server", lambda: not any(map(is_prefect, servers(removed.home))), 180)


@pytest.mark.slow("process: servers that start")
def test_simultaneous_first_runs_share_a_server(fresh: CommandLine) -> None:
    """Run with proxies in the environment, which must not be used on this machine."""
    nobody = f"http://127.0.0.1:{find_free_port()}"
    names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "all_proxy")
    env = STAYS | dict.fromkeys(names, nobody)
    first_runs = run_in_parallel(fresh, {name: Command(RUN, env) for name in ("one", "other")})
    assert [finished.code for finished in first_runs.values()] == [0, 0], first_runs
    server = home_server.find_server(fresh.home)
    assert server is not None
    later = fresh(*RUN, env=env)
    assert home_server.find_server(fresh.home) == server
    for finished in (*first_runs.values(), later):
        assert (finished.json["state"], "has not recorded" in finished.err) == ("completed", False), finished.err
        assert flow_run_state(fresh.home, finished.json["flow_run_id"]) == "COMPLETED"
    assert postgresql.is_running(fresh.home)
    checks = {check["check_name"]: check["check_result"] for check in fresh("doctor", "--json").json}
    assert server.api in checks["prefect"]
    assert "yarus admin stop" in checks["prefect"]
    assert check_json("admin stop", fresh("admin", "stop", "--json").out) == {
        "prefect": "stopped",
        "postgresql": "stopped",
    }
    assert set(task_run_states(fresh.home)) <= FINAL
    assert servers(fresh.home) == []


@pytest.mark.slow("process: a server that ends")
def test_server_without_idle_time_records_all_task_runs(fresh: CommandLine) -> None:
    parquet = fresh("run", "tier1", "--json").json
    wait_for("end of the server", lambda: not servers(fresh.home))
    recorded = task_run_states(fresh.home)
    assert len(recorded) >= parquet["metrics"]["hit_rate@1"]["n_total"] // 100
    assert set(recorded) == {"COMPLETED"}


@pytest.mark.slow("process: servers that are killed while they start")
@pytest.mark.parametrize("moment", ["address", "password", "prefect.db-wal"])
def test_command_killed_at_start_leaves_no_server(fresh: CommandLine, moment: str) -> None:
    started = fresh.start(*RUN)
    wait_for(moment, lambda: (fresh.home / "prefect" / moment).exists())
    started.kill()
    started.communicate()
    wait_for("end of both servers", lambda: not servers(fresh.home))
    assert fresh(*RUN).json["state"] == "completed"
    wait_for("end of both", lambda: not servers(fresh.home))


FULL = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv.pop()),) * 2)
from yarus.__main__ import main
main()
"""
"""The command with a limit on file sizes, like a full disk."""


@pytest.mark.slow("process: servers that cannot start")
@pytest.mark.parametrize("room", [64_000, 400_000])
def test_full_disk_is_named_and_later_runs_work(fresh: CommandLine, room: int) -> None:
    postgresql.acquire_server(fresh.home)  # by a process without the limit
    try:
        finished = fresh.fork(*RUN, str(room), env=ENGLISH, script=FULL).ran()
        assert (finished.code, finished.out) == (3, ""), finished.err
        assert f"no room in {fresh.home / 'prefect'}" in finished.err
        assert "Traceback" not in finished.err
        assert fresh(*RUN).json["state"] == "completed"
    finally:
        postgresql.release_server(fresh.home)
    wait_for("end of both", lambda: not servers(fresh.home))


@pytest.mark.slow("process: another server after one that was killed")
def test_killed_server_is_started_again(shared: CommandLine) -> None:
    shared(*RUN, env=STAYS)
    server = home_server.find_server(shared.home)
    assert server is not None
    psutil.Process(server.pid).kill()
    later = shared(*RUN, env=STAYS).json
    assert home_server.find_server(shared.home) not in (None, server)
    assert flow_run_state(shared.home, later["flow_run_id"]) == "COMPLETED"


@pytest.mark.slow("wait: for a server that does not answer")
def test_stop_ends_a_hanging_server(shared: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    shared(*RUN, env=STAYS)
    server = home_server.find_server(shared.home)
    assert server is not None
    psutil.Process(server.pid).suspend()
    monkeypatch.setattr(home_server, "STOP_S", 3.0)  # the length of the wait does not matter
    assert run_here("admin", "stop", "--json", env={"YARUS_HOME": str(shared.home)}).json["prefect"] == "stopped"
    assert not psutil.pid_exists(server.pid) or psutil.Process(server.pid).status() == psutil.STATUS_ZOMBIE


@pytest.mark.slow("process: a server that is interrupted while it starts")
def test_ctrl_c_during_start_ends_the_command(shared: CommandLine) -> None:
    home_server.stop_server(shared.home)
    started = shared.start(*RUN, env=STAYS)
    wait_for("server", lambda: home_server.find_server(shared.home))
    time.sleep(0.5)
    started.send_signal(signal.SIGINT)
    out, err = started.communicate(timeout=60)
    assert (started.returncode, out) == (130, ""), err
    assert "Traceback" not in err


def test_file_in_place_of_the_home_is_named(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("no folder")
    refused = ForkedCommand(RUN, make_environment(tmp_path / "home"), tmp_path).ran()
    assert (refused.code, refused.out) == (3, ""), refused.err
    assert str(tmp_path / "home") in refused.err
    assert "Traceback" not in refused.err


def test_ctrl_c_in_exec_ends_the_command(fresh: CommandLine) -> None:
    """Interrupt code in `exec`, which imports run for named tuples; `python -m` would die of it at the end."""
    (fresh.home / "interrupted.py").write_text("""
from yarus.__main__ import main
from yarus.deployments.prefect import home_server
home_server.start_early = lambda: exec("import os, signal, time; os.kill(os.getpid(), signal.SIGINT); time.sleep(60)")
main()
""")
    command = [sys.executable, "-m", "interrupted", *RUN]
    finished = subprocess.run(
        command, env=make_environment(fresh.home), cwd=fresh.home, capture_output=True, text=True, check=False
    )
    assert (finished.returncode, finished.stdout, finished.stderr.strip()) == (130, "", "")


def test_ctrl_c_in_weakref_callback_ends_the_command(fresh: CommandLine) -> None:
    """Interrupt the callback of a weak reference, where no error can be raised; SQLAlchemy has many of them."""
    (fresh.home / "dropped.py").write_text("""
import os, signal, time, weakref
from yarus.__main__ import main
from yarus.deployments.prefect import home_server

def interrupt(_):
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(1)

def begin():
    dropped = {1}
    reference = weakref.ref(dropped, interrupt)
    del dropped

home_server.start_early = begin
main()
""")
    command = [sys.executable, "-m", "dropped", *RUN]
    finished = subprocess.run(
        command, env=make_environment(fresh.home), cwd=fresh.home, capture_output=True, text=True, check=False
    )
    assert (finished.returncode, finished.stdout) == (130, ""), finished.stderr
    assert "KeyboardInterrupt" not in finished.stderr


@pytest.mark.slow("wait: PostgreSQL looks once a minute whether its files are there")
def test_postgresql_ends_after_its_home_is_removed(removed: CommandLine) -> None:
    wait_for("end of the servers", lambda: not servers(removed.home), 180)
    removed.home.mkdir()
