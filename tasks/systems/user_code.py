"""Functions of the user's, called in processes of their own: nothing that they do touches ours, nor ours them."""

import logging
import sys
import threading
from contextlib import nullcontext
from pathlib import Path
from socket import socket
from typing import Any, Literal

from yarus.db.errors import InputError
from yarus.db.words import Words
from yarus.tasks.config.settings import settings
from yarus.tasks.systems.external import Lost, Raised
from yarus.tasks.systems.process import GONE, Process, Program

log = logging.getLogger("yarus")
Gives = Literal["answer", "ranking", "scores"]
EXPECTED: dict[Gives, str] = {
    "answer": "answer(question) or answer(question, history)",
    "ranking": "retrieve(question, k)",
    "scores": "rerank(question, texts)",
}
TIMEOUT_S = 60.0
COROUTINES = 8
"""Calls at once of a coroutine function, where YARUS_SUT_CONCURRENCY does not say."""
GIVEN_UP = 20
"""Processes lost in a row, without one answer between them, after which no other is started."""


class UserCode:
    """A function of the user's. A plain one has a process for each call at once; a coroutine function has one for all.

    A process that is lost costs the question its answer that it was at, and the next one is given a new process. Of
    several that a coroutine function was at, nobody knows which was the cause: they are asked anew, one at a time.
    """

    def __init__(self, name: str, setting: str, gives: Gives, running: set[Process]) -> None:
        """Starts a first process, with the settings YARUS_SUT_PYTHON, _CONCURRENCY and _TIMEOUT_S.

        Args:
            name: `module:function`, in the current folder or installed for the interpreter.
            setting: that it was given by, for messages.
            gives: what it returns: an answer, a ranking, or scores of texts.
            running: where its processes stand until they have ended.

        Raises:
            InputError: the interpreter, the module or the function is none.
        """
        configuration = settings()
        module, _, function = name.partition(":")
        if not all(part.isidentifier() for part in (*module.split("."), *function.split("."))):
            raise InputError(
                "{setting} {name!r}: expected module:function, importable from here", setting=setting, name=name
            )
        python = configuration.sut_python or sys.executable
        python = str(Path(python).expanduser()) if python.startswith("~") else python
        folder, timeout_s = str(Path.cwd()), configuration.sut_timeout_s or TIMEOUT_S
        self._program = Program(name, setting, gives, EXPECTED[gives], python, folder, timeout_s)
        wanted = configuration.sut_concurrency
        self._running = running
        first = Process(self._program, wanted or COROUTINES, running)
        self.is_async, self.takes_history = first.is_async, first.takes_history
        self.concurrency = wanted or (COROUTINES if first.is_async else 1)
        """Calls at once; a caller has so many threads."""
        self._lock, self._alone = threading.Lock(), threading.Lock()
        self._processes, self._idle, self._starting = [first], self._lines(first), threading.Lock()
        self._lost_in_a_row, self._closed = 0, False

    def call(self, *arguments: Any) -> tuple[Any, float]:
        """What the function gives, and the milliseconds that it took; at most `concurrency` threads may wait here.

        Raises:
            Raised: the function raised, or its process was lost.
        """
        if self._closed:
            raise Raised(Words("{kind}: not asked: the evaluation is over", kind=GONE))
        if self._lost_in_a_row >= GIVEN_UP:
            raise Raised(
                Words(
                    "{kind}: not asked: the process was lost {n} times in a row without an answer",
                    kind=GONE,
                    n=GIVEN_UP,
                )
            )
        try:
            found = self._asked(arguments)
        except Lost as lost:
            if not self.is_async or self._closed:
                raise
            with self._alone:  # which of those that were under way ended it?
                log.info("%s: asked anew, alone: %s", self._program.name, lost)
                found = self._asked(arguments, alone=True)
        return found

    def close(self) -> None:
        """Ends the processes, for good; who waits for one is told that it is gone."""
        self._closed = True
        with self._lock:
            ended, self._processes, self._idle = self._processes, [], []
        for process in ended:
            process.end()

    def _asked(self, arguments: tuple[Any, ...], *, alone: bool = False) -> tuple[Any, float]:
        process, line = (self._started(1), None) if alone else self._taken()
        try:
            found = process.ask(line or process.lines[0], arguments)
        except Lost:
            self._drop(process, lost=True)
            raise
        except Raised:
            self._lost_in_a_row = 0
            self._give_back(process, line)
            raise
        self._lost_in_a_row = 0
        self._give_back(process, line)
        return found

    def _lines(self, process: Process) -> list[tuple[Process, socket]]:
        return [(process, line) for line in process.lines[: None if self.is_async else 1]]

    def _taken(self) -> tuple[Process, socket]:
        """A line that nobody waits at; of a new process if there is none."""
        # A process of a coroutine function is for all: of several that find no line, one starts it.
        with self._starting if self.is_async else nullcontext():
            with self._lock:
                if self._idle:
                    return self._idle.pop()
            line, *others = self._lines(self._started(self.concurrency if self.is_async else 1))
            with self._lock:
                self._idle += others
            return line

    def _started(self, n_lines: int) -> Process:
        try:
            process = Process(self._program, n_lines, self._running)
        except InputError as error:  # what could be imported before cannot be now
            self._lost_in_a_row += 1
            raise Raised(Words("{kind}: it could not be started anew: {error}", kind=GONE, error=error)) from None
        with self._lock:
            self._processes.append(process)
        return process

    def _give_back(self, process: Process, line: socket | None) -> None:
        with self._lock:
            there = process in self._processes
            if there and line is not None:
                self._idle.append((process, line))
        if line is None:
            self._drop(process)

    def _drop(self, process: Process, *, lost: bool = False) -> None:
        with self._lock:
            self._lost_in_a_row += lost and process in self._processes  # once, whoever waited for it
            self._processes = [one for one in self._processes if one is not process]
            self._idle = [place for place in self._idle if place[0] is not process]
        process.end()


class UserCodes:
    """Functions of the user's, each with its processes: the same for all who ask for it, until they are closed."""

    def __init__(self) -> None:
        self.running: set[Process] = set()
        """Processes that have been started and not ended, also those whose module is still imported."""
        self._open: dict[tuple[Any, ...], UserCode] = {}
        self._opening = threading.Lock()

    def get(self, name: str, setting: str, gives: Gives) -> UserCode:
        """Return the function of that name; arguments and errors as `UserCode`."""
        configuration = settings()
        how = configuration.sut_python, configuration.sut_concurrency, configuration.sut_timeout_s
        place = name, setting, gives, str(Path.cwd()), *how
        with self._opening:
            if place not in self._open:
                self._open[place] = UserCode(name, setting, gives, self.running)
            return self._open[place]

    def close(self) -> None:
        """End all processes: the evaluation is over, or somebody has stopped it."""
        for code in list(self._open.values()):  # first, so that nobody starts another
            code.close()
        for process in list(self.running):  # first: one that imports its module holds the lock
            process.end()
        with self._opening:
            for code in self._open.values():  # what was opened meanwhile
                code.close()
            self._open.clear()
