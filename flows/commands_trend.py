"""`yarus trend`: the history of a metric."""

import click

as_json = click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")


@click.command()
@click.argument("metric")
@click.option("--tier", help="Default: the first tier that has a history of the metric.")
@click.option("--source", help="Default: that of the tier's newest evaluation.")
@click.option("--stratum", help="Of real users' questions: all, confirmed (default), agreement, contradicted.")
@click.option(
    "--last", default=365, show_default=True, type=click.IntRange(1, 100_000), help="Show so many; the bands know more."
)
@click.option("--anchor", is_flag=True, help="The anchor, whose answers never change: what moves is the judge.")
@as_json
def trend(
    metric: str,
    tier: str | None,
    source: str | None,
    stratum: str | None,
    last: int,
    anchor: bool,
    as_json: bool,
) -> None:
    """Show how a metric went over comparable evaluations, and since when it is out of its band.

    As a page: the trends of `yarus report`.

    \b
    yarus trend hit_rate@1
    yarus trend avg_e2e_score --tier tier3 --source production --last 30
    """
    from flows.commands_read import _journal
    from flows.printing_trend import print_trend
    from tasks.report import as_json as document
    from tasks.settings import settings
    from tasks.trend import trend as history

    found = history(_journal(), metric, tier=tier, source=source, stratum=stratum, last=last, anchor=anchor)
    if as_json:
        click.echo(document(found))
    else:
        print_trend(found, settings().language, anchor=anchor)
