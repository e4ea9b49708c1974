"""Answers that come as streams: of server-sent events, or of plain text.

A stream is read when it has ended, from bytes that know when they came: so nothing depends on how they were packed,
and what is not whole is never taken for an answer.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, takewhile
from typing import NamedTuple

from yarus.db.tables import Json
from yarus.tasks.cases.outcomes import HIDDEN
from yarus.tasks.models.transport import DONE, EVENTS, Incoming
from yarus.tasks.systems.replies import Parts, Reader, is_only_text, openai_choice

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


PLAIN = "text/plain"
LAST = re.compile(r"(?:^|[._-])(?:end|done|completed?|stop|finish(?:ed)?|close)$", re.IGNORECASE)
FAILED = re.compile(r"(?:^|[._-])(?:error|failed|failure|exception)$", re.IGNORECASE)
"""Names of events that end a stream, well or not."""
DATA = re.compile(rb"(?:^|[\r\n])data")
OF_TEXT = ("", "message", "data", "token", "delta", "text", "chunk", "answer")
"""Names of events whose data, where it is no JSON, is a part of the answer."""
GROWING = 3
"""Parts from which on it is no chance that each repeats the one before and adds to it."""


def is_events(coming: Incoming) -> bool:
    """Whether a response is a stream of events, whose servers sometimes call it plain text."""
    return coming.kind == EVENTS or (coming.kind == PLAIN and coming.content.startswith((b"data:", b"event:")))


def is_text(coming: Incoming) -> bool:
    """Whether it is an answer in plain text that comes in chunks; what looks like JSON is meant to be that."""
    chunked = "chunked" in coming.headers.get("transfer-encoding", "").lower()
    return coming.kind == PLAIN and chunked and not coming.content.lstrip().startswith(b"{")


def read_text(coming: Incoming) -> Parts:
    """The answer in plain text, and when it began and ended.

    Raises:
        UnicodeDecodeError: it is not UTF-8.
    """
    answer, size = coming.content.decode("utf-8-sig"), len(coming.content)
    return {
        "answer": answer,
        **({"first_token_ms": coming.ms_until(1), "latency_ms": coming.ms_until(size)} if size else {}),
    }


def read_events(coming: Incoming, reader: Reader) -> Parts:
    """What a stream of events says, and when its answer began and ended.

    Raises:
        ValueError: it is not whole, or says that it failed, or an event cannot be read.
    """
    body = bytes(coming.content)
    every = list(events(body))
    stream = _Stream(is_over=DONE.search(body) is not None)
    for event, said in _documents(every):
        stream.add(event, said, reader)
    stream.is_over = stream.is_over or (stream.is_named_over and not stream.is_openai)
    if not stream.is_over and (stream.is_openai or not coming.is_framed):
        raise ValueError("the stream ended in the middle, with neither finish_reason nor [DONE]")
    if not stream.is_over and DATA.search(body[every[-1].size if every else 0 :]):
        raise ValueError("the stream ended within an event")
    found, pieces = stream.found, stream.pieces or stream.wholes
    if not pieces and not stream.is_openai and found.get("path") != HIDDEN:  # OpenAI's silence is a refusal
        raise ValueError(f"no event has a part of the answer (token, answer): set {reader.delta_setting}")
    texts = [piece for piece, _ in pieces]
    found["answer"] = texts[-1] if not stream.is_openai and _grow(texts) else "".join(texts)
    if pieces:
        found["first_token_ms"] = coming.ms_until(pieces[0][1])
        if found.get("latency_ms") is None:
            found["latency_ms"] = coming.ms_until(pieces[-1][1])
    return found


def begun(coming: Incoming, reader: Reader) -> str:
    """What had come of an answer that broke off, as far as it can be read; empty where it was no stream."""
    if is_text(coming):
        return coming.content.decode("utf-8", "replace")
    if not is_events(coming):
        return ""
    try:
        said = [(event, one) for event, one in _documents(list(events(bytes(coming.content))))]
        pieces = [reader.piece(one) if isinstance(one, dict) else one for _, one in said]
    except ValueError:
        return coming.content.decode("utf-8", "replace")
    return "".join(piece or "" for piece in pieces)


@dataclass(slots=True)
class _Stream:
    """What the events have said up to now."""

    is_over: bool
    is_named_over: bool = False
    """By the name of an event, after which no part of the answer came: other things end too."""
    is_openai: bool = False
    found: Parts = field(default_factory=dict)
    """What was said last of each part."""
    pieces: list[tuple[str, int]] = field(default_factory=list)
    """Parts of the answer's text, and how many bytes had come with each."""
    wholes: list[tuple[str, int]] = field(default_factory=list)
    """What stands where a reply has its answer: parts too, where there are no others."""

    def add(self, event: Event, said: Json | str | None, reader: Reader) -> None:
        if _failed(event, said):
            raise ValueError(f"the stream says that it failed: {event.data}")
        before = len(self.pieces) + len(self.wholes)
        if isinstance(said, dict):
            self._add_object(event, said, reader)
        elif said and event.name in OF_TEXT:
            self.pieces.append((said, event.size))
        if event.name and LAST.search(event.name):
            self.is_named_over = True
        elif len(self.pieces) + len(self.wholes) > before:
            self.is_named_over = False

    def _add_object(self, event: Event, said: Json, reader: Reader) -> None:
        choice = openai_choice(said)
        self.is_openai = self.is_openai or choice is not None
        self.is_over = self.is_over or bool(choice and choice.get("finish_reason"))
        if piece := reader.piece(said):
            self.pieces.append((piece, event.size))
            if is_only_text(said, choice):
                return
        parts = reader.parts(said)
        if isinstance(whole := parts.pop("answer"), str) and whole:
            self.wholes.append((whole, event.size))
        for name, value in parts.items():
            if value is False:  # a condition that does not hold
                continue
            if value not in (None, "", []) or self.found.get(name) is None:
                self.found[name] = value


def _failed(event: Event, said: Json | str | None) -> bool:
    """Whether an event says so: by its name, its type, an error in it, or why it finished."""
    kind = said.get("type") if isinstance(said, dict) else None
    if any(isinstance(name, str) and FAILED.search(name) for name in (event.name, kind)):
        return True
    if not isinstance(said, dict):
        return False
    return bool(said.get("error")) or (openai_choice(said) or {}).get("finish_reason") == "error"


def _grow(texts: Sequence[str]) -> bool:
    """Whether each repeats all that was said and adds to it, so that the last is the answer."""
    growing = (later.startswith(before) and later != before for before, later in pairwise(texts))
    return len(texts) >= GROWING and all(growing)


def _documents(every: Sequence[Event]) -> Iterator[tuple[Event, Json | str | None]]:
    """The events with what they say: an object, a text, or nothing.

    Texts stand in the data as they are; where all of them are written as JSON has texts, they are read so.

    Raises:
        ValueError: an object that is none, in a stream of objects.
    """
    kept = list(takewhile(lambda event: event.data != "[DONE]", every))
    objects = [_object(event.data) for event in kept]
    plain = [event.data for event, found in zip(kept, objects, strict=True) if found is None and event.data]
    if any(found is not None for found in objects):
        for text in plain:
            if text.startswith("{"):
                raise ValueError(f"an event is no JSON: {text}")
    texts = iter(_json_texts(plain) or plain)
    for event, found in zip(kept, objects, strict=True):
        yield event, found if found is not None else next(texts) if event.data else None


def _object(data: str) -> Json | None:
    if not data.lstrip().startswith("{"):
        return None
    try:
        found: Json = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return found


def _json_texts(written: Sequence[str]) -> list[str] | None:
    """What JSON texts say; None where one of these is none."""
    try:
        found = [json.loads(text) for text in written]
    except (ValueError, RecursionError):
        return None
    return found if all(isinstance(text, str) for text in found) else None
