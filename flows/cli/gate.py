"""`yarus gate`: pass or fail, so that a script can stop on a regression."""

from functools import partial
from pathlib import Path

import click

from yarus.db.messages import Words
from yarus.flows.cli import as_json, block_pandas_import, open_database, print_document, show_all
from yarus.flows.cli.alerts import accept as accept_level


@click.command()
@click.argument("evaluation")
@click.option(
    "--baseline", metavar="EVALUATION", help="Baseline instead of the accepted one; 'previous': the evaluation before."
)
@click.option("--accept", is_flag=True, help="Accept the evaluation as the baseline for later ones; do not check it.")
@click.option(
    "--file", type=click.Path(path_type=Path), help="Gate file with the rules; default: gate.toml, if it exists."
)
@click.option(
    "--junit", hidden=True, type=click.Path(path_type=Path, dir_okay=False), help="Also write JUnit XML to this file."
)
@click.option("--strict", is_flag=True, help="Exit with code 1 for inconclusive rules, too.")
@show_all
@as_json
def gate(
    evaluation: str,
    baseline: str | None,
    accept: bool,
    file: Path | None,
    junit: Path | None,
    strict: bool,
    show_all: bool,
    as_json: bool,
) -> None:
    """Check an evaluation against thresholds and a baseline.

    The result is pass, fail, inconclusive or invalid. The exit code is 1 for fail and invalid, and for inconclusive
    (too few cases to tell) only with --strict; else 0. Without a gate file, no headline metric of the tier may be worse
    than in the baseline: the evaluation that was accepted last, or the first of its kind. A failed release that is
    evaluated again fails again.

    \b
    yarus gate last && deploy
    yarus gate --accept last
    yarus gate last --baseline tier1-20260601-030000-4f2a
    """
    from yarus.db.errors import InputError
    from yarus.flows.terminal.comparisons.gate import format_junit, print_gate, should_fail
    from yarus.tasks.comparison.gate import gate as check_gate
    from yarus.tasks.comparison.gate_rules import read_gate_rules
    from yarus.tasks.config.settings import get_settings

    if accept:
        if baseline or file or junit or strict:
            raise click.UsageError(Words("--accept does not check: it goes with no other option than --json"))
        click.get_current_context().invoke(accept_level, evaluation=evaluation, as_json=as_json)
        return
    policy = read_gate_rules(file)
    if junit is not None and not junit.absolute().parent.is_dir():
        raise InputError(
            "--junit {junit}: folder {parent} does not exist; create it", junit=junit, parent=junit.absolute().parent
        )
    block_pandas_import()
    result = check_gate(open_database(), evaluation, policy, baseline=baseline)
    if junit is not None:
        junit.write_bytes(format_junit(result, get_settings().language, strict=strict))
    print_document(result, partial(print_gate, strict=strict, show_all=show_all), as_json=as_json)
    raise SystemExit(1 if should_fail(result, strict=strict) else 0)
