"""Parquet files that are there whole or not at all, in a folder or on an object store."""

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
from fsspec.implementations.local import LocalFileSystem


def write_whole(table: pa.Table, path: Path) -> None:
    """Writes the table under a temporary name, then renames: a reader sees all of it or nothing."""
    write_batches([table], path)


def write_batches(tables: Iterable[pa.Table], path: Path) -> None:
    """Writes tables of one schema as one file, one after another, so that memory holds one of them."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        writer = None
        for table in tables:
            writer = writer or pq.ParquetWriter(partial, table.schema, compression="zstd")
            writer.write_table(table)
        if writer is None:
            raise ValueError(f"{path}: nothing to write")
        writer.close()
        _sync(partial)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def publish(path: Path, root: str, *parts: str) -> str:
    """Puts a finished file below the results root, whole or not at all; returns its path or URL there."""
    target = "/".join((root.rstrip("/"), *parts))
    filesystem, name = fsspec.core.url_to_fs(target)
    if not isinstance(filesystem, LocalFileSystem):
        filesystem.put_file(str(path), name)
        return target
    final = Path(name)
    final.parent.mkdir(parents=True, exist_ok=True)
    partial = final.with_name(f".{final.name}.{os.getpid()}.part")
    try:
        shutil.copyfile(path, partial)
        _sync(partial)
        partial.replace(final)
    finally:
        partial.unlink(missing_ok=True)
    return str(final)


def read(path: str, columns: list[str] | None = None) -> pa.Table:
    """The table in a file of the results.

    Raises:
        OSError: it is not there or cannot be read.
    """
    with fsspec.open(path, "rb") as file:
        return pq.read_table(file, columns=columns)


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
