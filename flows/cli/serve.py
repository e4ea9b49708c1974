"""`yarus serve`: Prefect's server and UI, deployments with schedules, report pages; `yarus stop`, `label`, `view`."""

import click

from yarus.db.messages import Words
from yarus.flows.cli import as_json, block_pandas_import, format_json, print_document

PORT = click.IntRange(1, 65_535)


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; 0.0.0.0: all networks.")
@click.option("--port", default=4200, show_default=True, type=PORT, help="Port of Prefect's UI and API.")
@click.option("--report-port", default=4280, show_default=True, type=PORT, help="Port of the report pages.")
@click.option("--schedule/--no-schedule", default=True, show_default=True, help="Whether schedules are active.")
@click.option("--source", metavar="NAME", help="Source of the nightly run; default: production.")
def serve(host: str, port: int, report_port: int, schedule: bool, source: str | None) -> None:
    """Serve the Prefect UI, every deployment with its schedule, and the report pages, until Ctrl-C.

    The printed addresses log a browser in: whoever has them has full access.
    Meanwhile `yarus run` with the same YARUS_HOME uses this server. If PREFECT_API_URL is set, that server is used and
    none is started.
    """
    from yarus.deployments.serve import ServeInfo
    from yarus.deployments.serve import serve as serve_until_stopped
    from yarus.tasks.config.settings import get_settings
    from yarus.tasks.config.texts import texts

    words = texts("serve", get_settings().language)

    def ready(serving: ServeInfo) -> None:
        renamed_key = ["renamed"] if serving.renamed else []
        for key in ("ui", "reports", "labels", "deployments", *renamed_key, "night", "stop"):
            click.echo(words[key].format(**serving._asdict()))

    click.echo(words["starts"], err=True)
    serve_until_stopped(host=host, port=port, report_port=report_port, scheduled=schedule, source=source, ready=ready)
    click.echo(words["stopped"], err=True)


@click.command()
@as_json
def stop(as_json: bool) -> None:
    """Stop Prefect's server and the embedded PostgreSQL that earlier commands have left running, unless in use.

    Both end by themselves when they have not been used for YARUS_SERVER_IDLE_S seconds.
    """
    from yarus.deployments.prefect.home_servers import stop_servers
    from yarus.tasks.config.settings import get_settings
    from yarus.tasks.config.texts import texts

    stopped = stop_servers(get_settings().home.absolute())
    words = texts("stop", get_settings().language)
    if as_json:
        click.echo(format_json(stopped))
        return
    for server in ("prefect", "postgresql"):
        click.echo(f"{words[server]}: {words[str(stopped[server])]}")


@click.command()
@click.argument("evaluations", nargs=-1, metavar="[EVALUATION ...]")
@click.option("--port", default=4282, show_default=True, type=click.IntRange(0, 65_535), help="Port; 0: any free one.")
@click.option("--browser/--no-browser", default=True, show_default=True, help="Whether to open the default browser.")
def view(evaluations: tuple[str, ...], port: int, browser: bool) -> None:
    """Show the report pages in the browser and keep them current, until Ctrl-C.

    Without arguments it shows the list of evaluations, where any can be chosen and compared.

    \b
    yarus view
    yarus view last
    yarus view tier3-20261119-030000-4d2f last
    """
    from yarus.deployments.pages.view import view as serve_until_stopped
    from yarus.tasks.config.settings import get_settings
    from yarus.tasks.config.texts import texts

    block_pandas_import()
    words = texts("view", get_settings().language)

    def ready(address: str, opened: bool) -> None:
        click.echo(words["page"].format(address=address))
        click.echo(words["stop" if opened or not browser else "no browser"], err=True)

    serve_until_stopped(evaluations, port, browser=browser, ready=ready)


@click.command()
@click.option("--evaluation", metavar="E", help="Evaluation whose answers are labelled; default: choose on the page.")
@click.option("--relevance", is_flag=True, help="Label results of an evaluation with --labels filled.")
@click.option("--metric", help="Judged mean to correct; default: choose on the page, or the first of --evaluation.")
@click.option("--port", default=4281, show_default=True, type=click.IntRange(0, 65_535), help="Port; 0: any free one.")
@click.option(
    "--plan",
    is_flag=False,
    flag_value="",
    metavar="[METRIC]",
    help="Print how many labels an interval of --width needs, and exit.",
)
@click.option(
    "--between",
    nargs=2,
    metavar="A B",
    help="List the results whose relevance affects the comparison of A and B most, and exit.",
)
@click.option("--width", type=click.FloatRange(0, 1, min_open=True, max_open=True), help="Width of that interval.")
@as_json
def label(
    evaluation: str | None,
    relevance: bool,
    metric: str | None,
    port: int,
    plan: str | None,
    between: tuple[str, str] | None,
    width: float | None,
    as_json: bool,
) -> None:
    """Label judged answers, or results, on a page of this machine, until Ctrl-C; labels correct the judge's means.

    \b
    yarus label
    yarus label --evaluation last --metric avg_faithfulness
    yarus label --relevance
    yarus label --between tier1-20261120-030000-4f2a last
    yarus label --plan avg_faithfulness --width 0.1
    """
    if (plan is None) != (width is None):
        raise click.UsageError(Words("--plan [METRIC] and --width W belong together"))
    if relevance and (metric or plan is not None):
        raise click.UsageError(Words("--relevance is about results: it goes with neither --metric nor --plan"))
    if between and (relevance or evaluation or plan is not None):
        raise click.UsageError(Words("--between A B can be combined only with --metric"))
    if as_json and plan is None and not between:
        raise click.UsageError(Words("--json belongs to --plan or --between"))
    if between:
        from yarus.flows.terminal.differences.comparison import print_label_suggestions
        from yarus.tasks.config.connections import database
        from yarus.tasks.dataset.labelling.relevance.label_suggestions import suggest_labels

        document = suggest_labels(database(), *between, *([metric] if metric else []))
        print_document(document, print_label_suggestions, as_json=as_json)
        return
    from yarus.tasks.config.settings import get_settings

    language = get_settings().language
    if width is not None:
        from yarus.flows.terminal.labels import list_plan_lines
        from yarus.tasks.config.connections import database
        from yarus.tasks.dataset.labelling.plan import plan_labels

        label_plan = plan_labels(database(), evaluation or "last", plan or metric, width)
        click.echo(format_json(label_plan) if as_json else "\n".join(list_plan_lines(label_plan, language)))
        return
    from yarus.deployments.pages.label_server import serve_until_stopped
    from yarus.tasks.config.texts import texts

    words = texts("labels", language)

    def ready(address: str) -> None:
        click.echo(words["page"].format(address=address))
        click.echo(words["stop page"], err=True)

    metric = "relevance" if relevance else metric
    serve_until_stopped(port, evaluation or ("last" if metric else None), metric, ready)
