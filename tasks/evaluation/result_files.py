"""Parquet files that are there whole or not at all, in a folder or on an object store."""

import glob
import os
import shutil
import uuid
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
from fsspec import AbstractFileSystem
from fsspec.implementations.local import LocalFileSystem

from yarus.db import home
from yarus.db.errors import InputError, ResultsUnavailable
from yarus.db.words import Words
from yarus.tasks.cases.table import COLUMNS, LONG
from yarus.tasks.config.redaction import redact_urls
from yarus.tasks.config.settings import settings
from yarus.tasks.evaluation.result_paths import existing_path

pa.set_memory_pool(pa.system_memory_pool())  # Arrow's own gives nothing back: 60 MB more for 100,000 cases
EVERY_CASE = ("case_id", "status", "reason")
EVALUATION = b"yarus.evaluation"
"""Key in a file's own metadata: the id of the evaluation whose cases it holds."""


def write_batches(tables: Iterable[pa.Table], path: Path, *, evaluation_id: str | None = None) -> None:
    """Writes tables of one schema as one file, one after another, so that memory holds one of them.

    Args:
        tables: at least one.
        path: of the file.
        evaluation_id: whose cases they are; the file then says so itself.

    Raises:
        ValueError: there is no table, or one is of another schema.
    """
    said = {EVALUATION: evaluation_id} if evaluation_id else None
    with open_partial(path, durable=True) as partial:
        writer = None
        for table in tables:
            schema = table.schema.with_metadata(said)
            writer = writer or pq.ParquetWriter(partial, schema, compression="zstd", write_page_checksum=True)
            writer.write_table(table)
        if writer is None:
            raise ValueError(f"{path}: nothing to write")
        writer.close()


@contextmanager
def open_partial(path: Path, *, durable: bool) -> Iterator[Path]:
    """Give a file to write, which then takes its place: a reader sees all of it or nothing.

    Args:
        path: its place.
        durable: whether it stays whole and stays there when the power fails.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield partial
        if durable:
            _sync(partial)
        partial.replace(path)
        if durable:
            _sync(path.parent)
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def make_folder(folder: Path) -> None:
    """Makes a folder if it is not there: private where it lies at home, by the user's umask elsewhere."""
    home.make(folder, settings().home)


def store(target: str, setting: str = "YARUS_RESULTS") -> tuple[AbstractFileSystem, str]:
    """The filesystem that a path or URL of the results is on, and its name there.

    Raises:
        InputError: there is no such filesystem, or the package for it is not installed; the setting is named.
    """
    try:
        filesystem, name = fsspec.core.url_to_fs(target)
    except (ImportError, ValueError) as error:  # the first names the package
        raise InputError(
            "{setting}: {target!r} cannot be opened: {error}; expected a folder, or a URL such as s3://bucket/folder "
            "with the package for it installed",
            setting=setting,
            target=redact_urls(target),
            error=redact_urls(str(error)),
        ) from None
    return filesystem, name


def require_writable(root: str) -> None:
    """Finds out before anything is computed or paid for that results cannot be written: an empty file comes and goes.

    Raises:
        ResultsUnavailable: they cannot.
        InputError: it is in a store that cannot be opened.
    """
    filesystem, folder = store(root)
    probe = f"{folder}/.yarus-{uuid.uuid4().hex}"
    try:
        if isinstance(filesystem, LocalFileSystem):
            make_folder(Path(folder))
        else:
            filesystem.makedirs(folder, exist_ok=True)
        filesystem.pipe_file(probe, b"")
        filesystem.rm_file(probe)
    except OSError as error:
        raise ResultsUnavailable(
            "results cannot be written to {root}: {reason}; make room or rights there, or set YARUS_RESULTS to "
            "another place",
            root=redact_urls(root),
            reason=error.strerror or redact_urls(str(error)),
        ) from error


def publish(path: Path, target: str) -> str:
    """Puts a finished file in its place, whole or not at all; returns its path or URL there."""
    filesystem, name = store(target)
    if not isinstance(filesystem, LocalFileSystem):
        filesystem.put_file(str(path), name)
        return target
    final = Path(name)
    make_folder(final.parent)
    with open_partial(final, durable=True) as partial:
        shutil.copyfile(path, partial)
    return str(final)


def remove(target: str) -> None:
    """Removes a file of the results, and what a killed process may have left of it, if they are there."""
    filesystem, name = store(target)
    if isinstance(filesystem, LocalFileSystem):
        final = Path(name)
        for path in (final, *final.parent.glob(f".{glob.escape(final.name)}.*.part")):
            path.unlink(missing_ok=True)
    elif filesystem.exists(name):
        filesystem.rm_file(name)


def read(path: str, columns: Sequence[str] | None = None, *, without: Container[str] = ()) -> pa.Table:
    """The table in a file of the results: all of its columns, those that are named, or all `without` some.

    Raises:
        ResultsUnavailable: it is not there, cannot be read, or holds the cases of another evaluation than its name
            says; files of older versions do not tell whose they are.
        InputError: it is in a store that cannot be opened.
    """
    path = existing_path(path)
    filesystem, name = store(path)
    evaluation_id = Path(name).stem
    place, way_out = (
        Words("evaluation {evaluation}: its file {path}", evaluation=evaluation_id, path=redact_urls(path)),
        Words("put its own file back, or evaluate anew"),
    )
    try:
        if isinstance(filesystem, LocalFileSystem) and Path(name).is_fifo():
            raise OSError(Words("it is a pipe, which may never say anything"))
        with filesystem.open(name, "rb") as file:
            table = _as_declared(parquet(file, columns, without=without), columns, without)
    except (OSError, pa.ArrowException) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise ResultsUnavailable(
            "{place} cannot be read: {why}; {way_out}", place=place, why=why, way_out=way_out
        ) from error
    whose = (table.schema.metadata or {}).get(EVALUATION, evaluation_id.encode()).decode()
    if whose != evaluation_id:
        raise ResultsUnavailable(
            "{place} holds the cases of evaluation {whose}; {way_out}", place=place, whose=whose, way_out=way_out
        )
    return table


def _as_declared(table: pa.Table, columns: Sequence[str] | None, without: Container[str]) -> pa.Table:
    """The table in the types that are declared; what shares long texts stays as it is.

    Raises:
        ArrowInvalid: a value is of another type, or what every case has is not there.
    """
    for name in EVERY_CASE:
        if name in (columns or EVERY_CASE) and name not in without and name not in table.column_names:
            raise pa.ArrowInvalid(f"it has no column {name!r}, so these are no cases")
    for place, field in enumerate(table.schema):
        known = field.name in COLUMNS and field.name not in LONG
        if known and field.type != (wanted := COLUMNS[field.name].type):
            try:
                table = table.set_column(place, field.with_type(wanted), table[field.name].cast(wanted))
            except pa.ArrowException as error:
                raise pa.ArrowInvalid(f"column {field.name!r} is {field.type}, not {wanted}") from error
    return table


def parquet(
    file: Path | IO[bytes],
    columns: Sequence[str] | None = None,
    *,
    without: Container[str] = (),
    group: int | None = None,
) -> pa.Table:
    """The table in a Parquet file, or one of its row groups; by this thread alone.

    Arrow's own threads hold memory of their own, and now and then abort a program that ends while they do.
    """
    pa.default_memory_pool().release_unused()  # what is done with, before more is read
    with pq.ParquetFile(file, pre_buffer=False, page_checksum_verification=True) as stored:
        names = columns or [name for name in stored.schema_arrow.names if name not in without]
        if group is None:
            return stored.read(columns=names, use_threads=False)
        return stored.read_row_group(group, columns=names, use_threads=False)


def _sync(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
