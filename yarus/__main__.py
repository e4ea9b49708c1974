"""The command line: `yarus` or `python -m yarus`."""

import atexit
import gc
import sys
from collections.abc import Sequence

import click

from yarus.db.errors import DatabaseUnavailable, InputError, ModelUnavailable
from yarus.flows.cli import Process
from yarus.flows.cli.alerts import alerts
from yarus.flows.cli.compare import compare, explain, trend
from yarus.flows.cli.corpus import corpus
from yarus.flows.cli.dataset import dataset
from yarus.flows.cli.evaluations import cases, report, runs, show, tag
from yarus.flows.cli.export import export
from yarus.flows.cli.gate import gate
from yarus.flows.cli.init import init
from yarus.flows.cli.load import load
from yarus.flows.cli.prune import prune
from yarus.flows.cli.run import demo, doctor, run
from yarus.flows.cli.serve import label, serve, stop, view
from yarus.flows.cli.shell import stopping
from yarus.flows.cli.shell.language import shown, spoken, told
from yarus.flows.cli.sweep import examine, robustness, sweep
from yarus.tasks.evaluation.process_exit import ENDING_S, GRACE_S, STOPPED, exit_within

GARBAGE = 100_000
"""New objects before Python looks for cycles; of itself it looks hundreds of times while a command is imported."""


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="yarus")
def cli() -> None:
    """Tiered evaluation of retrieval-augmented question answering.

    Start with `yarus demo`; then bring your own log and pages by `yarus init`, and evaluate them with `yarus run tier1
    --source NAME`.
    """


for _command in (
    demo,
    init,
    load,
    run,
    runs,
    show,
    tag,
    compare,
    explain,
    cases,
    doctor,
    export,
    dataset,
    view,
    serve,
    stop,
    trend,
    gate,
    report,
    prune,
    sweep,
    robustness,
    examine,
    label,
    corpus,
    alerts,
):
    cli.add_command(_command)


def main() -> None:
    """Runs the command line; exit codes: 0 done, 1 invalid, 2 wrong usage or settings, 3 something outside failed."""
    stopping.listen()
    codes: list[int] = []
    atexit.register(stopping.leave, codes)  # first, so that it comes last
    Process.ends_with_the_command = True
    gc.set_threshold(GARBAGE)
    code = exit_code(sys.argv[1:])
    codes.append(code)
    stopping.no_more()
    gc.freeze()  # or Python looks through every object of every library once more before it ends
    if "prefect" in sys.modules:
        exit_within(GRACE_S if code == STOPPED else ENDING_S, code)
    sys.exit(code)


def exit_code(arguments: Sequence[str]) -> int:
    """Does what the arguments of the command line ask for, and says what went wrong; see `main`."""
    try:
        return spoken(cli, arguments).main(arguments, "yarus", standalone_mode=False) or 0
    except SystemExit as ended:
        return int(ended.code or 0)
    except (click.Abort, KeyboardInterrupt):
        return STOPPED
    except Exception as error:  # noqa: BLE001 - every way to fail ends in words and a code
        return STOPPED if stopping.asked() else _failed(error)


def _failed(error: Exception) -> int:
    if isinstance(error, click.ClickException):
        click.echo(_harmless(shown(error)), err=True, nl=False)
        return error.exit_code
    if isinstance(error, InputError):
        _say(f"yarus: {told(error)}")
        return 2
    if isinstance(error, DatabaseUnavailable | ModelUnavailable | OSError):
        _say(f"yarus: {told(error)}")
        return 3
    import traceback

    _say("".join(traceback.format_exception(error)))
    return 3  # a mistake of ours; Python's own exit code 1 would say that the result is invalid


def _say(message: str) -> None:
    from yarus.tasks.config.redaction import redact_urls  # here, because the help needs no settings

    click.echo(_harmless(redact_urls(message)), err=True)


def _harmless(message: str) -> str:
    from yarus.tasks.config.redaction import harmless

    return harmless(message)


if __name__ == "__main__":
    main()
