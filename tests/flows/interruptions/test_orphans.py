"""Check that Prefect's server ends with the command that started it, at whatever moment that is killed."""

from collections.abc import Callable

import psutil
import pytest

from tests.support.command_line import CommandLine
from tests.support.prefect_servers import is_answering, is_listening, list_servers
from tests.support.processes import wait_for
from yarus.deployments.prefect.server_process import STOP_S

LATER = pytest.mark.slow("breadth: later moments")


@pytest.mark.slow("process: kills while servers start")
@pytest.mark.parametrize(
    "moment",
    [psutil.Process.is_running, pytest.param(is_listening, marks=LATER), pytest.param(is_answering, marks=LATER)],
)
def test_killed_run_leaves_no_server(yarus_alone: CommandLine, moment: Callable[[psutil.Process], bool]) -> None:
    command = yarus_alone.start("run", "tier1")
    try:
        [server] = wait_for("server", lambda: list_servers(command.pid))
        wait_for(f"server that {moment.__name__}", lambda: moment(server))
    finally:
        command.kill()
        command.communicate()
    _, alive = psutil.wait_procs([server], timeout=4 * STOP_S)
    assert alive == []
