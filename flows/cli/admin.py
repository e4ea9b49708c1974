"""`yarus admin`: name evaluations, remove what is old, and stop servers."""

import click

from yarus.flows.cli import as_json, format_json, open_database, parse_tags
from yarus.flows.cli.prune import prune


@click.group()
def admin() -> None:
    """Name evaluations, remove old ones or a user's data, and stop servers."""


admin.add_command(prune)


@admin.command()
@click.argument("evaluation")
@click.option("--name", help="New name; an empty one removes the name.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Add a tag; repeatable.")
@click.option("--untag", "removed", multiple=True, metavar="TAG", help="Remove a tag; repeatable.")
@as_json
def tag(evaluation: str, name: str | None, tags: tuple[str, ...], removed: tuple[str, ...], as_json: bool) -> None:
    """Name an evaluation, or give it tags, also when it is finished; without options show them.

    \b
    yarus admin tag last --name "before release 2.1" --tag release
    yarus admin tag "before release 2.1" --untag release
    """
    from yarus.db import journal
    from yarus.tasks.evaluation.tags import relabel_evaluation

    engine = open_database()
    row = journal.find_evaluation(engine, evaluation)
    labels = relabel_evaluation(engine, row, name=name, add=parse_tags(tags), remove=parse_tags(removed))
    if as_json:
        click.echo(format_json(labels))
        return
    from yarus.flows.terminal.printing import clean
    from yarus.tasks.evaluation.config import format_label

    click.echo(" · ".join(filter(None, (labels["evaluation_id"], clean(format_label(labels))))))


@admin.command()
@as_json
def stop(as_json: bool) -> None:
    """Stop Prefect's server and the embedded PostgreSQL that earlier commands have left running, unless in use.

    Both end by themselves when they have not been used for YARUS_SERVER_IDLE_TIMEOUT_S seconds.
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
