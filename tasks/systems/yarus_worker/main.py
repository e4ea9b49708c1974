"""Serves calls of one function until we end: a socket for each call at once, and a pipe that ends when we do."""

from __future__ import annotations

import asyncio
import atexit
import inspect
import os
import signal
import socket
import sys
import threading
import time
import traceback
from functools import partial
from typing import Any, Awaitable, Mapping, Sequence  # noqa: UP035 - Python 3.7 has them here

from .functions import Function, Unfit, found
from .messages import LENGTH, packed, read, receive, unheaded
from .values import PLAIN, told

LEAVING_S = 2.0
"""How long what the user's code does at its end may take."""


def main() -> None:
    """The process: it is given the numbers of the pipe and of the sockets, and told by the first what to call."""
    numbers = [int(number) for number in sys.argv[1:]]
    for number in numbers:
        os.set_inheritable(number, False)
    atexit.register(end_all, os.getpid())  # what is registered first comes last
    threading.Thread(target=watch, args=(numbers[0],), daemon=True).start()
    lines = [socket.socket(fileno=number) for number in numbers[1:]]
    # A child would keep them open, and nobody would see our end; what it says is not for us either.
    os.register_at_fork(after_in_child=partial(close_all, lines))
    lines[0].sendall(packed({"python": sys.version.split()[0]}))
    task = receive(lines[0])
    function = task and found_or_told(task, lines[0])
    if not function:
        return
    serve = Serve(function, task)
    if function.is_async:
        asyncio.run(serve.side_by_side(lines))
    else:
        serve.one_by_one(lines[0])


def close_all(lines: Sequence[socket.socket]) -> None:
    """In a child: they are its parent's."""
    for line in lines:
        line.close()


def watch(life: int) -> None:
    """Ends this process when we have ended, whatever it is doing."""
    os.read(life, 1)
    time.sleep(LEAVING_S)
    end_all(os.getpid())


def end_all(process: int) -> None:
    """Ends this process and what it has started, which are a group; a child of it that ends leaves the others alone."""
    if os.getpid() != process:
        return
    os.killpg(os.getpgrp(), signal.SIGKILL)


def found_or_told(task: Mapping[str, Any], line: socket.socket) -> Function | None:
    """The function; or None, once the reason has been sent."""
    try:
        function = found(task)
    except Unfit as error:
        line.sendall(packed({"unfit": str(error)}))
        return None
    except BaseException as error:  # noqa: BLE001 - a module that is not ours may raise anything
        frames = traceback.extract_tb(error.__traceback__)
        theirs = [number for number, frame in enumerate(frames) if frame.filename.startswith(task["folder"])]
        sys.stderr.write("".join(traceback.format_list(frames[theirs[0] :] if theirs else [])))
        line.sendall(packed(told(error, task["folder"])))
        return None
    line.sendall(packed({"is_async": function.is_async, "takes_history": function.takes_history}))
    return function


class Serve:
    """Replies to calls with what the function gives, or why it gives nothing."""

    def __init__(self, function: Function, task: Mapping[str, Any]) -> None:
        self.call, self.folder, self.plain = function.call, task["folder"], PLAIN[task["gives"]]
        self.timeout_s, self.largest = task["timeout_s"], task["largest_bytes"]
        self.process = os.getpid()

    def one_by_one(self, line: socket.socket) -> None:
        """Calls a plain function in the main thread, where it may do what it may do nowhere else."""
        while True:
            arguments = receive(line)
            if arguments is None:
                return
            started = time.perf_counter()
            try:
                given = self.call(*arguments)
                if inspect.isawaitable(given):
                    given = asyncio.run(awaited(given))
                reply = self.given(given, arguments, started)
            except BaseException as error:  # noqa: BLE001 - it may raise anything, which becomes the status of a case
                reply = told(error, self.folder)
            line.sendall(self.packed(reply))

    async def side_by_side(self, lines: Sequence[socket.socket]) -> None:
        """Calls a coroutine function for all lines at once, in one event loop."""
        await asyncio.gather(*[self.one_line(line) for line in lines])

    async def one_line(self, line: socket.socket) -> None:
        """The calls of a line, one after another."""
        reader, writer = await asyncio.open_connection(sock=line)
        while True:
            try:
                (length,) = LENGTH.unpack(await reader.readexactly(LENGTH.size))
                arguments = read(await reader.readexactly(length))
            except (asyncio.IncompleteReadError, OSError):
                return
            call = asyncio.ensure_future(self.awaited(arguments))
            done, _ = await asyncio.wait({call}, timeout=self.timeout_s)
            if not done:
                call.cancel()
            writer.write(self.packed(call.result() if done else {"late": "stopped"}))
            await writer.drain()

    async def awaited(self, arguments: Sequence[Any]) -> dict[str, Any]:
        """The reply to one call."""
        started = time.perf_counter()
        try:
            return self.given(await self.call(*arguments), arguments, started)
        except BaseException as error:  # noqa: BLE001 - `sys.exit` in it would end the loop
            return told(error, self.folder)

    def given(self, value: Any, arguments: Sequence[Any], started: float) -> dict[str, Any]:
        """The reply that holds what was given, and how long that took."""
        elapsed_ms = (time.perf_counter() - started) * 1_000
        return {"given": self.plain(value, arguments), "elapsed_ms": elapsed_ms}

    def packed(self, reply: Mapping[str, Any]) -> bytes:
        """The reply as it is sent, or that it is too long."""
        if os.getpid() != self.process:
            os._exit(0)  # the function has forked, and this is its child
        content = unheaded(reply)
        if len(content) > self.largest:
            size = f"{len(content):,} bytes; at most {self.largest:,} are taken. Return less"
            content = unheaded({"error": f"ValueError: what it returned has {size}", "place": ""})
        return LENGTH.pack(len(content)) + content


async def awaited(given: Awaitable[Any]) -> Any:
    """What it comes to."""
    return await given
