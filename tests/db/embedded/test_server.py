"""The embedded PostgreSQL on the real thing: what it can do, shared by processes, killed at bad moments."""

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

from tests.support.database.embedded_users import HOLD, USE, User, is_stopped, on_linux, parent, postmasters, query
from yarus.db.embedded import cluster
from yarus.db.embedded.server import release, running, stop
from yarus.db.errors import DatabaseUnavailable, InputError


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home that this process uses, with spaces, Cyrillic and a shell's special characters in its path."""
    home = tmp_path_factory.mktemp("дом") / "д'о\"м $HOME `x` %20+"
    running(home)
    yield home
    release(home)
    assert is_stopped(home)


@pytest.fixture(scope="module")
def idle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a cluster and no user: a test's processes are the first and the last ones."""
    home = tmp_path_factory.mktemp("свободный дом")
    running(home)
    release(home)
    return home


# --- what runs ---


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
        # Snowball's Russian stems; quotation marks and dashes part words, and are no letters.
        ("SELECT to_tsvector('russian', 'СТУДЕНЧЕСКИЕ «Билеты» — ёлка')::text", "'билет':2 'елк':3 'студенческ':1"),
        ("SELECT to_tsvector('russian', 'студенческие билеты') @@ to_tsquery('russian', 'билетом')", True),
    ],
)
def test_russian_and_settings(home: Path, statement: str, expected: object) -> None:
    assert query(running(home), statement) == expected


def test_vectors(home: Path) -> None:
    query(running(home), "CREATE EXTENSION IF NOT EXISTS vector")
    # cos([1,0], [1,1]) = 1/sqrt(2), so the distance is 1 - 0.7071
    assert query(running(home), "SELECT '[1,0]'::vector <=> '[1,1]'::vector") == pytest.approx(1 - 0.5**0.5)


def test_address_is_complete_for_any_client(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPORT", "1")
    monkeypatch.setenv("PGHOST", "nowhere.invalid")
    url = make_url(running(home))
    assert url.query["host"] == str(home / "postgres")
    assert query(running(home), "SELECT current_user") == "yarus"


def test_log_keeps_no_questions(home: Path) -> None:
    with pytest.raises(Exception, match="no_such_table"):
        query(running(home), "SELECT 'секретный вопрос' FROM no_such_table")
    with pytest.raises(Exception, match="once_pkey"):  # the row that breaks a rule is told to us, and to no file
        query(running(home), "CREATE TABLE once (said text PRIMARY KEY); "
              "INSERT INTO once VALUES ('секретный вопрос'), ('секретный вопрос')")  # fmt: skip
    log = (home / "postgres" / "server.log").read_text(encoding="utf-8")
    assert "no_such_table" in log
    assert "once_pkey" in log
    assert "секретный" not in log


def test_long_log_is_put_aside(idle: Path) -> None:
    log = idle / "postgres" / "server.log"
    with log.open("ab") as file:
        file.truncate(cluster.LOG_BYTES + 1)
    running(idle)
    release(idle)
    assert log.stat().st_size < 10_000
    assert log.with_suffix(".log.old").stat().st_size == cluster.LOG_BYTES + 1


@on_linux
def test_threads_share_one_use(idle: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        urls = set(pool.map(lambda _: running(idle), range(8)))
    assert len(urls) == 1
    assert len(postmasters(idle)) == 1
    release(idle)
    assert is_stopped(idle)


def test_version_16_keeps_its_home(tmp_path: Path) -> None:
    url = running(tmp_path, version="16")
    assert str(query(url, "SHOW server_version")).startswith("16.")
    query(url, "CREATE EXTENSION vector")
    words = query(url, "SELECT to_tsvector('russian', 'СТУДЕНЧЕСКИЕ «Билеты»')::text || lower('Ё')")
    assert words == "'билет':2 'студенческ':1ё"
    release(tmp_path)
    with pytest.raises(DatabaseUnavailable, match=r"made by PostgreSQL 16, and this is 18.*YARUS_HOME"):
        running(tmp_path)
    assert is_stopped(tmp_path)


def test_unknown_version(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"'17': choose one of 16, 18"):
        running(tmp_path, version="17")


# --- shared by processes ---


@pytest.mark.slow("process: three of them")
@on_linux
def test_three_at_once_make_one_cluster_and_the_last_stops_it(tmp_path: Path) -> None:
    users = [User(tmp_path) for _ in range(3)]
    assert len({user.url() for user in users}) == 1
    [server] = postmasters(tmp_path)
    users.sort(key=lambda user: user.process.pid != parent(server))  # who started it leaves first
    assert users[0].end() == users[1].end() == (0, "")
    assert postmasters(tmp_path) == [server]
    assert users[2].end() == (0, "")
    assert is_stopped(tmp_path)


def test_start_waits_for_whoever_starts_or_stops(idle: Path) -> None:
    with (idle / "postgres.lock").open("r+") as mutex:
        fcntl.flock(mutex, fcntl.LOCK_EX)
        user = User(idle)
        with pytest.raises(subprocess.TimeoutExpired):
            user.process.wait(0.5)
        assert is_stopped(idle)
    user.url()
    assert user.end() == (0, "")


@on_linux
def test_server_gets_no_keys_of_ours(idle: Path) -> None:
    user = User(idle, env={**os.environ, "YARUS_JUDGE__API_KEY": "secret", "PGDATA": "/nowhere"})
    user.url()
    [server] = postmasters(idle)
    names = {entry.partition(b"=")[0] for entry in Path(f"/proc/{server}/environ").read_bytes().split(b"\0")}
    assert not {name for name in names if name.startswith((b"YARUS", b"PGDATA"))}
    assert user.end() == (0, "")


@on_linux
@pytest.mark.parametrize(
    ("script", "stop", "code"),
    [
        (f"{USE}; raise SystemExit('boom')", None, 1),
        (f"{USE}; 1 / 0", None, 1),
        (HOLD, signal.SIGINT, -signal.SIGINT),
        (f"import signal; signal.signal(signal.SIGTERM, lambda *_: sys.exit(7)); {HOLD}", signal.SIGTERM, 7),
    ],
    ids=["exit", "exception", "SIGINT", "SIGTERM"],
)
def test_stopped_after(idle: Path, script: str, stop: signal.Signals | None, code: int) -> None:
    user = User(idle, script)
    user.url()
    if stop is not None:
        user.process.send_signal(stop)
        user.process.wait(30)
    assert user.end()[0] == code
    assert is_stopped(idle)


@on_linux
def test_interrupt_of_the_terminal_is_not_the_servers(home: Path) -> None:
    [server] = postmasters(home)
    assert os.getpgid(server) != os.getpgid(0)


@on_linux
def test_killed_user_leaves_a_server_that_the_next_one_adopts_and_stops(idle: Path) -> None:
    first = User(idle)
    first.url()
    [server] = postmasters(idle)
    first.kill()
    assert postmasters(idle) == [server]
    second = User(idle)
    second.url()
    assert postmasters(idle) == [server]
    assert second.end() == (0, "")
    assert is_stopped(idle)


@on_linux
def test_fork_and_subprocess_do_not_hold_the_server(idle: Path) -> None:
    """A forked child that exits does not release its parent's use; a child program that outlives us holds nothing."""
    script = f"""{USE}
import os, subprocess
sys.stdin.readline()
if os.fork() == 0:
    sys.exit(0)
os.wait()
silent = dict(stdin=-3, stdout=-3, stderr=-3)
subprocess.Popen(["sleep", "20"], close_fds=False, start_new_session=True, **silent).returncode = 0
{USE}; sys.stdin.read()"""
    user = User(idle, script)
    url = user.url()
    [server] = postmasters(idle)
    user.process.stdin.write("go on\n")
    user.process.stdin.flush()
    assert user.url() == url
    assert postmasters(idle) == [server]
    assert user.end() == (0, "")
    assert is_stopped(idle)


@on_linux
def test_killed_server_is_replaced_and_keeps_what_was_committed(home: Path) -> None:
    query(running(home), "CREATE TABLE kept AS SELECT 42 AS answer")
    [server] = postmasters(home)
    os.kill(server, signal.SIGKILL)
    while psutil.Process(server).status() != psutil.STATUS_ZOMBIE:  # before, it has no memory but its sockets still
        time.sleep(0.001)
    assert query(running(home), "SELECT answer FROM kept") == 42
    assert postmasters(home) != [server]


@pytest.mark.slow("process: it is killed")
@on_linux
def test_killed_while_the_cluster_is_made(tmp_path: Path) -> None:
    user = User(tmp_path)
    while not (tmp_path / "postgres" / "data.new" / "PG_VERSION").exists():
        assert user.process.poll() is None
        time.sleep(0.001)
    user.kill()
    assert not (tmp_path / "postgres" / "data").exists()
    assert query(running(tmp_path), "SELECT 1") == 1
    release(tmp_path)
    assert is_stopped(tmp_path)


def test_stale_pid_file_of_a_reused_pid(idle: Path) -> None:
    data = idle / "postgres" / "data"
    with subprocess.Popen(["sleep", "20"], user=data.stat().st_uid) as stranger:
        (data / "postmaster.pid").write_text(f"{stranger.pid}\n{data}\n1\n5432\n{data.parent}\n\n 1 1\nready   \n")
        assert query(running(idle), "SELECT 1") == 1
        release(idle)
        assert stranger.poll() is None
        stranger.kill()
    assert is_stopped(idle)


def test_one_that_neither_answers_nor_ends_is_told_as_such(idle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    running(idle)
    release(idle)
    monkeypatch.setattr("yarus.db.embedded.server.START_S", 0.2)
    with (idle / "postgres" / "server.lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # as a process of PostgreSQL that hangs holds it
        with pytest.raises(DatabaseUnavailable, match="neither answers nor ends"):
            stop(idle)
    assert stop(idle) == "not running"
