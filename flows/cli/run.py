"""`yarus run`, `demo` and `doctor`: evaluations from the command line."""

from functools import partial
from typing import Any

import click

from yarus.db.messages import Words
from yarus.flows.cli import add_verbosity_options, as_json, format_json, open_database, print_document, show_all
from yarus.flows.cli.framework.language import get_language, translate


@click.command(context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
@click.argument("tier")
@click.option("--source", help="Where the questions come from; default: the bundled sample.")
@click.option("--limit", type=int, help="Evaluate a seeded random sample of this many questions.")
@click.option(
    "--set",
    "pairs",
    multiple=True,
    hidden=True,
    metavar="PARAMETER=VALUE",
    help="Set any parameter of the tier; repeatable.",
)
@click.option("--name", help="Name of the evaluation, for commands, reports and trends.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="A word that several evaluations share; repeatable.")
@click.option("--resume", metavar="EVALUATION", help="Finish an evaluation that was stopped or killed.")
@click.option(
    "--retry-failed",
    is_flag=False,
    flag_value="last",
    metavar="[EVALUATION]",
    help="Evaluate again only the cases that failed (errors of system, judge or budget, not bad scores) in the last "
    "evaluation of the tier and source, or in this one.",
)
@click.option("--dry-run", is_flag=True, help="Print the estimated calls, tokens, cost and time, and exit.")
@show_all
@as_json
@click.pass_context
@add_verbosity_options
def run(
    context: click.Context,
    /,
    tier: str,
    pairs: tuple[str, ...],
    dry_run: bool,
    show_all: bool,
    as_json: bool,
    level: int,
    **options: Any,
) -> None:
    """Evaluate one tier, such as tier1.

    Other parameters of the tier follow as --parameter VALUE.

    \b
    yarus run tier1 --source xquad_ru --retriever fulltext
    yarus run tier1 --embedder intfloat/multilingual-e5-small
    yarus run tier3 --source xquad_ru --retry-failed
    """
    from dataclasses import asdict

    from yarus.flows.cli.runner import estimate_calls, parse_parameters, run_flow
    from yarus.tasks.evaluation.repeats import NothingFailedError

    values = {name: value for name, value in options.items() if value not in (None, ())}
    parsed = parse_parameters(tier, values, pairs, context.args)
    try:
        if dry_run:
            from yarus.flows.terminal.lists import print_plans

            print_document(asdict(estimate_calls(tier, parsed)), print_plans, as_json=as_json)
        else:
            _print_and_exit(run_flow(tier, parsed, level=level), show_all=show_all, as_json=as_json)
    except NothingFailedError as error:
        click.echo(format_json({"failed_in": error.of, "failed": 0}) if as_json else f"yarus: {translate(error)}")


@click.command()
@show_all
@as_json
@add_verbosity_options
def demo(show_all: bool, as_json: bool, level: int) -> None:
    """Evaluate the bundled sample, without a key, network or settings."""
    click.echo(
        translate(Words("Yarus demo: every tier on the bundled sample of a university help desk, offline")), err=True
    )
    from yarus.flows.cli.runner import parse_parameters, run_flow

    night = run_flow("nightly", parse_parameters("nightly", {}, (), ()), level=level)
    _print_and_exit(night, show_all=show_all, as_json=as_json)


@click.command()
@as_json
def doctor(as_json: bool) -> None:
    """Check settings, database, sources, embedder and metrics, and say what to fix."""
    from yarus.deployments.upkeep.doctor import examine
    from yarus.flows.terminal.lists import print_checks

    checks = examine()
    if as_json:
        click.echo(format_json([check._asdict() for check in checks]))
    else:
        print_checks(checks, get_language())
    raise SystemExit(max((check.exit_code for check in checks), default=0))


def _print_and_exit(summary: Any, *, show_all: bool, as_json: bool) -> None:
    from yarus.deployments.prefect.flow_states import has_passed

    print_document(summary, partial(_print_finished, show_all=show_all), as_json=as_json)
    raise SystemExit(0 if has_passed(summary) else 1)


def _print_finished(summary: Any, language: str, *, show_all: bool) -> None:
    from yarus.deployments.prefect.artifacts import gate_text
    from yarus.flows.terminal.comparisons.comparison import print_changes
    from yarus.flows.terminal.summary import print_overview, print_summary
    from yarus.tasks.config.redaction import escape_control_characters
    from yarus.tasks.config.texts import texts

    evaluations = summary.get("evaluations", [summary])
    with_metrics = [evaluation for evaluation in evaluations if evaluation.get("metrics")]
    if "sweep_id" in summary or "robustness_id" in summary:
        from yarus.flows.terminal.experiments import print_robustness, print_sweep

        (print_sweep if "sweep_id" in summary else print_robustness)(summary, language)
    elif "evaluations" in summary:
        print_overview(summary, language)
    if show_all or "evaluations" not in summary:
        for evaluation in with_metrics:
            print_summary(evaluation, language, show_all=show_all)
    if with_metrics:
        ids = [evaluation["evaluation_id"] for evaluation in with_metrics]
        print_changes(open_database(), ids, language, show_all=show_all)
    for evaluation in evaluations:
        if evaluation.get("gate"):
            click.echo(escape_control_characters(gate_text(evaluation, language)))
    if "report" in summary:
        click.echo(texts("terminal", language)["report"].format(path=summary["report"]))
