"""Process of the user's code: start, calls, end, and its output."""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from yarus.db.errors import InputError
from yarus.db.messages import Words
from yarus.tasks.models.transport import MAX_REPLY_BYTES
from yarus.tasks.systems.external import ProcessLost, UserCodeError, describe_failure
from yarus.tasks.systems.yarus_worker.messages import pack_message, receive

BOOTSTRAP_CODE = (  # the user's folder is not on the path yet: its modules may hide those of the standard library
    "import sys; sys.path = [sys.argv.pop(1)] + [place for place in sys.path if place]; "
    "from yarus_worker.main import main; del sys.path[0]; main()"
)
START_TIMEOUT_S, IMPORT_TIMEOUT_S = 20.0, 300.0
"""Time limits for the start of an interpreter and for the import of the user's modules, which may load a model."""
MAX_OUTPUT_CHARACTERS = 100_000
"""Characters of output that are copied to Yarus's stderr; the rest is read but not shown."""
ENDED_KIND = "ProcessEnded"


class ProcessSpec(NamedTuple):
    """Function and settings of a process."""

    name: str
    """`module:function`."""
    setting: str
    """Name of the setting with the function, for messages."""
    gives: str
    """`answer`, `ranking` or `scores`."""
    expected: str
    """Its signature, for messages."""
    python: str
    folder: str
    timeout_s: float


class Process:
    """Process of the user's code; one thread per line calls it, and only one thread if its function is synchronous."""

    def __init__(self, program: ProcessSpec, n_lines: int, running: "set[Process]") -> None:
        """Start it and import the user's module.

        Args:
            program: the function and its settings.
            n_lines: number of sockets for calls.
            running: contains the process until it has ended.

        Raises:
            InputError: the interpreter, the module or the function is unusable; the message names the fault.
        """
        self._program, self._running = program, running
        lifeline, lifeline_end = os.pipe()
        # A file object: closing it twice is harmless, closing a number twice is not.
        self._lifeline = os.fdopen(lifeline_end, "wb")
        socket_pairs = [socket.socketpair() for _ in range(n_lines)]
        inherited_fds = [lifeline, *(pair[1].fileno() for pair in socket_pairs)]
        self.lines = [pair[0] for pair in socket_pairs]
        self._line_locks = {line: threading.Lock() for line in self.lines}
        library = str(Path(__file__).parent)
        try:
            self._process = subprocess.Popen(
                [program.python, "-u", "-c", BOOTSTRAP_CODE, library, *map(str, inherited_fds)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=inherited_fds,
                cwd=program.folder,
                env={name: value for name, value in os.environ.items() if not name.startswith("YARUS_")},
                start_new_session=True,  # Yarus handles Ctrl-C, and child processes end with the group
            )
        except (OSError, ValueError) as error:
            self._close_lines()
            problem = getattr(error, "strerror", None) or error
            raise InputError(
                "YARUS_SUT_PYTHON {python!r} cannot be started: {why}; expected the path of a Python 3.7 or later, "
                "such as my_bot/.venv/bin/python",
                python=program.python,
                why=problem,
            ) from None
        finally:
            os.close(lifeline)
            for _, worker_end in socket_pairs:
                worker_end.close()
        running.add(self)
        self._output = _OutputTail(cast(IO[bytes], self._process.stdout))
        try:
            self.is_async, self.takes_history = self._start()
        except BaseException:
            self.end()
            raise

    def ask(self, line: socket.socket, arguments: Sequence[Any]) -> tuple[Any, float]:
        """Return the result of the function, and the milliseconds that it took.

        Raises:
            ProcessLost: the process has ended or is too late; it cannot be used again.
            UserCodeError: the function raised.
        """
        program = self._program
        # The worker stops a late coroutine itself, unless that blocks its event loop.
        reply = self._exchange(line, arguments, program.timeout_s + 2 * self.is_async)
        message = Words("TimeoutError: no answer within {limit:.3g} s (YARUS_SUT_TIMEOUT_S)", limit=program.timeout_s)
        if reply is None:
            raise ProcessLost(self._describe_end())
        if "late" in reply:
            raise UserCodeError(message) if reply["late"] == "stopped" else ProcessLost(message)
        if "error" in reply:
            raise UserCodeError(reply["error"], reply["place"])
        return reply["given"], reply["elapsed_ms"]

    def end(self) -> None:
        """End the process and all that it has started; waiting callers get an error."""
        self._running.discard(self)
        for line in self.lines:
            with suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)  # wakes the reader; only `_close_lines` closes the line
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._output.wait()
        self._close_lines()

    def _close_lines(self) -> None:
        for line, lock in self._line_locks.items():
            with lock:  # a reader of a closed number that another file has taken would never wake up
                line.close()
        self._lifeline.close()

    def _start(self) -> tuple[bool, bool]:
        line, python = self.lines[0], f"YARUS_SUT_PYTHON {self._program.python!r}"
        line.settimeout(START_TIMEOUT_S)
        greeting = _receive_reply(line)
        if greeting is None or greeting.get("late"):
            self.end()
            last_words = f": {output}" if (output := self._output.read_last_line()) else ""
            raise InputError(
                "{python} did not start as a Python 3.7 or later does{last}; give the path of one",
                python=python,
                last=last_words,
            )
        task = self._program._asdict() | {"largest_bytes": MAX_REPLY_BYTES}
        return self._check_task(self._exchange(line, task, IMPORT_TIMEOUT_S))

    def _check_task(self, reply: Mapping[str, Any] | None) -> tuple[bool, bool]:
        program = self._program
        module, function = program.name.partition(":")[0], f"{program.setting} {program.name!r}"
        if reply is not None and "unfit" in reply:
            raise InputError("{what} {unfit}", what=function, unfit=reply["unfit"])
        if reply is None:
            raise InputError("{what}: module {module!r}: {why}", what=function, module=module, why=self._describe_end())
        if "late" in reply:
            raise InputError(
                "{what}: module {module!r} was not imported within {ready_s:.0f} s",
                what=function,
                module=module,
                ready_s=IMPORT_TIMEOUT_S,
            )
        if "error" in reply:
            expected = Words("expected module:function, importable from here")
            raise InputError(
                "{what}: module {module!r}: {reason}; {expected}",
                what=function,
                module=module,
                reason=describe_failure(UserCodeError(reply["error"], reply["place"])),
                expected=expected,
            )
        return reply["is_async"], reply["takes_history"]

    def _exchange(self, line: socket.socket, message: Any, timeout_s: float) -> Any:
        with self._line_locks[line]:
            try:
                line.settimeout(timeout_s)
                line.sendall(pack_message(message))
            except OSError:
                return None
            return _receive_reply(line)

    def _describe_end(self) -> str:
        """Return how the process ended, with its last line of output."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(1)
        end = _describe_exit(self._process.poll())
        last_line = self._output.read_last_line()
        if last_line:
            return Words("{kind}: {how}; its last words: {last}", kind=ENDED_KIND, how=end, last=last_line)
        return Words("{kind}: {how}", kind=ENDED_KIND, how=end)


def _describe_exit(code: int | None) -> str:
    if code is None:
        return Words("the process closed its connection to us")
    if code >= 0:
        return Words("the process ended with exit code {code}", code=code)
    names = {signal_value.value: signal_value.name for signal_value in signal.Signals}
    return Words("the process was ended by {signal}", signal=names.get(-code) or Words("signal {number}", number=-code))


def _receive_reply(line: socket.socket) -> Any:
    """Return the next message; `{"late": "stuck"}` if it did not come in time, None if the line is closed."""
    try:
        return receive(line)
    except TimeoutError:
        return {"late": "stuck"}
    except (OSError, ValueError):
        return None


class _OutputTail:
    """Output of a process: its beginning is copied to stderr, its end is kept."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self._tail = stream, b""
        self._reader = threading.Thread(target=self._read, daemon=True, name="said by the user's code")
        self._reader.start()

    def read_last_line(self) -> str:
        """Return the last line."""
        self.wait()  # output may still be on its way
        lines = [line for line in self._tail.decode("utf-8", "replace").splitlines() if line.strip()]
        return describe_failure(UserCodeError(lines[-1])) if lines else ""

    def wait(self) -> None:
        """Wait for the end of the output, unless another process holds the stream open."""
        self._reader.join(0.2)

    def _read(self) -> None:
        with self._stream as stream:
            remaining = MAX_OUTPUT_CHARACTERS
            while part := os.read(stream.fileno(), 1 << 16):
                self._tail = (self._tail + part)[-2_000:]
                remaining -= self._show(part, remaining) if remaining > 0 else 0

    def _show(self, part: bytes, limit: int) -> int:
        """Write at most `limit` characters to stderr; return their number."""
        text = part.decode("utf-8", "replace")[:limit]
        note = f"\n(more than {MAX_OUTPUT_CHARACTERS:,} characters of the user's code: the rest is not shown)\n"
        with suppress(ValueError, OSError):  # stderr may be closed
            sys.stderr.write(
                "".join(character if character.isprintable() or character in "\n\t" else "\ufffd" for character in text)
            )
            sys.stderr.write(note if len(text) == limit else "")
            sys.stderr.flush()
        return len(text)
