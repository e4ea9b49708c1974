"""`yarus runs`, `show`, `tag`, `cases`, `report`: what evaluations left behind."""

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from yarus.flows.cli import arrow_alone, as_json, given_tags, json_text, own_database, say_pseudonyms

if TYPE_CHECKING:
    from yarus.tasks.config.settings import Language


@click.command()
@click.option(
    "--limit", default=20, show_default=True, type=click.IntRange(1), help="Number of evaluations, newest first."
)
@click.option("--name", help="Only evaluations of this name.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only evaluations with this tag; repeatable.")
@as_json
def runs(limit: int, name: str | None, tags: tuple[str, ...], as_json: bool) -> None:
    """List evaluations."""
    from yarus.db import journal
    from yarus.flows.terminal.lists import print_runs
    from yarus.tasks.config.settings import settings
    from yarus.tasks.evaluation.listing import listed

    rows = journal.listing(own_database(), limit=limit, name=name, tags=given_tags(tags))
    if not as_json:
        print_runs(rows, settings().language)
        return
    root = settings().results_root
    click.echo(json_text([listed(row, root) for row in rows]))


@click.command()
@click.argument("evaluation")
@as_json
def show(evaluation: str, as_json: bool) -> None:
    """Show one evaluation: its id, the beginning or end of it, its name, or 'last'."""
    from yarus.tasks.config.settings import settings
    from yarus.tasks.evaluation.summary import has_metrics, summary

    found = summary(own_database(), evaluation)
    if as_json:
        click.echo(json_text(found))
    else:
        arrow_alone()
        from yarus.flows.terminal.differences.comparison import print_changes
        from yarus.flows.terminal.summary import print_summary

        print_summary(found, settings().language)
        if has_metrics(found):
            print_changes(own_database(), [found["evaluation_id"]], settings().language)


@click.command()
@click.argument("evaluation")
@click.option("--name", help="What to call it from now on; an empty one takes the name away.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Add a tag; repeatable.")
@click.option("--remove", "removed", multiple=True, metavar="TAG", help="Take a tag away; repeatable.")
@as_json
def tag(evaluation: str, name: str | None, tags: tuple[str, ...], removed: tuple[str, ...], as_json: bool) -> None:
    """Name an evaluation, or give it tags, also when it is finished; without options show them.

    \b
    yarus tag last --name "before release 2.1" --tag release
    yarus tag "before release 2.1" --remove release
    """
    from yarus.db import journal
    from yarus.tasks.evaluation.relabel import relabelled

    engine = own_database()
    row = journal.find(engine, evaluation)
    found = relabelled(engine, row, name=name, add=given_tags(tags), remove=given_tags(removed))
    if as_json:
        click.echo(json_text(found))
        return
    from yarus.flows.terminal.printing import plain
    from yarus.tasks.evaluation.config import called

    click.echo(" · ".join(filter(None, (found["evaluation_id"], plain(called(found))))))


@click.command()
@click.argument("evaluation")
@click.option("--where", multiple=True, metavar="COLUMN=VALUE", help="Also != < <= > >= and ~ (contains); repeatable.")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1), help="Number of cases to print.")
@as_json
def cases(evaluation: str, where: tuple[str, ...], limit: int, as_json: bool) -> None:
    """Show the cases of an evaluation, for example: yarus cases last --where 'hit_rate@1=0'."""
    from yarus.db import journal
    from yarus.flows.terminal.lists import print_cases
    from yarus.tasks.cases.privacy import pseudonyms
    from yarus.tasks.cases.sampling import once
    from yarus.tasks.config.settings import settings
    from yarus.tasks.evaluation.numbers import finite
    from yarus.tasks.evaluation.queries import cases_where

    arrow_alone()
    import pyarrow as pa

    engine = own_database()
    found, source = cases_where(engine, evaluation, where), journal.find(engine, evaluation)["source"]
    if as_json:
        click.echo(json_text(finite(pseudonyms.cases(found.slice(0, limit), source).to_pylist())))
    else:
        times = dict(islice(once(found["question"].to_pylist(), found["status"].to_pylist()).items(), limit))
        print_cases(
            pseudonyms.cases(found.take(pa.array(list(times), pa.int64())), source),
            list(times.values()),
            len(found),
            settings().language,
        )
    say_pseudonyms(source)


@click.command()
@click.argument("evaluations", nargs=-1, metavar="[EVALUATION ...]")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="File to write; default: in YARUS_HOME.")
@click.option("--language", type=click.Choice(["ru", "en"]), help="Language it opens in; default: YARUS_LANGUAGE.")
@as_json
def report(evaluations: tuple[str, ...], out: Path | None, language: "Language | None", as_json: bool) -> None:
    """Write a self-contained HTML report and print its path.

    Without arguments it shows the newest evaluation of every tier. Two of one tier are compared: yarus report ID ID.
    """
    from yarus.tasks.report.write import report as write

    arrow_alone()
    path = write(own_database(), evaluations, out, language)
    click.echo(json_text({"report": str(path)}) if as_json else path)
