"""Recorded traces as a source: questions with the answers that were given, and how these came about.

Written by an OpenTelemetry collector (OTLP as JSON, one request a line or one document; attributes of OpenInference,
as Phoenix has them, or OpenTelemetry's own `gen_ai.*`), by SDKs, or by Langfuse (traces, observations); plain or packed
by gzip. A trace is a question; a passage that was retrieved is a chunk; a session is a dialog.
"""

import zlib
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from db.errors import InputError
from db.importers.files import read_json
from db.importers.lines import UNREADABLE, json_values, opened
from db.importers.traces.langfuse import observation_of, trace_of
from db.importers.traces.otlp import span_of, spans_in
from db.importers.traces.requests import Read, requests_of
from db.importers.traces.spans import Span, Spool, when
from db.loading.fill import Stream
from db.loading.recorded import chunks
from db.loading.staging import Rejected, Row
from db.words import Words

REQUESTS = ("resourceSpans", "resource_spans", "batches")
LISTS = ("data", "traces", "spans", "observations", "items", "result")
EXPECTED = Words(
    "expected OTLP as JSON (resourceSpans), spans as an SDK prints them, or traces or observations as Langfuse exports "
    "them"
)
ZSTD = b"\x28\xb5\x2f\xfd"


def read(paths: Sequence[Path]) -> Stream:
    """Reads traces whose spans may stand anywhere in the files, in any order.

    Memory holds one trace at a time. What is no trace, and traces without a question, are counted with their reason.

    Args:
        paths: of one export; of a trace that is in two files, both must be among them.

    Raises:
        InputError: unreadable, no JSON, cut off, or without any trace.
    """
    spool, others = Spool(), list[str]()
    for path in paths:
        for place, document in _documents(path):
            _add(document, place, spool, others)
    if not spool.added:
        first = Words("; {problem}", problem=others[0]) if others else ""
        raise InputError(
            "{paths}: no traces: {expected}{first}; nothing was loaded",
            paths=", ".join(map(str, paths)),
            expected=EXPECTED,
            first=first,
        )
    stream = Stream(new_chunks_only=True)
    if others:
        stream.problems.append(
            Words("{n_others:,} objects are no traces, not loaded: {problem}", n_others=len(others), problem=others[0])
        )
    if spool.doubled:
        stream.problems.append(
            Words("{doubled:,} spans were there twice: the one that tells more counts", doubled=spool.doubled)
        )
    sessions: list[Row] = []
    stream.chunks = chunks(_recorded(spool, stream.problems), stream.problems)
    stream.questions = _questions(spool, sessions)
    stream.annotations = sessions
    return stream


def _documents(path: Path) -> Iterator[tuple[str, Any]]:
    """The JSON documents of a file, one a line or one alone, each with its place.

    Raises:
        InputError: not there, not readable, packed by zstd, or no JSON.
    """
    try:
        with path.open("rb") as file:
            if file.read(4) == ZSTD:
                raise InputError("{path}: packed by zstd; unpack it first: zstd -d {name}", path=path, name=path.name)
    except OSError as error:
        raise InputError("{path}: {reason}; nothing was loaded", path=path, reason=error.strerror or error) from None
    if _by_line(path):
        yield from json_values(path)
    else:
        yield path.name, read_json(path)


def _by_line(path: Path) -> bool:
    """Whether the first line that is not empty is a document of its own, or else the file is one."""
    try:
        next(json_values(path), None)
    except InputError:
        with suppress(OSError, EOFError, zlib.error), opened(path) as file:
            return not file.read(1_000).removeprefix(BOM_UTF8).lstrip().startswith((b"{", b"["))
    return True


def _add(document: Any, place: str, spool: Spool, others: list[str]) -> None:
    """Adds the spans of a document, whatever it is."""
    try:
        for span in _spans(document):
            if isinstance(span, str):
                others.append(Words("{place}: {problem}", place=place, problem=span))
            else:
                spool.add(span)
    except RecursionError:
        raise InputError("{place}: {unreadable}; nothing was loaded", place=place, unreadable=UNREADABLE) from None


def _spans(given: Any) -> Iterator[Span | str]:
    """The spans of a document; a text says of a part why it is none."""
    if isinstance(given, list):
        for one in given:
            yield from _spans(one)
    elif not isinstance(given, dict):
        yield Words("{kind} is no trace", kind=type(given).__name__)
    elif (of_resources := _under(given, REQUESTS)) is not None:
        for span in spans_in(of_resources):
            yield span_of(span) or Words("a span without ids")
    else:
        yield from _one(given)


def _one(given: dict[str, Any]) -> Iterator[Span | str]:
    """The same of an object that is no request to export traces."""
    scored = "value" in given and "name" in given and not {"type", "input"} & given.keys()
    if isinstance(given.get("context"), dict) or not given.keys().isdisjoint(("spanId", "span_id")):
        yield span_of(given) or Words("a span without ids")
    elif "id" in given and not given.keys().isdisjoint(("traceId", "trace_id")) and not scored:
        yield observation_of(given) or Words("an observation without ids")
    elif isinstance(given.get("trace"), dict) or ({"id", "timestamp"} <= given.keys() and not scored):
        for found in trace_of(given):
            yield found or Words("an observation or a trace without ids")
    elif isinstance(inner := _under(given, LISTS), list):
        yield from _spans(inner)
    else:
        names = ", ".join(map(repr, sorted(given)[:5]))
        yield Words("an object with {names}", names=names) if names else Words("an object with nothing in it")


def _under(given: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((given[name] for name in names if name in given), None)


def _recorded(spool: Spool, problems: list[str]) -> Iterator[tuple[str, dict[str, Any] | None]]:
    """What is recorded with every question; the questions are kept for their own table, and what was met is told."""
    met, first = Counter[str](), dict[str, str]()
    for spans in spool.traces():
        trace_id = spans[0].trace_id
        read: Read = requests_of(spans)
        for note in dict.fromkeys(read.notes):
            met[note] += 1
            first.setdefault(note, trace_id)
        if read.missing:
            spool.keep({"trace": trace_id, "missing": read.missing})
        for request in read.requests:
            spool.keep({"trace": trace_id, **vars(request)})
            yield _place(trace_id), request.recorded
    problems += [
        Words("{n:,} traces {note} ({first} first)", n=n, note=note, first=first[note])
        for note, n in sorted(met.items())
    ]


def _questions(spool: Spool, sessions: list[Row]) -> Iterator[Row | Rejected]:
    """The rows of the log; the dialogs that they belong to are added to `sessions`."""
    for made in spool.kept():
        place = _place(made["trace"])
        if "missing" in made:
            yield Rejected(place, made["missing"])
            continue
        values = {name: made[name] for name in ("id", "question", "answer", "score", "recorded")}
        yield Row(place, values | {"user_id": made["user"], "created_at": when(made["start_ns"])})
        if made["session"] is not None:
            sessions.append(Row(place, {"question_id": made["id"], "dialog_id": made["session"]}))


def _place(trace_id: str) -> str:
    return Words("trace {id}", id=trace_id)
