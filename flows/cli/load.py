"""`yarus load`: fills a named source."""

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from yarus.db.words import Words
from yarus.flows.cli import as_json, json_text, parse_moment

if TYPE_CHECKING:
    from sqlalchemy.engine import URL

    from yarus.db.importers.reader import Recognised
    from yarus.db.loading.fill import LoadReport, Rows, Stream

into = click.option("--into", "name", metavar="NAME", help="Source to load into; default: named after what is loaded.")
language = click.option(
    "--language", type=click.Choice(["ru", "en"]), help="Language of the texts; default: YARUS_LANGUAGE."
)


@click.group()
def load() -> None:
    """Fill a named source with questions, chunks and labels.

    Loading again adds new rows and updates changed ones; a file that cannot be read completely is not loaded at all.
    """


@load.command()
@click.argument("file", type=click.Path(path_type=Path))
@into
@language
@as_json
def squad(file: Path, name: str | None, language: str | None, as_json: bool) -> None:
    """A SQuAD 1.1 or 2.0 file (also XQuAD, SberQuAD): the paragraph is the chunk, the article the page."""
    from yarus.db.importers import squad

    name = checked_name(name, file.stem)
    fill_source(squad.read(file), name, language, origin=file.name, as_json=as_json)


@load.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--split", help="File of judgements in DIR/qrels; default: test, or the only one.")
@into
@language
@as_json
def beir(folder: Path, split: str | None, name: str | None, language: str | None, as_json: bool) -> None:
    """A BEIR data set: corpus.jsonl, queries.jsonl and graded judgements in qrels/SPLIT.tsv."""
    from yarus.db.importers import beir

    name = checked_name(name, folder.resolve().name)
    fill_source(beir.read(folder, split), name, language, origin=folder.resolve().name, as_json=as_json)


@load.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--kind", type=click.Choice(["questions", "chunks"]), help="What a row holds; default: by its columns.")
@click.option(
    "--map", "pairs", multiple=True, metavar="OURS=THEIRS", help="Yarus's name of a column and the file's; repeatable."
)
@click.option(
    "--where", "conditions", multiple=True, metavar="COLUMN=VALUE", help="Load only rows with this value; repeatable."
)
@click.option("--encoding", metavar="NAME", help="Encoding of a text file; default: what its bytes say.")
@into
@language
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

    Columns are told by their names and values (docs/sources.md), or --map names them. A row without an id gets a hash
    of its content.
    """
    from yarus.db.importers.reader import recognise

    name = checked_name(name, file.stem)
    mapping, where = dict(map(pair, pairs)), dict(map(condition, conditions))
    recognised = recognise(file, kind=kind, mapping=mapping, encoding=encoding, where=where)
    load_recognised(recognised, name, language, as_json=as_json)


@load.command()
@click.argument("files", metavar="FILE…", nargs=-1, required=True, type=click.Path(path_type=Path))
@into
@language
@as_json
def traces(files: tuple[Path, ...], name: str | None, language: str | None, as_json: bool) -> None:
    """Recorded traces: OpenTelemetry (OTLP as JSON), Phoenix, Langfuse, LangSmith or TruLens.

    A question is loaded with the answer that was given, and what that was made from: yarus run tier3 --sut recorded
    evaluates it without asking again. Of several files the spans of one trace may be in any.
    """
    from yarus.db.importers.reader import read_traces

    name = checked_name(name, files[0].name.partition(".")[0])
    origin, how = ", ".join(file.name for file in files), "tier3 --sut recorded"
    fill_source(read_traces(files), name, language, origin=origin, as_json=as_json, how=how)


@load.command()
@click.argument("address", metavar="URL|DUMP")
@click.option(
    "--since", metavar="DATE", help="Only log rows created at or after this time; chunks and labels are always loaded."
)
@click.option("--incremental", is_flag=True, help="Only log rows newer than those already in the source.")
@into
@language
@as_json
def postgres(
    address: str, since: str | None, incremental: bool, name: str | None, language: str | None, as_json: bool
) -> None:
    """A PostgreSQL database (postgresql://…), copied in one read-only snapshot, or a dump made by pg_dump.

    YARUS_SOURCE_TABLES__… and YARUS_SOURCE_COLUMNS__… map its tables and columns.
    """
    from yarus.db.importers.dump import unpacked
    from yarus.db.importers.postgres import checked_url, newest, reading
    from yarus.tasks.config.connections import database, mapped_source

    if since and incremental:
        raise click.UsageError(Words("--since and --incremental exclude each other"))
    dump = Path(address)
    is_dump = "://" not in address and dump.exists()
    url = None if is_dump else checked_url(address)
    shown = _without_secrets(url) if url else None
    name = checked_name(name, dump.stem if shown is None else shown.database or shown.host or "postgres")
    begin = newest(database(), name) if incremental else parse_moment("--since", since)
    source = mapped_source(name, url, language=language)
    opened = nullcontext(source) if url else unpacked(dump, source)
    with opened as there, reading(there, begin) as rows:
        fill_source(rows, name, language, origin=dump.name if shown is None else str(shown), as_json=as_json)


def fill_source(
    rows: "Rows | Stream", name: str, language: str | None, *, origin: str, as_json: bool, how: str | None = None
) -> None:
    """Fills a source with these rows, and prints what became of them and what can be measured.

    Raises:
        SystemExit: 2, not one row could be used.
    """
    from yarus.db.engine import reaching
    from yarus.db.loading.fill import fill
    from yarus.tasks.config.connections import database
    from yarus.tasks.config.settings import settings

    engine = database()
    with reaching(engine):
        report = fill(engine, name, rows, language=language or settings().language, origin=origin)
    _show_load(report, as_json=as_json, how=how)


def load_recognised(recognised: "Recognised", name: str, language: str | None, *, as_json: bool) -> None:
    """Load a file that was looked at, and print what became of it and what can be measured.

    Raises:
        SystemExit: 2, not one row could be used.
    """
    from yarus.deployments.upkeep.setup.files import load_files
    from yarus.tasks.config.connections import database
    from yarus.tasks.config.settings import settings

    (report,) = load_files(database(), name, [recognised], language=language or settings().language)
    report.problems = list(dict.fromkeys([*recognised.notes, *report.problems]))
    if recognised.table is not None:
        report.problems += recognised.table.left_aside()
    _show_load(report, as_json=as_json, how="tier3 --sut recorded" if recognised.shape == "traces" else None)


def _show_load(report: "LoadReport", *, as_json: bool, how: str | None) -> None:
    from dataclasses import asdict

    from yarus.deployments.upkeep.readiness import readiness
    from yarus.flows.terminal.lists import print_load
    from yarus.tasks.config.connections import source
    from yarus.tasks.config.settings import settings

    name = report.source
    read = report.questions.read + report.chunks.read
    nothing = read == report.questions.skipped + report.chunks.skipped
    if as_json:
        click.echo(json_text(asdict(report)))
    else:
        print_load(report, [] if nothing else readiness(source(name)), settings().language, how)
        if report.labels.added or report.labels.updated:
            _say_unit(name)
    if nothing and read:
        raise SystemExit(2)


def _say_unit(name: str) -> None:
    """What evaluations of the source will count, where its labels are of both kinds."""
    from yarus.db.source_rows import read_questions
    from yarus.db.sources import snapshot
    from yarus.flows.terminal.dataset import unit_text
    from yarus.tasks.cases.labels import labels_of
    from yarus.tasks.config.connections import source
    from yarus.tasks.config.settings import settings

    where = source(name)
    with snapshot(where) as connection:
        found = labels_of(read_questions(connection, where))
    if said := unit_text(found.unit, found.labelled, found.chunks, settings().language):
        click.secho(said, fg="yellow")


def checked_name(name: str | None, origin: str) -> str:
    """The name of the source to fill: as given, or made of what is loaded.

    Raises:
        InputError: it cannot be the name of a source, or is the bundled sample's.
    """
    import re

    from yarus.db.errors import InputError
    from yarus.db.sources import SAMPLE, checked_name

    if name == SAMPLE:
        raise InputError(
            "source {sample!r} is the bundled one, which Yarus loads itself; choose another name with --into",
            sample=SAMPLE,
        )
    if name is not None:
        return checked_name(name)
    made = re.sub(r"[^a-z0-9]+", "_", origin.lower()).strip("_")
    if not made or not made[0].isalpha() or made == SAMPLE:
        raise InputError(
            "{origin!r} cannot be a source's name; give one with --into NAME, for example --into helpdesk",
            origin=origin,
        )
    return checked_name(made[:40].rstrip("_"))


def pair(text: str) -> tuple[str, str]:
    """OURS=THEIRS, parted."""
    ours, sign, theirs = text.partition("=")
    if not (ours.strip() and sign):
        raise click.UsageError(Words("--map {text!r}: expected OURS=THEIRS, for example question=Вопрос", text=text))
    return ours.strip(), theirs.strip()


def condition(text: str) -> tuple[str, str]:
    """COLUMN=VALUE, parted."""
    column, sign, value = text.partition("=")
    if not (column.strip() and sign):
        raise click.UsageError(Words("--where {text!r}: expected COLUMN=VALUE, for example provider=bot-a", text=text))
    return column.strip(), value.strip()


def _without_secrets(url: str) -> "URL":
    from sqlalchemy.engine import URL, make_url

    whole = make_url(url)
    return URL.create("postgresql", whole.username, host=whole.host, port=whole.port, database=whole.database)
