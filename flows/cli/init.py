"""`yarus init`: from somebody's files, database and service to a source that can be measured."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from yarus.flows.cli import as_json, json_text
from yarus.flows.cli.load import checked_name, condition, into, pair

if TYPE_CHECKING:
    from collections.abc import Sequence

    from yarus.db.importers.reader import Recognised
    from yarus.deployments.upkeep.setup.plan import Begun

ENV = Path(".env")
OWN = "helpdesk"


@click.command()
@click.argument("files", metavar="[FILE]…", nargs=-1, type=click.Path(path_type=Path))
@click.option("--source-url", metavar="URL", help="A production database, postgresql://…, evaluated in place.")
@click.option("--sut", metavar="URL", help="Your system, an http(s) address; it is asked one question.")
@click.option(
    "--map", "pairs", multiple=True, metavar="OURS=THEIRS", help="What a column is, where that is not told; repeatable."
)
@click.option(
    "--where", "conditions", multiple=True, metavar="COLUMN=VALUE", help="Load only rows with this value; repeatable."
)
@click.option("--encoding", metavar="NAME", help="Encoding of text files; default: what their bytes say.")
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
    conditions: tuple[str, ...],
    encoding: str | None,
    name: str | None,
    language: str | None,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Begin with your own data: questions and the pages of a knowledge base, or a database.

    Files are tables (CSV, JSON, JSON Lines, YAML, Parquet, XLSX), traces, and folders of pages (Markdown, text, HTML,
    DOCX, PDF).

    Says which file is what and which column is which, loads them, adds the settings that are missing to .env, and says
    what can be measured. Asks first where it runs in a terminal.

    \b
    yarus init log.csv pages.csv --sut http://127.0.0.1:8000/ask
    yarus init --source-url postgresql://reader@host/helpdesk
    """
    from dataclasses import asdict

    from yarus.deployments.upkeep.setup.plan import plan
    from yarus.flows.terminal.beginning import print_begun, print_plan
    from yarus.tasks.config.settings import settings
    from yarus.tasks.config.texts import texts

    if not files and not source_url:
        raise click.UsageError("nothing to begin with: name a log (yarus init log.csv pages.csv), or --source-url")
    if files and source_url:
        raise click.UsageError("files go into a source of their own, a database is evaluated in place: name one")
    mapping, where = dict(map(pair, pairs)), dict(map(condition, conditions))
    found, wanted, files_to_load = plan(files, mapping, source_url, sut, language, ENV, encoding, where)
    found.source = "production" if source_url else _name(name, found)
    shown = settings().language
    if not as_json:
        print_plan(found, shown)
    if not dry_run and not yes and not as_json and sys.stdin.isatty():
        click.confirm(texts("init", shown)["sure"], abort=True)
    if not dry_run:
        _begin(found, wanted, files_to_load)
    if as_json:
        click.echo(json_text(asdict(found)))
    elif not dry_run:
        print_begun(found, shown)


def _name(name: str | None, found: "Begun") -> str:
    """As given, or after the log, where its name can be a source's."""
    from yarus.db.errors import InputError

    log = Path(found.files[0].file).stem
    try:
        return checked_name(name, log)
    except InputError:
        if name is not None or log.isascii():
            raise
        return checked_name(None, OWN)  # no letters of a log's name in another alphabet can stand there


def _begin(found: "Begun", wanted: dict[str, str], files: "Sequence[Recognised]") -> None:
    from yarus.deployments.upkeep.readiness import readiness
    from yarus.deployments.upkeep.setup.files import load_files, write
    from yarus.tasks.config.connections import database, source

    if files:
        found.loaded = load_files(database(), found.source, files, language=found.language)
    found.env = write(ENV, wanted, [one.command(found.source) for one in reversed(found.files)])
    if not any(one.view for one in found.tables):
        found.readiness = readiness(source(found.source), sut=found.system.address if found.system else None)
