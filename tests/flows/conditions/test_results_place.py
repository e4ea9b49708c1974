"""Check that unwritable results are reported before anything is computed or paid for."""

from pathlib import Path

import pytest
from sqlalchemy import Engine, func, select

from tests.support.command_line import ENGLISH, run_here
from yarus.db.tables import evaluation


@pytest.mark.parametrize("words", [("run", "tier1"), ("run", "nightly"), ("run", "tier1", "--resume", "last")])
def test_unwritable_results_are_reported_at_start(
    words: tuple[str, ...], at_home: Path, engine: Engine, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()  # root may write into closed folders, but nobody may write below a file
    results_path = str(tmp_path / "file" / "results")
    count_query = select(func.count()).select_from(evaluation)
    with engine.connect() as connection:
        before = connection.scalar(count_query)
    ran = run_here(*words, env=ENGLISH | {"YARUS_RESULTS": results_path})
    with engine.connect() as connection:
        after = connection.scalar(count_query)
    assert (ran.code, after) == (3, before), ran.err
    assert f"results cannot be written to {results_path}: Not a directory" in ran.err
    assert "YARUS_RESULTS" in ran.err


def test_write_probe_leaves_nothing(at_home: Path, tmp_path: Path) -> None:
    ran = run_here("run", "tier1", "--source", "nowhere", env={"YARUS_RESULTS": str(tmp_path)})
    assert (ran.code, list(tmp_path.iterdir())) == (2, []), ran.err
