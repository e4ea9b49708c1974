"""`yarus load`: fill a named source."""

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from yarus.db.messages import Words
from yarus.flows.cli import as_json, format_json, parse_moment

if TYPE_CHECKING:
    from sqlalchemy.engine import URL

    from yarus.db.importers.reader import RecognisedSource
    from yarus.db.loading.load_rows import ImportedRows, LoadReport, RowStream

into_option = click.option(
    "--into", "name", metavar="NAME", help="Source to load into; default: named after what is loaded."
)
map_option = click.option(
    "--map", "pairs", multiple=True, metavar="FIELD=COLUMN", help="Map a column that was not detected; repeatable."
)
where_option = click.option(
    "--where",
    "conditions",
    multiple=True,
    hidden=True,
    metavar="COLUMN=VALUE",
    help="Load only rows with this value; repeatable.",
)
encoding_option = click.option(
    "--encoding", metavar="NAME", hidden=True, help="Encoding of text files; default: detected."
)
language_option = click.option(
    "--language", type=click.Choice(["ru", "en"]), help="Language of the texts; default: YARUS_LANGUAGE."
)


@click.group()
def load() -> None:
    """Fill a named source with questions, chunks and labels.

    Loading again adds new rows and updates changed ones; a file that cannot be read completely is not loaded at all.
    """


@load.command()
@click.argument("file", type=click.Path(path_type=Path))
@into_option
@language_option
@as_json
def squad(file: Path, name: str | None, language: str | None, as_json: bool) -> None:
    """A SQuAD 1.1 or 2.0 file (also XQuAD, SberQuAD): the paragraph is the chunk, the article the page."""
    from yarus.db.importers import squad

    name = choose_source_name(name, file.stem)
    load_source(squad.read_squad(file), name, language, origin=file.name, as_json=as_json)


@load.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--split", hidden=True, help="File of judgements in DIR/qrels; default: test, or the only one.")
@into_option
@language_option
@as_json
def beir(folder: Path, split: str | None, name: str | None, language: str | None, as_json: bool) -> None:
    """A BEIR data set: corpus.jsonl, queries.jsonl and graded judgements in qrels/SPLIT.tsv."""
    from yarus.db.importers import beir

    name = choose_source_name(name, folder.resolve().name)
    load_source(beir.read_beir(folder, split), name, language, origin=folder.resolve().name, as_json=as_json)


@load.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--kind", hidden=True, type=click.Choice(["questions", "chunks"]), help="Content of a row; default: detected."
)
@map_option
@where_option
@encoding_option
@into_option
@language_option
@as_json
def table(
    file: Path,
    kind: Literal["questions", "chunks"] | None,
    pairs: tuple[str, ...],
    conditions: tuple[str, ...],
    encoding: str | None,
    name: str | None,
    language: str | None,
    as_json: bool,
) -> None:
    """A table of questions or passages: CSV, JSON, JSON Lines, YAML, Parquet, XLSX; or a folder of pages.

    Yarus detects columns by their names and values (docs/sources.md), or --map names them. A row without an id gets a
    hash of its content.
    """
    from yarus.db.importers.reader import recognise_source

    name = choose_source_name(name, file.stem)
    mapping, where = dict(map(parse_mapping, pairs)), dict(map(parse_condition, conditions))
    recognised = recognise_source(file, kind=kind, mapping=mapping, encoding=encoding, where=where)
    load_recognised(recognised, name, language, as_json=as_json)


@load.command()
@click.argument("files", metavar="FILE…", nargs=-1, required=True, type=click.Path(path_type=Path))
@into_option
@language_option
@as_json
def traces(files: tuple[Path, ...], name: str | None, language: str | None, as_json: bool) -> None:
    """Recorded traces: OpenTelemetry (OTLP as JSON), Phoenix, Langfuse, LangSmith or TruLens.

    Each question is loaded with its recorded answer and context: yarus run tier3 --sut recorded evaluates it without
    asking again. The spans of one trace may be in several files.
    """
    from yarus.db.importers.reader import read_traces

    name = choose_source_name(name, files[0].name.partition(".")[0])
    origin, command = ", ".join(file.name for file in files), "tier3 --sut recorded"
    load_source(read_traces(files), name, language, origin=origin, as_json=as_json, command=command)


@load.command()
@click.argument("address", metavar="URL|DUMP")
@click.option(
    "--since", metavar="DATE", help="Only log rows created at or after this time; chunks and labels are always loaded."
)
@click.option("--incremental", is_flag=True, help="Only log rows newer than those already in the source.")
@into_option
@language_option
@as_json
def postgres(
    address: str, since: str | None, incremental: bool, name: str | None, language: str | None, as_json: bool
) -> None:
    """A PostgreSQL database (postgresql://…), copied in one read-only snapshot, or a dump made by pg_dump.

    YARUS_SOURCE_TABLES__… and YARUS_SOURCE_COLUMNS__… map its tables and columns.
    """
    from yarus.db.importers.dump import open_dump
    from yarus.db.importers.postgres import newest_created_at, open_source_snapshot, validate_url
    from yarus.tasks.config.connections import database, open_mapped_source

    if since and incremental:
        raise click.UsageError(Words("--since and --incremental cannot be combined; use one of them"))
    dump = Path(address)
    is_dump = "://" not in address and dump.exists()
    url = None if is_dump else validate_url(address)
    safe_url = _without_secrets(url) if url else None
    name = choose_source_name(name, dump.stem if safe_url is None else safe_url.database or safe_url.host or "postgres")
    begin = newest_created_at(database(), name) if incremental else parse_moment("--since", since)
    source = open_mapped_source(name, url, language=language)
    connection = nullcontext(source) if url else open_dump(dump, source)
    with connection as connected, open_source_snapshot(connected, begin) as rows:
        load_source(rows, name, language, origin=dump.name if safe_url is None else str(safe_url), as_json=as_json)


def load_source(
    rows: "ImportedRows | RowStream",
    name: str,
    language: str | None,
    *,
    origin: str,
    as_json: bool,
    command: str | None = None,
) -> None:
    """Load rows into a source, and print the load report and what can be measured.

    Raises:
        SystemExit: 2, no row could be used.
    """
    from yarus.db.engine import reporting_unreachable
    from yarus.db.loading.load_rows import load_rows
    from yarus.tasks.config.connections import database
    from yarus.tasks.config.settings import get_settings

    engine = database()
    with reporting_unreachable(engine):
        report = load_rows(engine, name, rows, language=language or get_settings().text_language, origin=origin)
    _print_report(report, as_json=as_json, command=command)


def load_recognised(recognised: "RecognisedSource", name: str, language: str | None, *, as_json: bool) -> None:
    """Load a file whose format was recognised, and print the load report and what can be measured.

    Raises:
        SystemExit: 2, no row could be used.
    """
    from yarus.deployments.upkeep.setup.files import load_files
    from yarus.tasks.config.connections import database
    from yarus.tasks.config.settings import get_settings

    (report,) = load_files(database(), name, [recognised], language=language or get_settings().text_language)
    report.problems = list(dict.fromkeys([*recognised.notes, *report.problems]))
    if recognised.table is not None:
        report.problems += recognised.table.left_aside()
    _print_report(report, as_json=as_json, command="tier3 --sut recorded" if recognised.shape == "traces" else None)


def _print_report(report: "LoadReport", *, as_json: bool, command: str | None) -> None:
    from dataclasses import asdict

    from yarus.deployments.upkeep.readiness import read_readiness
    from yarus.flows.terminal.lists import print_load
    from yarus.tasks.config.connections import open_source
    from yarus.tasks.config.settings import get_settings

    name = report.source
    n_read = report.questions.read + report.chunks.read
    is_empty = n_read == report.questions.skipped + report.chunks.skipped
    if as_json:
        click.echo(format_json(asdict(report)))
    else:
        print_load(report, [] if is_empty else read_readiness(open_source(name)), get_settings().language, command)
        if report.labels.added or report.labels.updated:
            _print_unit(name)
    if is_empty and n_read:
        raise SystemExit(2)


def _print_unit(name: str) -> None:
    """Print which unit evaluations of the source will count, if its labels are of both kinds."""
    from yarus.db.source_rows import read_questions
    from yarus.db.sources import open_snapshot
    from yarus.flows.terminal.dataset import describe_label_unit
    from yarus.tasks.cases.labels import count_labels
    from yarus.tasks.config.connections import open_source
    from yarus.tasks.config.settings import get_settings

    origin = open_source(name)
    with open_snapshot(origin) as connection:
        labels = count_labels(read_questions(connection, origin))
    if message := describe_label_unit(labels.unit, labels.labelled, labels.chunks, get_settings().language):
        click.secho(message, fg="yellow")


def choose_source_name(name: str | None, origin: str) -> str:
    """Return the name of the source to fill: the given one, or one made from what is loaded.

    Raises:
        InputError: it cannot be the name of a source, or is the bundled sample's.
    """
    import re

    from yarus.db.errors import InputError
    from yarus.db.sources import SAMPLE, validate_source_name

    if name == SAMPLE:
        raise InputError(
            "source {sample!r} is the bundled one, which Yarus loads itself; choose another name with --into",
            sample=SAMPLE,
        )
    if name is not None:
        return validate_source_name(name)
    derived = re.sub(r"[^a-z0-9]+", "_", origin.lower()).strip("_")
    if not derived or not derived[0].isalpha() or derived == SAMPLE:
        raise InputError(
            "{origin!r} cannot be a source's name; give one with --into NAME, for example --into helpdesk",
            origin=origin,
        )
    return validate_source_name(derived[:40].rstrip("_"))


def parse_mapping(text: str) -> tuple[str, str]:
    """Split FIELD=COLUMN into its two names."""
    field, separator, column = text.partition("=")
    if not (field.strip() and separator):
        raise click.UsageError(Words("--map {text!r}: expected FIELD=COLUMN, for example question=Вопрос", text=text))
    return field.strip(), column.strip()


def parse_condition(text: str) -> tuple[str, str]:
    """Split COLUMN=VALUE into its parts."""
    column, separator, value = text.partition("=")
    if not (column.strip() and separator):
        raise click.UsageError(Words("--where {text!r}: expected COLUMN=VALUE, for example provider=bot-a", text=text))
    return column.strip(), value.strip()


def _without_secrets(url: str) -> "URL":
    from sqlalchemy.engine import URL, make_url

    parts = make_url(url)
    return URL.create("postgresql", parts.username, host=parts.host, port=parts.port, database=parts.database)
