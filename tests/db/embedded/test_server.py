"""The real embedded PostgreSQL: its features, sharing by processes, and kills at bad moments."""

import fcntl
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from sqlalchemy import make_url

from tests.support.database.embedded_users import (
    KEEP_RUNNING_SCRIPT,
    PRINT_URL_SCRIPT,
    EmbeddedServerUser,
    get_parent_pid,
    is_stopped,
    list_postmasters,
    on_linux,
    query_scalar,
)
from yarus.db.embedded import cluster
from yarus.db.embedded.server import acquire_server, release_server, stop_server
from yarus.db.errors import DatabaseUnavailable, InputError


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a running home, with spaces, Cyrillic and special characters of the shell in its path."""
    home = tmp_path_factory.mktemp("дом") / "д'о\"м $HOME `x` %20+"
    acquire_server(home)
    yield home
    release_server(home)
    assert is_stopped(home)


@pytest.fixture(scope="module")
def idle_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a home with a cluster and no user, so that a test's processes are the first and last."""
    home = tmp_path_factory.mktemp("свободный дом")
    acquire_server(home)
    release_server(home)
    return home


# --- features ---


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("SHOW server_encoding", "UTF8"),
        ("SHOW listen_addresses", ""),
        ("SHOW jit", "off"),
        ("SHOW wal_recycle", "off"),
        ("SHOW fsync", "on"),
        ("SHOW synchronous_commit", "on"),
        ("SELECT lower('ЁЛКА Й')", "ёлка й"),
        ("SELECT 'Билет' ILIKE 'бИЛЕТ'", True),
        # Snowball's Russian stems; quotation marks and dashes separate words and are not letters.
        ("SELECT to_tsvector('russian', 'СТУДЕНЧЕСКИЕ «Билеты» — ёлка')::text", "'билет':2 'елк':3 'студенческ':1"),
        ("SELECT to_tsvector('russian', 'студенческие билеты') @@ to_tsquery('russian', 'билетом')", True),
    ],
)
def test_server_settings_and_russian_text(home: Path, statement: str, expected: object) -> None:
    assert query_scalar(acquire_server(home), statement) == expected


def test_vector_distance(home: Path) -> None:
    query_scalar(acquire_server(home), "CREATE EXTENSION IF NOT EXISTS vector")
    # cos([1,0], [1,1]) = 1/sqrt(2), so the distance is 1 - 0.7071
    assert query_scalar(acquire_server(home), "SELECT '[1,0]'::vector <=> '[1,1]'::vector") == pytest.approx(
        1 - 0.5**0.5
    )


def test_running_returns_a_url_independent_of_environment(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPORT", "1")
    monkeypatch.setenv("PGHOST", "nowhere.invalid")
    url = make_url(acquire_server(home))
    assert url.query["host"] == str(home / "postgres")
    assert query_scalar(acquire_server(home), "SELECT current_user") == "yarus"


def test_log_contains_no_questions(home: Path) -> None:
    with pytest.raises(Exception, match="no_such_table"):
        query_scalar(acquire_server(home), "SELECT 'секретный вопрос' FROM no_such_table")
    with pytest.raises(Exception, match="once_pkey"):  # the error has the row that violates the key; the log does not
        query_scalar(acquire_server(home), "CREATE TABLE once (said text PRIMARY KEY); "
              "INSERT INTO once VALUES ('секретный вопрос'), ('секретный вопрос')")  # fmt: skip
    log = (home / "postgres" / "server.log").read_text(encoding="utf-8")
    assert "no_such_table" in log
    assert "once_pkey" in log
    assert "секретный" not in log


def test_long_log_is_rotated(idle_home: Path) -> None:
    log = idle_home / "postgres" / "server.log"
    with log.open("ab") as file:
        file.truncate(cluster.MAX_LOG_BYTES + 1)
    acquire_server(idle_home)
    release_server(idle_home)
    assert log.stat().st_size < 10_000
    assert log.with_suffix(".log.old").stat().st_size == cluster.MAX_LOG_BYTES + 1


@on_linux
def test_threads_share_one_server(idle_home: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        urls = set(pool.map(lambda _: acquire_server(idle_home), range(8)))
    assert len(urls) == 1
    assert len(list_postmasters(idle_home)) == 1
    release_server(idle_home)
    assert is_stopped(idle_home)


def test_home_of_version_16_rejects_version_18(tmp_path: Path) -> None:
    url = acquire_server(tmp_path, version="16")
    assert str(query_scalar(url, "SHOW server_version")).startswith("16.")
    query_scalar(url, "CREATE EXTENSION vector")
    words = query_scalar(url, "SELECT to_tsvector('russian', 'СТУДЕНЧЕСКИЕ «Билеты»')::text || lower('Ё')")
    assert words == "'билет':2 'студенческ':1ё"
    release_server(tmp_path)
    with pytest.raises(DatabaseUnavailable, match=r"made by PostgreSQL 16, and this is 18.*YARUS_HOME"):
        acquire_server(tmp_path)
    assert is_stopped(tmp_path)


def test_running_rejects_an_unknown_version(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"'17': choose one of 16, 18"):
        acquire_server(tmp_path, version="17")


# --- shared by processes ---


@pytest.mark.slow("process: three of them")
@on_linux
def test_last_of_three_processes_stops_the_server(tmp_path: Path) -> None:
    users = [EmbeddedServerUser(tmp_path) for _ in range(3)]
    assert len({user.url() for user in users}) == 1
    [server] = list_postmasters(tmp_path)
    users.sort(key=lambda user: user.process.pid != get_parent_pid(server))  # the process that started it leaves first
    assert users[0].end() == users[1].end() == (0, "")
    assert list_postmasters(tmp_path) == [server]
    assert users[2].end() == (0, "")
    assert is_stopped(tmp_path)


def test_start_waits_for_the_mutex(idle_home: Path) -> None:
    with (idle_home / "postgres.lock").open("r+") as mutex:
        fcntl.flock(mutex, fcntl.LOCK_EX)
        user = EmbeddedServerUser(idle_home)
        with pytest.raises(subprocess.TimeoutExpired):
            user.process.wait(0.5)
        assert is_stopped(idle_home)
    user.url()
    assert user.end() == (0, "")


@on_linux
def test_server_environment_has_no_keys(idle_home: Path) -> None:
    user = EmbeddedServerUser(idle_home, env={**os.environ, "YARUS_JUDGE__API_KEY": "secret", "PGDATA": "/nowhere"})
    user.url()
    [server] = list_postmasters(idle_home)
    names = {entry.partition(b"=")[0] for entry in Path(f"/proc/{server}/environ").read_bytes().split(b"\0")}
    assert not {name for name in names if name.startswith((b"YARUS", b"PGDATA"))}
    assert user.end() == (0, "")


@on_linux
@pytest.mark.parametrize(
    ("script", "stop", "code"),
    [
        (f"{PRINT_URL_SCRIPT}; raise SystemExit('boom')", None, 1),
        (f"{PRINT_URL_SCRIPT}; 1 / 0", None, 1),
        (KEEP_RUNNING_SCRIPT, signal.SIGINT, -signal.SIGINT),
        (
            f"import signal; signal.signal(signal.SIGTERM, lambda *_: sys.exit(7)); {KEEP_RUNNING_SCRIPT}",
            signal.SIGTERM,
            7,
        ),
    ],
    ids=["exit", "exception", "SIGINT", "SIGTERM"],
)
def test_server_stops_after_its_user(idle_home: Path, script: str, stop: signal.Signals | None, code: int) -> None:
    user = EmbeddedServerUser(idle_home, script)
    user.url()
    if stop is not None:
        user.process.send_signal(stop)
        user.process.wait(30)
    assert user.end()[0] == code
    assert is_stopped(idle_home)


@on_linux
def test_server_is_in_another_process_group(home: Path) -> None:
    [server] = list_postmasters(home)
    assert os.getpgid(server) != os.getpgid(0)


@on_linux
def test_next_user_adopts_the_server_of_a_killed_one(idle_home: Path) -> None:
    first = EmbeddedServerUser(idle_home)
    first.url()
    [server] = list_postmasters(idle_home)
    first.kill()
    assert list_postmasters(idle_home) == [server]
    second = EmbeddedServerUser(idle_home)
    second.url()
    assert list_postmasters(idle_home) == [server]
    assert second.end() == (0, "")
    assert is_stopped(idle_home)


@on_linux
def test_forks_and_subprocesses_do_not_hold_the_server(idle_home: Path) -> None:
    """A forked child that exits keeps its parent's use; a child program that outlives the parent holds nothing."""
    script = f"""{PRINT_URL_SCRIPT}
import os, subprocess
sys.stdin.readline()
if os.fork() == 0:
    sys.exit(0)
os.wait()
silent = dict(stdin=-3, stdout=-3, stderr=-3)
subprocess.Popen(["sleep", "20"], close_fds=False, start_new_session=True, **silent).returncode = 0
{PRINT_URL_SCRIPT}; sys.stdin.read()"""
    user = EmbeddedServerUser(idle_home, script)
    url = user.url()
    [server] = list_postmasters(idle_home)
    user.process.stdin.write("go on\n")
    user.process.stdin.flush()
    assert user.url() == url
    assert list_postmasters(idle_home) == [server]
    assert user.end() == (0, "")
    assert is_stopped(idle_home)


@on_linux
def test_killed_server_is_replaced_with_its_data(home: Path) -> None:
    query_scalar(acquire_server(home), "CREATE TABLE kept AS SELECT 42 AS answer")
    [server] = list_postmasters(home)
    os.kill(server, signal.SIGKILL)
    while psutil.Process(server).status() != psutil.STATUS_ZOMBIE:  # until then its sockets are still open
        time.sleep(0.001)
    assert query_scalar(acquire_server(home), "SELECT answer FROM kept") == 42
    assert list_postmasters(home) != [server]


@pytest.mark.slow("process: it is killed")
@on_linux
def test_running_recovers_from_a_killed_initdb(tmp_path: Path) -> None:
    user = EmbeddedServerUser(tmp_path)
    while not (tmp_path / "postgres" / "data.new" / "PG_VERSION").exists():
        assert user.process.poll() is None
        time.sleep(0.001)
    user.kill()
    assert not (tmp_path / "postgres" / "data").exists()
    assert query_scalar(acquire_server(tmp_path), "SELECT 1") == 1
    release_server(tmp_path)
    assert is_stopped(tmp_path)


def test_running_ignores_a_pid_file_of_a_reused_pid(idle_home: Path) -> None:
    data = idle_home / "postgres" / "data"
    with subprocess.Popen(["sleep", "20"], user=data.stat().st_uid) as stranger:
        (data / "postmaster.pid").write_text(f"{stranger.pid}\n{data}\n1\n5432\n{data.parent}\n\n 1 1\nready   \n")
        assert query_scalar(acquire_server(idle_home), "SELECT 1") == 1
        release_server(idle_home)
        assert stranger.poll() is None
        stranger.kill()
    assert is_stopped(idle_home)


def test_stop_reports_a_server_that_hangs(idle_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    acquire_server(idle_home)
    release_server(idle_home)
    monkeypatch.setattr("yarus.db.embedded.server.START_S", 0.2)
    with (idle_home / "postgres" / "server.lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # as a hanging PostgreSQL process holds it
        with pytest.raises(DatabaseUnavailable, match="neither answers nor ends"):
            stop_server(idle_home)
    assert stop_server(idle_home) == "not running"
