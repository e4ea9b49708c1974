"""`yarus init`: from somebody's files, database and service to a source that can be measured."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from flows.cli import as_json
from flows.cli.load import checked_name, into, pair

if TYPE_CHECKING:
    from tasks.operations.setup.plan import Begun

ENV = Path(".env")
OWN = "helpdesk"


@click.command()
@click.argument("files", metavar="[FILE]…", nargs=-1, type=click.Path(path_type=Path))
@click.option("--source-url", metavar="URL", help="A production database, postgresql://…, evaluated in place.")
@click.option("--sut", metavar="URL", help="Your system, an http(s) address; it is asked one question.")
@click.option(
    "--map", "pairs", multiple=True, metavar="OURS=THEIRS", help="What a column is, where that is not told; repeatable."
)
@into
@click.option(
    "--language", type=click.Choice(["ru", "en"]), help="Language of the texts; default: that of their letters."
)
@click.option("--dry-run", is_flag=True, help="Only say what would be loaded and written.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@as_json
def init(
    files: tuple[Path, ...],
    source_url: str | None,
    sut: str | None,
    pairs: tuple[str, ...],
    name: str | None,
    language: str | None,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Begin with your own data: a log and the pages of a knowledge base (.csv, .jsonl, .parquet), or a database.

    Says which file is what and which column is which, loads them, adds the settings that are missing to .env, and says
    what can be measured. Asks first where it runs in a terminal.

    \b
    yarus init log.csv pages.csv --sut http://127.0.0.1:8000/ask
    yarus init --source-url postgresql://reader@host/helpdesk
    """
    from dataclasses import asdict

    from flows.terminal.beginning import print_begun, print_plan
    from tasks.config.settings import settings
    from tasks.operations.setup.plan import plan
    from tasks.results.summary import as_json as document
    from tasks.texts import texts

    if not files and not source_url:
        raise click.UsageError("nothing to begin with: name a log (yarus init log.csv pages.csv), or --source-url")
    if files and source_url:
        raise click.UsageError("files go into a source of their own, a database is evaluated in place: name one")
    found, wanted = plan(files, dict(map(pair, pairs)), source_url, sut, language, ENV)
    found.source = "production" if source_url else _name(name, found)
    shown = settings().language
    if not as_json:
        print_plan(found, shown)
    if not dry_run and not yes and not as_json and sys.stdin.isatty():
        click.confirm(texts("init", shown)["sure"], abort=True)
    if not dry_run:
        _begin(found, wanted)
    if as_json:
        click.echo(document(asdict(found)))
    elif not dry_run:
        print_begun(found, shown)


def _name(name: str | None, found: "Begun") -> str:
    """As given, or after the log, where its name can be a source's."""
    from db.errors import InputError

    log = Path(found.files[0].file).stem
    try:
        return checked_name(name, log)
    except InputError:
        if name is not None or log.isascii():
            raise
        return checked_name(None, OWN)  # no letters of a log's name in another alphabet can stand there


def _begin(found: "Begun", wanted: dict[str, str]) -> None:
    """Loads the files, writes the settings, and looks at what can be measured."""
    from db.engine import reaching
    from db.importers import table
    from db.loading.fill import fill
    from tasks.config.connections import database, source
    from tasks.operations.readiness import readiness
    from tasks.operations.setup.env import write

    for one in found.files:
        path, engine = Path(one.file), database()
        rows = table.read(path, one.kind, one.mapping, one.encoding)
        with reaching(engine):
            found.loaded.append(fill(engine, found.source, rows, language=found.language, origin=path.name))
    found.env = write(ENV, wanted, [one.command(found.source) for one in found.files])
    if not any(one.view for one in found.tables):
        found.readiness = readiness(source(found.source))
