"""`yarus view`: the report pages in a browser."""

import click

PORT = 4282


@click.command()
@click.argument("evaluations", nargs=-1, metavar="[EVALUATION ...]")
@click.option("--port", default=PORT, show_default=True, type=click.IntRange(0, 65_535), help="Port; 0: any free one.")
@click.option("--browser/--no-browser", default=True, show_default=True, help="Whether to open the default browser.")
def view(evaluations: tuple[str, ...], port: int, browser: bool) -> None:
    """Show the report pages in the browser and keep them current, until Ctrl-C.

    Without arguments it shows the list of evaluations, where any can be chosen and compared.

    \b
    yarus view
    yarus view last
    yarus view tier3-20261119-030000-4d2f last
    """
    from deployments.view import view as serve_until_stopped
    from flows.cli import arrow_alone
    from tasks.config.settings import settings
    from tasks.texts import texts

    arrow_alone()
    words = texts("view", settings().language)

    def ready(address: str, opened: bool) -> None:
        click.echo(words["page"].format(address=address))
        click.echo(words["stop" if opened or not browser else "no browser"], err=True)

    serve_until_stopped(evaluations, port, browser=browser, ready=ready)
