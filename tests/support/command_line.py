"""Run the command line in tests: in processes of its own or in this one. Imported by full name."""

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.forked import FLOWS, MAX_WAIT_S, CommandResult, ForkedCommand

Document = dict[str, Any]
SECRET = "s3cret"
ENGLISH = {"YARUS_LANGUAGE": "en"}
"""For tests of texts that are in the code."""
CLOSED = f"postgresql://someone:{SECRET}@127.0.0.1:1/there"
"""An address at which no database answers."""

FORKED_YARUS = """#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as tests:
    tests.connect({address!r})
    command = json.dumps([sys.argv[1:], dict(os.environ), os.getcwd()])
    socket.send_fds(tests, [command.encode()], [1, 2])
    sys.exit(tests.recv(1)[0])
"""
"""A program that asks the test process to fork a command with its streams, and ends with its exit code."""


class CommandLine:
    """`yarus` in processes of their own, on one home.

    Without a server, every flow starts and stops its own.
    """

    def __init__(self, home: Path, server: Callable[[], dict[str, str]] = dict) -> None:
        self.home, self.server = home, server

    def __call__(self, *words: str, env: dict[str, str] | None = None, ok: bool = True) -> CommandResult:
        """Run a command to its end; with `ok` it must succeed, with exit code 0."""
        result = self.fork(*words, env=env).ran()
        if ok:
            assert result.code == 0, f"yarus {' '.join(words)}: exit code {result.code}\n{result.err}\n{result.out}"
        return result

    def fork(self, *words: str, env: dict[str, str] | None = None, script: str | None = None) -> ForkedCommand:
        """Start a command, or a script, without the seconds that its imports take."""
        return ForkedCommand(words, self._environment(words, env), self.home, script)

    def start(self, *words: str, env: dict[str, str] | None = None, script: str | None = None) -> subprocess.Popen[str]:
        """Start a command as a user does, or Python code with the command's arguments in sys.argv."""
        program = ["-c", script] if script else ["-m", "yarus"]
        return subprocess.Popen(
            [sys.executable, *program, *words],
            env=self._environment(words, env),
            cwd=self.home,  # contains no .env and no module of the project
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def _environment(self, words: Sequence[str], env: dict[str, str] | None) -> dict[str, str]:
        server = self.server() if words and words[0] in FLOWS else {}
        return make_environment(self.home) | server | (env or {})


def run_here(*words: str, env: Mapping[str, str] | None = None) -> CommandResult:
    """Run a command in this process, at home, and return its result; that saves a second.

    Use it for what ends before Prefect is started, above all refusals.
    """
    from yarus.__main__ import run_command_line

    out, err = StringIO(), StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        for name, value in (env or {}).items():
            patch.setenv(name, value)
        code = run_command_line(words)
    return CommandResult(out.getvalue(), err.getvalue(), code)


def in_shell(*words: str, env: Mapping[str, str], folder: Path) -> CommandResult:
    """Run a program such as Bash, for which every `yarus` is forked from the prepared process."""
    with tempfile.TemporaryDirectory() as programs, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        address, yarus = f"{programs}/socket", Path(programs, "yarus")
        yarus.write_text(FORKED_YARUS.format(python=sys.executable, address=address), encoding="utf-8")
        yarus.chmod(0o700)
        listener.bind(address)
        listener.listen()
        threading.Thread(target=_accept, args=(listener,), daemon=True).start()
        path = os.pathsep.join((programs, str(Path(sys.executable).parent), env["PATH"]))
        finished = subprocess.run(
            words, env={**env, "PATH": path}, cwd=folder, text=True, capture_output=True,
            timeout=2 * MAX_WAIT_S, check=False,
        )  # fmt: skip
        listener.shutdown(socket.SHUT_RDWR)
    return CommandResult(finished.stdout, finished.stderr, finished.returncode)


def _accept(listener: socket.socket) -> None:
    """Fork requested commands, several at once, until the listener is shut down."""
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=_fork, args=(connection,), daemon=True).start()


def _fork(connection: socket.socket) -> None:
    """Fork one command; if the connection closes without its exit code, the requesting program fails."""
    with connection:
        command, streams, *_ = socket.recv_fds(connection, 2**20, 2)
        words, variables, folder = json.loads(command)
        forked = ForkedCommand(words, variables, folder, streams=streams)
        for stream in streams:
            os.close(stream)
        connection.send(bytes([forked.ran().code]))


def make_environment(home: Path) -> dict[str, str]:
    """Return this process's variables without those that change a result, and with everything stored at `home`.

    No server of a home outlives the commands.
    """
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("YARUS_", "PREFECT_", "PG"))}
    home_variables = {
        "YARUS_HOME": str(home),
        "YARUS_SERVER_IDLE_TIMEOUT_S": "0",
        "PREFECT_HOME": str(home / "prefect-home"),
    }
    return inherited | home_variables | {"HF_HUB_OFFLINE": "1"}


class Command(NamedTuple):
    """A command line and its variables; or Python code to run instead of `yarus` itself."""

    words: tuple[str, ...]
    env: dict[str, str] = {}  # noqa: RUF012 - a default that is never changed
    script: str | None = None


def run_in_parallel(yarus: CommandLine, commands: Mapping[str, Command]) -> dict[str, CommandResult]:
    """Run commands in parallel, one per processor, and return their results."""
    waiting, results = dict(commands), dict[str, CommandResult]()
    while waiting:
        batch = [waiting.popitem() for _ in range(min(len(waiting), os.cpu_count() or 2))]
        children = {name: yarus.fork(*command.words, env=command.env, script=command.script) for name, command in batch}
        results |= {name: child.ran() for name, child in children.items()}
    return results


def assert_refused(result: CommandResult, code: int, words: tuple[str, ...]) -> None:
    """Assert that a command ended with this exit code and message, and printed no secret."""
    assert result.code == code, result
    assert result.out == ""
    for word in words:
        assert word in result.err
    assert "Traceback" not in result.err
    assert SECRET not in result.err
