"""Erase a user's texts in Prefect: in its own database, or through the API of a server that is not ours.

Prefect's API deletes no events, and writes new ones of whatever is done by it.
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

from yarus.db.engine import reaching
from yarus.db.home import DATABASE
from yarus.db.removal.wipe import beyond, wipe
from yarus.db.words import Words
from yarus.deployments.upkeep.erasure.erase_files import Texts
from yarus.tasks.config.redaction import redact_urls
from yarus.tasks.config.settings import settings

RECORDS: tuple[str, ...] = ("artifact", "artifact_collection", "log", "events", "event_resources", "flow_run_input")
RECORDS += ("automation_bucket", "composite_trigger_child_firing", "automation_event_follower")
"""Tables of what happened: a row with a text of theirs goes."""
RUNS = ("flow_run", "flow_run_state", "task_run", "task_run_state")
"""Tables that others hang on: a value with a text of theirs is emptied."""
CHOSEN: tuple[str, ...] = ("flow", "deployment", "deployment_schedule", "variable", "saved_search", "automation")
CHOSEN += ("block_document", "work_pool", "work_queue", "configuration")
"""Tables of what somebody has set: they are told, for to change it would change what runs."""
PAGES = "artifact"
ERASED = "[erased]"


@dataclass
class There:
    """What of a user is in one database of Prefect's."""

    rows: dict[str, list[Any]] = field(default_factory=dict)
    """Table -> ids of rows that go."""
    values: list[tuple[str, str, Any, str]] = field(default_factory=list)
    """Table, column and id of a row whose value is emptied, and the value then."""
    chosen: list[str] = field(default_factory=list)
    """Tables and columns of what somebody has set."""


class InPrefect(TypedDict):
    """What Prefect's databases hold of a user."""

    artifacts: int
    """Pages of its UI."""
    prefect: int
    """Other rows."""
    beyond: list[str]
    """What stays, in words."""


def in_prefect(texts: Texts, *, remove: bool) -> InPrefect:
    """What Prefect's databases hold of a user, of which this home is the owner; erased if that is wanted.

    Raises:
        DatabaseUnavailable: no connection.
        OSError: a database is in use or damaged, so that nothing can be erased in it now.
    """
    counted: InPrefect = {"artifacts": 0, "prefect": 0, "beyond": []}
    for url in _databases():
        with _opened(url) as engine:
            there = _search(engine, texts)
            counted["beyond"] += beyond(engine)
            if remove:
                _erase(engine, there)
                counted["beyond"] += wipe(engine, None, (*RECORDS, *RUNS))
        pages = len(there.rows.get(PAGES, ()))
        counted["artifacts"] += pages
        counted["prefect"] += sum(map(len, there.rows.values())) + len(there.values) - pages
        counted["beyond"] += [f"Prefect's {place}: change it there by hand" for place in there.chosen]
    return counted


def knows(flow_run_id: str) -> bool:
    """Whether a flow run is in a database of ours: its server is then ours too."""
    for url in _databases():
        with _opened(url) as engine, engine.connect() as connection:
            if (run := _tables(connection).get("flow_run")) is not None:
                same = cast(run.c.id, Text).in_((flow_run_id, flow_run_id.replace("-", "")))
                if connection.execute(select(run.c.id).where(same)).first():
                    return True
    return False


def _databases() -> list[URL]:
    """Prefect's databases that this home or its settings name, and that are there."""
    file = settings().home.absolute() / DATABASE
    given, set_by_hand = settings().prefect_database_url, os.environ.get("PREFECT_API_DATABASE_CONNECTION_URL")
    urls = [URL.create("sqlite", database=str(file))]
    urls += [make_url(given.get_secret_value())] if given else []
    if set_by_hand:
        url = make_url(set_by_hand)
        urls.append(url.set(drivername={"postgresql": "postgresql+psycopg"}.get(url.get_backend_name(), "sqlite")))
    filled = (url for url in urls if url.get_backend_name() != "sqlite" or _filled(url.database))
    return list(dict.fromkeys(filled))


def _filled(path: str | None) -> bool:
    return bool(path) and Path(str(path)).is_file() and Path(str(path)).stat().st_size > 0


@contextmanager
def _opened(url: URL) -> Iterator[Engine]:
    """An engine for as long as the block lasts. A server may have the file open too: we wait for our turn."""
    lite = url.get_backend_name() == "sqlite"
    engine = create_engine(url, connect_args={"timeout": 30} if lite else {"connect_timeout": 10})
    try:
        if not lite:
            with reaching(engine):
                yield engine
            return
        yield engine
    except DBAPIError as error:
        if not lite:
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


def _tables(connection: Connection) -> dict[str, Table]:
    """Prefect's tables that are there, with columns as text, for JSON is kept in more than one form."""
    found, metadata = inspect(connection), MetaData()
    known = set(found.get_table_names())
    return {
        name: Table(name, metadata, *(Column(column["name"]) for column in found.get_columns(name)))
        for name in (*RECORDS, *RUNS, *CHOSEN)
        if name in known
    }


def _search(engine: Engine, texts: Texts) -> There:
    there = There()
    with engine.connect() as connection:
        for name, table in _tables(connection).items():
            said = [cast(column, Text) for column in table.c if column.name != "id"]
            for key, *values in connection.execution_options(stream_results=True).execute(select(table.c.id, *said)):
                _note(there, name, table, key, values, texts)
    return there


def _note(there: There, name: str, table: Table, key: Any, values: list[Any], texts: Texts) -> None:
    columns = [column.name for column in table.c if column.name != "id"]
    if name in RECORDS:
        if texts.are_in("\n".join(value for value in values if value)):
            there.rows.setdefault(name, []).append(key)
        return
    for column, value in zip(columns, values, strict=True):
        if value and texts.are_whole_in(value):
            if name in RUNS:
                there.values.append((name, column, key, _emptied(value, texts)))
            elif (place := f"{name}.{column}") not in there.chosen:
                there.chosen.append(place)


def _erase(engine: Engine, there: There) -> None:
    with engine.begin() as connection:
        if engine.dialect.name == "sqlite":
            connection.exec_driver_sql("PRAGMA secure_delete = ON")
        tables = _tables(connection)
        for name, keys in there.rows.items():
            table = tables[name]
            for key in keys:
                if name == "events" and "event_resources" in tables:
                    resources = tables["event_resources"]
                    connection.execute(delete(resources).where(resources.c.event_id == key))
                connection.execute(delete(table).where(table.c.id == key))
        for name, column, key, value in there.values:
            table = tables[name]
            connection.execute(update(table).where(table.c.id == key).values({column: value}))


def _emptied(value: str, texts: Texts) -> str:
    """What is left of a value: of JSON all but the texts, of other text nothing."""

    def without(document: Any) -> Any:
        if isinstance(document, dict):
            return {without(name): without(part) for name, part in document.items()}
        if isinstance(document, list):
            return [without(part) for part in document]
        return ERASED if isinstance(document, str) and texts.are_whole_in(document) else document

    try:
        return json.dumps(without(json.loads(value)))
    except ValueError:
        return ERASED


PAGE = 200
"""Artifacts that are read at a time."""


async def on_another_server(case_ids: Collection[str], *, remove: bool) -> tuple[int, list[str]]:
    """How many artifacts on the server of PREFECT_API_URL name one of the cases; they are deleted if that is wanted.

    A server whose database is ours is left to `in_prefect`, which reaches more.

    Returns:
        The number, and what stays there, in words.

    Raises:
        OSError: the server cannot be reached or refuses us.
    """
    api = PREFECT_API_URL.value()
    if not api:
        return 0, []
    marks = [f"`{case_id}`" for case_id in case_ids]
    try:
        async with get_client() as client:
            runs = await client.read_flow_runs(limit=1)
            if not runs or knows(str(runs[0].id)):
                return 0, []
            found = [name async for name in _named(client, marks)]
            for name in found if remove else ():
                await client.delete_artifact(name)
    except (HTTPError, PrefectException, RuntimeError) as error:
        raise OSError(
            Words("Prefect's artifacts cannot be searched: {error}. Nothing was erased; try again", error=error)
        ) from None
    return len(found), [f"{redact_urls(api)}: {EVENTS}"]


EVENTS = (
    "events and logs of Prefect, which its API deletes none of, until its retention removes them (events: "
    "PREFECT_SERVER_EVENTS_RETENTION_PERIOD, 7 days); to erase them now run this command where that server's database "
    "can be reached, with YARUS_PREFECT_DATABASE_URL or its home"
)


async def _named(client: PrefectClient, marks: Sequence[str]) -> AsyncIterator[UUID]:
    offset = 0
    while page := await client.read_artifacts(limit=PAGE, offset=offset):
        offset += len(page)
        for artifact in page:
            if any(mark in str(artifact.data) for mark in marks):
                yield artifact.id
