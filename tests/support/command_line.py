"""The command line as tests use it: in processes of its own or in this one. Imported by full name."""

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

from tests.support.forked import FLOWS, LONGEST_S, Forked, Ran

Document = dict[str, Any]
SECRET = "s3cret"
ENGLISH = {"YARUS_LANGUAGE": "en"}
"""For tests of words that stand in the code."""
CLOSED = f"postgresql://someone:{SECRET}@127.0.0.1:1/there"
"""Where no database answers."""

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
    """`yarus` in processes of their own, on one home; without a server every flow starts and stops its own."""

    def __init__(self, home: Path, server: Callable[[], dict[str, str]] = dict) -> None:
        self.home, self.server = home, server

    def __call__(self, *words: str, env: dict[str, str] | None = None, ok: bool = True) -> Ran:
        """Runs a command to its end; with `ok` it must have succeeded, with exit code 0."""
        ran = self.fork(*words, env=env).ran()
        if ok:
            assert ran.code == 0, f"yarus {' '.join(words)}: exit code {ran.code}\n{ran.err}\n{ran.out}"
        return ran

    def fork(self, *words: str, env: dict[str, str] | None = None, script: str | None = None) -> Forked:
        """Starts a command, or a script, without the seconds that its imports take."""
        return Forked(words, self._environment(words, env), self.home, script)

    def start(self, *words: str, env: dict[str, str] | None = None, script: str | None = None) -> subprocess.Popen[str]:
        """Starts a command as a user does, or Python code that has the command's words in sys.argv."""
        program = ["-c", script] if script else ["-m", "yarus"]
        return subprocess.Popen(
            [sys.executable, *program, *words],
            env=self._environment(words, env),
            cwd=self.home,  # no .env and no module of the project's is found here by chance
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def _environment(self, words: Sequence[str], env: dict[str, str] | None) -> dict[str, str]:
        server = self.server() if words and words[0] in FLOWS else {}
        return environment(self.home) | server | (env or {})


def here(*words: str, env: Mapping[str, str] | None = None) -> Ran:
    """What a command leaves that is run in this process, at home, without the second that a process takes to start.

    For what ends before Prefect is started: refusals, above all.
    """
    from yarus.__main__ import exit_code

    out, err = StringIO(), StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        for name, value in (env or {}).items():
            patch.setenv(name, value)
        code = exit_code(words)
    return Ran(out.getvalue(), err.getvalue(), code)


def in_shell(*words: str, env: Mapping[str, str], folder: Path) -> Ran:
    """Runs a program such as Bash, for which every `yarus` is forked from the prepared process."""
    with tempfile.TemporaryDirectory() as programs, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        address, yarus = f"{programs}/socket", Path(programs, "yarus")
        yarus.write_text(FORKED_YARUS.format(python=sys.executable, address=address), encoding="utf-8")
        yarus.chmod(0o700)
        listener.bind(address)
        listener.listen()
        threading.Thread(target=_accept, args=(listener,), daemon=True).start()
        path = os.pathsep.join((programs, str(Path(sys.executable).parent), env["PATH"]))
        ran = subprocess.run(
            words, env={**env, "PATH": path}, cwd=folder, text=True, capture_output=True,
            timeout=2 * LONGEST_S, check=False,
        )  # fmt: skip
        listener.shutdown(socket.SHUT_RDWR)
    return Ran(ran.stdout, ran.stderr, ran.returncode)


def _accept(listener: socket.socket) -> None:
    """Forks what is asked for, several at once, until the listener is shut down."""
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=_fork, args=(connection,), daemon=True).start()


def _fork(connection: socket.socket) -> None:
    """Forks one command; a connection that closes without its exit code makes the asking program fail."""
    with connection:
        command, streams, *_ = socket.recv_fds(connection, 2**20, 2)
        words, variables, folder = json.loads(command)
        forked = Forked(words, variables, folder, streams=streams)
        for stream in streams:
            os.close(stream)
        connection.send(bytes([forked.ran().code]))


def environment(home: Path) -> dict[str, str]:
    """The variables of this process without what would change a result, and with everything kept at that home.

    Of the servers of a home none outlives the commands.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("YARUS_", "PREFECT_", "PG"))}
    ours = {"YARUS_HOME": str(home), "YARUS_SERVER_IDLE_S": "0", "PREFECT_HOME": str(home / "prefect-home")}
    return kept | ours | {"HF_HUB_OFFLINE": "1"}


class Command(NamedTuple):
    """A command line and the variables that it is given; Python code where it is not `yarus` itself that runs."""

    words: tuple[str, ...]
    env: dict[str, str] = {}  # noqa: RUF012 - a default that nobody changes
    script: str | None = None


def together(yarus: CommandLine, commands: Mapping[str, Command]) -> dict[str, Ran]:
    """What the commands left, run as many at once as there are processors."""
    waiting, left = dict(commands), dict[str, Ran]()
    while waiting:
        some = [waiting.popitem() for _ in range(min(len(waiting), os.cpu_count() or 2))]
        started = {name: yarus.fork(*command.words, env=command.env, script=command.script) for name, command in some}
        left |= {name: process.ran() for name, process in started.items()}
    return left


def refused(ran: Ran, code: int, words: tuple[str, ...]) -> None:
    """That a command ended with this code and these words, and told no secret."""
    assert ran.code == code, ran
    assert ran.out == ""
    for word in words:
        assert word in ran.err
    assert "Traceback" not in ran.err
    assert SECRET not in ran.err
