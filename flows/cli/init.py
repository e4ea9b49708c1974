"""`yarus init`: set up a source from files, a database or a service."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from yarus.flows.cli import as_json, format_json
from yarus.flows.cli.load import (
    choose_source_name,
    encoding_option,
    into_option,
    map_option,
    parse_condition,
    parse_mapping,
    where_option,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from yarus.db.importers.reader import RecognisedSource
    from yarus.deployments.upkeep.setup.plan import SetupResult

ENV = Path(".env")
DEFAULT_NAME = "helpdesk"


@click.command()
@click.argument("files", metavar="[FILE]…", nargs=-1, type=click.Path(path_type=Path))
@click.option("--source-url", metavar="URL", help="A production database, postgresql://…, evaluated in place.")
@click.option("--sut", metavar="URL", help="Your system, an http(s) address; it is asked one question.")
@map_option
@where_option
@encoding_option
@into_option
@click.option("--language", type=click.Choice(["ru", "en"]), help="Language of the texts; default: detected by script.")
@click.option("--dry-run", is_flag=True, help="Print what would be loaded and written, and exit.")
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
    """Set up your own questions and pages, or your database.

    Files are tables (CSV, JSON, JSON Lines, YAML, Parquet, XLSX), traces, and folders of pages (Markdown, text, HTML,
    DOCX, PDF).

    Detects files and columns, loads them, adds missing settings to .env, and prints which tiers can be measured. In a
    terminal, it asks first.

    \b
    yarus init log.csv pages.csv --sut http://127.0.0.1:8000/ask
    yarus init --source-url postgresql://reader@host/helpdesk
    """
    from dataclasses import asdict

    from yarus.deployments.upkeep.setup.plan import plan_setup
    from yarus.flows.terminal.init_summary import print_plan, print_result
    from yarus.tasks.config.settings import get_settings
    from yarus.tasks.config.texts import texts

    if not files and not source_url:
        raise click.UsageError("nothing to begin with: name a log (yarus init log.csv pages.csv), or --source-url")
    if files and source_url:
        raise click.UsageError("files and --source-url cannot be combined; use one of them")
    mapping, where = dict(map(parse_mapping, pairs)), dict(map(parse_condition, conditions))
    setup, settings, files_to_load = plan_setup(files, mapping, source_url, sut, language, ENV, encoding, where)
    setup.source = "production" if source_url else _choose_name(name, setup)
    screen_language = get_settings().language
    if not as_json:
        print_plan(setup, screen_language)
    if not dry_run and not yes and not as_json and sys.stdin.isatty():
        click.confirm(texts("init", screen_language)["sure"], abort=True)
    if not dry_run:
        _set_up(setup, settings, files_to_load)
    if as_json:
        click.echo(format_json(asdict(setup)))
    elif dry_run:
        click.echo(texts("init", screen_language)["dry run"])
    else:
        print_result(setup, screen_language)


def _choose_name(name: str | None, setup: "SetupResult") -> str:
    """Return the given name, or one made from the log's file name if a source can have it."""
    from yarus.db.errors import InputError

    log = Path(setup.files[0].file).stem
    try:
        return choose_source_name(name, log)
    except InputError:
        if name is not None or log.isascii():
            raise
        return choose_source_name(None, DEFAULT_NAME)  # a source's name has only ASCII letters


def _set_up(setup: "SetupResult", settings: dict[str, str], files: "Sequence[RecognisedSource]") -> None:
    from yarus.deployments.upkeep.readiness import read_readiness
    from yarus.deployments.upkeep.setup.files import load_files, write_settings
    from yarus.tasks.config.connections import database, open_source

    if files:
        setup.loaded = load_files(database(), setup.source, files, language=setup.language)
    setup.env = write_settings(ENV, settings, [file.command(setup.source) for file in reversed(setup.files)])
    if not any(table.view for table in setup.tables):
        setup.readiness = read_readiness(open_source(setup.source), sut=setup.system.address if setup.system else None)
