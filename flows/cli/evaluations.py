"""`yarus runs`, `show`, `cases`: stored evaluations and their cases."""

from typing import TYPE_CHECKING

import click

from flows.cli.options import as_json, own_database

if TYPE_CHECKING:
    pass


@click.command()
@click.option(
    "--limit", default=20, show_default=True, type=click.IntRange(1), help="Number of evaluations, newest first."
)
@as_json
def runs(limit: int, as_json: bool) -> None:
    """List evaluations."""
    from db import journal
    from flows.terminal.summary import print_runs
    from tasks.cases import pseudonyms
    from tasks.results.summary import as_json as document

    rows = journal.listing(own_database(), limit=limit)
    if not as_json:
        print_runs(rows)
        return
    from tasks.config.settings import settings
    from tasks.results.parquet_files import existing_path

    root = settings().results_root
    names = ("id", "tier", "state", "source", "n_cases", "coverage", "started_at", "finished_at", "comparability_key")
    kept = [
        {("evaluation_id" if name == "id" else name): row[name] for name in names}
        | {"parquet": row["parquet"] and existing_path(row["parquet"], root), "error": row["error"]}
        for row in rows
    ]
    click.echo(document([pseudonyms.document(one, one["source"]) for one in kept]))


@click.command()
@click.argument("evaluation")
@as_json
def show(evaluation: str, as_json: bool) -> None:
    """Show one evaluation: its id, the beginning or end of it, or 'last'."""
    from flows.terminal.summary import print_summary
    from tasks.config.settings import settings
    from tasks.results.summary import as_json as document
    from tasks.results.summary import summary

    found = summary(own_database(), evaluation)
    if as_json:
        click.echo(document(found))
    else:
        print_summary(found, settings().language)


@click.command()
@click.argument("evaluation")
@click.option("--where", multiple=True, metavar="COLUMN=VALUE", help="Also != < <= > >= and ~ (contains); repeatable.")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1), help="Number of cases to print.")
@as_json
def cases(evaluation: str, where: tuple[str, ...], limit: int, as_json: bool) -> None:
    """Show the cases of an evaluation, for example: yarus cases last --where 'hit_rate@1=0'."""
    from db import journal
    from flows.terminal.summary import print_cases, say_what_stands_there
    from tasks.cases import pseudonyms
    from tasks.results.queries import cases_where
    from tasks.results.summary import as_json as document
    from tasks.results.summary import finite

    engine = own_database()
    found, source = cases_where(engine, evaluation, where), journal.find(engine, evaluation)["source"]
    first = pseudonyms.cases(found.slice(0, limit), source)
    if as_json:
        click.echo(document(finite(first.to_pylist())))
    else:
        print_cases(first, len(found))
    say_what_stands_there(source)
