"""Dumps of PostgreSQL databases: restored into a scratch database of the embedded server, which is then copied from.

They are restored by a role that owns nothing else, but a plain .sql file is a program for psql: load only dumps that
you trust.
"""

import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, create_engine, text
from sqlalchemy.pool import NullPool

from db.cluster import programs
from db.errors import InputError

SCRATCH = "yarus_dump"
COMPLETE = b"PostgreSQL database dump complete"
HARMLESS = ("must be owner of extension", "must be able to SET ROLE", 'role "')  # who owned what does not matter here


@contextmanager
def restored(path: Path, embedded: Engine) -> Iterator[tuple[str, list[str]]]:
    """A dump as a database, which is dropped at the end.

    Args:
        path: made by pg_dump, in the custom, directory, tar or plain format.
        embedded: engine of the embedded server; one dump is restored at a time, others wait.

    Yields:
        The database's address, and up to one sentence about statements that failed.

    Raises:
        InputError: not a whole dump, or made by a newer pg_dump than the embedded server's.
    """
    command = _command(path)
    url = embedded.url.set(database=SCRATCH)
    admin = create_engine(embedded.url, isolation_level="AUTOCOMMIT", poolclass=NullPool)
    with admin.connect() as connection:
        connection.execute(text("SELECT pg_advisory_lock(hashtext('yarus.dump'))"))  # held until the connection ends
        major = str(int(connection.scalar(text("SHOW server_version_num")) or 0) // 10_000)
        clean = (f"DROP DATABASE IF EXISTS {SCRATCH} WITH (FORCE)", f"DROP ROLE IF EXISTS {SCRATCH}")
        for statement in (*clean, f"CREATE ROLE {SCRATCH} LOGIN", f"CREATE DATABASE {SCRATCH} OWNER {SCRATCH}"):
            connection.execute(text(statement))
        try:
            scratch = create_engine(url, isolation_level="AUTOCOMMIT", poolclass=NullPool)
            with scratch.connect() as inside:
                inside.execute(text("CREATE EXTENSION vector"))
            problems = _restore(path, command, major, url.query)
            yield url.render_as_string(hide_password=False), problems
        finally:
            for statement in clean:
                connection.execute(text(statement))


def _command(path: Path) -> list[str]:
    """The program that restores a file, with what it must be told, by what the file begins with.

    Raises:
        InputError: it is not there, or not a dump.
    """
    restore = ["pg_restore", "--no-owner", "--no-privileges", "--no-comments", "--no-publications"]
    restore += ["--no-subscriptions", "--section=pre-data", "--section=data", str(path)]
    try:
        if path.is_dir():
            if not (path / "toc.dat").is_file():
                raise InputError(f"{path}: a folder without toc.dat is no dump; make one with: pg_dump -Fd -f FOLDER")
            return restore
        with path.open("rb") as file:
            head = file.read(512)
            file.seek(max(0, path.stat().st_size - 1_000))
            tail = file.read()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}; nothing was loaded") from None
    if head.startswith(b"PGDMP") or head[257:262] == b"ustar":
        return restore
    if head.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd")):
        raise InputError(f"{path}: a compressed file; unpack it first (gunzip, zstd -d), or use pg_dump -Fc")
    if COMPLETE not in tail:
        raise InputError(
            f"{path}: neither pg_dump's custom, directory or tar format, nor a whole plain one (its last line is "
            f"missing: {COMPLETE.decode()!r}); nothing was loaded. Was it cut off?"
        )
    return ["psql", "--no-psqlrc", "--quiet", f"--file={path}"]


def _restore(path: Path, command: Sequence[str], major: str, address: Mapping[str, Any]) -> list[str]:
    """Runs the program as the scratch database's owner.

    Raises:
        InputError: it could not read the dump to its end.
    """
    where = [f"--host={address['host']}", f"--port={address['port']}", f"--username={SCRATCH}", f"--dbname={SCRATCH}"]
    done = subprocess.run(
        [str(programs(major) / command[0]), *where, "--no-password", *command[1:]],
        env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        check=False,
    )
    if "unsupported version" in done.stderr:
        raise InputError(
            f"{path}: made by a newer pg_dump than the embedded PostgreSQL {major} can read; dump it with pg_dump "
            f"{major} or in the plain format, or restore it on your own server and load from its address"
        )
    errors = [line for line in done.stderr.splitlines() if re.search(r"\b(error|ERROR):", line)]
    lost = "COPY failed" in done.stderr or re.search(r"CONTEXT:\s+COPY ", done.stderr)
    if lost or (done.returncode != 0 and "errors ignored on restore" not in done.stderr):
        raise InputError(f"{path}: cannot be restored: {errors[0] if errors else done.stderr}; nothing was loaded")
    told = [line for line in errors if not any(words in line for words in HARMLESS)]
    return [f"{path.name}: {len(told)} statements failed, the first: {told[0]}"] if told else []
