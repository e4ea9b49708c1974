"""What `yarus serve` needs before it starts Prefect's server: a free port, and a database."""

import errno
import socket
from pathlib import Path

import psycopg
from sqlalchemy.engine import make_url

from yarus.db.engine import shown
from yarus.db.errors import DatabaseUnavailable, InputError
from yarus.db.home import prefect_database
from yarus.db.words import Words
from yarus.deployments.prefect.server_process import SQLITE, ServerUnavailable
from yarus.tasks.config.redaction import redact_urls


def require_free(host: str, port: int, option: str) -> None:
    """Finds a taken port before anything is started; see `bound`."""
    bound(host, port, option).close()


def bound(host: str, port: int, option: str) -> socket.socket:
    """A socket that has the port, for a server to listen on.

    Args:
        host: where to listen.
        port: on what.
        option: of the command line that chooses another.

    Raises:
        InputError: there is no such host here.
        ServerUnavailable: something listens there already.
    """
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return _bound(family, address)
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


def _bound(family: int, address: tuple[str, int] | tuple[int, bytes] | tuple[str, int, int, int]) -> socket.socket:
    taken = socket.socket(family, socket.SOCK_STREAM)
    try:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(address)
    except OSError:
        taken.close()
        raise
    return taken


def database_of(home: Path, url: str | None) -> str:
    """The address of Prefect's own database, as Prefect wants it.

    Args:
        home: `YARUS_HOME`; without an address it is an SQLite file there.
        url: a PostgreSQL server to use instead.

    Raises:
        DatabaseUnavailable: no connection, or it has no extension `pg_trgm` and we may not create it.
    """
    if url is None:
        return f"{SQLITE}{prefect_database(home.absolute())}"
    address = make_url(url)
    _require_trigrams(address.set(drivername="postgresql").render_as_string(hide_password=False), shown(address))
    return address.set(drivername="postgresql+asyncpg").render_as_string(hide_password=False)


def _require_trigrams(url: str, named: str) -> None:
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
            "database {named}: {reason}. Check YARUS_PREFECT_DATABASE_URL", named=named, reason=reason
        ) from None
    else:
        return
    raise DatabaseUnavailable(
        "database {named}: Prefect needs the extension pg_trgm; {way_out}", named=named, way_out=way_out
    )
