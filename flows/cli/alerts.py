"""`yarus alerts`: messages about failed or regressed nightly evaluations and about recoveries."""

import asyncio
from pathlib import Path

import click

from yarus.flows.cli import as_json, json_text, own_database, print_document


@click.group()
def alerts() -> None:
    """Send a message when a nightly evaluation fails or regresses and when it recovers; mark dead runs as crashed."""


@alerts.command()
@click.option(
    "--webhook",
    metavar="URL",
    help="Address to send alerts to; never shown. Default: YARUS_ALERT_WEBHOOK, else the one set before.",
)
@click.option(
    "--body",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Message body: a Jinja template of `event`; docs/alerts.md has examples.",
)
@click.option("--header", "headers", multiple=True, metavar="NAME=VALUE", help="HTTP header to send; kept as a secret.")
@as_json
def apply(webhook: str | None, body: Path | None, headers: tuple[str, ...], as_json: bool) -> None:
    """Create the automations of deployments/automations.yaml on Prefect's server, or bring them up to date."""
    from yarus.db.errors import InputError
    from yarus.deployments import automations as automations
    from yarus.tasks.config.settings import settings

    pairs = [header.partition("=") for header in headers]
    if any(not sign for _, sign, _ in pairs):
        raise InputError("--header: expected NAME=VALUE (the value may be a secret and is not shown)")
    secret = settings().alert_webhook
    given = webhook or (secret.get_secret_value() if secret else None)
    text = body.read_text(encoding="utf-8") if body else None
    found = asyncio.run(automations.apply(given, text, {name.strip(): value for name, _, value in pairs}))
    if as_json:
        click.echo(json_text(found))
        return
    words = _words()
    for name, what in found["automations"].items():
        click.echo(f"{name}: {words[what]}")
    click.echo(words[f"webhook {found['webhook']}"])


@alerts.command()
@as_json
def test(as_json: bool) -> None:
    """Have Prefect's server send a test message, and show the receiver's answer."""
    from yarus.deployments import automations as automations

    found = asyncio.run(automations.test())
    click.echo(json_text(found) if as_json else _words()["tested"].format(**found))


@alerts.command("list")
@as_json
def list_(as_json: bool) -> None:
    """List open incidents."""
    from yarus.deployments.alarms.incidents import incidents
    from yarus.tasks.config.connections import database
    from yarus.tasks.config.redaction import harmless
    from yarus.tasks.config.settings import settings
    from yarus.tasks.evaluation.findings.persistence import persistence_sentences

    found = incidents(database())
    if as_json:
        click.echo(json_text({"incidents": found}))
        return
    words = _words()
    for incident in found:
        told = incident | {"verdict": words[incident["verdict"]]}
        click.echo(harmless(words["incident"].format(**told)))
        for sentence in persistence_sentences(incident["asked_again"]):
            click.echo(f"  {harmless(sentence[settings().language])}")
    if not found:
        click.echo(words["none"])


@alerts.command()
@click.argument("evaluation")
@as_json
def accept(evaluation: str, as_json: bool) -> None:
    """Accept EVALUATION as the new level: its incident closes, and what comes next is judged against it."""
    from yarus.deployments.alarms.incidents import accept as take

    found = take(own_database(), evaluation)
    click.echo(json_text(found) if as_json else _words()["accepted"].format(**found))


@alerts.command()
@click.option("--source", metavar="NAME", help="Default: that of the newest evaluation.")
@as_json
def budget(source: str | None, as_json: bool) -> None:
    """Show what to expect here: false alarms a year, and nights until a loss is noticed, from the measured noise."""
    from yarus.deployments.alarms.expected import alarm_budget
    from yarus.flows.terminal.alerts import print_budget
    from yarus.tasks.config.connections import database

    print_document(alarm_budget(database(), source), print_budget, as_json=as_json)


def _words() -> dict[str, str]:
    from yarus.tasks.config.settings import settings
    from yarus.tasks.config.texts import texts

    return texts("alerts", settings().language)
