"""Messages between Yarus and a worker: their length in 8 bytes, then JSON."""

from __future__ import annotations

import json
import socket
import struct
from typing import Any

LENGTH = struct.Struct(">Q")
MAX_PART = 1 << 20


def pack_message(message: Any) -> bytes:
    """Return the message with its length in front.

    Raises:
        TypeError, ValueError, RecursionError: JSON cannot hold it.
    """
    content = encode_message(message)
    return LENGTH.pack(len(content)) + content


def encode_message(message: Any) -> bytes:
    """Return the message without its length; half an emoji is allowed."""
    return json.dumps(message, ensure_ascii=False).encode("utf-8", "surrogatepass")


def decode_message(content: bytes) -> Any:
    """Return the message in these bytes."""
    return json.loads(content.decode("utf-8", "surrogatepass"))


def receive(line: socket.socket) -> Any:
    """Return the next message; None if the other end is closed."""
    header = receive_exactly(line, LENGTH.size)
    content = header and receive_exactly(line, LENGTH.unpack(header)[0])
    return decode_message(content) if content else None


def receive_exactly(line: socket.socket, size: int) -> bytes | None:
    """Return `size` bytes; None if the other end is closed.

    Raises:
        socket.timeout: nothing came within the time limit of the line.
    """
    parts = []
    while size:
        try:
            part = line.recv(min(size, MAX_PART))
        except ConnectionError:
            return None
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
