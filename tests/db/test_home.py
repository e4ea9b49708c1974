"""The home folder: closed to other accounts however it was created, while other folders never change."""

import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command_line import CommandLine, make_environment
from tests.support.database.embedded_users import query_scalar
from yarus.db.embedded.server import acquire_server, release_server
from yarus.db.errors import InputError
from yarus.db.home import HOME_PARTS, find_accessible_paths, make_prefect_database, make_private_folder

HOME_MODE = 0o711 if os.geteuid() == 0 else 0o700
"""As root, PostgreSQL's account must be able to enter the home."""


@pytest.fixture(autouse=True)
def open_umask() -> Iterator[None]:
    """Set the most permissive umask."""
    old_umask = os.umask(0o000)
    yield
    os.umask(old_umask)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_make_creates_a_private_home(tmp_path: Path) -> None:
    home = tmp_path / "a" / "дом"
    folder = make_private_folder(home / "results" / "tier=tier1", home)
    assert folder.is_dir()
    assert (mode(home), mode(home / "results")) == (HOME_MODE, 0o700)
    assert mode(tmp_path / "a") == 0o777  # above the home
    assert mode(make_prefect_database(home)) == 0o600
    assert list(find_accessible_paths(home)) == []


def test_postgresql_runs_without_capabilities_in_a_home(tmp_path: Path) -> None:
    home = Path(tempfile.mkdtemp(dir=tmp_path)) / "дом"
    parents = [home.parent, *home.parent.parents]
    if not all(mode(parent) & stat.S_IXOTH for parent in parents[:-1]):
        home = Path(tempfile.gettempdir(), f"yarus-home-{os.getpid()}")
    try:
        assert query_scalar(acquire_server(home), "SELECT 1") == 1
        lines = Path(
            f"/proc/{(home / 'postgres' / 'data' / 'postmaster.pid').read_text().split()[0]}/status"
        ).read_text()
        assert "CapEff:\t0000000000000000" in lines or os.geteuid() != 0
    finally:
        release_server(home)
    assert list(find_accessible_paths(home)) == []


def test_make_closes_an_existing_home(tmp_path: Path) -> None:
    home = tmp_path / "home"
    for folder in ("prefect", "reports", "results/x", "work"):
        (home / folder).mkdir(parents=True)
    for file in ("pseudonyms.key", "postgres.lock", "prefect/prefect.db", "prefect/prefect.db-wal"):
        (home / file).write_text("")
    assert len(list(find_accessible_paths(home))) == 1 + 4 + 4
    make_private_folder(home / "work", home)
    assert list(find_accessible_paths(home)) == []
    assert mode(home) == HOME_MODE


def test_make_closes_only_its_parts_in_a_project_folder(tmp_path: Path) -> None:
    (tmp_path / "project.py").write_text("")
    tmp_path.chmod(0o755)
    make_private_folder(tmp_path / "results", tmp_path)
    assert (mode(tmp_path), mode(tmp_path / "project.py"), mode(tmp_path / "results")) == (0o755, 0o666, 0o700)
    assert list(find_accessible_paths(tmp_path)) == [tmp_path]


def test_make_keeps_the_mode_of_a_folder_like_tmp(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    make_private_folder(tmp_path / "work", tmp_path)
    assert mode(tmp_path) == 0o1777


def test_make_keeps_a_stricter_mode(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    make_private_folder(home / "work", home)
    assert mode(home) == 0o700


def test_make_follows_the_umask_outside_the_home(tmp_path: Path) -> None:
    home = tmp_path / "home"
    make_private_folder(tmp_path / "shared" / "results", home)
    assert mode(tmp_path / "shared" / "results") == 0o777
    assert not home.exists()


def test_make_follows_a_linked_home_and_leaves_linked_parts(tmp_path: Path) -> None:
    """A linked home is closed at its target; a linked part is left alone."""
    (tmp_path / "real").mkdir()
    (tmp_path / "shared").mkdir()
    home = tmp_path / "home"
    home.symlink_to(tmp_path / "real")
    (home / "results").symlink_to(tmp_path / "shared")
    make_private_folder(home / "results" / "tier=tier1", home)
    make_private_folder(home / "work", home)
    assert (mode(tmp_path / "real"), mode(tmp_path / "shared"), mode(home / "work")) == (HOME_MODE, 0o777, 0o700)
    assert mode(home / "results" / "tier=tier1") == 0o777
    (tmp_path / "broken").symlink_to(tmp_path / "nowhere")
    make_private_folder(tmp_path / "broken" / "work", tmp_path / "broken")
    assert mode(tmp_path / "nowhere") == HOME_MODE


@pytest.mark.parametrize("name", ["what?", "очень длинно" * 10])
def test_prefect_database_rejects_an_unusable_home_path(tmp_path: Path, name: str) -> None:
    home = tmp_path / name / name / name
    with pytest.raises(InputError, match=r"YARUS_HOME=.*(options|480 bytes)"):
        make_prefect_database(home)


@pytest.mark.slow("process: two commands and a Prefect server")
def test_commands_create_only_private_parts(tmp_path: Path) -> None:
    home = tmp_path / "home"
    yarus = CommandLine(home)
    script = "import os, sys; os.umask(0); from yarus.__main__ import main; main()"
    tmp_path.joinpath("home").mkdir(mode=0o755)
    for words in (("run", "tier0", "--limit", "4"), ("report", "last")):
        process = yarus.start(
            *words, script=script, env=make_environment(home) | {"PREFECT_HOME": str(tmp_path / "prefect")}
        )
        out, err = process.communicate(timeout=240)
        assert process.returncode in (0, 1), out + err
    assert {entry.name for entry in home.iterdir()} <= set(HOME_PARTS)
    assert list(find_accessible_paths(home)) == []
    assert [path.name for path in home.iterdir() if mode(path) & 0o077] == []
    assert mode(home / "prefect" / "prefect.db") == 0o600
