"""A process of the user's code: how it is started, asked and ended, and what it says meanwhile."""

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
from yarus.db.words import Words
from yarus.tasks.models.transport import LARGEST_BYTES
from yarus.tasks.systems.external import Lost, Raised, reason
from yarus.tasks.systems.yarus_worker.messages import packed, receive

PROGRAM = (  # nothing of the user's is on the path yet, which may be called as a module of the standard library is
    "import sys; sys.path = [sys.argv.pop(1)] + [place for place in sys.path if place]; "
    "from yarus_worker.main import main; del sys.path[0]; main()"
)
BEGUN_S, READY_S = 20.0, 300.0
"""How long an interpreter may take to start, and the user's modules to be imported: some load a model."""
SHOWN = 100_000
"""Characters that a process may write to our stderr; what it writes beyond them is read, and not shown."""
GONE = "ProcessEnded"


class Program(NamedTuple):
    """What runs in a process."""

    name: str
    """`module:function`."""
    setting: str
    """That it was given by, for messages."""
    gives: str
    """`answer`, `ranking` or `scores`."""
    expected: str
    """Its signature, for messages."""
    python: str
    folder: str
    timeout_s: float


class Process:
    """One process; asked by a thread for each of its lines, and by no more than one where its function is plain."""

    def __init__(self, program: Program, n_lines: int, running: "set[Process]") -> None:
        """Starts it and has the user's module imported.

        Args:
            program: what runs in it.
            n_lines: over how many lines it is asked.
            running: where it stands until it has ended.

        Raises:
            InputError: the interpreter, the module or the function is none; it says what is wrong and where.
        """
        self._program, self._running = program, running
        life, ours = os.pipe()
        self._life = os.fdopen(ours, "wb")  # closed twice by two threads, it closes nothing of another's
        pairs = [socket.socketpair() for _ in range(n_lines)]
        theirs = [life, *(pair[1].fileno() for pair in pairs)]
        self.lines = [pair[0] for pair in pairs]
        self._asking = {line: threading.Lock() for line in self.lines}
        library = str(Path(__file__).parent)
        try:
            self._process = subprocess.Popen(
                [program.python, "-u", "-c", PROGRAM, library, *map(str, theirs)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=theirs,
                cwd=program.folder,
                env={name: value for name, value in os.environ.items() if not name.startswith("YARUS_")},
                start_new_session=True,  # Ctrl-C is ours to handle, and what it starts ends with it
            )
        except (OSError, ValueError) as error:
            self._close_lines()
            why = getattr(error, "strerror", None) or error
            raise InputError(
                "YARUS_SUT_PYTHON {python!r} cannot be started: {why}; expected the path of a Python 3.7 or later, "
                "such as my_bot/.venv/bin/python",
                python=program.python,
                why=why,
            ) from None
        finally:
            os.close(life)
            for _, other in pairs:
                other.close()
        running.add(self)
        self._said = _Said(cast(IO[bytes], self._process.stdout))
        try:
            self.is_async, self.takes_history = self._opened()
        except BaseException:
            self.end()
            raise

    def ask(self, line: socket.socket, arguments: Sequence[Any]) -> tuple[Any, float]:
        """What the function gives, and the milliseconds that it took.

        Raises:
            Lost: the process is gone, or too late; then it is of no more use.
            Raised: the function raised.
        """
        program = self._program
        # A coroutine is stopped over there; that only fails where it blocks its loop.
        reply = self._exchanged(line, arguments, program.timeout_s + 2 * self.is_async)
        late = Words("TimeoutError: no answer within {limit:.3g} s (YARUS_SUT_TIMEOUT_S)", limit=program.timeout_s)
        if reply is None:
            raise Lost(self._end_said())
        if "late" in reply:
            raise Raised(late) if reply["late"] == "stopped" else Lost(late)
        if "error" in reply:
            raise Raised(reply["error"], reply["place"])
        return reply["given"], reply["elapsed_ms"]

    def end(self) -> None:
        """Ends it and all that it has started; who waits for an answer is told that it is gone."""
        self._running.discard(self)
        for line in self.lines:
            with suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)  # wakes who reads; the line is closed by nobody but us
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._said.ended()
        self._close_lines()

    def _close_lines(self) -> None:
        for line, asking in self._asking.items():
            with asking:  # who still polls a number that another file has been given wakes up no more
                line.close()
        self._life.close()

    def _opened(self) -> tuple[bool, bool]:
        line, python = self.lines[0], f"YARUS_SUT_PYTHON {self._program.python!r}"
        line.settimeout(BEGUN_S)
        begun = _received(line)
        if begun is None or begun.get("late"):
            self.end()
            last = f": {said}" if (said := self._said.last()) else ""
            raise InputError(
                "{python} did not start as a Python 3.7 or later does{last}; give the path of one",
                python=python,
                last=last,
            )
        task = self._program._asdict() | {"largest_bytes": LARGEST_BYTES}
        return self._ready(self._exchanged(line, task, READY_S))

    def _ready(self, reply: Mapping[str, Any] | None) -> tuple[bool, bool]:
        program = self._program
        module, what = program.name.partition(":")[0], f"{program.setting} {program.name!r}"
        if reply is not None and "unfit" in reply:
            raise InputError("{what} {unfit}", what=what, unfit=reply["unfit"])
        if reply is None:
            raise InputError("{what}: module {module!r}: {why}", what=what, module=module, why=self._end_said())
        if "late" in reply:
            raise InputError(
                "{what}: module {module!r} was not imported within {ready_s:.0f} s",
                what=what,
                module=module,
                ready_s=READY_S,
            )
        if "error" in reply:
            expected = Words("expected module:function, importable from here")
            raise InputError(
                "{what}: module {module!r}: {reason}; {expected}",
                what=what,
                module=module,
                reason=reason(Raised(reply["error"], reply["place"])),
                expected=expected,
            )
        return reply["is_async"], reply["takes_history"]

    def _exchanged(self, line: socket.socket, message: Any, timeout_s: float) -> Any:
        with self._asking[line]:
            try:
                line.settimeout(timeout_s)
                line.sendall(packed(message))
            except OSError:
                return None
            return _received(line)

    def _end_said(self) -> str:
        """How the process ended, in its own last words."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(1)
        how = _ended_how(self._process.poll())
        last = self._said.last()
        if last:
            return Words("{kind}: {how}; its last words: {last}", kind=GONE, how=how, last=last)
        return Words("{kind}: {how}", kind=GONE, how=how)


def _ended_how(code: int | None) -> str:
    if code is None:
        return Words("the process closed its connection to us")
    if code >= 0:
        return Words("the process ended with exit code {code}", code=code)
    known = {one.value: one.name for one in signal.Signals}
    return Words("the process was ended by {signal}", signal=known.get(-code) or Words("signal {number}", number=-code))


def _received(line: socket.socket) -> Any:
    """The next message, `{"late": "stuck"}` where none came in time, None where none will come."""
    try:
        return receive(line)
    except TimeoutError:
        return {"late": "stuck"}
    except (OSError, ValueError):
        return None


class _Said:
    """What a process writes to its stdout and stderr: the beginning is shown on ours, the end kept."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self._tail = stream, b""
        self._reader = threading.Thread(target=self._read, daemon=True, name="said by the user's code")
        self._reader.start()

    def last(self) -> str:
        """The last line."""
        self.ended()  # what it has written is perhaps on its way
        lines = [line for line in self._tail.decode("utf-8", "replace").splitlines() if line.strip()]
        return reason(Raised(lines[-1])) if lines else ""

    def ended(self) -> None:
        """Waits for its end, unless somebody else holds the stream open."""
        self._reader.join(0.2)

    def _read(self) -> None:
        with self._stream as stream:
            left = SHOWN
            while part := os.read(stream.fileno(), 1 << 16):
                self._tail = (self._tail + part)[-2_000:]
                left -= self._show(part, left) if left > 0 else 0

    def _show(self, part: bytes, left: int) -> int:
        """Shows so many characters at most; returns how many it were."""
        shown = part.decode("utf-8", "replace")[:left]
        more = f"\n(more than {SHOWN:,} characters of the user's code: the rest is not shown)\n"
        with suppress(ValueError, OSError):  # nobody reads ours any more
            sys.stderr.write("".join(sign if sign.isprintable() or sign in "\n\t" else "\ufffd" for sign in shown))
            sys.stderr.write(more if len(shown) == left else "")
            sys.stderr.flush()
        return len(shown)
