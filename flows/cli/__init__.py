"""The command line: a file a command. Here what several share: options, how they print, the database that they read."""

import logging
import sys
from collections.abc import Callable
from functools import wraps
from importlib.abc import MetaPathFinder
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy import Engine

as_json = click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")


def talkative(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the options that say how much is said on stderr while a command works: it takes it as `level`."""

    @click.option("-q", "--quiet", is_flag=True, help="Say nothing meanwhile but warnings.")
    @click.option("-v", "--verbose", is_flag=True, help="Say every step, retry and failure.")
    @wraps(command)
    def talking(*args: Any, quiet: bool, verbose: bool, **given: Any) -> None:
        if quiet and verbose:
            raise click.UsageError("--quiet and --verbose exclude each other: leave one out")
        silent = quiet or given["as_json"]
        command(*args, level=logging.DEBUG if verbose else logging.WARNING if silent else logging.INFO, **given)

    return talking


def given_tags(tags: "Sequence[str]") -> list[str]:
    """The tags of options, as evaluations have them.

    Raises:
        InputError: one that no evaluation can have.
    """
    from yarus.db.errors import InputError
    from yarus.tasks.config.naming import evaluation_tag

    try:
        return [evaluation_tag(tag) for tag in tags]
    except ValueError as error:
        raise InputError("--tag: {error}", error=error) from None


def parse_moment(option: str, given: str | None) -> "datetime | None":
    """Return the time that an option gives.

    Raises:
        click.UsageError: it is none.
    """
    from yarus.db.importers.values import BadValue, parse
    from yarus.db.words import Words

    try:
        moment: datetime | None = parse("created_at", given)
    except BadValue as error:
        raise click.UsageError(Words("{option} {given!r}: {error}", option=option, given=given, error=error)) from None
    return moment


def json_text(document: Any) -> str:
    """Return a document as `--json` prints it."""
    from yarus.tasks.evaluation.summary import as_json

    return as_json(document)


def print_document(document: Any, show: Callable[[Any, str], None], *, as_json: bool) -> None:
    """Print a document for programs, or have it shown to people in the language of the settings."""
    from yarus.tasks.config.settings import settings

    if as_json:
        click.echo(json_text(document))
    else:
        show(document, settings().language)


def say_pseudonyms(source: str, *, unset: bool = False) -> None:
    """Says on stderr that pseudonyms stand in what was printed, and what decides.

    See `yarus.tasks.cases.privacy.pseudonyms.has_pseudonyms`.
    """
    from yarus.tasks.cases.privacy.pseudonyms import has_pseudonyms
    from yarus.tasks.config.settings import settings
    from yarus.tasks.config.texts import texts

    if has_pseudonyms(source, unset=unset):
        click.echo(texts("pseudonyms", settings().language)["note"], err=True)


def own_database() -> "Engine":
    """Our database, its journal telling the truth about evaluations that were killed."""
    from yarus.tasks.config.connections import database
    from yarus.tasks.evaluation.listing import fail_orphaned

    engine = database()
    fail_orphaned(engine)
    return engine


class _NoPandas(MetaPathFinder):
    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ImportError(name)


class Process:
    """What is known of the process that a command runs in."""

    ends_with_the_command = False


def begin() -> None:
    """Has Prefect's server start while the command imports what it needs; not where a command is only called."""
    if Process.ends_with_the_command:
        from yarus.deployments.prefect import home_server

        home_server.begin()


def arrow_alone() -> None:
    """Keeps Arrow from importing pandas, which it does at its first array: half a second, and nobody gives it a series.

    Only in a process that ends with the command, for Arrow's `to_pandas` fails in it ever after.
    """
    if "pandas" in sys.modules or not Process.ends_with_the_command:
        return
    import pyarrow as pa

    sys.meta_path.insert(0, refusing := _NoPandas())
    try:
        pa.array([])
    finally:
        sys.meta_path.remove(refusing)
