"""Functions of a user, called in separate processes, isolated from Yarus's process."""

import logging
import sys
import threading
from contextlib import nullcontext
from pathlib import Path
from socket import socket
from typing import Any, Literal

from yarus.db.errors import InputError
from yarus.db.messages import Words
from yarus.tasks.config.settings import get_settings
from yarus.tasks.systems.external import ProcessLost, UserCodeError
from yarus.tasks.systems.process import ENDED_KIND, Process, ProcessSpec

log = logging.getLogger("yarus")
ResultKind = Literal["answer", "ranking", "scores"]
SIGNATURES: dict[ResultKind, str] = {
    "answer": "answer(question) or answer(question, history)",
    "ranking": "retrieve(question, k)",
    "scores": "rerank(question, texts)",
}
TIMEOUT_S = 60.0
DEFAULT_COROUTINES = 8
"""Simultaneous calls of a coroutine function, if YARUS_SUT_CONCURRENCY is not set."""
MAX_LOST = 20
"""Processes lost in a row, without an answer between them, after which Yarus starts no other."""


class UserFunction:
    """Function of a user. A synchronous one has one process per simultaneous call, a coroutine function one for all.

    A lost process costs the answer of its question; the next question gets a new process. If a coroutine function was
    at several questions, the cause is unknown, so they are repeated one at a time.
    """

    def __init__(self, name: str, setting: str, gives: ResultKind, running: set[Process]) -> None:
        """Start a first process, with the settings YARUS_SUT_PYTHON, _CONCURRENCY and _TIMEOUT_S.

        Args:
            name: `module:function`, in the current folder or installed for the interpreter.
            setting: name of the setting with the function, for messages.
            gives: kind of its result: an answer, a ranking, or scores of texts.
            running: contains its processes until they have ended.

        Raises:
            InputError: the interpreter, the module or the function is unusable.
        """
        configuration = get_settings()
        module, _, function = name.partition(":")
        if not all(part.isidentifier() for part in (*module.split("."), *function.split("."))):
            raise InputError(
                "{setting} {name!r}: expected module:function, importable from here", setting=setting, name=name
            )
        python = configuration.sut_python or sys.executable
        python = str(Path(python).expanduser()) if python.startswith("~") else python
        folder, timeout_s = str(Path.cwd()), configuration.sut_timeout_s or TIMEOUT_S
        self._program = ProcessSpec(name, setting, gives, SIGNATURES[gives], python, folder, timeout_s)
        concurrency = configuration.sut_concurrency
        self._running = running
        first = Process(self._program, concurrency or DEFAULT_COROUTINES, running)
        self.is_async, self.takes_history = first.is_async, first.takes_history
        self.concurrency = concurrency or (DEFAULT_COROUTINES if first.is_async else 1)
        """Simultaneous calls; a caller uses as many threads."""
        self._lock, self._retry_lock = threading.Lock(), threading.Lock()
        self._processes, self._idle, self._start_lock = [first], self._get_lines(first), threading.Lock()
        self._n_lost, self._closed = 0, False

    def call(self, *arguments: Any) -> tuple[Any, float]:
        """Return the result of the function and its milliseconds; at most `concurrency` threads may wait here.

        Raises:
            UserCodeError: the function raised, or its process was lost.
        """
        if self._closed:
            raise UserCodeError(Words("{kind}: not asked: the evaluation is over", kind=ENDED_KIND))
        if self._n_lost >= MAX_LOST:
            raise UserCodeError(
                Words(
                    "{kind}: not asked: the process was lost {n} times in a row without an answer",
                    kind=ENDED_KIND,
                    n=MAX_LOST,
                )
            )
        try:
            result = self._ask(arguments)
        except ProcessLost as lost:
            if not self.is_async or self._closed:
                raise
            with self._retry_lock:  # to find which of the calls ended the process
                log.info("%s: asked anew, alone: %s", self._program.name, lost)
                result = self._ask(arguments, is_retry=True)
        return result

    def close(self) -> None:
        """End the processes for good; waiting callers get an error."""
        self._closed = True
        with self._lock:
            ended, self._processes, self._idle = self._processes, [], []
        for process in ended:
            process.end()

    def _ask(self, arguments: tuple[Any, ...], *, is_retry: bool = False) -> tuple[Any, float]:
        process, line = (self._start_process(1), None) if is_retry else self._take_line()
        try:
            result = process.ask(line or process.lines[0], arguments)
        except ProcessLost:
            self._drop(process, lost=True)
            raise
        except UserCodeError:
            self._n_lost = 0
            self._give_back(process, line)
            raise
        self._n_lost = 0
        self._give_back(process, line)
        return result

    def _get_lines(self, process: Process) -> list[tuple[Process, socket]]:
        return [(process, line) for line in process.lines[: None if self.is_async else 1]]

    def _take_line(self) -> tuple[Process, socket]:
        """Return a free line, of a new process if necessary."""
        # All callers share the process of a coroutine function: one of those without a line starts it.
        with self._start_lock if self.is_async else nullcontext():
            with self._lock:
                if self._idle:
                    return self._idle.pop()
            line, *other_lines = self._get_lines(self._start_process(self.concurrency if self.is_async else 1))
            with self._lock:
                self._idle += other_lines
            return line

    def _start_process(self, n_lines: int) -> Process:
        try:
            process = Process(self._program, n_lines, self._running)
        except InputError as error:  # the import worked before
            self._n_lost += 1
            raise UserCodeError(
                Words("{kind}: it could not be started anew: {error}", kind=ENDED_KIND, error=error)
            ) from None
        with self._lock:
            self._processes.append(process)
        return process

    def _give_back(self, process: Process, line: socket | None) -> None:
        with self._lock:
            is_running = process in self._processes
            if is_running and line is not None:
                self._idle.append((process, line))
        if line is None:
            self._drop(process)

    def _drop(self, process: Process, *, lost: bool = False) -> None:
        with self._lock:
            self._n_lost += lost and process in self._processes  # counted once, however many callers waited for it
            self._processes = [other for other in self._processes if other is not process]
            self._idle = [entry for entry in self._idle if entry[0] is not process]
        process.end()


class UserFunctions:
    """Functions of a user with their processes, shared by all callers until they are closed."""

    def __init__(self) -> None:
        self.running: set[Process] = set()
        """Processes that have been started and not ended, including those that still import their module."""
        self._open: dict[tuple[Any, ...], UserFunction] = {}
        self._opening = threading.Lock()

    def get(self, name: str, setting: str, gives: ResultKind) -> UserFunction:
        """Return the function of that name; arguments and errors as for `UserFunction`."""
        configuration = get_settings()
        options = configuration.sut_python, configuration.sut_concurrency, configuration.sut_timeout_s
        code_key = name, setting, gives, str(Path.cwd()), *options
        with self._opening:
            if code_key not in self._open:
                self._open[code_key] = UserFunction(name, setting, gives, self.running)
            return self._open[code_key]

    def close(self) -> None:
        """End all processes, because the evaluation is over or stopped."""
        for code in list(self._open.values()):  # first, so that no other process is started
            code.close()
        for process in list(self.running):  # before the lock: a process that imports its module holds it
            process.end()
        with self._opening:
            for code in self._open.values():  # functions that were opened meanwhile
                code.close()
            self._open.clear()
