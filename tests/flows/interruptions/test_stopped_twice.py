"""Ctrl-C again and again, as an impatient person does: the command ends once, in its own words, and leaves nothing."""

import signal
import time
from collections.abc import Callable

import psutil
import pytest

from tests.support.command_line import CommandLine
from tests.support.prefect_servers import answers, listens, servers
from tests.support.processes import until
from yarus.deployments.prefect.server_process import STOP_S

AGAIN_S = 0.1
AT_MOST = 600
LATER = pytest.mark.slow("breadth: later moments")


@pytest.mark.slow("process: two signals")
@pytest.mark.parametrize(
    ("moment", "then"),
    [
        (psutil.Process.is_running, signal.SIGINT),
        pytest.param(listens, signal.SIGTERM, marks=LATER),
        pytest.param(answers, signal.SIGINT, marks=LATER),
        pytest.param(answers, signal.SIGTERM, marks=LATER),
    ],
)
def test_stopped_again_and_again(
    yarus_alone: CommandLine, moment: Callable[[psutil.Process], bool], then: signal.Signals
) -> None:
    command = yarus_alone.start("run", "tier1")
    try:
        [server] = until("server", lambda: servers(command.pid))
        until(f"server that {moment.__name__}", lambda: moment(server))
        command.send_signal(signal.SIGINT)
        for _ in range(AT_MOST):
            if command.poll() is not None:
                break
            time.sleep(AGAIN_S)
            command.send_signal(then)
    finally:
        command.kill()
        out, err = command.communicate()
        print(err)  # said where there was no server
    assert (command.returncode, out) == (130, ""), err
    assert "Traceback" not in err
    _, alive = psutil.wait_procs([server], timeout=4 * STOP_S)
    assert alive == []
