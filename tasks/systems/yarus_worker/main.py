"""Serve calls of one function until Yarus ends: one socket per simultaneous call, and a pipe that closes with it."""

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

from .functions import Function, InvalidFunction, load_function
from .messages import LENGTH, decode_message, encode_message, pack_message, receive
from .serialization import SERIALIZERS, describe_error

EXIT_GRACE_S = 2.0
"""Seconds that exit handlers of the user's code may take."""


def main() -> None:
    """Run the process: `argv` has the numbers of the pipe and the sockets, and the first socket sends the task."""
    numbers = [int(number) for number in sys.argv[1:]]
    for number in numbers:
        os.set_inheritable(number, False)
    atexit.register(kill_process_group, os.getpid())  # the first registered handler runs last
    threading.Thread(target=watch_parent, args=(numbers[0],), daemon=True).start()
    lines = [socket.socket(fileno=number) for number in numbers[1:]]
    # A forked child would keep the sockets open and hide the end of this process; it must not write to them either.
    os.register_at_fork(after_in_child=partial(close_all, lines))
    lines[0].sendall(pack_message({"python": sys.version.split()[0]}))
    task = receive(lines[0])
    function = task and load_or_report(task, lines[0])
    if not function:
        return
    serve = CallServer(function, task)
    if function.is_async:
        asyncio.run(serve.serve_concurrently(lines))
    else:
        serve.serve_sequentially(lines[0])


def close_all(lines: Sequence[socket.socket]) -> None:
    """Close the sockets in a child, because they belong to its parent."""
    for line in lines:
        line.close()


def watch_parent(life: int) -> None:
    """End this process when Yarus has ended, whatever it is doing."""
    os.read(life, 1)
    time.sleep(EXIT_GRACE_S)
    kill_process_group(os.getpid())


def kill_process_group(process: int) -> None:
    """End this process and what it has started, which are a group; a child that ends leaves the others alone."""
    if os.getpid() != process:
        return
    os.killpg(os.getpgrp(), signal.SIGKILL)


def load_or_report(task: Mapping[str, Any], line: socket.socket) -> Function | None:
    """Return the function, or None after the reason has been sent."""
    try:
        function = load_function(task)
    except InvalidFunction as error:
        line.sendall(pack_message({"unfit": str(error)}))
        return None
    except BaseException as error:  # noqa: BLE001 - a foreign module may raise anything
        frames = traceback.extract_tb(error.__traceback__)
        user_frames = [index for index, frame in enumerate(frames) if frame.filename.startswith(task["folder"])]
        sys.stderr.write("".join(traceback.format_list(frames[user_frames[0] :] if user_frames else [])))
        line.sendall(pack_message(describe_error(error, task["folder"])))
        return None
    line.sendall(pack_message({"is_async": function.is_async, "takes_history": function.takes_history}))
    return function


class CallServer:
    """Server of calls: replies with the result of the function, or with its error."""

    def __init__(self, function: Function, task: Mapping[str, Any]) -> None:
        self.call, self.folder, self.serialize = function.call, task["folder"], SERIALIZERS[task["gives"]]
        self.timeout_s, self.largest_bytes = task["timeout_s"], task["largest_bytes"]
        self.process = os.getpid()

    def serve_sequentially(self, line: socket.socket) -> None:
        """Call a synchronous function in the main thread, where it may do everything."""
        while True:
            arguments = receive(line)
            if arguments is None:
                return
            started = time.perf_counter()
            try:
                result = self.call(*arguments)
                if inspect.isawaitable(result):
                    result = asyncio.run(await_result(result))
                reply = self.build_reply(result, arguments, started)
            except BaseException as error:  # noqa: BLE001 - any exception becomes the status of a case
                reply = describe_error(error, self.folder)
            line.sendall(self.encode_reply(reply))

    async def serve_concurrently(self, lines: Sequence[socket.socket]) -> None:
        """Call a coroutine function for all lines at once, in one event loop."""
        await asyncio.gather(*[self.serve_line(line) for line in lines])

    async def serve_line(self, line: socket.socket) -> None:
        """Serve the calls of a line, one after another."""
        reader, writer = await asyncio.open_connection(sock=line)
        while True:
            try:
                (length,) = LENGTH.unpack(await reader.readexactly(LENGTH.size))
                arguments = decode_message(await reader.readexactly(length))
            except (asyncio.IncompleteReadError, OSError):
                return
            call = asyncio.ensure_future(self.call_coroutine(arguments))
            done, _ = await asyncio.wait({call}, timeout=self.timeout_s)
            if not done:
                call.cancel()
            writer.write(self.encode_reply(call.result() if done else {"late": "stopped"}))
            await writer.drain()

    async def call_coroutine(self, arguments: Sequence[Any]) -> dict[str, Any]:
        """Return the reply to one call."""
        started = time.perf_counter()
        try:
            return self.build_reply(await self.call(*arguments), arguments, started)
        except BaseException as error:  # noqa: BLE001 - `sys.exit` in it would end the loop
            return describe_error(error, self.folder)

    def build_reply(self, value: Any, arguments: Sequence[Any], started: float) -> dict[str, Any]:
        """Return the reply with the result and its milliseconds."""
        elapsed_ms = (time.perf_counter() - started) * 1_000
        return {"given": self.serialize(value, arguments), "elapsed_ms": elapsed_ms}

    def encode_reply(self, reply: Mapping[str, Any]) -> bytes:
        """Return the encoded reply, or an error if it is too long."""
        if os.getpid() != self.process:
            os._exit(0)  # the function has forked, and this is its child
        content = encode_message(reply)
        if len(content) > self.largest_bytes:
            size = f"{len(content):,} bytes; at most {self.largest_bytes:,} are taken. Return less"
            content = encode_message({"error": f"ValueError: what it returned has {size}", "place": ""})
        return LENGTH.pack(len(content)) + content


async def await_result(awaitable: Awaitable[Any]) -> Any:
    """Await a result."""
    return await awaitable
