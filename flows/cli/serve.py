"""`yarus serve`: Prefect's server and UI, deployments with schedules, and report pages; or the report pages alone."""

import click
from click.core import ParameterSource

from yarus.db.messages import Words
from yarus.flows.cli import block_pandas_import

PORT = click.IntRange(0, 65_535)
PREFECT_PORT, REPORTS_PORT = 4200, 4282
"""Default of --port, without and with --reports."""
PREFECT_OPTIONS = {"host": "--host", "report_port": "--report-port", "schedule": "--no-schedule", "source": "--source"}
"""Options that have no meaning with --reports."""


@click.command()
@click.argument("evaluations", nargs=-1, metavar="[EVALUATION ...]")
@click.option("--reports", is_flag=True, help="Serve only the report pages, and open them in the browser.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; 0.0.0.0: all networks.")
@click.option(
    "--port", type=PORT, help="Port of Prefect's UI and API, default 4200; with --reports, of the pages, default 4282."
)
@click.option(
    "--report-port", default=4280, show_default=True, type=PORT, hidden=True, help="Port of the report pages."
)
@click.option("--schedule/--no-schedule", default=True, show_default=True, help="Whether schedules are active.")
@click.option("--source", metavar="NAME", help="Source of the nightly run; default: production.")
@click.option(
    "--browser/--no-browser", default=True, show_default=True, help="Whether --reports opens the default browser."
)
@click.pass_context
def serve(
    context: click.Context,
    /,
    evaluations: tuple[str, ...],
    reports: bool,
    host: str,
    port: int | None,
    report_port: int,
    schedule: bool,
    source: str | None,
    browser: bool,
) -> None:
    """Serve reports, nightly runs and the Prefect UI until Ctrl-C.

    The printed addresses log a browser in: whoever has them has full access.
    Meanwhile `yarus run` with the same YARUS_HOME uses this server. If PREFECT_API_URL is set, that server is used and
    none is started.

    With --reports or an EVALUATION, only the report pages are served: of these evaluations, or the list of all.

    \b
    yarus serve
    yarus serve --reports
    yarus serve tier3-20261119-030000-4d2f last
    """
    if not (reports or evaluations):
        if context.get_parameter_source("browser") is ParameterSource.COMMANDLINE:
            raise click.UsageError(Words("--browser and --no-browser need --reports"))
        _serve_all(host, PREFECT_PORT if port is None else port, report_port, schedule, source)
        return
    unused = [
        option
        for name, option in PREFECT_OPTIONS.items()
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    ]
    if unused:
        raise click.UsageError(
            Words("{options} cannot be combined with --reports or an EVALUATION", options=", ".join(unused))
        )
    _serve_reports(evaluations, REPORTS_PORT if port is None else port, browser=browser)


def _serve_all(host: str, port: int, report_port: int, schedule: bool, source: str | None) -> None:
    from yarus.deployments.serve import ServeInfo
    from yarus.deployments.serve import serve as serve_until_stopped
    from yarus.tasks.config.settings import get_settings
    from yarus.tasks.config.texts import texts

    if not (port and report_port):
        raise click.UsageError(Words("port 0 is only possible with --reports; use a port from 1 to 65535"))
    words = texts("serve", get_settings().language)

    def ready(serving: ServeInfo) -> None:
        renamed_key = ["renamed"] if serving.renamed else []
        for key in ("ui", "reports", "labels", "deployments", *renamed_key, "night", "stop"):
            click.echo(words[key].format(**serving._asdict()))

    click.echo(words["starts"], err=True)
    serve_until_stopped(host=host, port=port, report_port=report_port, scheduled=schedule, source=source, ready=ready)
    click.echo(words["stopped"], err=True)


def _serve_reports(evaluations: tuple[str, ...], port: int, *, browser: bool) -> None:
    from yarus.deployments.pages.view import view as serve_until_stopped
    from yarus.tasks.config.settings import get_settings
    from yarus.tasks.config.texts import texts

    block_pandas_import()
    words = texts("view", get_settings().language)

    def ready(address: str, opened: bool) -> None:
        click.echo(words["page"].format(address=address))
        click.echo(words["stop" if opened or not browser else "no browser"], err=True)

    serve_until_stopped(evaluations, port, browser=browser, ready=ready)
