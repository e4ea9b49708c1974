"""Erase a user's texts in Prefect: in its own database, or through the API of a server that is not ours.

Prefect's API cannot delete events, and writes new ones for each action.
"""

import json
import os
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

from httpx import HTTPError
from prefect.client.orchestration import PrefectClient, get_client
from prefect.exceptions import PrefectException
from prefect.settings import PREFECT_API_URL
from sqlalchemy import (
    URL,
    Column,
    Connection,
    Engine,
    MetaData,
    Table,
    Text,
    cast,
    create_engine,
    delete,
    inspect,
    make_url,
    select,
    update,
)
from sqlalchemy.exc import DBAPIError
from typing_extensions import TypedDict

from yarus.db.engine import reporting_unreachable
from yarus.db.home import PREFECT_DATABASE
from yarus.db.messages import Words
from yarus.db.removal.wipe import unerasable_copies, wipe_tables
from yarus.deployments.upkeep.erasure.erase_files import UserTexts
from yarus.tasks.config.redaction import redact_urls
from yarus.tasks.config.settings import get_settings

RECORD_TABLES: tuple[str, ...] = ("artifact", "artifact_collection", "log", "events", "event_resources")
RECORD_TABLES += ("flow_run_input", "automation_bucket", "composite_trigger_child_firing", "automation_event_follower")
"""Tables of events and records: rows with a text of the user are deleted."""
RUN_TABLES = ("flow_run", "flow_run_state", "task_run", "task_run_state")
"""Tables that others refer to: values with a text of the user are emptied."""
SETTINGS_TABLES: tuple[str, ...] = ("flow", "deployment", "deployment_schedule", "variable", "saved_search")
SETTINGS_TABLES += ("automation", "block_document", "work_pool", "work_queue", "configuration")
"""Tables of settings: they are only reported, because a change would affect what runs."""
ARTIFACT_TABLE = "artifact"
ERASED = "[erased]"


@dataclass
class PrefectData:
    """The data of a user in one database of Prefect's."""

    rows: dict[str, list[Any]] = field(default_factory=dict)
    """Table -> ids of rows to delete."""
    values: list[tuple[str, str, Any, str]] = field(default_factory=list)
    """Table, column and id of a row whose value is emptied, and the new value."""
    chosen: list[str] = field(default_factory=list)
    """Tables and columns of settings with the texts."""


class PrefectErasure(TypedDict):
    """Data of a user in Prefect's databases."""

    artifacts: int
    """Pages of its UI."""
    prefect: int
    """Other rows."""
    not_erased: list[str]
    """Data that is not removed, in sentences."""


def erase_in_prefect(texts: UserTexts, *, remove: bool) -> PrefectErasure:
    """Count a user's data in Prefect's databases that belong to this home, and erase it if `remove`.

    Raises:
        DatabaseUnavailable: there is no connection.
        OSError: a database is in use or damaged, so nothing can be erased in it now.
    """
    counts: PrefectErasure = {"artifacts": 0, "prefect": 0, "not_erased": []}
    for url in _find_databases():
        with _open_engine(url) as engine:
            data = _search_database(engine, texts)
            counts["not_erased"] += unerasable_copies(engine)
            if remove:
                _erase_data(engine, data)
                counts["not_erased"] += wipe_tables(engine, None, (*RECORD_TABLES, *RUN_TABLES))
        n_pages = len(data.rows.get(ARTIFACT_TABLE, ()))
        counts["artifacts"] += n_pages
        counts["prefect"] += sum(map(len, data.rows.values())) + len(data.values) - n_pages
        counts["not_erased"] += [f"Prefect's {setting}: change it there by hand" for setting in data.chosen]
    return counts


def has_flow_run(flow_run_id: str) -> bool:
    """Return whether a flow run is in a database of ours: then its server is ours too."""
    for url in _find_databases():
        with _open_engine(url) as engine, engine.connect() as connection:
            if (runs := _read_tables(connection).get("flow_run")) is not None:
                is_same = cast(runs.c.id, Text).in_((flow_run_id, flow_run_id.replace("-", "")))
                if connection.execute(select(runs.c.id).where(is_same)).first():
                    return True
    return False


def _find_databases() -> list[URL]:
    """Return the existing Prefect databases of this home and its settings."""
    file = get_settings().home.absolute() / PREFECT_DATABASE
    configured, variable = (get_settings().prefect_database_url, os.environ.get("PREFECT_API_DATABASE_CONNECTION_URL"))
    urls = [URL.create("sqlite", database=str(file))]
    urls += [make_url(configured.get_secret_value())] if configured else []
    if variable:
        url = make_url(variable)
        urls.append(url.set(drivername={"postgresql": "postgresql+psycopg"}.get(url.get_backend_name(), "sqlite")))
    existing = (url for url in urls if url.get_backend_name() != "sqlite" or _has_content(url.database))
    return list(dict.fromkeys(existing))


def _has_content(path: str | None) -> bool:
    return bool(path) and Path(str(path)).is_file() and Path(str(path)).stat().st_size > 0


@contextmanager
def _open_engine(url: URL) -> Iterator[Engine]:
    """Open an engine during the block. A server may have the file open too, so it waits for its turn."""
    is_sqlite = url.get_backend_name() == "sqlite"
    engine = create_engine(url, connect_args={"timeout": 30} if is_sqlite else {"connect_timeout": 10})
    try:
        if not is_sqlite:
            with reporting_unreachable(engine):
                yield engine
            return
        yield engine
    except DBAPIError as error:
        if not is_sqlite:
            raise
        raise OSError(
            Words(
                "{database}: {reason}. Stop what uses it and try again; if it is damaged, remove it: it holds "
                "nothing of ours",
                database=url.database,
                reason=error.orig,
            )
        ) from None
    finally:
        engine.dispose()


def _read_tables(connection: Connection) -> dict[str, Table]:
    """Return Prefect's existing tables with text columns, because JSON is stored in several forms."""
    inspector, metadata = inspect(connection), MetaData()
    existing = set(inspector.get_table_names())
    return {
        name: Table(name, metadata, *(Column(column["name"]) for column in inspector.get_columns(name)))
        for name in (*RECORD_TABLES, *RUN_TABLES, *SETTINGS_TABLES)
        if name in existing
    }


def _search_database(engine: Engine, texts: UserTexts) -> PrefectData:
    data = PrefectData()
    with engine.connect() as connection:
        for name, table in _read_tables(connection).items():
            columns = [cast(column, Text) for column in table.c if column.name != "id"]
            for key, *values in connection.execution_options(stream_results=True).execute(select(table.c.id, *columns)):
                _note_matches(data, name, table, key, values, texts)
    return data


def _note_matches(data: PrefectData, name: str, table: Table, key: Any, values: list[Any], texts: UserTexts) -> None:
    columns = [column.name for column in table.c if column.name != "id"]
    if name in RECORD_TABLES:
        if texts.are_in("\n".join(value for value in values if value)):
            data.rows.setdefault(name, []).append(key)
        return
    for column, value in zip(columns, values, strict=True):
        if value and texts.are_whole_in(value):
            if name in RUN_TABLES:
                data.values.append((name, column, key, _remove_texts(value, texts)))
            elif (setting := f"{name}.{column}") not in data.chosen:
                data.chosen.append(setting)


def _erase_data(engine: Engine, data: PrefectData) -> None:
    with engine.begin() as connection:
        if engine.dialect.name == "sqlite":
            connection.exec_driver_sql("PRAGMA secure_delete = ON")
        tables = _read_tables(connection)
        for name, keys in data.rows.items():
            table = tables[name]
            for key in keys:
                if name == "events" and "event_resources" in tables:
                    resources = tables["event_resources"]
                    connection.execute(delete(resources).where(resources.c.event_id == key))
                connection.execute(delete(table).where(table.c.id == key))
        for name, column, key, value in data.values:
            table = tables[name]
            connection.execute(update(table).where(table.c.id == key).values({column: value}))


def _remove_texts(value: str, texts: UserTexts) -> str:
    """Return the rest of a value: JSON without the texts, and nothing of other text."""

    def strip_texts(document: Any) -> Any:
        if isinstance(document, dict):
            return {strip_texts(name): strip_texts(part) for name, part in document.items()}
        if isinstance(document, list):
            return [strip_texts(part) for part in document]
        return ERASED if isinstance(document, str) and texts.are_whole_in(document) else document

    try:
        return json.dumps(strip_texts(json.loads(value)))
    except ValueError:
        return ERASED


ARTIFACTS_PER_REQUEST = 200
"""Artifacts per request."""


async def erase_on_other_server(case_ids: Collection[str], *, remove: bool) -> tuple[int, list[str]]:
    """Count the artifacts on the server of PREFECT_API_URL that name one of the cases, and delete them if `remove`.

    A server whose database is ours is left to `erase_in_prefect`, which reaches more.

    Returns:
        The number, and what remains there, in words.

    Raises:
        OSError: the server cannot be reached or refuses the request.
    """
    api = PREFECT_API_URL.value()
    if not api:
        return 0, []
    marks = [f"`{case_id}`" for case_id in case_ids]
    try:
        async with get_client() as client:
            runs = await client.read_flow_runs(limit=1)
            if not runs or has_flow_run(str(runs[0].id)):
                return 0, []
            artifact_ids = [artifact_id async for artifact_id in _find_artifacts(client, marks)]
            for artifact_id in artifact_ids if remove else ():
                await client.delete_artifact(artifact_id)
    except (HTTPError, PrefectException, RuntimeError) as error:
        raise OSError(
            Words("Prefect's artifacts cannot be searched: {error}. Nothing was erased; try again", error=error)
        ) from None
    return len(artifact_ids), [f"{redact_urls(api)}: {REMAINING_EVENTS}"]


REMAINING_EVENTS = (
    "events and logs of Prefect, which its API deletes none of, until its retention removes them (events: "
    "PREFECT_SERVER_EVENTS_RETENTION_PERIOD, 7 days); to erase them now run this command where that server's database "
    "can be reached, with YARUS_PREFECT_DATABASE_URL or its home"
)


async def _find_artifacts(client: PrefectClient, marks: Sequence[str]) -> AsyncIterator[UUID]:
    offset = 0
    while page := await client.read_artifacts(limit=ARTIFACTS_PER_REQUEST, offset=offset):
        offset += len(page)
        for artifact in page:
            if any(mark in str(artifact.data) for mark in marks):
                yield artifact.id
