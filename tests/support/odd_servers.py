"""A server on real sockets that sends what it likes for as long as it likes. Imported by full name."""

import json
import socket
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache

OK = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
CHUNKED = OK + b"transfer-encoding: chunked\r\n\r\n"
BLOCK = b" " * 65_536
Feed = Callable[[], Iterator[bytes]]


@dataclass
class Stranger:
    """What it has been asked and has sent; whoever has had enough hangs up."""

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
def stranger(feed: Feed) -> Iterator[Stranger]:
    """Runs while the block lasts."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        found = Stranger(feed, listening.getsockname()[1])

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listening.accept()
                    threading.Thread(target=found.answer, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield found
        with suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)


def whole(content: bytes, *headers: bytes) -> bytes:
    """A response of 200."""
    return (
        OK + b"".join(header + b"\r\n" for header in headers) + b"content-length: %d\r\n\r\n" % len(content) + content
    )


def says(value: object) -> Feed:
    """One reply, as JSON."""
    return lambda: iter([whole(json.dumps(value).encode())])


@cache
def packed(size: int, layers: int = 1) -> bytes:
    """So many blanks, in gzip, once or several times."""
    packer = zlib.compressobj(1, wbits=31)
    content = b"".join(packer.compress(BLOCK) for _ in range(size // len(BLOCK))) + packer.flush()
    for _ in range(layers - 1):
        packer = zlib.compressobj(1, wbits=31)
        content = packer.compress(content) + packer.flush()
    return content


def endless(before: bytes, part: bytes) -> Feed:
    """Something, and then the same for ever."""

    def feed() -> Iterator[bytes]:
        yield before
        while True:
            yield part

    return feed


def dripping(content: bytes, every_s: float = 0.1) -> Feed:
    """A byte now and then, each soon enough for a limit of one read."""

    def feed() -> Iterator[bytes]:
        for byte in content:
            yield bytes([byte])
            time.sleep(every_s)

    return feed


BOMB = 256 << 20
FLOODS: dict[str, Feed] = {
    "a gzip bomb": lambda: iter([whole(packed(BOMB), b"content-encoding: gzip")]),
    "a gzip bomb in gzip": lambda: iter([whole(packed(BOMB, 2), b"content-encoding: gzip, gzip")]),
    "gzip without end": endless(OK + b"content-encoding: gzip\r\n\r\n", packed(1 << 20)),
    "a deflate bomb": lambda: iter([whole(zlib.compress(BLOCK * 1_000, 9), b"content-encoding: deflate")]),
    "a body without end": endless(OK + b"\r\n", BLOCK),
    "chunks without end": endless(CHUNKED, b"10000\r\n" + BLOCK + b"\r\n"),
    "headers without end": endless(OK, b"x: y\r\n" * 1_000),
    "a header without end": endless(OK + b"x: ", b"y" * 65_536),
    "trailers without end": endless(CHUNKED + b"2\r\n{}\r\n0\r\n", b"x: y\r\n" * 1_000),
}
"""More than anybody should read. What ends by its size."""
