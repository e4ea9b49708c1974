"""Read dumps of PostgreSQL databases as text, never executing them; rows go into temporary tables of our database.

The importer understands three things of a dump: the columns of a table, and rows of the mapped tables as COPY or as
INSERT of literals. Yarus creates the temporary tables, with known types; they disappear with the connection, even if
the process is killed.
"""

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from stat import S_ISREG
from typing import IO, Any

import psycopg
from psycopg.sql import SQL, Identifier
from sqlalchemy import MetaData, Table, create_engine
from sqlalchemy.pool import StaticPool

from yarus.db.embedded.account import drop_privileges, find_unprivileged_user
from yarus.db.embedded.cluster import INSTALLATIONS, find_programs
from yarus.db.engine import driver_connection, reporting_unreachable
from yarus.db.errors import DatabaseUnavailable, InputError, unknown
from yarus.db.importers.dump_statements import DumpParser, TableName
from yarus.db.importers.dump_text import DumpTokenizer
from yarus.db.importers.postgres import ACCEPTED_TYPES
from yarus.db.messages import Words
from yarus.db.sources import Source
from yarus.db.tables import ANNOTATION_TABLE

COMPLETE_MARK = b"PostgreSQL database dump complete"
TYPE_MAP = {kind: kind for kinds in ACCEPTED_TYPES.values() for kind in kinds} | {
    "character": "bpchar",
    "halfvec": "vector",
}
"""Type of a column in a dump -> its type in our table; any other is read as text, as in the dump."""
MAX_ERROR_OUTPUT = 1 << 20
LIMITED_SHELL = ["/bin/sh", "-c", f'ulimit -v {4 << 20}; ulimit -f {MAX_ERROR_OUTPUT >> 9}; exec "$@"', "sh"]
"""Limits memory to 4 GB and error output to 1 MB: a broken archive may declare any size."""
MIN_UNPACKED_LIMIT, MAX_RATIO = 1 << 30, 200
"""Limits in bytes and in multiples of its size for an unpacked archive: a bomb of zeros is packed 1,000 to 1."""
LIMIT_ERRORS = "54"
"""Class of PostgreSQL errors that a dump causes, such as more columns than a table can have."""
RESTORE_ADVICE = Words("restore the dump on a server of yours and load from its postgresql:// address")


@contextmanager
def open_dump(path: Path, source: Source) -> Iterator[Source]:
    """Open a dump's rows as a source for `postgres.open_source_snapshot`, which exists within this context.

    Args:
        path: made by pg_dump, in the custom, directory, tar or plain format.
        source: the engine of our own database, and the names of the tables and columns in the dump.

    Raises:
        InputError: the dump is incomplete, made by a newer pg_dump than ours, or without the rows of a table.
        DatabaseUnavailable: our database or pg_restore cannot be used.
    """
    engine = create_engine(source.engine.url, poolclass=StaticPool)  # one connection, which owns the temporary tables
    temporary_tables = {
        key: table.to_metadata(MetaData(), schema=None, name=_temporary_name(table))  # type: ignore[arg-type]  # None: no schema
        for key, table in source.tables.items()
    }
    table_names = {_name_in_dump(table): temporary_tables[key].name for key, table in source.tables.items()}
    try:
        with reporting_unreachable(engine), engine.connect() as connection, _open_text(path) as read:
            driver = driver_connection(connection)
            _copy_rows(driver, DumpParser(DumpTokenizer(str(path), read), set(table_names)), table_names, path, source)
            driver.commit()  # SQLAlchemy does not know of a transaction
        yield replace(source, engine=engine, tables=temporary_tables)
    finally:
        engine.dispose()


def _name_in_dump(table: Table) -> TableName:
    """Return the name of the table in the dump."""
    return table.schema or "public", table.name


def _temporary_name(table: Table) -> str:
    """Return the name of the temporary table, as messages call the table; PostgreSQL truncates longer names."""
    return table.fullname if len(table.fullname.encode()) < 64 else table.name


def _copy_rows(driver: Any, dump: DumpParser, table_names: dict[TableName, str], path: Path, source: Source) -> None:
    """Copy all rows of the wanted tables.

    Raises:
        InputError: a table is missing, or PostgreSQL cannot store its values.
        DatabaseUnavailable: our database ended, or its disk is full.
    """
    created: set[TableName] = set()
    try:
        with driver.cursor() as cursor:
            for (name, columns), blocks in groupby(dump.rows(), key=itemgetter(0, 1)):
                if name not in created:
                    cursor.execute(_create_statement(table_names[name], dump, name))
                    created.add(name)
                statement = SQL("COPY {} ({}) FROM STDIN (ENCODING 'UTF8')")
                column_list = SQL(", ").join(map(Identifier, columns))
                with cursor.copy(statement.format(Identifier("pg_temp", table_names[name]), column_list)) as copy:
                    for _, _, block in blocks:
                        copy.write(block)
            for key, table in source.tables.items():
                name = _name_in_dump(table)
                _check_table(dump, name, key, table, path)
                if name not in created:
                    cursor.execute(_create_statement(table_names[name], dump, name))
                    created.add(name)
    except psycopg.Error as error:
        place = f" ({error.diag.context})" if error.diag.context else ""
        is_outage = isinstance(error, psycopg.OperationalError) and not (error.sqlstate or "").startswith(LIMIT_ERRORS)
        raise (DatabaseUnavailable if is_outage else InputError)(
            f"{path}: {error.diag.message_primary or error}{place}; nothing was loaded"
        ) from None


def _create_statement(name: str, dump: DumpParser, dump_name: TableName) -> Any:
    """Build the statement that creates a temporary table; one without columns hides another table of that name."""
    columns = {column: TYPE_MAP.get(kind, "text") for column, kind in dump.tables.get(dump_name, {}).items()}
    for column in dump.computed.get(dump_name, ()):
        del columns[column]
    definitions = (SQL("{} " + kind).format(Identifier(column)) for column, kind in columns.items())
    return SQL("CREATE TEMP TABLE {} ({})").format(Identifier(name), SQL(", ").join(definitions))


def _check_table(dump: DumpParser, name: TableName, key: str, table: Table, path: Path) -> None:
    """Check that the dump has the rows of a table.

    Raises:
        InputError: it does not; the message has the reason and a fix.
    """
    setting = f"YARUS_SOURCE_TABLES__{key.upper()}=NAME"
    if (kind := dump.other_objects.get(name)) is not None:
        raise InputError(
            "{path}: {table} is a {kind}, whose rows are not in a dump; nothing was loaded. Map the table that holds "
            "them ({setting}), or {restore_it}",
            path=path,
            table=table.fullname,
            kind=kind,
            setting=setting,
            restore_it=RESTORE_ADVICE,
        )
    if name not in dump.tables and key != ANNOTATION_TABLE:
        names = (".".join(dump_table) for dump_table in dump.tables)
        raise unknown(
            Words("table in {path}:", path=path), ".".join(name), names, Words("Map it: {setting}", setting=setting)
        )
    for column in table.columns:
        if column.name in dump.computed.get(name, ()):
            raise InputError(
                "{path}: the column {column!r} of {table} is computed by its database (GENERATED) and not in a dump; "
                "nothing was loaded. Map another, or {restore_it}",
                path=path,
                column=column.name,
                table=table.fullname,
                restore_it=RESTORE_ADVICE,
            )


@contextmanager
def _open_text(path: Path) -> Iterator[Callable[[int], bytes]]:
    """Open a dump as the text of a plain one, by a function that reads up to a number of bytes.

    Raises:
        InputError: the dump is missing or incomplete, or its folder has other entries than files.
    """
    command = [
        str(find_programs(max(INSTALLATIONS)) / "pg_restore"), "--file=-", "--section=pre-data", "--section=data",
    ]  # fmt: skip
    try:
        if path.is_dir():
            needs, size = _check_folder(path)
            with _run_pg_restore(path, [*command, str(path.resolve())], size, None, needs) as read_bytes:
                yield read_bytes
            return
        with path.open("rb") as file:
            if _is_plain(path, file):
                yield file.read
                return
            with _run_pg_restore(path, command, path.stat().st_size, file, []) as read_bytes:
                yield read_bytes
    except OSError as error:
        raise InputError("{path}: {reason}; nothing was loaded", path=path, reason=error.strerror or error) from None


def _is_plain(path: Path, file: IO[bytes]) -> bool:
    """Return whether a file is a plain dump and not an archive; its position stays at the beginning.

    Raises:
        InputError: the file is neither, or truncated.
    """
    head = file.read(512)
    file.seek(max(0, path.stat().st_size - 1_000))
    tail = file.read()
    file.seek(0)
    if head.startswith(b"PGDMP") or head[257:262] == b"ustar":
        return False
    if head.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd")):
        raise InputError("{path}: a compressed file; unpack it first (gunzip, zstd -d), or use pg_dump -Fc", path=path)
    if COMPLETE_MARK not in tail:
        raise InputError(
            "{path}: neither pg_dump's custom, directory or tar format, nor a whole plain one (its last line is "
            "missing: {line!r}); nothing was loaded. Was it cut off?",
            path=path,
            line=COMPLETE_MARK.decode(),
        )
    return True


def _check_folder(path: Path) -> tuple[list[tuple[Path, int]], int]:
    """Return the paths that pg_restore must read in a dump folder, with their permissions, and the size.

    Its list of contents names the files; neither that list nor a link may lead out of the folder.

    Raises:
        InputError: the folder is not a dump, or refers to files outside.
    """
    contents = path / "toc.dat"
    if not contents.is_file():
        raise InputError("{path}: a folder without toc.dat is no dump; make one with: pg_dump -Fd -f FOLDER", path=path)
    files = {file: file.lstat() for file in path.resolve().rglob("*")}
    if others := [file for file, status in files.items() if not S_ISREG(status.st_mode)]:
        raise InputError("{path}: no file, and pg_dump -Fd writes only files; nothing was loaded", path=others[0])
    if any(b"../" in file.read_bytes() for file in files if file.name.endswith("toc.dat")):
        raise InputError(
            "{contents}: names '../', which could lead out of the folder; nothing was loaded. Make it with pg_dump -Fc",
            contents=contents,
        )
    return [(path.resolve(), 0o5), *((file, 0o4) for file in files)], sum(status.st_size for status in files.values())


@contextmanager
def _run_pg_restore(
    path: Path, command: list[str], size: int, file: IO[bytes] | None, needs: list[tuple[Path, int]]
) -> Iterator[Callable[[int], bytes]]:
    """Run pg_restore to turn an archive into text, without a server and, if we are root, without rights.

    Raises:
        InputError: pg_restore could not read the whole archive, or it is far larger than its packed size suggests.
    """
    command, options = drop_privileges(command, find_unprivileged_user() if os.geteuid() == 0 else None, *needs)
    limit, n_read = max(MIN_UNPACKED_LIMIT, MAX_RATIO * size), 0
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [*LIMITED_SHELL, *command],
            stdin=subprocess.DEVNULL if file is None else file,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd="/",
            env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
            **options,
        )
        output = process.stdout
        if output is None:
            raise RuntimeError("its output is a pipe")

        def read_bytes(n_bytes: int) -> bytes:
            nonlocal n_read
            block: bytes = output.read(n_bytes)
            n_read += len(block)
            if n_read > limit:
                raise InputError(
                    "{path}: unpacks to more than {limit:,} bytes; nothing was loaded. {restore_it}",
                    path=path,
                    limit=limit,
                    restore_it=RESTORE_ADVICE,
                )
            if not block and process.wait() != 0:
                raise _restore_error(path, errors)
            return block

        with process:
            try:
                yield read_bytes
            finally:
                process.kill()


def _restore_error(path: Path, errors: IO[bytes]) -> InputError:
    errors.seek(0)
    error_lines = errors.read(MAX_ERROR_OUTPUT).decode(errors="replace").splitlines()
    if any("unsupported version" in line for line in error_lines):
        return InputError(
            "{path}: made by a newer pg_dump than PostgreSQL {version} can read; dump it with pg_dump {version} or "
            "in the plain format, or {restore_it}",
            path=path,
            version=max(INSTALLATIONS),
            restore_it=RESTORE_ADVICE,
        )
    reason = next((line for line in error_lines if "error:" in line), "".join(error_lines[-1:]))
    return InputError("{path}: cannot be read: {reason}; nothing was loaded", path=path, reason=reason)
