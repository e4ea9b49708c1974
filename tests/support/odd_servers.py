"""A server on real sockets that sends anything for any time. Imported by full name."""

import json
import socket
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache

OK_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
CHUNKED_HEAD = OK_HEAD + b"transfer-encoding: chunked\r\n\r\n"
BLOCK = b" " * 65_536
Feed = Callable[[], Iterator[bytes]]


@dataclass
class OddServer:
    """A server's received requests and number of sent bytes; it sends until the client hangs up."""

    feed: Feed
    port: int = 0
    sent: int = 0
    heads: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def answer(self, connection: socket.socket) -> None:
        connection.settimeout(20)
        with connection, suppress(OSError):
            while head := connection.recv(65_536):  # small requests
                self.heads.append(head.decode("latin-1"))
                for part in self.feed():
                    connection.sendall(part)
                    self.sent += len(part)


@contextmanager
def open_odd_server(feed: Feed) -> Iterator[OddServer]:
    """Run an odd server while the context lasts."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = OddServer(feed, listener.getsockname()[1])

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    threading.Thread(target=server.answer, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield server
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)


def whole(content: bytes, *headers: bytes) -> bytes:
    """Return a response with status 200."""
    return OK_HEAD + b"".join(h + b"\r\n" for h in headers) + b"content-length: %d\r\n\r\n" % len(content) + content


def make_json_feed(value: object) -> Feed:
    """Return a feed of one JSON reply."""
    return lambda: iter([whole(json.dumps(value).encode())])


@cache
def gzip_blanks(size: int, layers: int = 1) -> bytes:
    """Return blanks of that size, compressed with gzip once or several times."""
    packer = zlib.compressobj(1, wbits=31)
    content = b"".join(packer.compress(BLOCK) for _ in range(size // len(BLOCK))) + packer.flush()
    for _ in range(layers - 1):
        packer = zlib.compressobj(1, wbits=31)
        content = packer.compress(content) + packer.flush()
    return content


def make_endless_feed(before: bytes, part: bytes) -> Feed:
    """Return a feed that repeats the same bytes for ever after a beginning."""

    def feed() -> Iterator[bytes]:
        yield before
        while True:
            yield part

    return feed


def make_slow_feed(content: bytes, every_s: float = 0.1) -> Feed:
    """Return a feed of single bytes with pauses, each soon enough for a timeout per read."""

    def feed() -> Iterator[bytes]:
        for byte in content:
            yield bytes([byte])
            time.sleep(every_s)

    return feed


BOMB = 256 << 20
OVERSIZED_FEEDS: dict[str, Feed] = {
    "a gzip bomb": lambda: iter([whole(gzip_blanks(BOMB), b"content-encoding: gzip")]),
    "a gzip bomb in gzip": lambda: iter([whole(gzip_blanks(BOMB, 2), b"content-encoding: gzip, gzip")]),
    "gzip without end": make_endless_feed(OK_HEAD + b"content-encoding: gzip\r\n\r\n", gzip_blanks(1 << 20)),
    "a deflate bomb": lambda: iter([whole(zlib.compress(BLOCK * 1_000, 9), b"content-encoding: deflate")]),
    "a body without end": make_endless_feed(OK_HEAD + b"\r\n", BLOCK),
    "chunks without end": make_endless_feed(CHUNKED_HEAD, b"10000\r\n" + BLOCK + b"\r\n"),
    "headers without end": make_endless_feed(OK_HEAD, b"x: y\r\n" * 1_000),
    "a header without end": make_endless_feed(OK_HEAD + b"x: ", b"y" * 65_536),
    "trailers without end": make_endless_feed(CHUNKED_HEAD + b"2\r\n{}\r\n0\r\n", b"x: y\r\n" * 1_000),
}
"""Responses that are too large to be read completely."""
