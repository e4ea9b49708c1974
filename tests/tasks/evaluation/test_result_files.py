"""Parquet files are complete or missing: after kills, truncation, or on an object store."""

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
from yarus.tasks.evaluation.result_files import publish_file, read_results, remove_result, write_batches
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


def test_read_returns_written_table(tmp_path: Path) -> None:
    write_batches([TABLE], tmp_path / "a.parquet")
    assert read_results(str(tmp_path / "a.parquet")).equals(TABLE)
    assert read_results(str(tmp_path / "a.parquet"), ["text"]).column_names == ["text"]
    assert [path.name for path in tmp_path.iterdir()] == ["a.parquet"]


def test_write_batches_keeps_order(tmp_path: Path) -> None:
    write_batches((TABLE.slice(start, 1) for start in range(3)), tmp_path / "a.parquet")
    assert pq.read_table(tmp_path / "a.parquet").equals(TABLE)


@pytest.mark.parametrize("exists", [True, False])
def test_write_batches_killed_leaves_old_file_or_none(tmp_path: Path, exists: bool) -> None:
    path = tmp_path / "a.parquet"
    if exists:
        write_batches([TABLE], path)
    killed = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert list(tmp_path.glob(".a.parquet.*.part"))  # the write was interrupted
    assert list(tmp_path.glob("*.parquet")) == ([path] if exists else [])
    assert not exists or pq.read_table(path).equals(TABLE)


@pytest.mark.parametrize("tables", [[], [TABLE, pa.table({"other": [1]})]])
def test_write_batches_failure_leaves_nothing(tmp_path: Path, tables: list[pa.Table]) -> None:
    with pytest.raises(ValueError, match=r"nothing to write|schema"):
        write_batches(tables, tmp_path / "a.parquet")
    assert list(tmp_path.iterdir()) == []


def test_result_path_is_partitioned_by_tier_and_utc_day() -> None:
    late = datetime(2026, 1, 1, 1, tzinfo=timezone(timedelta(hours=5)))
    assert result_path("/r/", "tier1", "x", late) == "/r/tier=tier1/date=2025-12-31/x.parquet"
    assert (
        result_path("s3://b/r", "tier1", "x", late.astimezone(UTC)) == "s3://b/r/tier=tier1/date=2025-12-31/x.parquet"
    )


@pytest.mark.parametrize("folder", ["results", "результаты и [x]"])
def test_publish_and_remove_in_folder(tmp_path: Path, folder: str) -> None:
    write_batches([TABLE], tmp_path / "a.parquet")
    target = f"{tmp_path / folder}/tier=t/date=d/x.parquet"
    path = publish_file(tmp_path / "a.parquet", target)
    assert read_results(path).equals(TABLE)
    assert [entry.name for entry in Path(path).parent.iterdir()] == ["x.parquet"]
    leftover = Path(path).with_name(".x.parquet.123.part")  # from a killed process
    leftover.write_bytes(b"half")
    unrelated = Path(path).with_name(".y.parquet.123.part")
    unrelated.write_bytes(b"of another")
    for _ in range(2):  # missing files are not an error
        remove_result(target)
    assert [entry.name for entry in Path(path).parent.iterdir()] == [unrelated.name]


def test_publish_and_remove_on_object_store(tmp_path: Path) -> None:
    write_batches([TABLE], tmp_path / "a.parquet")
    target = "memory://bucket/tier=t/x.parquet"
    assert publish_file(tmp_path / "a.parquet", target) == target
    assert read_results(target).equals(TABLE)
    for _ in range(2):
        remove_result(target)
    assert not fsspec.filesystem("memory").exists("/bucket/tier=t/x.parquet")


@pytest.mark.parametrize(("root", "package"), [("s3://b/x", "s3fs"), ("foo://k:s3cret@b/x", "foo")])
@pytest.mark.parametrize("use", [read_results, remove_result, lambda target: publish_file(Path("a.parquet"), target)])
def test_store_error_names_setting_and_package(
    monkeypatch: pytest.MonkeyPatch, root: str, package: str, use: Callable[[str], object]
) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)  # simulate a missing package
    with pytest.raises(InputError, match=f"YARUS_RESULTS: .*{package}") as error:
        use(f"{root}/y.parquet")
    assert "s3cret" not in str(error.value)


def test_partitioned_results_are_read_together(tmp_path: Path) -> None:
    write_batches([TABLE], tmp_path / "a.parquet")
    for day in ("2026-01-01", "2026-01-02"):
        publish_file(tmp_path / "a.parquet", f"{tmp_path}/results/tier=t/date={day}/{day}.parquet")
    (tmp_path / "results/tier=t/date=2026-01-02/.half.parquet.1.part").write_bytes(b"half")
    month = pq.read_table(tmp_path / "results")
    assert (len(month), {"tier", "date"} <= set(month.column_names)) == (6, True)


def test_read_refuses_file_of_another_evaluation(tmp_path: Path) -> None:
    """A file copied over another evaluation's is refused; older files without an id are read."""
    own_file, other_file = tmp_path / "tier1-a.parquet", tmp_path / "tier1-b.parquet"
    write_batches([TABLE], own_file, evaluation_id="tier1-a")
    assert read_results(str(own_file)).equals(TABLE)
    shutil.copyfile(own_file, other_file)
    with pytest.raises(ResultsUnavailable) as error:
        read_results(str(other_file), ["n"])
    assert str(error.value) == (
        f"evaluation tier1-b: its file {other_file} holds the cases of evaluation tier1-a; "
        "put its own file back, or evaluate anew"
    )
    write_batches([TABLE], other_file)
    assert read_results(str(other_file)).equals(TABLE)


@pytest.mark.parametrize("results", [None, "kept", "memory://kept"])
def test_existing_path_finds_moved_results(
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
    if results == "memory://kept":  # object stores do not move with the home folder
        assert existing_path(str(old)) == str(old)
        return
    assert existing_path(str(old)) == str(new)
    assert read_results(str(old)).equals(TABLE)
    new.unlink()
    with pytest.raises(ResultsUnavailable, match=f"{old} cannot be read: No such file or directory; put its own"):
        read_results(str(old))
