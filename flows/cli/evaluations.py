"""`yarus runs`, `show`, `cases` and `report`: list and show stored evaluations."""

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from yarus.flows.cli import (
    as_json,
    block_pandas_import,
    format_json,
    open_database,
    parse_tags,
    show_all,
    warn_about_pseudonyms,
)

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
    from yarus.tasks.config.settings import get_settings
    from yarus.tasks.evaluation.listing import to_listed

    rows = journal.list_evaluations(open_database(), limit=limit, name=name, tags=parse_tags(tags))
    if not as_json:
        print_runs(rows, get_settings().language)
        return
    root = get_settings().results_root
    click.echo(format_json([to_listed(row, root) for row in rows]))


@click.command()
@click.argument("evaluation")
@show_all
@as_json
def show(evaluation: str, show_all: bool, as_json: bool) -> None:
    """Show one evaluation.

    EVALUATION is its id, the beginning or end of it, its name, or 'last'.
    """
    from yarus.tasks.config.settings import get_settings
    from yarus.tasks.evaluation.summary import has_metrics, read_summary

    document = read_summary(open_database(), evaluation)
    if as_json:
        click.echo(format_json(document))
    else:
        block_pandas_import()
        from yarus.flows.terminal.comparisons.comparison import print_changes
        from yarus.flows.terminal.summary import print_summary

        print_summary(document, get_settings().language, show_all=show_all)
        if has_metrics(document):
            print_changes(open_database(), [document["evaluation_id"]], get_settings().language, show_all=show_all)


@click.command()
@click.argument("evaluation")
@click.option("--where", multiple=True, metavar="COLUMN=VALUE", help="Also != < <= > >= and ~ (contains); repeatable.")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1), help="Number of cases to print.")
@show_all
@as_json
def cases(evaluation: str, where: tuple[str, ...], limit: int, show_all: bool, as_json: bool) -> None:
    """Show the cases of an evaluation.

    \b
    yarus cases last --where 'hit_rate@1=0'
    """
    from yarus.db import journal
    from yarus.flows.terminal.lists import print_cases
    from yarus.metrics.table import METRICS
    from yarus.tasks.cases.privacy import pseudonyms
    from yarus.tasks.cases.sampling import count_distinct_questions
    from yarus.tasks.config.settings import get_settings
    from yarus.tasks.config.tiers import TIERS
    from yarus.tasks.evaluation.number_format import replace_non_finite
    from yarus.tasks.evaluation.queries import filter_cases, list_columns

    block_pandas_import()
    import pyarrow as pa

    engine = open_database()
    rows, row = filter_cases(engine, evaluation, where), journal.find_evaluation(engine, evaluation)
    source, main = row["source"], METRICS[TIERS[row["tier"]].headlines[0]]
    is_measured = main.column in rows.column_names and not main.opinion
    unconditional = [main.column] if main.column and is_measured else []
    if as_json:
        click.echo(format_json(replace_non_finite(pseudonyms.mask_cases(rows.slice(0, limit), source).to_pylist())))
    else:
        times = dict(
            islice(count_distinct_questions(rows["question"].to_pylist(), rows["status"].to_pylist()).items(), limit)
        )
        print_cases(
            pseudonyms.mask_cases(rows.take(pa.array(list(times), pa.int64())), source),
            list(times.values()),
            rows["status"].to_pylist(),
            get_settings().language,
            columns=list_columns(where) or unconditional,
            show_all=show_all,
        )
    warn_about_pseudonyms(source)


@click.command()
@click.argument("evaluations", nargs=-1, metavar="[EVALUATION ...]")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="File to write; default: in YARUS_HOME.")
@click.option("--language", type=click.Choice(["ru", "en"]), help="Initial language; default: YARUS_LANGUAGE.")
@as_json
def report(evaluations: tuple[str, ...], out: Path | None, language: "Language | None", as_json: bool) -> None:
    """Write a self-contained HTML report.

    Prints its first sentence on stderr and its path on stdout. Without arguments it shows the newest evaluation of
    every tier. Two of one tier are compared: yarus report ID ID.
    """
    from yarus.tasks.config.settings import get_settings
    from yarus.tasks.report.write import write_report

    block_pandas_import()
    path, lead = write_report(open_database(), evaluations, out, language)
    if as_json:
        click.echo(format_json({"report": str(path)}))
    else:
        click.echo(lead[language or get_settings().language], err=True)
        click.echo(path)  # alone on stdout, so that scripts can open it
