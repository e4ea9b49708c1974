"""`yarus alerts`: tell people when a night goes bad and when it is well again."""

import asyncio
from pathlib import Path

import click

from flows.cli.options import as_json


@click.group()
def alerts() -> None:
    """One message when a night goes bad, one when it is well again; runs that died are marked as crashed."""


@alerts.command()
@click.option(
    "--webhook", metavar="URL", help="Where alerts go (default: YARUS_ALERT_WEBHOOK, else as set before); never shown."
)
@click.option(
    "--body",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="What is sent: a Jinja template of `event`; docs/alerts.md has some.",
)
@click.option("--header", "headers", multiple=True, metavar="NAME=VALUE", help="Sent along; kept as a secret.")
@as_json
def apply(webhook: str | None, body: Path | None, headers: tuple[str, ...], as_json: bool) -> None:
    """Create the automations of deployments/automations.yaml on Prefect's server, or bring them up to date."""
    from db.errors import InputError
    from deployments import automations as automations
    from tasks.config.settings import settings
    from tasks.results.summary import as_json as document

    pairs = [header.partition("=") for header in headers]
    if any(not sign for _, sign, _ in pairs):
        raise InputError("--header: expected NAME=VALUE (what was given may be a secret and is not repeated)")
    secret = settings().alert_webhook
    given = webhook or (secret.get_secret_value() if secret else None)
    text = body.read_text(encoding="utf-8") if body else None
    found = asyncio.run(automations.apply(given, text, {name.strip(): value for name, _, value in pairs}))
    if as_json:
        click.echo(document(found))
        return
    words = _words()
    for name, what in found["automations"].items():
        click.echo(f"{name}: {words[what]}")
    click.echo(words[f"webhook {found['webhook']}"])


@alerts.command()
@as_json
def test(as_json: bool) -> None:
    """Have Prefect's server send a test message, and say what the receiver answered."""
    from deployments import automations as automations
    from tasks.results.summary import as_json as document

    found = asyncio.run(automations.test())
    click.echo(document(found) if as_json else _words()["tested"].format(**found))


@alerts.command("list")
@as_json
def list_(as_json: bool) -> None:
    """List the incidents that go on."""
    from tasks.config.connections import database
    from tasks.config.utf8 import harmless
    from tasks.orchestration.incidents import incidents
    from tasks.results.summary import as_json as document

    found = incidents(database())
    if as_json:
        click.echo(document({"incidents": found}))
        return
    words = _words()
    for incident in found:
        told = incident | {"verdict": words[incident["verdict"]]}
        click.echo(harmless(words["incident"].format(**told)))
    if not found:
        click.echo(words["none"])


@alerts.command()
@click.argument("evaluation")
@as_json
def accept(evaluation: str, as_json: bool) -> None:
    """Take the level of a night's EVALUATION for good: its incident is over, the next nights are compared with it."""
    from tasks.config.connections import database
    from tasks.orchestration.incidents import accept as take
    from tasks.results.summary import as_json as document

    found = take(database(), evaluation)
    click.echo(document(found) if as_json else _words()["accepted"].format(**found))


def _words() -> dict[str, str]:
    from tasks.config.settings import settings
    from tasks.texts import texts

    return texts("alerts", settings().language)
