"""What a production database holds: which of its tables are the log and the passages, and which columns are ours."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import Column, Connection, MetaData, Table, inspect, select, text

from yarus.db.engine import read_only
from yarus.db.errors import InputError
from yarus.db.importers.postgres import checked_url
from yarus.db.importers.recognise import REQUIRED, SAMPLED, Kind, Proposal, propose
from yarus.db.loading.recorded import Record
from yarus.db.source_rows import CHUNK, QUESTION
from yarus.db.sources import Source, snapshot
from yarus.tasks.config.settings import settings

OURS: dict[Kind, str] = {"questions": "question_answer", "chunks": "chunk"}
NEEDED: dict[Kind, tuple[str, ...]] = {"questions": QUESTION, "chunks": CHUNK}
HIDDEN = ("pg_catalog", "information_schema", "pg_toast")
TYPES = {"score": "integer", "created_at": "timestamptz"}


@dataclass(frozen=True, slots=True)
class FoundTable:
    """A table that could be one of ours."""

    table: str
    """With its schema, where that is not public."""
    kind: Kind
    mapping: dict[str, str]
    doubtful: dict[str, list[str]]
    lacking: list[str]
    """Our columns that nothing in it is, and that must be there."""
    view: str | None
    """SQL that makes a view with them; null where none is needed."""

    def settings(self) -> Iterator[tuple[str, str]]:
        """The settings that map it."""
        ours = OURS[self.kind]
        name = f"{ours}_for_yarus" if self.lacking else self.table
        if name != ours:
            yield f"YARUS_SOURCE_TABLES__{ours.upper()}", name
        for key, theirs in [] if self.lacking else self.mapping.items():
            if key != theirs and key in (*NEEDED[self.kind], "embedding"):
                yield f"YARUS_SOURCE_COLUMNS__{ours.upper()}__{key.upper()}", theirs


def look_at_database(url: str) -> list[FoundTable]:
    """The log and the passages among the tables of a database, in one read-only snapshot.

    Raises:
        InputError: no address of a database, or no table of it can be the log.
        DatabaseUnavailable: it cannot be reached or refuses us.
    """
    engine = read_only(checked_url(url), timeout_s=settings().source_timeout_s)
    proposals: dict[str, Proposal] = {}
    refused: InputError | None = None
    with snapshot(Source("production", "production", settings().language, engine, {})) as connection:
        for name, found in _tables(connection):
            names = [one.name for one in found.columns]
            if propose(names, []).kind is None:
                continue  # its rows are not looked at
            here = Source("production", "production", settings().language, engine, {name: found})
            try:
                proposals[name] = propose(names, _rows(here, found))
            except InputError as error:  # a role that rules its server may not read everything
                refused = error
    log = _best("questions", proposals)
    if log is None and refused is not None:
        raise refused
    if log is None:
        raise InputError(
            "no table with a column of questions; there are: {names}. Map one: YARUS_SOURCE_TABLES__QUESTION_ANSWER "
            "and YARUS_SOURCE_COLUMNS__QUESTION_ANSWER__QUESTION",
            names=", ".join(proposals) or "none that look like a log",
        )
    passages = _best("chunks", proposals)
    return [log, *([passages] if passages else [])]


def _tables(connection: Connection) -> Iterator[tuple[str, Table]]:
    inspector = inspect(connection)
    for schema in inspector.get_schema_names():
        if schema in HIDDEN or schema.startswith("pg_"):
            continue
        for name in [*inspector.get_table_names(schema), *inspector.get_view_names(schema)]:
            columns = [Column(one["name"], one["type"]) for one in inspector.get_columns(name, schema)]
            found = Table(name, MetaData(), *columns, schema=schema)
            yield name if schema == "public" else f"{schema}.{name}", found


def _rows(source: Source, found: Table) -> Sequence[Record]:
    with snapshot(source) as connection:
        connection.execute(text("SET LOCAL TIME ZONE 'UTC'"))
        return [dict(row) for row in connection.execute(select(found).limit(SAMPLED)).mappings()]


def _best(kind: Kind, proposals: dict[str, Proposal]) -> FoundTable | None:
    """The table that the settings name, or the one with most of our columns.

    Raises:
        InputError: several are alike; all are named.
    """
    given = settings().source_tables.get(OURS[kind])
    fitting = {
        name: one
        for name, one in proposals.items()
        if given in (None, name) and one.kind == kind and REQUIRED[kind] in one.mapping and "id" in one.mapping
    }
    if not fitting:
        return None
    most = max(len(one.mapping) for one in fitting.values())
    first, *others = [name for name, one in fitting.items() if len(one.mapping) == most]
    if others:
        raise InputError(
            "several tables could be {ours}: {names}. Say which: YARUS_SOURCE_TABLES__{setting}=NAME",
            ours=OURS[kind], names=", ".join([first, *others]), setting=OURS[kind].upper(),
        )  # fmt: skip
    found = fitting[first]
    lacking = [ours for ours in NEEDED[kind] if ours not in found.mapping]
    view = _view(first, kind, found.mapping, lacking) if lacking else None
    return FoundTable(first, kind, found.mapping, found.doubtful, lacking, view)


def _view(name: str, kind: Kind, mapping: dict[str, str], lacking: Sequence[str]) -> str:
    columns = [f'"{theirs}" AS {ours}' for ours, theirs in mapping.items()]
    columns += [f"NULL::{TYPES.get(ours, 'text')} AS {ours}" for ours in lacking]
    return f"CREATE VIEW {OURS[kind]}_for_yarus AS\nSELECT {', '.join(columns)}\nFROM {name};"
