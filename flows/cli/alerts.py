"""`yarus alerts`: messages about failed or regressed nightly evaluations and about recoveries."""

import asyncio
from pathlib import Path

import click

from yarus.flows.cli import as_json, format_json, open_database, print_document


@click.group()
def alerts() -> None:
    """Send a message when a nightly evaluation fails or regresses and when it recovers; mark dead runs as crashed."""


@alerts.command()
@click.option(
    "--webhook",
    metavar="URL",
    help="Address to send alerts to; never printed. Default: YARUS_ALERT_WEBHOOK, else the previous address.",
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
    from yarus.deployments import automations
    from yarus.tasks.config.settings import get_settings

    pairs = [header.partition("=") for header in headers]
    if any(not sign for _, sign, _ in pairs):
        raise InputError("--header: expected NAME=VALUE (the value may be a secret and is not shown)")
    secret = get_settings().alert_webhook
    url = webhook or (secret.get_secret_value() if secret else None)
    text = body.read_text(encoding="utf-8") if body else None
    result = asyncio.run(automations.apply_automations(url, text, {name.strip(): value for name, _, value in pairs}))
    if as_json:
        click.echo(format_json(result))
        return
    words = _words()
    for name, outcome in result["automations"].items():
        click.echo(f"{name}: {words[outcome]}")
    click.echo(words[f"webhook {result['webhook']}"])


@alerts.command()
@as_json
def test(as_json: bool) -> None:
    """Have Prefect's server send a test message, and show the receiver's answer."""
    from yarus.deployments import automations

    result = asyncio.run(automations.send_test_message())
    click.echo(format_json(result) if as_json else _words()["tested"].format(**result))


@alerts.command("list")
@as_json
def list_(as_json: bool) -> None:
    """List open incidents."""
    from yarus.deployments.alarms.incidents import list_incidents
    from yarus.tasks.config.connections import database
    from yarus.tasks.config.redaction import escape_control_characters
    from yarus.tasks.config.settings import get_settings
    from yarus.tasks.evaluation.findings.persistence import persistence_sentences

    open_incidents = list_incidents(database())
    if as_json:
        click.echo(format_json({"incidents": open_incidents}))
        return
    words = _words()
    for incident in open_incidents:
        values = incident | {"verdict": words[incident["verdict"]]}
        click.echo(escape_control_characters(words["incident"].format(**values)))
        for sentence in persistence_sentences(incident["asked_again"]):
            click.echo(f"  {escape_control_characters(sentence[get_settings().language])}")
    if not open_incidents:
        click.echo(words["none"])


@alerts.command()
@click.argument("evaluation")
@as_json
def accept(evaluation: str, as_json: bool) -> None:
    """Accept EVALUATION as the new level. Its incident closes, and later evaluations are compared with it."""
    from yarus.deployments.alarms.incidents import accept_evaluation as accept_level

    result = accept_level(open_database(), evaluation)
    click.echo(format_json(result) if as_json else _words()["accepted"].format(**result))


@alerts.command()
@click.option("--source", metavar="NAME", help="Default: that of the newest evaluation.")
@as_json
def budget(source: str | None, as_json: bool) -> None:
    """Estimate false alarms per year, and nights until a loss is detected, from the measured noise."""
    from yarus.deployments.alarms.expected_alarms import alarm_budget
    from yarus.flows.terminal.alerts import print_budget
    from yarus.tasks.config.connections import database

    print_document(alarm_budget(database(), source), print_budget, as_json=as_json)


def _words() -> dict[str, str]:
    from yarus.tasks.config.settings import get_settings
    from yarus.tasks.config.texts import texts

    return texts("alerts", get_settings().language)
