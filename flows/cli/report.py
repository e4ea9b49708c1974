"""`yarus report`: writes the HTML report."""

from pathlib import Path

import click

from flows.cli.options import as_json


@click.command()
@click.argument("evaluations", nargs=-1, metavar="[EVALUATION ...]")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="File to write; default: in YARUS_HOME.")
@click.option("--language", type=click.Choice(["ru", "en"]), help="Language it opens in; default: YARUS_LANGUAGE.")
@as_json
def report(evaluations: tuple[str, ...], out: Path | None, language: str | None, as_json: bool) -> None:
    """Write a self-contained HTML report and print its path.

    Without arguments it shows the newest evaluation of every tier. Two of one tier are compared: yarus report ID ID.
    """
    from tasks.config.connections import database
    from tasks.config.settings import Language
    from tasks.evaluation.lifecycle import fail_orphaned
    from tasks.report.write import report as write
    from tasks.results.summary import as_json as document

    engine = database()
    fail_orphaned(engine)
    chosen: Language | None = "en" if language == "en" else "ru" if language == "ru" else None
    path = write(engine, evaluations, out, chosen)
    click.echo(document({"report": str(path)}) if as_json else path)
