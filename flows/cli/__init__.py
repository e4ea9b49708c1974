"""The command line, one file per command, and what the commands share.

Shared are options, how documents are printed, and the database.
"""

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
show_all = click.option("--all", "show_all", is_flag=True, help="Print all metrics, reasons and details.")


def add_verbosity_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add --quiet and --verbose to a command, which takes the resulting log level as `level`."""

    @click.option("-q", "--quiet", is_flag=True, help="Print only warnings and the result.")
    @click.option("-v", "--verbose", is_flag=True, help="Print every step, retry and failure.")
    @wraps(command)
    def wrapper(*args: Any, quiet: bool, verbose: bool, **options: Any) -> None:
        if quiet and verbose:
            raise click.UsageError("--quiet and --verbose cannot be combined; use one of them")
        silent = quiet or options["as_json"]
        command(*args, level=logging.DEBUG if verbose else logging.WARNING if silent else logging.INFO, **options)

    return wrapper


def parse_tags(tags: "Sequence[str]") -> list[str]:
    """Return the tags of options, as evaluations store them.

    Raises:
        InputError: a tag that no evaluation can have.
    """
    from yarus.db.errors import InputError
    from yarus.tasks.config.naming import validate_evaluation_tag

    try:
        return [validate_evaluation_tag(tag) for tag in tags]
    except ValueError as error:
        raise InputError("--tag: {error}", error=error) from None


def parse_moment(option: str, value: str | None) -> "datetime | None":
    """Return the time that an option gives.

    Raises:
        click.UsageError: it is not a time.
    """
    from yarus.db.importers.column_parsers import BadValue, parse_value
    from yarus.db.messages import Words

    try:
        moment: datetime | None = parse_value("created_at", value)
    except BadValue as error:
        raise click.UsageError(Words("{option} {given!r}: {error}", option=option, given=value, error=error)) from None
    return moment


def format_json(document: Any) -> str:
    """Return a document as `--json` prints it, with the former names of its keys."""
    from yarus.db.former_keys import add_former_keys
    from yarus.tasks.evaluation.summary import to_json

    return to_json(add_former_keys(document))


def print_document(document: Any, show: Callable[[Any, str], None], *, as_json: bool) -> None:
    """Print a document as JSON, or show it to people in the language of the settings."""
    from yarus.tasks.config.settings import get_settings

    if as_json:
        click.echo(format_json(document))
    else:
        show(document, get_settings().language)


def warn_about_pseudonyms(source: str, *, unset: bool = False) -> None:
    """Print on stderr that the output contains pseudonyms, and which setting decides it.

    See `yarus.tasks.cases.privacy.pseudonyms.should_mask`.
    """
    from yarus.tasks.cases.privacy.pseudonyms import should_mask
    from yarus.tasks.config.settings import get_settings
    from yarus.tasks.config.texts import texts

    if should_mask(source, unset=unset):
        click.echo(texts("pseudonyms", get_settings().language)["note"], err=True)


def open_database() -> "Engine":
    """Return the database of Yarus, after its journal has been corrected for evaluations that were killed."""
    from yarus.tasks.config.connections import database
    from yarus.tasks.evaluation.listing import fail_orphaned

    engine = database()
    fail_orphaned(engine)
    return engine


class _PandasImportBlocker(MetaPathFinder):
    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ImportError(name)


class ProcessState:
    """State of the process that runs a command."""

    ends_with_the_command = False


def start_prefect_early() -> None:
    """Start Prefect's server while the command imports what it needs, unless the command was called from Python."""
    if ProcessState.ends_with_the_command:
        from yarus.deployments.prefect import home_server

        home_server.start_early()


def block_pandas_import() -> None:
    """Keep Arrow from importing pandas at its first array, which takes half a second and is never needed.

    Only in a process that ends with the command, because Arrow's `to_pandas` fails in it afterwards.
    """
    if "pandas" in sys.modules or not ProcessState.ends_with_the_command:
        return
    import pyarrow as pa

    sys.meta_path.insert(0, blocker := _PandasImportBlocker())
    try:
        pa.array([])
    finally:
        sys.meta_path.remove(blocker)
