"""`yarus compare`, `explain` and `trend`: did it get better, and what moved?"""

from functools import partial

import click

from yarus.flows.cli import (
    as_json,
    block_pandas_import,
    open_database,
    parse_tags,
    print_document,
    show_all,
    warn_about_pseudonyms,
)


@click.command()
@click.argument("metric")
@click.option("--tier", help="Default: the first tier that has a history of the metric.")
@click.option("--source", help="Default: the source of the tier's newest evaluation.")
@click.option(
    "--stratum",
    hidden=True,
    help="Part of the log. real_users: all, confirmed (default), agreement, contradicted; tier3: follow_up.",
)
@click.option(
    "--last", default=365, show_default=True, type=click.IntRange(1, 100_000), help="Number of evaluations to show."
)
@click.option(
    "--anchor", is_flag=True, hidden=True, help="Show the anchor: its answers never change, so only the judge changes."
)
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only evaluations with this tag; repeatable.")
@as_json
def trend(
    metric: str,
    tier: str | None,
    source: str | None,
    stratum: str | None,
    last: int,
    anchor: bool,
    tags: tuple[str, ...],
    as_json: bool,
) -> None:
    """Show a metric over comparable evaluations, and when it left its band.

    `yarus report` shows it as a page.

    \b
    yarus trend hit_rate@1
    yarus trend avg_e2e_score --tier tier3 --source production --last 30
    """
    from yarus.flows.terminal.comparisons.trend import print_trend
    from yarus.tasks.comparison.trend import trend as history

    only_tags = parse_tags(tags)
    document = history(
        open_database(), metric, tier=tier, source=source, stratum=stratum, last=last, anchor=anchor, tags=only_tags
    )
    print_document(document, partial(print_trend, anchor=anchor), as_json=as_json)


@click.command()
@click.argument("a")
@click.argument("b", required=False)
@click.option("--metric", "metrics", multiple=True, metavar="METRIC", help="Compare only this metric; repeatable.")
@click.option(
    "--slice",
    "slice_name",
    metavar="NAME",
    help="Show all slices by one of: topic page group length type answerable place turn.",
)
@click.option(
    "--force",
    is_flag=True,
    hidden=True,
    help="Compare evaluations that are not comparable, too; the output is marked.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(("text", "markdown")),
    default="text",
    help="Output format; markdown: a comment for a merge request.",
)
@show_all
@as_json
def compare(
    a: str,
    b: str | None,
    metrics: tuple[str, ...],
    slice_name: str | None,
    force: bool,
    form: str,
    show_all: bool,
    as_json: bool,
) -> None:
    """Compare evaluation A (before) with B (after), case by case.

    Each is an id, the beginning or end of it, a name, or 'last'. A may be 'previous', the one before B with the same
    key, or 'baseline', the accepted one. If you give only B, A is the baseline:

    \b
    yarus compare last
    yarus compare previous last
    yarus compare previous last --metric mrr --slice type
    yarus compare last --format markdown > comment.md
    """
    if as_json and form == "markdown":
        raise click.UsageError("--json and --format markdown: choose one")
    from yarus.db.errors import unknown
    from yarus.tasks.comparison.compare import compare as compare_evaluations
    from yarus.tasks.comparison.slices import SLICES

    if slice_name is not None and slice_name not in SLICES:
        raise unknown("slice", slice_name, SLICES)
    block_pandas_import()
    document = compare_evaluations(open_database(), *((a, b) if b else ("baseline", a)), force=force, only=metrics)
    if slice_name is not None:
        document["slices"] = {name: values for name, values in document["slices"].items() if name == slice_name}
        document["small_slices"] = {name: n for name, n in document["small_slices"].items() if name == slice_name}
    if form == "markdown":
        from yarus.flows.terminal.comparisons.markdown import format_comparison_markdown
        from yarus.tasks.config.settings import get_settings

        click.echo(format_comparison_markdown(document, get_settings().language))
    else:
        from yarus.flows.terminal.comparisons.comparison import print_comparison

        show = partial(print_comparison, slice_name=slice_name, show_all=show_all or bool(metrics))
        print_document(document, show, as_json=as_json)
    warn_about_pseudonyms(document["b"]["source"])


@click.command()
@click.argument("a")
@click.argument("b", required=False)
@click.option("--metric", "metrics", multiple=True, metavar="METRIC", help="Only this headline metric; repeatable.")
@click.option(
    "--force", is_flag=True, hidden=True, help="Explain evaluations that differ in more than their questions, too."
)
@as_json
def explain(a: str, b: str | None, metrics: tuple[str, ...], force: bool, as_json: bool) -> None:
    """Explain why metrics changed from evaluation A (before) to B (after): other questions, or other answers.

    They are named as for 'compare', but may have asked other questions:

    \b
    yarus explain last
    yarus explain previous last --metric hit_rate@1
    """
    from yarus.flows.terminal.comparisons.explanation import print_explanation
    from yarus.tasks.comparison.explanation.explain import explain as explain_change

    document = explain_change(open_database(), *((a, b) if b else ("baseline", a)), force=force, only=metrics)
    print_document(document, print_explanation, as_json=as_json)
    warn_about_pseudonyms(document["b"]["source"])
