"""The command line: `yarus` or `python -m yarus`."""

import atexit
import gc
import sys
from collections.abc import Sequence

import click

from yarus.db.errors import DatabaseUnavailable, InputError, ModelUnavailable
from yarus.flows.cli import ProcessState
from yarus.flows.cli.admin import admin
from yarus.flows.cli.alerts import alerts
from yarus.flows.cli.compare import compare, explain, trend
from yarus.flows.cli.corpus import corpus
from yarus.flows.cli.dataset import dataset
from yarus.flows.cli.evaluations import cases, report, runs, show
from yarus.flows.cli.export import export
from yarus.flows.cli.framework import stopping
from yarus.flows.cli.framework.command_group import CommandGroup
from yarus.flows.cli.framework.language import format_usage_error, localize_cli, translate, warn_about_former_names
from yarus.flows.cli.gate import gate
from yarus.flows.cli.init import init
from yarus.flows.cli.judge import judge
from yarus.flows.cli.load import load
from yarus.flows.cli.run import demo, doctor, run
from yarus.flows.cli.serve import serve
from yarus.flows.cli.sweep import robustness, sweep
from yarus.tasks.evaluation.process_exit import (
    CLOSED_PIPE_EXIT_CODE,
    ENDING_S,
    GRACE_S,
    STOPPED_EXIT_CODE,
    force_exit_after,
)

GC_THRESHOLD = 100_000
"""New objects before Python looks for reference cycles; by default it does so hundreds of times during the imports."""


@click.group(
    cls=CommandGroup,
    context_settings={"help_option_names": ["-h", "--help", "--help-all"]},
    epilog="All commands: yarus --help-all. If something does not work: yarus doctor.",
)
@click.version_option(package_name="yarus")
def cli() -> None:
    """Evaluate retrieval-augmented question answering.

    Start with `yarus demo`. Then use your own questions and pages: `yarus init FILE…`, `yarus run tier1 --source NAME`.
    """


for _command in (demo, init, load, run, show, cases, report, compare, gate, serve):
    cli.add_command(_command)
for _command in (doctor, runs, trend, explain, export, dataset, corpus, sweep, robustness, judge, alerts, admin):
    _command.hidden = True  # shown by --help-all
    cli.add_command(_command)


def main() -> None:
    """Run the command line; exit codes: 0 done, 1 invalid, 2 wrong usage or settings, 3 an external failure."""
    stopping.install_signal_handlers()
    codes: list[int] = []
    atexit.register(stopping.exit_if_stopped, codes)  # registered first, so that it runs last
    ProcessState.ends_with_the_command = True
    gc.set_threshold(GC_THRESHOLD)
    code = run_command_line(sys.argv[1:])
    codes.append(code)
    stopping.ignore_signals()
    gc.freeze()  # or Python's last garbage collection would visit every object of every library
    if "prefect" in sys.modules:
        force_exit_after(GRACE_S if code == STOPPED_EXIT_CODE else ENDING_S, code)
    sys.exit(code)


def run_command_line(arguments: Sequence[str]) -> int:
    """Run the command line with these arguments, report errors, and return the exit code; see `main`."""
    try:
        warn_about_former_names()
        return localize_cli(cli, arguments).main(arguments, "yarus", standalone_mode=False) or 0
    except SystemExit as exit_request:
        if isinstance(exit_request.__context__, BrokenPipeError):  # click and rich exit with 1, which means invalid
            return CLOSED_PIPE_EXIT_CODE
        return int(exit_request.code or 0)
    except (click.Abort, KeyboardInterrupt):
        return STOPPED_EXIT_CODE
    except Exception as error:  # noqa: BLE001 - every failure ends in a message and an exit code
        return STOPPED_EXIT_CODE if stopping.is_stop_requested() else _report_error(error)


def _report_error(error: Exception) -> int:
    if isinstance(error, click.ClickException):
        click.echo(_escape_message(format_usage_error(error)), err=True, nl=False)
        return error.exit_code
    if isinstance(error, InputError):
        _print_error(f"yarus: {translate(error)}")
        return 2
    if isinstance(error, DatabaseUnavailable | ModelUnavailable | OSError):
        _print_error(f"yarus: {translate(error)}")
        return 3
    import traceback

    _print_error("".join(traceback.format_exception(error)))
    return 3  # a bug in Yarus; Python's own exit code 1 would say that the result is invalid


def _print_error(message: str) -> None:
    from yarus.tasks.config.redaction import redact_urls  # here, because the help needs no settings

    click.echo(_escape_message(redact_urls(message)), err=True)


def _escape_message(message: str) -> str:
    from yarus.tasks.config.redaction import escape_control_characters

    return escape_control_characters(message)


if __name__ == "__main__":
    main()
