"""The working folder of an evaluation on an object store, where workers on other machines, or a later try, find it.

Without such a YARUS_WORK nothing is done here: the folder is a folder, on this machine or on a disk that all share.
"""

import contextlib
import fnmatch
from collections.abc import Iterable
from pathlib import Path

from yarus.tasks.config.settings import settings
from yarus.tasks.results.parquet_files import make_folder, store

BATCHES = "batch-*.parquet"


def upload(evaluation_id: str, files: Iterable[Path]) -> None:
    """Puts finished files of the working folder on the store, over what a put that was cut off may have left."""
    root = _root(evaluation_id)
    if root is None:
        return
    filesystem, name = store(root, "YARUS_WORK")
    for file in files:
        filesystem.put_file(str(file), f"{name}/{file.name}")


def download(evaluation_id: str, folder: Path, *, batches: bool) -> None:
    """Gets what the store has and the working folder has not, each file whole or not at all.

    Args:
        evaluation_id: whose.
        folder: its working folder here; made where it is not.
        batches: the finished batches too, or only what they are computed from.
    """
    root = _root(evaluation_id)
    if root is None:
        return
    filesystem, name = store(root, "YARUS_WORK")
    make_folder(folder)
    for file in _names(root):
        if (folder / file).exists() or (fnmatch.fnmatch(file, BATCHES) and not batches):
            continue
        partial = folder / f".{file}.{id(filesystem)}.part"
        try:
            filesystem.get_file(f"{name}/{file}", str(partial))
            partial.replace(folder / file)
        finally:
            partial.unlink(missing_ok=True)


def uploaded() -> set[str]:
    """The evaluations that have a folder on the store."""
    work = settings().work
    return set(_names(work)) if work and "://" in work else set()


def delete(evaluation_id: str) -> None:
    """Removes a finished evaluation's folder from the store."""
    root = _root(evaluation_id)
    if root is not None:
        filesystem, name = store(root, "YARUS_WORK")
        with contextlib.suppress(FileNotFoundError):
            filesystem.rm(name, recursive=True)


def _root(evaluation_id: str) -> str | None:
    work = settings().work
    return f"{work.rstrip('/')}/{evaluation_id}" if work and "://" in work else None


def _names(root: str) -> list[str]:
    filesystem, name = store(root, "YARUS_WORK")
    filesystem.invalidate_cache()  # other machines write there too
    try:
        return [Path(path).name for path in filesystem.ls(name, detail=False)]
    except FileNotFoundError:
        return []
