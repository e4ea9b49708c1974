"""Server-sent events: the body of a stream, cut into events as the standard says.

Reference: https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

BOM = b"\xef\xbb\xbf"
LINE = re.compile(rb"([^\r\n]*)(?:\r\n|\r|\n)")


class Event(NamedTuple):
    """One event of a stream."""

    name: str
    """Empty where it has none."""
    data: str
    """Its lines of data."""
    size: int
    """Bytes of the body until it was whole."""


def events(body: bytes) -> Iterator[Event]:
    """The whole events of a body, in their order; comments, ids and times to retry are none.

    An event that has a name and no data counts too, unlike in browsers: `event: end` is how some streams end.

    Args:
        body: UTF-8, with lines that end in CRLF, LF or CR; it may end within an event, which is then left out.

    Raises:
        UnicodeDecodeError: it is not UTF-8.
    """
    name, data = b"", list[bytes]()
    for line in LINE.finditer(body, len(BOM) if body.startswith(BOM) else 0):
        if not line[1]:
            if name or data:
                yield Event(name.decode(), b"\n".join(data).decode(), line.end())
            name, data = b"", []
            continue
        field, _, value = line[1].partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            data.append(value)
        elif field == b"event":
            name = value
