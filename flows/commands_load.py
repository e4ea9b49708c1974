"""`yarus load`: fills a named source."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from db.loading import Rows

into = click.option("--into", "name", metavar="NAME", help="The source to fill; default: the file's name.")
language = click.option("--language", type=click.Choice(["ru", "en"]), help="Of the texts; default: YARUS_LANGUAGE.")
as_json = click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")


@click.group()
def load() -> None:
    """Fill a named source with questions, chunks and labels.

    Loading again adds what is new and updates what changed; nothing is loaded of a file that cannot be read whole.
    """


@load.command()
@click.argument("file", type=click.Path(path_type=Path))
@into
@language
@as_json
def squad(file: Path, name: str | None, language: str | None, as_json: bool) -> None:
    """A SQuAD 1.1 or 2.0 file (also XQuAD, SberQuAD): the paragraph is the chunk, the article the page."""
    from db.importers import squad

    _fill(file, squad.read, name, language, as_json=as_json)


def _fill(file: Path, read: Callable[[Path], "Rows"], name: str | None, language: str | None, *, as_json: bool) -> None:
    import re
    from dataclasses import asdict

    from db.engine import reaching
    from db.loading import checked_name, fill
    from flows.printing import print_load
    from tasks.connect import database
    from tasks.report import as_json as document
    from tasks.settings import settings

    name = checked_name(name or re.sub(r"\W+", "_", file.stem.lower()))
    rows = read(file)
    engine = database()
    with reaching(engine):
        report = fill(engine, name, rows, language=language or settings().language, origin=file.name)
    if as_json:
        click.echo(document(asdict(report)))
    else:
        print_load(report)
