"""Check repeated Ctrl-C: the command ends once, with its own message, and leaves nothing."""

import signal
import time
from collections.abc import Callable

import psutil
import pytest

from tests.support.command_line import CommandLine
from tests.support.prefect_servers import is_answering, is_listening, list_servers
from tests.support.processes import wait_for
from yarus.deployments.prefect.server_process import STOP_S

AGAIN_S = 0.1
AT_MOST = 600
LATER = pytest.mark.slow("breadth: later moments")


@pytest.mark.slow("process: two signals")
@pytest.mark.parametrize(
    ("moment", "then"),
    [
        (psutil.Process.is_running, signal.SIGINT),
        pytest.param(is_listening, signal.SIGTERM, marks=LATER),
        pytest.param(is_answering, signal.SIGINT, marks=LATER),
        pytest.param(is_answering, signal.SIGTERM, marks=LATER),
    ],
)
def test_repeated_stop_ends_command_once(
    yarus_alone: CommandLine, moment: Callable[[psutil.Process], bool], then: signal.Signals
) -> None:
    command = yarus_alone.start("run", "tier1")
    try:
        [server] = wait_for("server", lambda: list_servers(command.pid))
        wait_for(f"server that {moment.__name__}", lambda: moment(server))
        command.send_signal(signal.SIGINT)
        for _ in range(AT_MOST):
            if command.poll() is not None:
                break
            time.sleep(AGAIN_S)
            command.send_signal(then)
    finally:
        command.kill()
        out, err = command.communicate()
        print(err)  # pytest shows it if no server was found
    assert (command.returncode, out) == (130, ""), err
    assert "Traceback" not in err
    _, alive = psutil.wait_procs([server], timeout=4 * STOP_S)
    assert alive == []
