"""Parquet files that are written completely or not at all, in a folder or on an object store."""

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
from yarus.db.messages import Words
from yarus.tasks.cases.table import CASE_COLUMNS, LONG_TEXT_COLUMNS
from yarus.tasks.config.redaction import redact_urls
from yarus.tasks.config.settings import get_settings
from yarus.tasks.evaluation.result_paths import existing_path

pa.set_memory_pool(pa.system_memory_pool())  # Arrow's own pool does not return memory: 60 MB more for 100,000 cases
REQUIRED_COLUMNS = ("case_id", "status", "reason")
EVALUATION_ID_KEY = b"yarus.evaluation"
"""Key in a file's metadata: the id of the evaluation whose cases it contains."""


def write_batches(tables: Iterable[pa.Table], path: Path, *, evaluation_id: str | None = None) -> None:
    """Write tables of one schema as one file, one after another, so that memory holds only one.

    Args:
        tables: at least one.
        path: of the file.
        evaluation_id: of their evaluation; it is stored in the file's metadata.

    Raises:
        ValueError: there is no table, or one is of another schema.
    """
    metadata = {EVALUATION_ID_KEY: evaluation_id} if evaluation_id else None
    with open_partial(path, durable=True) as partial:
        writer = None
        for table in tables:
            schema = table.schema.with_metadata(metadata)
            writer = writer or pq.ParquetWriter(partial, schema, compression="zstd", write_page_checksum=True)
            writer.write_table(table)
        if writer is None:
            raise ValueError(f"{path}: nothing to write")
        writer.close()


@contextmanager
def open_partial(path: Path, *, durable: bool) -> Iterator[Path]:
    """Yield a temporary file that then takes its place: readers see all of it or nothing.

    Args:
        path: of the final file.
        durable: whether it survives a power failure.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield partial
        if durable:
            _sync_to_disk(partial)
        partial.replace(path)
        if durable:
            _sync_to_disk(path.parent)
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def make_folder(folder: Path) -> None:
    """Make a folder if missing: private if it is below the home folder, else by the user's umask."""
    home.make_private_folder(folder, get_settings().home)


def open_filesystem(target: str, setting: str = "YARUS_RESULTS") -> tuple[AbstractFileSystem, str]:
    """Return the filesystem of a path or URL of the results, and its name there.

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
    """Check that results can be written, by creating and deleting an empty file, before any cost arises.

    Raises:
        ResultsUnavailable: they cannot.
        InputError: the store cannot be opened.
    """
    filesystem, folder = open_filesystem(root)
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


def publish_file(path: Path, target: str) -> str:
    """Put a finished file into its place, completely or not at all, and return its path or URL."""
    filesystem, name = open_filesystem(target)
    if not isinstance(filesystem, LocalFileSystem):
        filesystem.put_file(str(path), name)
        return target
    final = Path(name)
    make_folder(final.parent)
    with open_partial(final, durable=True) as partial:
        shutil.copyfile(path, partial)
    return str(final)


def remove_result(target: str) -> None:
    """Remove a result file, and leftovers of a killed process, if they exist."""
    filesystem, name = open_filesystem(target)
    if isinstance(filesystem, LocalFileSystem):
        final = Path(name)
        for path in (final, *final.parent.glob(f".{glob.escape(final.name)}.*.part")):
            path.unlink(missing_ok=True)
    elif filesystem.exists(name):
        filesystem.rm_file(name)


def read_results(path: str, columns: Sequence[str] | None = None, *, without: Container[str] = ()) -> pa.Table:
    """Read the table in a result file: all columns, the named ones, or all `without` some.

    Raises:
        ResultsUnavailable: it is missing, cannot be read, or contains the cases of another evaluation than its name
            says; files of older versions do not have an id.
        InputError: the store cannot be opened.
    """
    path = existing_path(path)
    filesystem, name = open_filesystem(path)
    evaluation_id = Path(name).stem
    location, way_out = (
        Words("evaluation {evaluation}: its file {path}", evaluation=evaluation_id, path=redact_urls(path)),
        Words("put its own file back, or evaluate anew"),
    )
    try:
        if isinstance(filesystem, LocalFileSystem) and Path(name).is_fifo():
            raise OSError(Words("it is a pipe, which may never say anything"))
        with filesystem.open(name, "rb") as file:
            table = _as_declared(read_parquet(file, columns, without=without), columns, without)
    except (OSError, pa.ArrowException) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise ResultsUnavailable(
            "{place} cannot be read: {why}; {way_out}", place=location, why=why, way_out=way_out
        ) from error
    owner_id = (table.schema.metadata or {}).get(EVALUATION_ID_KEY, evaluation_id.encode()).decode()
    if owner_id != evaluation_id:
        raise ResultsUnavailable(
            "{place} holds the cases of evaluation {whose}; {way_out}", place=location, whose=owner_id, way_out=way_out
        )
    return table


def _as_declared(table: pa.Table, columns: Sequence[str] | None, without: Container[str]) -> pa.Table:
    """Cast the table to the declared types, except columns of long shared texts.

    Raises:
        ArrowInvalid: a value is of another type, or a column that every case has is missing.
    """
    for name in REQUIRED_COLUMNS:
        if name in (columns or REQUIRED_COLUMNS) and name not in without and name not in table.column_names:
            raise pa.ArrowInvalid(f"it has no column {name!r}, so these are no cases")
    for position, field in enumerate(table.schema):
        is_declared = field.name in CASE_COLUMNS and field.name not in LONG_TEXT_COLUMNS
        if is_declared and field.type != (declared := CASE_COLUMNS[field.name].type):
            try:
                table = table.set_column(position, field.with_type(declared), table[field.name].cast(declared))
            except pa.ArrowException as error:
                raise pa.ArrowInvalid(f"column {field.name!r} is {field.type}, not {declared}") from error
    return table


def read_parquet(
    file: Path | IO[bytes],
    columns: Sequence[str] | None = None,
    *,
    without: Container[str] = (),
    group: int | None = None,
) -> pa.Table:
    """Read a Parquet file, or one of its row groups, in this thread only.

    Arrow's own threads keep memory, and sometimes abort a program that ends while they run.
    """
    pa.default_memory_pool().release_unused()  # free memory before more is read
    with pq.ParquetFile(file, pre_buffer=False, page_checksum_verification=True) as stored:
        names = columns or [name for name in stored.schema_arrow.names if name not in without]
        if group is None:
            return stored.read(columns=names, use_threads=False)
        return stored.read_row_group(group, columns=names, use_threads=False)


def _sync_to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
