"""Names become connections here: tasks pass names to each other, never engines."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Engine, select

from yarus.db import tables
from yarus.db.engine import own, reaching, read_only
from yarus.db.errors import DatabaseUnavailable, InputError
from yarus.db.sources import PRODUCTION, SAMPLE, Source, loaded
from yarus.tasks.config.settings import settings

if TYPE_CHECKING:
    from prefect import State, Task
    from prefect.client.schemas.objects import TaskRun


def database() -> Engine:
    """The engine of our own tables; starts the embedded PostgreSQL where no other is set."""
    configuration = settings()
    url = configuration.database_url
    return own(Path(configuration.home), url.get_secret_value() if url else None)


def source(name: str) -> Source:
    """The source of that name; the bundled sample is loaded when it is first asked for.

    Raises:
        InputError: there is none of that name, or no `YARUS_SOURCE_URL` for `production`.
    """
    if name == PRODUCTION:
        url = settings().source_url
        if url is None:
            raise InputError("source 'production' needs YARUS_SOURCE_URL=postgresql://user:password@host:5432/database")
        return mapped_source(PRODUCTION, url.get_secret_value())
    if name == SAMPLE:
        _load_sample()
    return loaded(database(), name)


def mapped_source(name: str, url: str | None, *, language: str | None = None) -> Source:
    """A source whose tables have the names that the settings map.

    Args:
        name: of the source.
        url: of another server, opened read-only; None for tables in our own database, such as those of a dump.
        language: of the texts; None for that of the settings.
    """
    configuration = settings()
    named = tables.source_tables(None, names=configuration.source_tables, columns=configuration.source_columns)
    engine = read_only(url, timeout_s=configuration.source_timeout_s) if url else database()
    return Source(name, "production" if url else "loaded", language or configuration.language, engine, named)


def connection_lost(task: "Task[..., Any]", task_run: "TaskRun", state: "State[Any]") -> bool:
    """Whether Prefect is to try a task that reads a source once more: only where the connection was lost.

    Reading costs nothing and leaves nothing behind, and a PostgreSQL that restarts is back within the 6 s of the two
    retries; whoever mistyped its address waits no longer than that. A query that took too long would do so again.
    What asks models has no retries in Prefect: there every call is tried by itself (`RetryPolicy`).
    """
    return isinstance(state.data, DatabaseUnavailable) and state.data.connection_lost


def _load_sample() -> None:
    """Loads the bundled sample, or the newer one of a newer Yarus."""
    from yarus.db.importers import sample
    from yarus.db.loading.fill import fill  # Arrow and NumPy: who only reads evaluations waits for neither

    engine = database()
    origin = f"bundled sample {sample.digest()}"
    with reaching(engine), engine.connect() as connection:
        known = connection.scalar(select(tables.source.c.origin).where(tables.source.c.name == SAMPLE))
    if known != origin:
        fill(engine, SAMPLE, sample.read(), language="ru", origin=origin)
