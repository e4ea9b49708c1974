"""The command line: `yarus` or `python -m flows`."""

import signal
import sys
from collections.abc import Sequence
from io import StringIO

import click

from db.errors import DatabaseUnavailable, InputError, ModelUnavailable
from flows.commands_alerts import alerts
from flows.commands_compare import compare
from flows.commands_corpus import corpus
from flows.commands_dataset import dataset
from flows.commands_export import export
from flows.commands_gate import gate
from flows.commands_load import load
from flows.commands_prune import prune
from flows.commands_read import cases, runs, show
from flows.commands_report import report
from flows.commands_run import demo, doctor, run
from flows.commands_serve import serve
from flows.commands_sweep import robustness, sweep
from flows.commands_trend import trend


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="yarus")
def cli() -> None:
    """Tiered evaluation of retrieval-augmented question answering.

    Start with `yarus demo`; then fill a source with `yarus load`, and evaluate it with `yarus run tier1 --source NAME`.
    """


for _command in (
    demo,
    load,
    run,
    runs,
    show,
    compare,
    cases,
    doctor,
    export,
    dataset,
    serve,
    trend,
    gate,
    report,
    prune,
    sweep,
    robustness,
    corpus,
    alerts,
):
    cli.add_command(_command)


def main() -> None:
    """Runs the command line; exit codes: 0 done, 1 invalid, 2 wrong usage or settings, 3 something outside failed."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a stop from outside is a stop: as Ctrl-C
    code = exit_code(sys.argv[1:])
    for number in (
        signal.SIGINT,
        signal.SIGTERM,
    ):  # what is left is to end our servers: a second Ctrl-C would keep them
        signal.signal(number, signal.SIG_IGN)
    if "prefect" in sys.modules:
        from tasks.watch import ENDING_S, GRACE_S, STOPPED, leave_within

        leave_within(GRACE_S if code == STOPPED else ENDING_S, code)
    sys.exit(code)


def exit_code(arguments: Sequence[str]) -> int:
    """Does what the arguments of the command line ask for, and says what went wrong; see `main`."""
    try:
        return cli.main(arguments, standalone_mode=False) or 0
    except SystemExit as ended:
        return int(ended.code or 0)
    except click.ClickException as error:
        said = StringIO()
        error.show(file=said)
        click.echo(_harmless(said.getvalue()), err=True, nl=False)
        return error.exit_code
    except InputError as error:
        _say(f"yarus: {error}")
        return 2
    except (DatabaseUnavailable, ModelUnavailable, OSError) as error:
        _say(f"yarus: {error}")
        return 3
    except (click.Abort, KeyboardInterrupt):
        return 130
    except Exception:  # noqa: BLE001 - a mistake of ours; Python's own exit code 1 would say that the result is invalid
        import traceback

        _say(traceback.format_exc())
        return 3


def _say(message: str) -> None:
    from tasks.settings import masked  # here, because the help needs no settings

    click.echo(_harmless(masked(message)), err=True)


def _harmless(message: str) -> str:
    from tasks.utf8 import harmless

    return harmless(message)


if __name__ == "__main__":
    main()
