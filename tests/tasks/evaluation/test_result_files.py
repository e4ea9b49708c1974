"""Parquet files are whole or not there: killed in the middle, cut off, or on an object store."""

import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from yarus.db.errors import InputError, ResultsUnavailable
from yarus.tasks.evaluation.result_files import publish, read, remove, write_batches
from yarus.tasks.evaluation.result_paths import existing_path, result_path

NONE = pa.nulls(3, pa.string())
TABLE = pa.table({"case_id": ["1", "2", "3"], "status": NONE, "reason": NONE, "n": [1, 2, 3], "text": ["ёж", None, ""]})
KILLED = """
import os, signal, sys, pyarrow as pa
from pathlib import Path
from yarus.tasks.evaluation import result_files as files

def tables():
    for number in range(100):
        yield pa.table({"n": list(range(1000))})
        if number == 50:
            os.kill(os.getpid(), signal.SIGKILL)

files.write_batches(tables(), Path(sys.argv[1]))
"""


def test_what_is_written_is_read(tmp_path: Path) -> None:
    write_batches([TABLE], tmp_path / "a.parquet")
    assert read(str(tmp_path / "a.parquet")).equals(TABLE)
    assert read(str(tmp_path / "a.parquet"), ["text"]).column_names == ["text"]
    assert [path.name for path in tmp_path.iterdir()] == ["a.parquet"]


def test_batches_become_one_file_in_their_order(tmp_path: Path) -> None:
    write_batches((TABLE.slice(start, 1) for start in range(3)), tmp_path / "a.parquet")
    assert pq.read_table(tmp_path / "a.parquet").equals(TABLE)


@pytest.mark.parametrize("there", [True, False])
def test_killed_in_the_middle_it_is_the_old_file_or_none(tmp_path: Path, there: bool) -> None:
    path = tmp_path / "a.parquet"
    if there:
        write_batches([TABLE], path)
    killed = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert list(tmp_path.glob(".a.parquet.*.part"))  # it was in the middle
    assert list(tmp_path.glob("*.parquet")) == ([path] if there else [])
    assert not there or pq.read_table(path).equals(TABLE)


@pytest.mark.parametrize("tables", [[], [TABLE, pa.table({"other": [1]})]])
def test_what_cannot_be_written_leaves_nothing(tmp_path: Path, tables: list[pa.Table]) -> None:
    with pytest.raises(ValueError, match=r"nothing to write|schema"):
        write_batches(tables, tmp_path / "a.parquet")
    assert list(tmp_path.iterdir()) == []


def test_the_place_is_partitioned_by_tier_and_day_in_utc() -> None:
    late = datetime(2026, 1, 1, 1, tzinfo=timezone(timedelta(hours=5)))
    assert result_path("/r/", "tier1", "x", late) == "/r/tier=tier1/date=2025-12-31/x.parquet"
    assert (
        result_path("s3://b/r", "tier1", "x", late.astimezone(UTC)) == "s3://b/r/tier=tier1/date=2025-12-31/x.parquet"
    )


@pytest.mark.parametrize("folder", ["results", "результаты и [x]"])
def test_published_to_a_folder(tmp_path: Path, folder: str) -> None:
    write_batches([TABLE], tmp_path / "a.parquet")
    target = f"{tmp_path / folder}/tier=t/date=d/x.parquet"
    path = publish(tmp_path / "a.parquet", target)
    assert read(path).equals(TABLE)
    assert [found.name for found in Path(path).parent.iterdir()] == ["x.parquet"]
    left = Path(path).with_name(".x.parquet.123.part")  # of a process that was killed
    left.write_bytes(b"half")
    other = Path(path).with_name(".y.parquet.123.part")
    other.write_bytes(b"of another")
    for _ in range(2):  # what is not there is no error
        remove(target)
    assert [found.name for found in Path(path).parent.iterdir()] == [other.name]


def test_published_to_an_object_store(tmp_path: Path) -> None:
    write_batches([TABLE], tmp_path / "a.parquet")
    target = "memory://bucket/tier=t/x.parquet"
    assert publish(tmp_path / "a.parquet", target) == target
    assert read(target).equals(TABLE)
    for _ in range(2):
        remove(target)
    assert not fsspec.filesystem("memory").exists("/bucket/tier=t/x.parquet")


@pytest.mark.parametrize(("root", "named"), [("s3://b/x", "s3fs"), ("foo://k:s3cret@b/x", "foo")])
@pytest.mark.parametrize("use", [read, remove, lambda target: publish(Path("a.parquet"), target)])
def test_a_store_that_cannot_be_opened_is_named(
    monkeypatch: pytest.MonkeyPatch, root: str, named: str, use: Callable[[str], object]
) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)  # as if it were not installed
    with pytest.raises(InputError, match=f"YARUS_RESULTS: .*{named}") as refused:
        use(f"{root}/y.parquet")
    assert "s3cret" not in str(refused.value)


def test_a_month_is_read_at_once(tmp_path: Path) -> None:
    write_batches([TABLE], tmp_path / "a.parquet")
    for day in ("2026-01-01", "2026-01-02"):
        publish(tmp_path / "a.parquet", f"{tmp_path}/results/tier=t/date={day}/{day}.parquet")
    (tmp_path / "results/tier=t/date=2026-01-02/.half.parquet.1.part").write_bytes(b"half")
    month = pq.read_table(tmp_path / "results")
    assert (len(month), {"tier", "date"} <= set(month.column_names)) == (6, True)


def test_a_file_knows_whose_cases_it_holds(tmp_path: Path) -> None:
    """One that was copied over another's is refused; files of older versions, which do not tell, are read."""
    mine, theirs = tmp_path / "tier1-a.parquet", tmp_path / "tier1-b.parquet"
    write_batches([TABLE], mine, evaluation_id="tier1-a")
    assert read(str(mine)).equals(TABLE)
    shutil.copyfile(mine, theirs)
    with pytest.raises(ResultsUnavailable) as refused:
        read(str(theirs), ["n"])
    assert str(refused.value) == (
        f"evaluation tier1-b: its file {theirs} holds the cases of evaluation tier1-a; "
        "put its own file back, or evaluate anew"
    )
    write_batches([TABLE], theirs)
    assert read(str(theirs)).equals(TABLE)


@pytest.mark.parametrize("results", [None, "kept", "memory://kept"])
def test_results_that_moved_with_their_folder_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, results: str | None
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("YARUS_HOME", str(tmp_path / "new"))
    monkeypatch.setenv("YARUS_RESULTS", results or "")
    tail = "tier=tier1/date=2026-01-01/tier1-a.parquet"
    old, new = tmp_path / "old" / tail, tmp_path / (results or "new/results") / tail
    for path in (old, new):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_batches([TABLE], old)
    assert existing_path(str(old)) == str(old)
    old.rename(new)
    if results == "memory://kept":  # what is on an object store does not move with the home
        assert existing_path(str(old)) == str(old)
        return
    assert existing_path(str(old)) == str(new)
    assert read(str(old)).equals(TABLE)
    new.unlink()
    with pytest.raises(ResultsUnavailable, match=f"{old} cannot be read: No such file or directory; put its own"):
        read(str(old))
