"""The home on the disk: closed to others however it came to be, and nobody else's folder is ever changed."""

import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command_line import CommandLine, environment
from tests.support.database.embedded_users import query
from yarus.db.embedded.server import release, running
from yarus.db.errors import InputError
from yarus.db.home import PARTS, make, open_parts, prefect_database

PASSED = 0o711 if os.geteuid() == 0 else 0o700
"""As root PostgreSQL's account has to pass the home."""


@pytest.fixture(autouse=True)
def generous() -> Iterator[None]:
    """The umask of somebody who shares everything."""
    before = os.umask(0o000)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_home_and_all_in_it_is_private(tmp_path: Path) -> None:
    home = tmp_path / "a" / "дом"
    made = make(home / "results" / "tier=tier1", home)
    assert made.is_dir()
    assert (mode(home), mode(home / "results")) == (PASSED, 0o700)
    assert mode(tmp_path / "a") == 0o777  # not ours
    assert mode(prefect_database(home)) == 0o600
    assert list(open_parts(home)) == []


def test_postgresql_needs_no_right_over_files_for_it(tmp_path: Path) -> None:
    home = Path(tempfile.mkdtemp(dir=tmp_path)) / "дом"
    ways = [home.parent, *home.parent.parents]
    if not all(mode(way) & stat.S_IXOTH for way in ways[:-1]):
        home = Path(tempfile.gettempdir(), f"yarus-home-{os.getpid()}")
    try:
        assert query(running(home), "SELECT 1") == 1
        lines = Path(
            f"/proc/{(home / 'postgres' / 'data' / 'postmaster.pid').read_text().split()[0]}/status"
        ).read_text()
        assert "CapEff:\t0000000000000000" in lines or os.geteuid() != 0
    finally:
        release(home)
    assert list(open_parts(home)) == []


def test_a_home_of_before_is_closed_when_it_is_used(tmp_path: Path) -> None:
    home = tmp_path / "home"
    for folder in ("prefect", "reports", "results/x", "work"):
        (home / folder).mkdir(parents=True)
    for file in ("pseudonyms.key", "postgres.lock", "prefect/prefect.db", "prefect/prefect.db-wal"):
        (home / file).write_text("")
    assert len(list(open_parts(home))) == 1 + 4 + 4
    make(home / "work", home)
    assert list(open_parts(home)) == []
    assert mode(home) == PASSED


def test_a_folder_that_holds_more_keeps_its_mode_and_what_is_ours_in_it_is_closed(tmp_path: Path) -> None:
    (tmp_path / "project.py").write_text("")
    tmp_path.chmod(0o755)
    make(tmp_path / "results", tmp_path)
    assert (mode(tmp_path), mode(tmp_path / "project.py"), mode(tmp_path / "results")) == (0o755, 0o666, 0o700)
    assert list(open_parts(tmp_path)) == [tmp_path]


def test_a_folder_like_tmp_is_never_changed(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    make(tmp_path / "work", tmp_path)
    assert mode(tmp_path) == 0o1777


def test_never_opened_further(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    make(home / "work", home)
    assert mode(home) == 0o700


def test_outside_of_the_home_the_umask_decides(tmp_path: Path) -> None:
    home = tmp_path / "home"
    make(tmp_path / "shared" / "results", home)
    assert mode(tmp_path / "shared" / "results") == 0o777
    assert not home.exists()


def test_links(tmp_path: Path) -> None:
    """A home that is a link is closed where it is; a part that is one leads to somebody's choice."""
    (tmp_path / "real").mkdir()
    (tmp_path / "shared").mkdir()
    home = tmp_path / "home"
    home.symlink_to(tmp_path / "real")
    (home / "results").symlink_to(tmp_path / "shared")
    make(home / "results" / "tier=tier1", home)
    make(home / "work", home)
    assert (mode(tmp_path / "real"), mode(tmp_path / "shared"), mode(home / "work")) == (PASSED, 0o777, 0o700)
    assert mode(home / "results" / "tier=tier1") == 0o777
    (tmp_path / "broken").symlink_to(tmp_path / "nowhere")
    make(tmp_path / "broken" / "work", tmp_path / "broken")
    assert mode(tmp_path / "nowhere") == PASSED


@pytest.mark.parametrize("name", ["what?", "очень длинно" * 10])
def test_a_name_that_prefects_database_cannot_have(tmp_path: Path, name: str) -> None:
    home = tmp_path / name / name / name
    with pytest.raises(InputError, match=r"YARUS_HOME=.*(options|480 bytes)"):
        prefect_database(home)


@pytest.mark.slow("process: two commands and a Prefect server")
def test_every_part_that_commands_make_is_private(tmp_path: Path) -> None:
    home = tmp_path / "home"
    yarus = CommandLine(home)
    script = "import os, sys; os.umask(0); from yarus.__main__ import main; main()"
    tmp_path.joinpath("home").mkdir(mode=0o755)
    for words in (("run", "tier0", "--limit", "4"), ("report", "last")):
        process = yarus.start(
            *words, script=script, env=environment(home) | {"PREFECT_HOME": str(tmp_path / "prefect")}
        )
        out, err = process.communicate(timeout=240)
        assert process.returncode in (0, 1), out + err
    assert {entry.name for entry in home.iterdir()} <= set(PARTS)
    assert list(open_parts(home)) == []
    assert [path.name for path in home.iterdir() if mode(path) & 0o077] == []
    assert mode(home / "prefect" / "prefect.db") == 0o600
