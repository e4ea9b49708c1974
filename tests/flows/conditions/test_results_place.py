"""Results that cannot be written: found before anything is computed or paid for."""

from pathlib import Path

import pytest
from sqlalchemy import Engine, func, select

from tests.support.command_line import ENGLISH, here
from yarus.db.tables import evaluation


@pytest.mark.parametrize("words", [("run", "tier1"), ("run", "nightly"), ("run", "tier1", "--resume", "last")])
def test_results_that_cannot_be_written_are_found_at_the_start(
    words: tuple[str, ...], at_home: Path, engine: Engine, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()  # root may write into closed folders, but below a file nobody may
    place = str(tmp_path / "file" / "results")
    begun = select(func.count()).select_from(evaluation)
    with engine.connect() as connection:
        before = connection.scalar(begun)
    ran = here(*words, env=ENGLISH | {"YARUS_RESULTS": place})
    with engine.connect() as connection:
        after = connection.scalar(begun)
    assert (ran.code, after) == (3, before), ran.err
    assert f"results cannot be written to {place}: Not a directory" in ran.err
    assert "YARUS_RESULTS" in ran.err


def test_the_probe_leaves_nothing(at_home: Path, tmp_path: Path) -> None:
    ran = here("run", "tier1", "--source", "nowhere", env={"YARUS_RESULTS": str(tmp_path)})
    assert (ran.code, list(tmp_path.iterdir())) == (2, []), ran.err
