"""Recorded traces as a source: questions with the answers that were given, and how these came about.

Written by an OpenTelemetry collector (OTLP as JSON, one request a line or one document; attributes of OpenInference,
as Phoenix has them, or OpenTelemetry's own `gen_ai.*`), by SDKs, or by Langfuse (traces, observations), LangSmith
(runs) or TruLens (records); plain or packed by gzip. Rows of tables are read by `read_documents`. A trace is a
question; a passage that was retrieved is a chunk; a session is a dialog.
"""

import zlib
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from yarus.db.errors import InputError
from yarus.db.importers.files import read_json
from yarus.db.importers.lines import UNREADABLE, json_values, name_file, opened
from yarus.db.importers.said import MAX_LEVELS, parsed
from yarus.db.importers.traces.langfuse import parse_observation, parse_trace, split_trace
from yarus.db.importers.traces.langsmith import parse_run
from yarus.db.importers.traces.otlp import parse_span, spans_in
from yarus.db.importers.traces.plain_values import MissingIds, UnusableSpan, to_plain
from yarus.db.importers.traces.recognise import REQUESTS, SPAN_IDS, is_record, is_run
from yarus.db.importers.traces.recognise import is_trace_row as is_trace_row
from yarus.db.importers.traces.requests import Read, requests_of
from yarus.db.importers.traces.spans import Span, Spool, when
from yarus.db.importers.traces.trulens import find_retrievals, parse_call, parse_record
from yarus.db.importers.traces.values import nested
from yarus.db.loading.fill import Stream
from yarus.db.loading.recorded import Record, chunks
from yarus.db.loading.staging import Rejected, Row
from yarus.db.words import Words

LISTS = ("data", "traces", "spans", "observations", "runs", "items", "result")
EXPECTED = Words(
    "expected OTLP as JSON (resourceSpans), spans as an SDK or Phoenix writes them, traces or observations of "
    "Langfuse, runs of LangSmith, or records of TruLens"
)
ZSTD = b"\x28\xb5\x2f\xfd"
FOLDED = ("context", "attributes", "status", "inputs", "outputs", "extra", "metadata", "feedback_stats")
"""Objects whose parts tables have as columns of their own: `context.trace_id`."""
LONGEST_NAME = 60
"""Characters of a name in a message."""
Part = tuple[Callable[[Mapping[str, Any]], Span], Mapping[str, Any]]
"""What may be a span, and what reads it."""


@dataclass
class LeftOut:
    """What is not loaded: how much, and the first with its place."""

    others: int = 0
    """Objects that are no traces."""
    other: str = ""
    broken: int = 0
    """Spans that cannot be read."""
    first_broken: str = ""

    def add_other(self, place: str, reason: str) -> None:
        """Count an object that is no trace."""
        self.others += 1
        self.other = self.other or Words("{place}: {problem}", place=place, problem=reason)

    def add_broken(self, place: str, reason: str) -> None:
        """Count a span that cannot be read."""
        self.broken += 1
        self.first_broken = self.first_broken or Words("{place}: {problem}", place=place, problem=reason)

    @property
    def first(self) -> str:
        """The first of all, as it goes into the message that there are no traces."""
        problem = self.first_broken or self.other
        return Words("; {problem}", problem=problem) if problem else ""

    def describe(self) -> Iterator[str]:
        """Yield a sentence for each kind."""
        if self.others:
            yield Words(
                "{n_others:,} objects are no traces, not loaded: {problem}", n_others=self.others, problem=self.other
            )
        if self.broken:
            yield Words("{n:,} spans cannot be read, not loaded: {problem}", n=self.broken, problem=self.first_broken)


def read_documents(documents: Iterable[tuple[str, Any]], names: str = "rows") -> Stream:
    """Read traces from documents or rows of any container, in any order.

    Args:
        documents: place -> a row as a dict, a list of them, or a request to export traces. Values may be JSON text,
            numpy arrays, dates, bytes, nested, or missing (None, NaN, NaT, ''); names may be dotted
            (`attributes.input.value`). A `Rejected` is counted with its reason.
        names: of the files, for the message that there are no traces.

    Raises:
        InputError: not one trace is among them.
    """
    spool, left_out = Spool(), LeftOut()
    for place, document in documents:
        _add(document, place, spool, left_out)
    if not spool.added:
        raise InputError(
            "{paths}: no traces: {expected}{first}; nothing was loaded",
            paths=names,
            expected=EXPECTED,
            first=left_out.first,
        )
    stream = Stream(new_chunks_only=True)
    stream.problems += left_out.describe()
    if spool.doubled:
        stream.problems.append(
            Words("{doubled:,} spans were there twice: the one that tells more counts", doubled=spool.doubled)
        )
    stream.chunks = chunks(_recorded(spool, stream.problems), stream.problems)
    stream.questions = _questions(spool)
    stream.annotations = _annotations(spool)
    return stream


def documents_in(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the JSON documents of a file, each with its place.

    Raises:
        InputError: not there, not readable, packed by zstd, or no JSON.
    """
    with name_file(path), path.open("rb") as file:
        if file.read(4) == ZSTD:
            raise InputError("{path}: packed by zstd; unpack it first: zstd -d {name}", path=path, name=path.name)
    if _is_by_line(path):
        yield from json_values(path)
    else:
        yield path.name, read_json(path)


def is_json(path: Path) -> bool:
    """Return whether a file begins as JSON does; also if it cannot be read, which its reader explains."""
    with suppress(OSError, EOFError, zlib.error), opened(path) as file:
        head = file.read(1_000).removeprefix(BOM_UTF8).lstrip()
        return not head or head.startswith((b"{", b"[", ZSTD))
    return True


def _is_by_line(path: Path) -> bool:
    """Return whether the first line that is not empty is a document."""
    try:
        next(json_values(path), None)
    except InputError:
        return False
    return True


def _add(document: Any, place: str, spool: Spool, left_out: LeftOut) -> None:
    """Adds the spans of a document, whatever it is."""
    if isinstance(document, Rejected):
        left_out.add_broken(document.place, document.reason)
        return
    for part in _parts(document, MAX_LEVELS):
        if isinstance(part, str):
            left_out.add_other(place, part)
            continue
        reader, given = part
        try:
            span = reader(_unfold(to_plain(given)))
            span.check_ids()
        except MissingIds as error:
            left_out.add_other(place, error.reason)
        except UnusableSpan as error:
            left_out.add_broken(place, error.reason)
        except RecursionError:
            left_out.add_broken(place, UNREADABLE)
        else:
            spool.add(span)


def _unfold(given: Record) -> Record:
    """Return a row whose columns `context.trace_id` and the like are objects."""
    folded = {name: value for name, value in given.items() if "." in name and name.split(".")[0] in FOLDED}
    if not folded:
        return given
    objects = {name: given[name] for name in FOLDED if isinstance(given.get(name), dict)}
    others = {name: value for name, value in given.items() if name not in folded and name not in objects}
    return others | nested(objects | folded)


def _parts(given: Any, levels: int) -> Iterator[Part | str]:
    """Yield what may be a span in a document, with its reader; a text says of a part why it is none."""
    if isinstance(given, np.ndarray | tuple):
        given = list(given)
    if levels <= 0:
        yield Words("nested in more than {most} levels, or without end", most=MAX_LEVELS)
    elif isinstance(given, list):
        for one in given:
            yield from _parts(one, levels - 1)
    elif not isinstance(given, Mapping):
        yield Words("{kind} is no trace", kind=type(given).__name__)
    elif (of_resources := _under(given, REQUESTS)) is not None:
        if not isinstance(parsed(of_resources), list | tuple | np.ndarray):
            yield Words("a request to export traces without a list of them")
        yield from _each(parse_span, spans_in(of_resources))
    else:
        yield from _one(given, levels)


def _each(reader: Callable[[Mapping[str, Any]], Span], objects: Iterable[Any]) -> Iterator[Part | str]:
    for one in objects:
        yield (reader, one) if isinstance(one, Mapping) else Words("{kind} is no trace", kind=type(one).__name__)


def _one(given: Mapping[str, Any], levels: int) -> Iterator[Part | str]:
    """The same of an object that is no request to export traces."""
    names = {name for name in given if isinstance(name, str)}
    scored = "value" in names and "name" in names and not {"type", "input"} & names
    if is_run(names):
        yield parse_run, given
    elif is_record(names):
        yield parse_record, given
        yield from _each(parse_call, find_retrievals(given))
    elif isinstance(parsed(given.get("context")), Mapping) or not names.isdisjoint(SPAN_IDS):
        yield parse_span, given
    elif "id" in names and not names.isdisjoint(("traceId", "trace_id")) and not scored:
        yield parse_observation, given
    elif isinstance(given.get("trace"), Mapping) or ({"id", "timestamp"} <= names and not scored):
        about, observations = split_trace(given)
        yield parse_trace, about
        if about.get("id") not in (None, ""):
            yield from _each(parse_observation, observations)
    elif isinstance(inner := _under(given, LISTS), list | tuple | np.ndarray):
        yield from _parts(inner, levels - 1)
    else:
        first = ", ".join(repr(name[:LONGEST_NAME]) for name in sorted(map(str, given))[:5])
        yield Words("an object with {names}", names=first) if first else Words("an object with nothing in it")


def _under(given: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((given[name] for name in names if name in given), None)


def _recorded(spool: Spool, problems: list[str]) -> Iterator[tuple[str, Record | None]]:
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


def _questions(spool: Spool) -> Iterator[Row | Rejected]:
    """The rows of the log."""
    for made in spool.kept():
        place = _place(made["trace"])
        if "missing" in made:
            yield Rejected(place, made["missing"])
            continue
        values = {name: made[name] for name in ("id", "question", "answer", "score", "recorded")}
        yield Row(place, values | {"user_id": made["user"], "created_at": when(made["start_ns"])})


def _annotations(spool: Spool) -> Iterator[Row]:
    """The dialogs that questions belong to, and the answers that people wanted.

    References are a column only if a trace has one: an empty column would erase what people labelled since.
    """
    has_references = any(made.get("reference") is not None for made in spool.kept())
    for made in spool.kept():
        if "missing" in made or (made["session"] is None and made["reference"] is None):
            continue
        label = {"question_id": made["id"], "dialog_id": made["session"]}
        reference = {"ground_truth_answer": made["reference"]} if has_references else {}
        yield Row(_place(made["trace"]), label | reference)


def _place(trace_id: str) -> str:
    return Words("trace {id}", id=trace_id)
