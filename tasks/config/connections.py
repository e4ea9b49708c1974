"""Open databases and sources by name: tasks pass names to each other, never engines."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Engine, select

from yarus.db import tables
from yarus.db.engine import open_own_database, read_only_engine, reporting_unreachable
from yarus.db.errors import DatabaseUnavailable, InputError
from yarus.db.sources import PRODUCTION, SAMPLE, Source, find_loaded_source
from yarus.tasks.config.settings import get_settings

if TYPE_CHECKING:
    from prefect import State, Task
    from prefect.client.schemas.objects import TaskRun


def database() -> Engine:
    """Return the engine of Yarus's own tables; start the embedded PostgreSQL if no other is set."""
    configuration = get_settings()
    url = configuration.database_url
    return open_own_database(Path(configuration.home), url.get_secret_value() if url else None)


def open_source(name: str) -> Source:
    """Return the source of that name; load the bundled sample on first use.

    Raises:
        InputError: no source has that name, or `YARUS_SOURCE_URL` is missing for `production`.
    """
    if name == PRODUCTION:
        url = get_settings().source_url
        if url is None:
            raise InputError("source 'production' needs YARUS_SOURCE_URL=postgresql://user:password@host:5432/database")
        return open_mapped_source(PRODUCTION, url.get_secret_value())
    if name == SAMPLE:
        _load_sample()
    return find_loaded_source(database(), name)


def open_mapped_source(name: str, url: str | None, *, language: str | None = None) -> Source:
    """Return a source whose tables have the names that the settings map.

    Args:
        name: name of the source.
        url: URL of another server, opened read-only; None for tables in Yarus's own database, such as a dump's.
        language: language of the texts; None for that of the settings' texts.
    """
    configuration = get_settings()
    source_tables = tables.source_tables(None, names=configuration.source_tables, columns=configuration.source_columns)
    engine = read_only_engine(url, timeout_s=configuration.source_timeout_s) if url else database()
    return Source(
        name, "production" if url else "loaded", language or configuration.text_language, engine, source_tables
    )


def should_retry_read(task: "Task[..., Any]", task_run: "TaskRun", state: "State[Any]") -> bool:
    """Return whether Prefect should retry a task that reads a source: only if the connection was lost.

    Reading costs nothing and changes nothing. A PostgreSQL that restarts is back within the 6 s of the two retries, and
    a mistyped address costs no more than that. A query that took too long would do so again. Tasks that call models
    have no retries in Prefect, because each call has its own (`RetryPolicy`).
    """
    return isinstance(state.data, DatabaseUnavailable) and state.data.connection_lost


def _load_sample() -> None:
    """Load the bundled sample, or a newer one after an upgrade of Yarus."""
    from yarus.db.importers import sample
    from yarus.db.loading.load_rows import load_rows  # late: commands that only read evaluations need no Arrow or NumPy

    engine = database()
    origin = f"bundled sample {sample.sample_hash()}"
    with reporting_unreachable(engine), engine.connect() as connection:
        loaded_origin = connection.scalar(select(tables.source.c.origin).where(tables.source.c.name == SAMPLE))
    if loaded_origin != origin:
        load_rows(engine, SAMPLE, sample.read_sample(), language="ru", origin=origin)
