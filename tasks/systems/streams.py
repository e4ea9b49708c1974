"""Streamed answers: server-sent events, or plain text.

A stream is read when it has ended, from bytes that know when they came. The result does not depend on packets, and an
incomplete stream is never an answer.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, takewhile
from typing import NamedTuple

from yarus.db.tables import JsonObject
from yarus.tasks.cases.outcomes import HIDDEN_PATH
from yarus.tasks.models.transport import EVENT_STREAM_TYPE, STREAM_END, IncomingResponse
from yarus.tasks.systems.replies import AnswerParts, ReplyReader, find_openai_choice, is_only_text

BOM = b"\xef\xbb\xbf"
EVENT_LINE = re.compile(rb"([^\r\n]*)(?:\r\n|\r|\n)")


class Event(NamedTuple):
    """Event of a stream."""

    name: str
    """Name of the event; empty if it has none."""
    data: str
    """Its lines of data."""
    size: int
    """Bytes of the body until it was whole."""


def parse_events(body: bytes) -> Iterator[Event]:
    """Yield the complete events of a body, in their order; comments, ids and retry times are skipped.

    An event that has a name and no data counts too, unlike in browsers: `event: end` is how some streams end.

    Args:
        body: UTF-8, with lines that end in CRLF, LF or CR; it may end within an event, which is then left out.

    Raises:
        UnicodeDecodeError: it is not UTF-8.
    """
    name, data = b"", list[bytes]()
    for line in EVENT_LINE.finditer(body, len(BOM) if body.startswith(BOM) else 0):
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


PLAIN_TEXT_TYPE = "text/plain"
END_EVENT = re.compile(r"(?:^|[._-])(?:end|done|completed?|stop|finish(?:ed)?|close)$", re.IGNORECASE)
FAILURE_EVENT = re.compile(r"(?:^|[._-])(?:error|failed|failure|exception)$", re.IGNORECASE)
"""Names of events that end a stream, with success or failure."""
DATA_LINE = re.compile(rb"(?:^|[\r\n])data")
TEXT_EVENTS = ("", "message", "data", "token", "delta", "text", "chunk", "answer")
"""Names of events whose data, if it is not JSON, is a part of the answer."""
MIN_GROWING_PARTS = 3
"""Number of parts from which growing texts cannot be chance."""


def is_event_stream(incoming: IncomingResponse) -> bool:
    """Return whether a response is a stream of events; some servers call such streams plain text."""
    return incoming.kind == EVENT_STREAM_TYPE or (
        incoming.kind == PLAIN_TEXT_TYPE and incoming.content.startswith((b"data:", b"event:"))
    )


def is_plain_text(incoming: IncomingResponse) -> bool:
    """Return whether a response is an answer in chunked plain text; text that looks like JSON is not."""
    chunked = "chunked" in incoming.headers.get("transfer-encoding", "").lower()
    return incoming.kind == PLAIN_TEXT_TYPE and chunked and not incoming.content.lstrip().startswith(b"{")


def read_text(incoming: IncomingResponse) -> AnswerParts:
    """Return the answer in plain text, and when it began and ended.

    Raises:
        UnicodeDecodeError: it is not UTF-8.
    """
    answer, size = incoming.content.decode("utf-8-sig"), len(incoming.content)
    return {
        "answer": answer,
        **({"first_token_ms": incoming.ms_until(1), "latency_ms": incoming.ms_until(size)} if size else {}),
    }


def read_events(incoming: IncomingResponse, reader: ReplyReader) -> AnswerParts:
    """Return the parts of the answer in a stream of events, and when the answer began and ended.

    Raises:
        ValueError: the stream is incomplete, reports a failure, or has an unreadable event.
    """
    body = bytes(incoming.content)
    all_events = list(parse_events(body))
    stream = _Stream(is_over=STREAM_END.search(body) is not None)
    for event, document in _parse_documents(all_events):
        stream.add(event, document, reader)
    stream.is_over = stream.is_over or (stream.is_named_over and not stream.is_openai)
    if not stream.is_over and (stream.is_openai or not incoming.is_framed):
        raise ValueError("the stream ended in the middle, with neither finish_reason nor [DONE]")
    if not stream.is_over and DATA_LINE.search(body[all_events[-1].size if all_events else 0 :]):
        raise ValueError("the stream ended within an event")
    answer_parts, deltas = stream.parts, stream.deltas or stream.answers
    # An empty stream of OpenAI's protocol is a refusal.
    if not deltas and not stream.is_openai and answer_parts.get("path") != HIDDEN_PATH:
        raise ValueError(f"no event has a part of the answer (token, answer): set {reader.delta_setting}")
    texts = [delta for delta, _ in deltas]
    answer_parts["answer"] = texts[-1] if not stream.is_openai and _is_growing(texts) else "".join(texts)
    if deltas:
        answer_parts["first_token_ms"] = incoming.ms_until(deltas[0][1])
        if answer_parts.get("latency_ms") is None:
            answer_parts["latency_ms"] = incoming.ms_until(deltas[-1][1])
    return answer_parts


def read_partial_answer(incoming: IncomingResponse, reader: ReplyReader) -> str:
    """Return the readable beginning of an answer that broke off; '' if it was not a stream."""
    if is_plain_text(incoming):
        return incoming.content.decode("utf-8", "replace")
    if not is_event_stream(incoming):
        return ""
    try:
        pairs = [(event, document) for event, document in _parse_documents(list(parse_events(bytes(incoming.content))))]
        deltas = [reader.find_delta(document) if isinstance(document, dict) else document for _, document in pairs]
    except ValueError:
        return incoming.content.decode("utf-8", "replace")
    return "".join(delta or "" for delta in deltas)


@dataclass(slots=True)
class _Stream:
    """State of a stream after the events so far."""

    is_over: bool
    is_named_over: bool = False
    """Whether an event's name marks an end, and no part of the answer came after it."""
    is_openai: bool = False
    parts: AnswerParts = field(default_factory=dict)
    """Last value of each part."""
    deltas: list[tuple[str, int]] = field(default_factory=list)
    """Parts of the answer's text, and the size of the body after each."""
    answers: list[tuple[str, int]] = field(default_factory=list)
    """Texts in the answer field of events; they are used without deltas."""

    def add(self, event: Event, document: JsonObject | str | None, reader: ReplyReader) -> None:
        if _is_failure(event, document):
            raise ValueError(f"the stream says that it failed: {event.data}")
        before = len(self.deltas) + len(self.answers)
        if isinstance(document, dict):
            self._add_object(event, document, reader)
        elif document and event.name in TEXT_EVENTS:
            self.deltas.append((document, event.size))
        if event.name and END_EVENT.search(event.name):
            self.is_named_over = True
        elif len(self.deltas) + len(self.answers) > before:
            self.is_named_over = False

    def _add_object(self, event: Event, document: JsonObject, reader: ReplyReader) -> None:
        choice = find_openai_choice(document)
        self.is_openai = self.is_openai or choice is not None
        self.is_over = self.is_over or bool(choice and choice.get("finish_reason"))
        if delta := reader.find_delta(document):
            self.deltas.append((delta, event.size))
            if is_only_text(document, choice):
                return
        event_parts = reader.parts(document)
        if isinstance(answer := event_parts.pop("answer"), str) and answer:
            self.answers.append((answer, event.size))
        for name, value in event_parts.items():
            if value is False:  # result of a condition that does not hold
                continue
            if value not in (None, "", []) or self.parts.get(name) is None:
                self.parts[name] = value


def _is_failure(event: Event, document: JsonObject | str | None) -> bool:
    """Return whether an event reports a failure: by its name, its type, an error in it, or its finish reason."""
    event_type = document.get("type") if isinstance(document, dict) else None
    if any(isinstance(name, str) and FAILURE_EVENT.search(name) for name in (event.name, event_type)):
        return True
    if not isinstance(document, dict):
        return False
    return bool(document.get("error")) or (find_openai_choice(document) or {}).get("finish_reason") == "error"


def _is_growing(texts: Sequence[str]) -> bool:
    """Return whether each text repeats the one before and adds to it, so that the last is the answer."""
    extensions = (later.startswith(earlier) and later != earlier for earlier, later in pairwise(texts))
    return len(texts) >= MIN_GROWING_PARTS and all(extensions)


def _parse_documents(all_events: Sequence[Event]) -> Iterator[tuple[Event, JsonObject | str | None]]:
    """Yield the events with their content: an object, a text, or None.

    Texts are taken as they are; if all of them are JSON strings, they are decoded.

    Raises:
        ValueError: a stream of objects has an invalid object.
    """
    events = list(takewhile(lambda event: event.data != "[DONE]", all_events))
    objects = [_parse_object(event.data) for event in events]
    raw_texts = [event.data for event, document in zip(events, objects, strict=True) if document is None and event.data]
    if any(document is not None for document in objects):
        for text in raw_texts:
            if text.startswith("{"):
                raise ValueError(f"an event is no JSON: {text}")
    texts = iter(_decode_texts(raw_texts) or raw_texts)
    for event, document in zip(events, objects, strict=True):
        yield event, document if document is not None else next(texts) if event.data else None


def _parse_object(data: str) -> JsonObject | None:
    if not data.lstrip().startswith("{"):
        return None
    try:
        document: JsonObject = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return document


def _decode_texts(raw_texts: Sequence[str]) -> list[str] | None:
    """Return the texts of JSON strings; None if one of them is not a JSON string."""
    try:
        decoded = [json.loads(text) for text in raw_texts]
    except (ValueError, RecursionError):
        return None
    return decoded if all(isinstance(text, str) for text in decoded) else None
