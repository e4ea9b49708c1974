"""Find the log and the passages among the tables of a production database, and map their columns."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import Column, Connection, MetaData, Table, inspect, select, text

from yarus.db.engine import read_only_engine
from yarus.db.errors import InputError
from yarus.db.importers.postgres import validate_url
from yarus.db.importers.recognise import N_SAMPLE_ROWS, REQUIRED_COLUMNS, DetectedColumns, RowKind, detect_columns
from yarus.db.loading.recorded import Record
from yarus.db.source_rows import CHUNK_COLUMNS, QUESTION_COLUMNS
from yarus.db.sources import Source, open_snapshot
from yarus.tasks.config.settings import get_settings

TABLE_NAMES: dict[RowKind, str] = {"questions": "question_answer", "chunks": "chunk"}
NEEDED_COLUMNS: dict[RowKind, tuple[str, ...]] = {"questions": QUESTION_COLUMNS, "chunks": CHUNK_COLUMNS}
HIDDEN_SCHEMAS = ("pg_catalog", "information_schema", "pg_toast")
COLUMN_TYPES = {"score": "integer", "created_at": "timestamptz"}


@dataclass(frozen=True, slots=True)
class FoundTable:
    """A table that could be one of ours."""

    table: str
    """With its schema, where that is not public."""
    kind: RowKind
    mapping: dict[str, str]
    ambiguous_columns: dict[str, list[str]]
    missing_columns: list[str]
    """Our columns that nothing in it is, and that must be there."""
    view: str | None
    """SQL that makes a view with them; null where none is needed."""

    def settings(self) -> Iterator[tuple[str, str]]:
        """Yield the settings that map the table."""
        table_name = TABLE_NAMES[self.kind]
        name = f"{table_name}_for_yarus" if self.missing_columns else self.table
        if name != table_name:
            yield f"YARUS_SOURCE_TABLES__{table_name.upper()}", name
        for key, column in [] if self.missing_columns else self.mapping.items():
            if key != column and key in (*NEEDED_COLUMNS[self.kind], "embedding"):
                yield f"YARUS_SOURCE_COLUMNS__{table_name.upper()}__{key.upper()}", column


def inspect_database(url: str) -> tuple[list[FoundTable], list[str]]:
    """Return the log and the passages among the tables of a database, and texts of them, from read-only snapshots.

    Raises:
        InputError: the address is not one of a database, or no table can be the log.
        DatabaseUnavailable: it cannot be reached or refuses the connection.
    """
    engine = read_only_engine(validate_url(url), timeout_s=get_settings().source_timeout_s)
    proposals: dict[str, DetectedColumns] = {}
    samples: dict[str, Sequence[Record]] = {}
    last_error: InputError | None = None
    with open_snapshot(Source("production", "production", get_settings().text_language, engine, {})) as connection:
        for name, table in _read_tables(connection):
            names = [column.name for column in table.columns]
            if detect_columns(names, []).kind is None:
                continue  # its rows are not read
            single_table_source = Source(
                "production", "production", get_settings().text_language, engine, {name: table}
            )
            try:
                samples[name] = _sample_rows(single_table_source, table)
                proposals[name] = detect_columns(names, samples[name])
            except InputError as error:  # a privileged role may be refused
                last_error = error
    log = _choose_table("questions", proposals)
    if log is None and last_error is not None:
        raise last_error
    if log is None:
        raise InputError(
            "no table with a column of questions; there are: {names}. Map one: YARUS_SOURCE_TABLES__QUESTION_ANSWER "
            "and YARUS_SOURCE_COLUMNS__QUESTION_ANSWER__QUESTION",
            names=", ".join(proposals) or "none that look like a log",
        )
    passages = _choose_table("chunks", proposals)
    tables = [log, *([passages] if passages else [])]
    columns = [(table, table.mapping[REQUIRED_COLUMNS[table.kind]]) for table in tables]
    return tables, [str(row[column] or "") for table, column in columns for row in samples[table.table]]


def _read_tables(connection: Connection) -> Iterator[tuple[str, Table]]:
    inspector = inspect(connection)
    for schema in inspector.get_schema_names():
        if schema in HIDDEN_SCHEMAS or schema.startswith("pg_"):
            continue
        for name in [*inspector.get_table_names(schema), *inspector.get_view_names(schema)]:
            columns = [Column(column["name"], column["type"]) for column in inspector.get_columns(name, schema)]
            table = Table(name, MetaData(), *columns, schema=schema)
            yield name if schema == "public" else f"{schema}.{name}", table


def _sample_rows(source: Source, table: Table) -> Sequence[Record]:
    with open_snapshot(source) as connection:
        connection.execute(text("SET LOCAL TIME ZONE 'UTC'"))
        return [dict(row) for row in connection.execute(select(table).limit(N_SAMPLE_ROWS)).mappings()]


def _choose_table(kind: RowKind, proposals: dict[str, DetectedColumns]) -> FoundTable | None:
    """Return the table that the settings name, or the one with most of the required columns.

    Raises:
        InputError: several tables fit equally; all are named.
    """
    configured = get_settings().source_tables.get(TABLE_NAMES[kind])
    candidates = {
        name: proposal
        for name, proposal in proposals.items()
        if configured in (None, name)
        and proposal.kind == kind
        and REQUIRED_COLUMNS[kind] in proposal.mapping
        and "id" in proposal.mapping
    }
    if not candidates:
        return None
    most = max(len(proposal.mapping) for proposal in candidates.values())
    best_name, *equal_names = [name for name, proposal in candidates.items() if len(proposal.mapping) == most]
    if equal_names:
        raise InputError(
            "several tables could be {ours}: {names}. Say which: YARUS_SOURCE_TABLES__{setting}=NAME",
            ours=TABLE_NAMES[kind], names=", ".join([best_name, *equal_names]), setting=TABLE_NAMES[kind].upper(),
        )  # fmt: skip
    chosen = candidates[best_name]
    lacking = [column for column in NEEDED_COLUMNS[kind] if column not in chosen.mapping]
    view = _view_sql(best_name, kind, chosen.mapping, lacking) if lacking else None
    return FoundTable(best_name, kind, chosen.mapping, chosen.doubtful, lacking, view)


def _view_sql(name: str, kind: RowKind, mapping: dict[str, str], lacking: Sequence[str]) -> str:
    columns = [f'"{table_column}" AS {column}' for column, table_column in mapping.items()]
    columns += [f"NULL::{COLUMN_TYPES.get(column, 'text')} AS {column}" for column in lacking]
    return f"CREATE VIEW {TABLE_NAMES[kind]}_for_yarus AS\nSELECT {', '.join(columns)}\nFROM {name};"
