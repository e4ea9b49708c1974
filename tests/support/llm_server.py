"""A chat server on real sockets that does what it is told, above all what servers should not do."""

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

JSON = "content-type: application/json"


def http(status: int, body: bytes | str = b"", *headers: str) -> bytes:
    body = body.encode() if isinstance(body, str) else body
    head = (f"HTTP/1.1 {status} Something", f"content-length: {len(body)}", *headers)
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def says(content: Any, *, model: str = "served-1", finish: str = "stop", tokens: tuple[int, int] | None = (100, 20),
         **more: Any) -> bytes:  # fmt: skip
    """A chat completion with that content."""
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": content}} | more
    usage = tokens and {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "total_tokens": sum(tokens)}
    return http(200, json.dumps({"id": "1", "model": model, "choices": [choice], "usage": usage}), JSON)


def scores(value: Any, **more: Any) -> bytes:
    return says(json.dumps({"reason": "потому что", "score": value}, ensure_ascii=False), **more)


EVENTS = "content-type: text/event-stream"
DONE = b"data: [DONE]\n\n"


def delta(content: str | None = None, *, finish: str | None = None, **more: Any) -> bytes:
    """An event of a streamed chat completion."""
    choice = {"index": 0, "delta": {} if content is None else {"content": content}, "finish_reason": finish}
    event = {"id": "1", "object": "chat.completion.chunk", "model": "served-1", "choices": [choice]} | more
    return f"data: {json.dumps(event, ensure_ascii=False)}\n\n".encode()


def streamed(*parts: bytes, kind: str = EVENTS, pause_s: float = 0.0, whole: bool = True, then: str = "keep") -> "Do":
    """A response in chunks, one a part, with a pause before each but the first."""
    chunks = [b"%x\r\n%b\r\n" % (len(part), part) for part in parts]
    head = f"HTTP/1.1 200 OK\r\n{kind}\r\ntransfer-encoding: chunked\r\n\r\n".encode()
    rest = [(pause_s, chunk) for chunk in chunks[1:]]
    return Do(head + b"".join(chunks[:1]), rest=(*rest, *([(0.0, b"0\r\n\r\n")] if whole else [])), then=then)


@dataclass(frozen=True)
class Do:
    """Bytes to send, after a while, what follows after pauses, and what happens to the connection then."""

    data: bytes = b""
    after_s: float = 0.0
    rest: tuple[tuple[float, bytes], ...] = ()
    then: str = "keep"  # keep, close, reset


@dataclass
class FakeLLMServer:
    """The server. `script` gets the number of the request and its JSON, and says what to do."""

    script: Callable[[int, dict[str, Any]], Do | bytes] = lambda number, request: scores(0.5)
    context: ssl.SSLContext | None = None
    port: int = 0
    own: str = field(default_factory=lambda: uuid4().hex[:8])
    """In its address, by which `roles` names its models: a port comes back, and with it what another server said."""
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[str] = field(default_factory=list)
    in_flight: int = 0
    most_in_flight: int = 0
    connected: int = 0
    """Connections up to now."""

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
        deed = self.script(len(self.requests), request)
        deed = Do(deed) if isinstance(deed, bytes) else deed
        await asyncio.sleep(deed.after_s)
        self.in_flight -= 1
        for pause_s, part in ((0.0, deed.data), *deed.rest):
            await asyncio.sleep(pause_s)
            writer.write(part)
            await writer.drain()
        if deed.then == "reset":
            linger = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        if deed.then != "keep":
            writer.close()
