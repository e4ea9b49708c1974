"""Prefect's server ends with the command that started it, at whatever moment that is killed."""

from collections.abc import Callable

import psutil
import pytest

from tests.support.command_line import CommandLine
from tests.support.prefect_servers import answers, listens, servers
from tests.support.processes import until
from yarus.deployments.prefect.server_process import STOP_S

LATER = pytest.mark.slow("breadth: later moments")


@pytest.mark.slow("process: kills while servers start")
@pytest.mark.parametrize(
    "moment", [psutil.Process.is_running, pytest.param(listens, marks=LATER), pytest.param(answers, marks=LATER)]
)
def test_killed_at_any_moment_a_run_leaves_no_server(
    yarus_alone: CommandLine, moment: Callable[[psutil.Process], bool]
) -> None:
    command = yarus_alone.start("run", "tier1")
    try:
        [server] = until("server", lambda: servers(command.pid))
        until(f"server that {moment.__name__}", lambda: moment(server))
    finally:
        command.kill()
        command.communicate()
    _, alive = psutil.wait_procs([server], timeout=4 * STOP_S)
    assert alive == []
