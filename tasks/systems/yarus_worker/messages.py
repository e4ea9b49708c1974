"""Messages between us and a worker: their length in 8 bytes, then JSON."""

from __future__ import annotations

import json
import socket
import struct
from typing import Any

LENGTH = struct.Struct(">Q")
PART = 1 << 20


def packed(message: Any) -> bytes:
    """The message as it is sent.

    Raises:
        TypeError, ValueError, RecursionError: it is not what JSON has.
    """
    content = unheaded(message)
    return LENGTH.pack(len(content)) + content


def unheaded(message: Any) -> bytes:
    """The message without its length; half an emoji is let pass."""
    return json.dumps(message, ensure_ascii=False).encode("utf-8", "surrogatepass")


def read(content: bytes) -> Any:
    """The message in these bytes."""
    return json.loads(content.decode("utf-8", "surrogatepass"))


def receive(line: socket.socket) -> Any:
    """The next message; None where there will be none."""
    header = exactly(line, LENGTH.size)
    content = header and exactly(line, LENGTH.unpack(header)[0])
    return read(content) if content else None


def exactly(line: socket.socket, size: int) -> bytes | None:
    """So many bytes; None where the other end is gone.

    Raises:
        socket.timeout: nothing came for as long as the line waits.
    """
    parts = []
    while size:
        try:
            part = line.recv(min(size, PART))
        except ConnectionError:
            return None
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
