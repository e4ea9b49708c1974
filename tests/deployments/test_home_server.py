"""The server that a home's commands share, as processes: found, outliving them, ended, and never left over."""

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

from tests.support.command_line import ENGLISH, Command, CommandLine, environment, here, together
from tests.support.forked import Forked
from tests.support.processes import delete, free_port, until
from yarus.db.embedded import server as postgresql
from yarus.deployments.prefect import home_server

RUN = ("run", "tier0", "--limit", "20", "--json")
STAYS = {"YARUS_SERVER_IDLE_S": "600"}
FINAL = {"COMPLETED", "FAILED", "CRASHED", "CANCELLED"}


@contextmanager
def new_home(folder: Path) -> Iterator[CommandLine]:
    """The command line on a home in that folder, of which nothing is left running."""
    home = folder / "home"
    home.mkdir()
    yield CommandLine(home)
    home_server.stop(home)
    postgresql.stop(home)
    assert servers(home) == []


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[CommandLine]:
    """The command line on a home of the test's own."""
    with new_home(tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    """The command line on one home of several tests: a server that one leaves running is the next one's."""
    with new_home(tmp_path_factory.mktemp("shared")) as made:
        yield made


@pytest.fixture(scope="module")
def removed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    """Another home, removed while its servers run."""
    with new_home(tmp_path_factory.mktemp("removed")) as made:
        made(*RUN, env=STAYS)
        assert len(servers(made.home)) == 2
        delete(made.home)
        yield made


def servers(home: Path) -> list[psutil.Process]:
    """Prefect's servers of a home, and its PostgreSQL; what has ended and is not yet waited for is none."""
    found = []
    for process in psutil.process_iter():
        try:
            words, folder = process.cmdline(), process.environ().get("YARUS_HOME")
        except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            continue
        database = str(home / "postgres" / "data") in words
        if ("yarus.deployments.process" in words and folder == str(home)) or database:
            found.append(process)
    return found


def is_prefect(process: psutil.Process) -> bool:
    try:
        return "yarus.deployments.process" in process.cmdline()
    except psutil.NoSuchProcess:  # it has ended meanwhile
        return False


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


@pytest.mark.slow("process: a server whose home is removed")
def test_a_home_that_is_removed_takes_its_server_along(removed: CommandLine) -> None:
    """Runs first: its PostgreSQL may take a minute to follow, and the last test waits for that."""
    until("end of Prefect's server", lambda: not any(map(is_prefect, servers(removed.home))), 180)


@pytest.mark.slow("process: servers that start")
def test_two_first_runs_at_once_share_a_server_and_the_next_finds_it(fresh: CommandLine) -> None:
    """No proxy that the environment names stands between: the server is on this machine."""
    nobody = f"http://127.0.0.1:{free_port()}"
    names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "all_proxy")
    env = STAYS | dict.fromkeys(names, nobody)
    first = together(fresh, {name: Command(RUN, env) for name in ("one", "other")})
    assert [ran.code for ran in first.values()] == [0, 0], first
    server = home_server.running(fresh.home)
    assert server is not None
    again = fresh(*RUN, env=env)
    assert home_server.running(fresh.home) == server
    for ran in (*first.values(), again):
        assert (ran.json["state"], "has not recorded" in ran.err) == ("completed", False), ran.err
        assert known(fresh.home, ran.json["flow_run_id"]) == "COMPLETED"
    assert postgresql.is_running(fresh.home)
    checks = {check["what"]: check["found"] for check in fresh("doctor", "--json").json}
    assert server.api in checks["prefect"]
    assert "yarus stop" in checks["prefect"]
    assert fresh("stop", "--json").json == {"prefect": "stopped", "postgresql": "stopped"}
    assert set(states(fresh.home)) <= FINAL
    assert servers(fresh.home) == []


@pytest.mark.slow("process: a server that ends")
def test_without_idle_time_it_ends_with_the_command_and_has_recorded_every_task_run(fresh: CommandLine) -> None:
    parquet = fresh("run", "tier1", "--json").json
    until("end of the server", lambda: not servers(fresh.home))
    found = states(fresh.home)
    assert len(found) >= parquet["metrics"]["hit_rate@1"]["n_total"] // 100
    assert set(found) == {"COMPLETED"}


@pytest.mark.slow("process: servers that are killed while they start")
@pytest.mark.parametrize("moment", ["address", "password", "prefect.db-wal"])
def test_a_command_that_is_killed_while_it_starts_leaves_nothing(fresh: CommandLine, moment: str) -> None:
    started = fresh.start(*RUN)
    until(moment, lambda: (fresh.home / "prefect" / moment).exists())
    started.kill()
    started.communicate()
    until("end of both servers", lambda: not servers(fresh.home))
    assert fresh(*RUN).json["state"] == "completed"
    until("end of both", lambda: not servers(fresh.home))


FULL = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv.pop()),) * 2)
from yarus.__main__ import main
main()
"""
"""The command on a disk that takes no file longer than so many bytes."""


@pytest.mark.slow("process: servers that cannot start")
@pytest.mark.parametrize("room", [64_000, 400_000])
def test_a_disk_without_room_is_named_and_with_room_it_goes_on(fresh: CommandLine, room: int) -> None:
    postgresql.running(fresh.home)  # by a process that has room
    try:
        ran = fresh.fork(*RUN, str(room), env=ENGLISH, script=FULL).ran()
        assert (ran.code, ran.out) == (3, ""), ran.err
        assert f"no room in {fresh.home / 'prefect'}" in ran.err
        assert "Traceback" not in ran.err
        assert fresh(*RUN).json["state"] == "completed"
    finally:
        postgresql.release(fresh.home)
    until("end of both", lambda: not servers(fresh.home))


@pytest.mark.slow("process: another server after one that was killed")
def test_a_server_that_is_killed_is_started_again(shared: CommandLine) -> None:
    shared(*RUN, env=STAYS)
    server = home_server.running(shared.home)
    assert server is not None
    psutil.Process(server.pid).kill()
    again = shared(*RUN, env=STAYS).json
    assert home_server.running(shared.home) not in (None, server)
    assert known(shared.home, again["flow_run_id"]) == "COMPLETED"


@pytest.mark.slow("wait: for a server that does not answer")
def test_a_server_that_hangs_is_ended(shared: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    shared(*RUN, env=STAYS)
    server = home_server.running(shared.home)
    assert server is not None
    psutil.Process(server.pid).suspend()
    monkeypatch.setattr(home_server, "STOP_S", 3.0)  # how long it waits is not the point
    assert here("stop", "--json", env={"YARUS_HOME": str(shared.home)}).json["prefect"] == "stopped"
    assert not psutil.pid_exists(server.pid) or psutil.Process(server.pid).status() == psutil.STATUS_ZOMBIE


@pytest.mark.slow("process: a server that is interrupted while it starts")
def test_ctrl_c_while_it_starts_ends_the_command(shared: CommandLine) -> None:
    home_server.stop(shared.home)
    started = shared.start(*RUN, env=STAYS)
    until("server", lambda: home_server.running(shared.home))
    time.sleep(0.5)
    started.send_signal(signal.SIGINT)
    out, err = started.communicate(timeout=60)
    assert (started.returncode, out) == (130, ""), err
    assert "Traceback" not in err


def test_a_file_where_the_home_should_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("no folder")
    refused = Forked(RUN, environment(tmp_path / "home"), tmp_path).ran()
    assert (refused.code, refused.out) == (3, ""), refused.err
    assert str(tmp_path / "home") in refused.err
    assert "Traceback" not in refused.err


def test_ctrl_c_within_code_that_is_made_of_text_ends_the_command_as_elsewhere(fresh: CommandLine) -> None:
    """Imports run such code for every named tuple; a Ctrl-C in it `python -m` remembers, and dies of it at the end."""
    (fresh.home / "interrupted.py").write_text("""
from yarus.__main__ import main
from yarus.deployments.prefect import home_server
home_server.begin = lambda: exec("import os, signal, time; os.kill(os.getpid(), signal.SIGINT); time.sleep(60)")
main()
""")
    command = [sys.executable, "-m", "interrupted", *RUN]
    ended = subprocess.run(
        command, env=environment(fresh.home), cwd=fresh.home, capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr.strip()) == (130, "", "")


def test_ctrl_c_that_python_drops_ends_the_command_all_the_same(fresh: CommandLine) -> None:
    """In the callback of a weak reference no error can be raised, and SQLAlchemy has many of them."""
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

home_server.begin = begin
main()
""")
    command = [sys.executable, "-m", "dropped", *RUN]
    ended = subprocess.run(
        command, env=environment(fresh.home), cwd=fresh.home, capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout) == (130, ""), ended.stderr
    assert "KeyboardInterrupt" not in ended.stderr


@pytest.mark.slow("wait: PostgreSQL looks once a minute whether its files are there")
def test_its_postgresql_follows(removed: CommandLine) -> None:
    until("end of the servers", lambda: not servers(removed.home), 180)
    removed.home.mkdir()
