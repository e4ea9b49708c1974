"""Prepare for Prefect's server in `yarus serve`: a free port and a database."""

import errno
import socket
from pathlib import Path

import psycopg
from sqlalchemy.engine import make_url

from yarus.db.engine import redact_database_url
from yarus.db.errors import DatabaseUnavailable, InputError
from yarus.db.home import make_prefect_database
from yarus.db.messages import Words
from yarus.deployments.prefect.server_process import SQLITE, ServerUnavailable
from yarus.tasks.config.redaction import redact_urls


def require_free(host: str, port: int, option: str) -> None:
    """Check that a port is free before anything is started; see `bind_socket`."""
    bind_socket(host, port, option).close()


def bind_socket(host: str, port: int, option: str) -> socket.socket:
    """Return a socket bound to the port, for a server to listen on.

    Args:
        host: the host to listen on.
        port: the port.
        option: the command line option for another port.

    Raises:
        InputError: this machine does not have the host.
        ServerUnavailable: the port is in use.
    """
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return _bind(family, address)
    except socket.gaierror:
        raise InputError(
            "--host {host!r}: no such host; 127.0.0.1 is this machine, 0.0.0.0 all its networks", host=host
        ) from None
    except OSError as error:
        if error.errno == errno.EADDRNOTAVAIL:
            raise InputError("--host {host!r} is not an address of this machine", host=host) from None
        taken = error.errno == errno.EADDRINUSE
        why = (
            Words("is taken, perhaps by another `yarus serve`")
            if taken
            else Words("cannot be used ({reason})", reason=error.strerror)
        )
        raise ServerUnavailable(
            "port {port} on {host} {why}; choose another one: {option} PORT",
            port=port,
            host=host,
            why=why,
            option=option,
        ) from None


def _bind(family: int, address: tuple[str, int] | tuple[int, bytes] | tuple[str, int, int, int]) -> socket.socket:
    bound_socket = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound_socket.bind(address)
    except OSError:
        bound_socket.close()
        raise
    return bound_socket


def prefect_database_url(home: Path, url: str | None) -> str:
    """Return the address of Prefect's own database, in the form that Prefect expects.

    Args:
        home: `YARUS_HOME`; without an address it is an SQLite file there.
        url: a PostgreSQL server to use instead.

    Raises:
        DatabaseUnavailable: there is no connection, or the extension `pg_trgm` is missing and cannot be created.
    """
    if url is None:
        return f"{SQLITE}{make_prefect_database(home.absolute())}"
    address = make_url(url)
    _require_trigrams(
        address.set(drivername="postgresql").render_as_string(hide_password=False), redact_database_url(address)
    )
    return address.set(drivername="postgresql+asyncpg").render_as_string(hide_password=False)


def _require_trigrams(url: str, display_url: str) -> None:
    try:
        with psycopg.connect(url, connect_timeout=10, autocommit=True) as connection:
            connection.execute("CREATE EXTENSION IF NOT EXISTS pg_trgm")
    except psycopg.errors.InsufficientPrivilege:
        way_out = Words("have its administrator run there once: CREATE EXTENSION pg_trgm")
    except (psycopg.errors.UndefinedFile, psycopg.errors.FeatureNotSupported):
        way_out = Words(
            "install it there (Debian: postgresql-contrib), or unset YARUS_PREFECT_DATABASE_URL to use SQLite"
        )
    except psycopg.OperationalError as error:
        reason = redact_urls(" ".join(str(error).split()))
        raise DatabaseUnavailable(
            "database {named}: {reason}. Check YARUS_PREFECT_DATABASE_URL", named=display_url, reason=reason
        ) from None
    else:
        return
    raise DatabaseUnavailable(
        "database {named}: Prefect needs the extension pg_trgm; {way_out}", named=display_url, way_out=way_out
    )
