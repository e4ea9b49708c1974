"""Prefect's server ends with the command that started it, at whatever moment that is killed."""

from collections.abc import Callable

import psutil
import pytest

from tasks.orchestration.server_process import STOP_S
from tests.conftest import CommandLine
from tests.flows.conftest import until


def servers(pid: int) -> list[psutil.Process]:
    """The processes of servers that the command has started."""
    found = psutil.Process(pid).children()
    return [process for process in found if "deployments.process" in process.cmdline()]


def listens(process: psutil.Process) -> bool:
    return any(connection.status == psutil.CONN_LISTEN for connection in process.net_connections())


def answers(process: psutil.Process) -> bool:
    return any(connection.status == psutil.CONN_ESTABLISHED for connection in process.net_connections("tcp"))


@pytest.mark.parametrize("moment", [psutil.Process.is_running, listens, answers])
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
