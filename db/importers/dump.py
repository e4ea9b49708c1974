"""Dumps of PostgreSQL databases: read as text, never executed; their rows go into temporary tables of our database.

Whatever a dump says, three things of it are understood: what columns a table has, and rows of the tables that are
mapped, as COPY or as INSERT of literals. The temporary tables are made by us, with types that we know, and are gone
with the connection, even if we are killed.
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

from yarus.db.embedded.account import lowered, nobody
from yarus.db.embedded.cluster import INSTALLATIONS, programs
from yarus.db.engine import driver_of, reaching
from yarus.db.errors import DatabaseUnavailable, InputError, unknown
from yarus.db.importers.dump_statements import Dump, Name
from yarus.db.importers.dump_text import Text
from yarus.db.importers.postgres import TAKEN
from yarus.db.sources import Source
from yarus.db.tables import ANNOTATION
from yarus.db.words import Words

COMPLETE = b"PostgreSQL database dump complete"
TYPES = {kind: kind for kinds in TAKEN.values() for kind in kinds} | {"character": "bpchar", "halfvec": "vector"}
"""What a column's type becomes in our table; any other is read as text, which is what a dump holds of it."""
TOLD = 1 << 20
LIMITED = ["/bin/sh", "-c", f'ulimit -v {4 << 20}; ulimit -f {TOLD >> 9}; exec "$@"', "sh"]
"""Four gigabytes of memory, and a megabyte of complaints: a broken archive may name any number."""
LEAST_LIMIT, MOST_TIMES = 1 << 30, 200
"""An archive may unpack to so many bytes, or so many times its size: a bomb of zeros packs 1,000 to 1."""
TOO_MUCH = "54"
"""The class of PostgreSQL's errors that a dump causes: more columns than a table can have, for example."""
RESTORE_IT = Words("restore the dump on a server of yours and load from its postgresql:// address")


@contextmanager
def unpacked(path: Path, source: Source) -> Iterator[Source]:
    """A dump's rows as a source for `reading`, which is there as long as this context is open.

    Args:
        path: made by pg_dump, in the custom, directory, tar or plain format.
        source: the engine of our own database, and what the tables and columns are called in the dump.

    Raises:
        InputError: no whole dump, or made by a newer pg_dump than ours, or it does not hold the rows of a table.
        DatabaseUnavailable: our database or pg_restore cannot be used.
    """
    engine = create_engine(source.engine.url, poolclass=StaticPool)  # one connection, for the tables are its own
    scratch = {
        ours: table.to_metadata(MetaData(), schema=None, name=_name(table))  # type: ignore[arg-type]  # None: no schema
        for ours, table in source.tables.items()
    }
    wanted = {_there(table): scratch[ours].name for ours, table in source.tables.items()}
    try:
        with reaching(engine), engine.connect() as connection, _text(path) as read:
            driver = driver_of(connection)
            _fill(driver, Dump(Text(str(path), read), set(wanted)), wanted, path, source)
            driver.commit()  # SQLAlchemy knows of no transaction
        yield replace(source, engine=engine, tables=scratch)
    finally:
        engine.dispose()


def _there(table: Table) -> Name:
    """What the table is called in the dump."""
    return table.schema or "public", table.name


def _name(table: Table) -> str:
    """The temporary table is called as messages call the table; PostgreSQL cuts longer names."""
    return table.fullname if len(table.fullname.encode()) < 64 else table.name


def _fill(driver: Any, dump: Dump, wanted: dict[Name, str], path: Path, source: Source) -> None:
    """Copies all rows of the wanted tables.

    Raises:
        InputError: a table is not there, or PostgreSQL cannot take what stands in it.
        DatabaseUnavailable: our database ended, or its disk is full.
    """
    made: set[Name] = set()
    try:
        with driver.cursor() as cursor:
            for (name, columns), blocks in groupby(dump.rows(), key=itemgetter(0, 1)):
                if name not in made:
                    cursor.execute(_create(wanted[name], dump, name))
                    made.add(name)
                into = SQL("COPY {} ({}) FROM STDIN (ENCODING 'UTF8')")
                listed = SQL(", ").join(map(Identifier, columns))
                with cursor.copy(into.format(Identifier("pg_temp", wanted[name]), listed)) as copy:
                    for _, _, block in blocks:
                        copy.write(block)
            for ours, table in source.tables.items():
                name = _there(table)
                _check(dump, name, ours, table, path)
                if name not in made:
                    cursor.execute(_create(wanted[name], dump, name))
                    made.add(name)
    except psycopg.Error as error:
        place = f" ({error.diag.context})" if error.diag.context else ""
        unavailable = isinstance(error, psycopg.OperationalError) and not (error.sqlstate or "").startswith(TOO_MUCH)
        raise (DatabaseUnavailable if unavailable else InputError)(
            f"{path}: {error.diag.message_primary or error}{place}; nothing was loaded"
        ) from None


def _create(name: str, dump: Dump, there: Name) -> Any:
    """The statement that makes a temporary table; one without columns hides what else is called so."""
    columns = {column: TYPES.get(kind, "text") for column, kind in dump.tables.get(there, {}).items()}
    for column in dump.computed.get(there, ()):
        del columns[column]
    listed = (SQL("{} " + kind).format(Identifier(column)) for column, kind in columns.items())
    return SQL("CREATE TEMP TABLE {} ({})").format(Identifier(name), SQL(", ").join(listed))


def _check(dump: Dump, name: Name, ours: str, table: Table, path: Path) -> None:
    """That the dump holds the rows of a table.

    Raises:
        InputError: it does not; why, and the way out.
    """
    setting = f"YARUS_SOURCE_TABLES__{ours.upper()}=NAME"
    if (kind := dump.others.get(name)) is not None:
        raise InputError(
            "{path}: {table} is a {kind}, whose rows are not in a dump; nothing was loaded. Map the table that holds "
            "them ({setting}), or {restore_it}",
            path=path,
            table=table.fullname,
            kind=kind,
            setting=setting,
            restore_it=RESTORE_IT,
        )
    if name not in dump.tables and ours != ANNOTATION:
        there = (".".join(known) for known in dump.tables)
        raise unknown(
            Words("table in {path}:", path=path), ".".join(name), there, Words("Map it: {setting}", setting=setting)
        )
    for column in table.columns:
        if column.name in dump.computed.get(name, ()):
            raise InputError(
                "{path}: the column {column!r} of {table} is computed by its database (GENERATED) and not in a dump; "
                "nothing was loaded. Map another, or {restore_it}",
                path=path,
                column=column.name,
                table=table.fullname,
                restore_it=RESTORE_IT,
            )


@contextmanager
def _text(path: Path) -> Iterator[Callable[[int], bytes]]:
    """A dump as the text of a plain one, by a function that reads up to a number of bytes.

    Raises:
        InputError: it is not there, no whole dump, or its folder has something else than files.
    """
    restore = [str(programs(max(INSTALLATIONS)) / "pg_restore"), "--file=-", "--section=pre-data", "--section=data"]
    try:
        if path.is_dir():
            needs, size = _checked_folder(path)
            with _unpacking(path, [*restore, str(path.resolve())], size, None, needs) as read:
                yield read
            return
        with path.open("rb") as file:
            if _is_plain(path, file):
                yield file.read
                return
            with _unpacking(path, restore, path.stat().st_size, file, []) as read:
                yield read
    except OSError as error:
        raise InputError("{path}: {reason}; nothing was loaded", path=path, reason=error.strerror or error) from None


def _is_plain(path: Path, file: IO[bytes]) -> bool:
    """Whether a file is a plain dump, and no archive; it is left at its beginning.

    Raises:
        InputError: neither, or cut off.
    """
    head = file.read(512)
    file.seek(max(0, path.stat().st_size - 1_000))
    tail = file.read()
    file.seek(0)
    if head.startswith(b"PGDMP") or head[257:262] == b"ustar":
        return False
    if head.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd")):
        raise InputError("{path}: a compressed file; unpack it first (gunzip, zstd -d), or use pg_dump -Fc", path=path)
    if COMPLETE not in tail:
        raise InputError(
            "{path}: neither pg_dump's custom, directory or tar format, nor a whole plain one (its last line is "
            "missing: {line!r}); nothing was loaded. Was it cut off?",
            path=path,
            line=COMPLETE.decode(),
        )
    return True


def _checked_folder(path: Path) -> tuple[list[tuple[Path, int]], int]:
    """What pg_restore must be able to read of a dump in a folder, and its size.

    Its list of contents names the files; neither that nor a link may lead out of the folder.

    Raises:
        InputError: no dump, or it leads out.
    """
    contents = path / "toc.dat"
    if not contents.is_file():
        raise InputError("{path}: a folder without toc.dat is no dump; make one with: pg_dump -Fd -f FOLDER", path=path)
    files = {file: file.lstat() for file in path.resolve().rglob("*")}
    if odd := [file for file, found in files.items() if not S_ISREG(found.st_mode)]:
        raise InputError("{path}: no file, and pg_dump -Fd writes only files; nothing was loaded", path=odd[0])
    if any(b"../" in file.read_bytes() for file in files if file.name.endswith("toc.dat")):
        raise InputError(
            "{contents}: names '../', which could lead out of the folder; nothing was loaded. Make it with pg_dump -Fc",
            contents=contents,
        )
    return [(path.resolve(), 0o5), *((file, 0o4) for file in files)], sum(found.st_size for found in files.values())


@contextmanager
def _unpacking(
    path: Path, command: list[str], size: int, file: IO[bytes] | None, needs: list[tuple[Path, int]]
) -> Iterator[Callable[[int], bytes]]:
    """pg_restore, which turns an archive into text; it is told of no server and, where we are root, has no rights.

    Raises:
        InputError: it could not read the archive to its end, or there is far more in it than its size lets expect.
    """
    command, identity = lowered(command, nobody() if os.geteuid() == 0 else None, *needs)
    limit, given = max(LEAST_LIMIT, MOST_TIMES * size), 0
    with tempfile.TemporaryFile() as told:
        process = subprocess.Popen(
            [*LIMITED, *command],
            stdin=subprocess.DEVNULL if file is None else file,
            stdout=subprocess.PIPE,
            stderr=told,
            cwd="/",
            env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
            **identity,
        )
        output = process.stdout
        if output is None:
            raise RuntimeError("its output is a pipe")

        def read(most: int) -> bytes:
            nonlocal given
            block: bytes = output.read(most)
            given += len(block)
            if given > limit:
                raise InputError(
                    "{path}: unpacks to more than {limit:,} bytes; nothing was loaded. {restore_it}",
                    path=path,
                    limit=limit,
                    restore_it=RESTORE_IT,
                )
            if not block and process.wait() != 0:
                raise _refused(path, told)
            return block

        with process:
            try:
                yield read
            finally:
                process.kill()


def _refused(path: Path, told: IO[bytes]) -> InputError:
    told.seek(0)
    lines = told.read(TOLD).decode(errors="replace").splitlines()
    if any("unsupported version" in line for line in lines):
        return InputError(
            "{path}: made by a newer pg_dump than PostgreSQL {version} can read; dump it with pg_dump {version} or "
            "in the plain format, or {restore_it}",
            path=path,
            version=max(INSTALLATIONS),
            restore_it=RESTORE_IT,
        )
    reason = next((line for line in lines if "error:" in line), "".join(lines[-1:]))
    return InputError("{path}: cannot be read: {reason}; nothing was loaded", path=path, reason=reason)
