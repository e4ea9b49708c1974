"""A chat server on real sockets that does what its script says, above all what servers should not do."""

import asyncio
import json
import socket
import ssl
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self
from uuid import uuid4

JSON_HEADER = "content-type: application/json"


def make_response(status: int, body: bytes | str = b"", *headers: str) -> bytes:
    body = body.encode() if isinstance(body, str) else body
    head = (f"HTTP/1.1 {status} Something", f"content-length: {len(body)}", *headers)
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def make_completion(
    content: Any,
    *,
    model: str = "served-1",
    finish: str = "stop",
    tokens: tuple[int, int] | None = (100, 20),
    **more: Any,
) -> bytes:
    """Return a chat completion with that content."""
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": content}} | more
    usage = tokens and {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "total_tokens": sum(tokens)}
    return make_response(200, json.dumps({"id": "1", "model": model, "choices": [choice], "usage": usage}), JSON_HEADER)


def make_score_completion(value: Any, **more: Any) -> bytes:
    return make_completion(json.dumps({"reason": "потому что", "score": value}, ensure_ascii=False), **more)


EVENT_STREAM_HEADER = "content-type: text/event-stream"
DONE_EVENT = b"data: [DONE]\n\n"


def make_delta_event(content: str | None = None, *, finish: str | None = None, **more: Any) -> bytes:
    """Return an event of a streamed chat completion."""
    choice = {"index": 0, "delta": {} if content is None else {"content": content}, "finish_reason": finish}
    event = {"id": "1", "object": "chat.completion.chunk", "model": "served-1", "choices": [choice]} | more
    return f"data: {json.dumps(event, ensure_ascii=False)}\n\n".encode()


def make_stream(
    *parts: bytes, kind: str = EVENT_STREAM_HEADER, pause_s: float = 0.0, whole: bool = True, then: str = "keep"
) -> "Action":
    """Return a response in chunks, one per part, with a pause before each but the first."""
    chunks = [b"%x\r\n%b\r\n" % (len(part), part) for part in parts]
    head = f"HTTP/1.1 200 OK\r\n{kind}\r\ntransfer-encoding: chunked\r\n\r\n".encode()
    rest = [(pause_s, chunk) for chunk in chunks[1:]]
    return Action(head + b"".join(chunks[:1]), rest=(*rest, *([(0.0, b"0\r\n\r\n")] if whole else [])), then=then)


@dataclass(frozen=True)
class Action:
    """Bytes to send after a delay, further bytes after pauses, and what then happens to the connection."""

    data: bytes = b""
    after_s: float = 0.0
    rest: tuple[tuple[float, bytes], ...] = ()
    then: str = "keep"  # keep, close, reset


@dataclass
class FakeLLMServer:
    """The server; `script` gets the request's number and JSON, and returns what to do."""

    script: Callable[[int, dict[str, Any]], Action | bytes] = lambda number, request: make_score_completion(0.5)
    context: ssl.SSLContext | None = None
    port: int = 0
    own: str = field(default_factory=lambda: uuid4().hex[:8])
    """Part of the address and of the models' names, so that no stored reply fits a reused port."""
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[str] = field(default_factory=list)
    in_flight: int = 0
    most_in_flight: int = 0
    connected: int = 0
    """Number of connections so far."""

    @property
    def url(self) -> str:
        return f"http{'s' if self.context else ''}://127.0.0.1:{self.port}/{self.own}/v1"

    def start(self) -> None:
        started = threading.Event()
        self._thread = threading.Thread(target=asyncio.run, args=(self._serve(started),), daemon=True)
        self._thread.start()
        assert started.wait(10)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(10)

    async def _serve(self, started: threading.Event) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        self._open: set[asyncio.StreamWriter] = set()
        server = await asyncio.start_server(self._connected, "127.0.0.1", self.port, ssl=self.context)
        self.port = server.sockets[0].getsockname()[1]
        started.set()
        await self._stopping.wait()
        server.close()
        for writer in list(self._open):
            writer.transport.abort()
        await asyncio.sleep(0)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        self.connected += 1
        try:
            while not writer.is_closing():
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                length = int(head.lower().split("content-length:")[1].split("\r\n")[0])
                await self._answer(head, json.loads(await reader.readexactly(length)), writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._open.discard(writer)
            writer.close()

    async def _answer(self, head: str, request: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        self.headers.append(head)
        self.requests.append(request)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        action = self.script(len(self.requests), request)
        action = Action(action) if isinstance(action, bytes) else action
        await asyncio.sleep(action.after_s)
        self.in_flight -= 1
        for pause_s, part in ((0.0, action.data), *action.rest):
            await asyncio.sleep(pause_s)
            writer.write(part)
            await writer.drain()
        if action.then == "reset":
            linger = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        if action.then != "keep":
            writer.close()
