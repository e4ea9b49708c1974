"""Read recorded traces as a source: questions, their answers, and how each answer was made.

The formats are OTLP as JSON (one request per line or one document, with attributes of OpenInference or `gen_ai.*`),
output of SDKs and Phoenix, and exports of Langfuse, LangSmith and TruLens. Files may be packed by gzip.
`read_documents` reads rows of tables. A trace becomes a question, a retrieved passage a chunk, and a session a dialog.
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
from yarus.db.importers.lines import UNREADABLE, name_file, open_binary, read_json_values
from yarus.db.importers.literals import MAX_LEVELS, parse_if_literal
from yarus.db.importers.traces.extraction import nest_attributes
from yarus.db.importers.traces.langfuse import parse_observation, parse_trace, split_trace
from yarus.db.importers.traces.langsmith import parse_run
from yarus.db.importers.traces.otlp import iter_spans, parse_span
from yarus.db.importers.traces.plain_values import MissingIds, UnusableSpan, to_json_types
from yarus.db.importers.traces.recognise import REQUEST_KEYS, SPAN_IDS, is_record, is_run
from yarus.db.importers.traces.recognise import is_trace_row as is_trace_row
from yarus.db.importers.traces.requests import ParsedTrace, extract_requests
from yarus.db.importers.traces.spans import Span, SpanStore, datetime_from_ns
from yarus.db.importers.traces.trulens import find_retrievals, parse_call, parse_record
from yarus.db.loading.load_rows import RowStream
from yarus.db.loading.recorded import Record, iter_chunks
from yarus.db.loading.staging import IncomingRow, Rejected
from yarus.db.messages import Words

LIST_NAMES = ("data", "traces", "spans", "observations", "runs", "items", "result")
EXPECTED_FORMATS = Words(
    "expected OTLP as JSON (resourceSpans), spans as an SDK or Phoenix writes them, traces or observations of "
    "Langfuse, runs of LangSmith, or records of TruLens"
)
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
FOLDED_OBJECTS = ("context", "attributes", "status", "inputs", "outputs", "extra", "metadata", "feedback_stats")
"""Objects whose parts are columns of their own in tables: `context.trace_id`."""
MAX_NAME_LENGTH = 60
"""Characters of a name in a message."""
Part = tuple[Callable[[Mapping[str, Any]], Span], Mapping[str, Any]]
"""A parser, and the object that may be a span."""


@dataclass
class Omissions:
    """Counts of the objects and spans that are not loaded, and the first of each kind with its place."""

    n_others: int = 0
    """Objects that are not traces."""
    first_other: str = ""
    n_broken: int = 0
    """Spans that cannot be read."""
    first_broken: str = ""

    def add_other(self, place: str, reason: str) -> None:
        """Count an object that is not a trace."""
        self.n_others += 1
        self.first_other = self.first_other or Words("{place}: {problem}", place=place, problem=reason)

    def add_broken(self, place: str, reason: str) -> None:
        """Count a span that cannot be read."""
        self.n_broken += 1
        self.first_broken = self.first_broken or Words("{place}: {problem}", place=place, problem=reason)

    @property
    def first(self) -> str:
        """Return the first problem, for the message that there are no traces."""
        problem = self.first_broken or self.first_other
        return Words("; {problem}", problem=problem) if problem else ""

    def describe(self) -> Iterator[str]:
        """Yield one sentence per kind."""
        if self.n_others:
            yield Words(
                "{n_others:,} objects are no traces, not loaded: {problem}",
                n_others=self.n_others,
                problem=self.first_other,
            )
        if self.n_broken:
            yield Words("{n:,} spans cannot be read, not loaded: {problem}", n=self.n_broken, problem=self.first_broken)


def read_documents(documents: Iterable[tuple[str, Any]], names: str = "rows") -> RowStream:
    """Read traces from documents or rows of any container, in any order.

    Args:
        documents: pairs of a place and a row as a dict, a list of rows, or a request to export traces. Values may be
            JSON text, numpy arrays, dates, bytes, nested, or missing (None, NaN, NaT, ''); names may be dotted
            (`attributes.input.value`). A `Rejected` is counted with its reason.
        names: of the files, for the error message.

    Raises:
        InputError: there is no trace.
    """
    store, left_out = SpanStore(), Omissions()
    for place, document in documents:
        _add_document(document, place, store, left_out)
    if not store.n_added:
        raise InputError(
            "{paths}: no traces: {expected}{first}; nothing was loaded",
            paths=names,
            expected=EXPECTED_FORMATS,
            first=left_out.first,
        )
    stream = RowStream(new_chunks_only=True)
    stream.problems += left_out.describe()
    if store.n_duplicates:
        stream.problems.append(
            Words("{doubled:,} spans were there twice: the one that tells more counts", doubled=store.n_duplicates)
        )
    stream.chunks = iter_chunks(_iter_recorded(store, stream.problems), stream.problems)
    stream.questions = _question_rows(store)
    stream.annotations = _annotation_rows(store)
    return stream


def documents_in(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the JSON documents of a file, each with its place.

    Raises:
        InputError: the file is missing, not readable, packed by zstd, or not JSON.
    """
    with name_file(path), path.open("rb") as file:
        if file.read(4) == ZSTD_MAGIC:
            raise InputError("{path}: packed by zstd; unpack it first: zstd -d {name}", path=path, name=path.name)
    if _is_by_line(path):
        yield from read_json_values(path)
    else:
        yield path.name, read_json(path)


def is_json(path: Path) -> bool:
    """Return whether a file begins like JSON; also True if it cannot be read, because its reader explains why."""
    with suppress(OSError, EOFError, zlib.error), open_binary(path) as file:
        head = file.read(1_000).removeprefix(BOM_UTF8).lstrip()
        return not head or head.startswith((b"{", b"[", ZSTD_MAGIC))
    return True


def _is_by_line(path: Path) -> bool:
    """Return whether the first line that is not empty is a document."""
    try:
        next(read_json_values(path), None)
    except InputError:
        return False
    return True


def _add_document(document: Any, place: str, store: SpanStore, left_out: Omissions) -> None:
    """Add the spans of a document of any kind."""
    if isinstance(document, Rejected):
        left_out.add_broken(document.place, document.reason)
        return
    for part in _iter_parts(document, MAX_LEVELS):
        if isinstance(part, str):
            left_out.add_other(place, part)
            continue
        parser, raw = part
        try:
            span = parser(_unfold_columns(to_json_types(raw)))
            span.check_ids()
        except MissingIds as error:
            left_out.add_other(place, error.reason)
        except UnusableSpan as error:
            left_out.add_broken(place, error.reason)
        except RecursionError:
            left_out.add_broken(place, UNREADABLE)
        else:
            store.add_span(span)


def _unfold_columns(row: Record) -> Record:
    """Return a row whose columns such as `context.trace_id` are nested objects."""
    folded = {name: value for name, value in row.items() if "." in name and name.split(".")[0] in FOLDED_OBJECTS}
    if not folded:
        return row
    objects = {name: row[name] for name in FOLDED_OBJECTS if isinstance(row.get(name), dict)}
    others = {name: value for name, value in row.items() if name not in folded and name not in objects}
    return others | nest_attributes(objects | folded)


def _iter_parts(document: Any, levels: int) -> Iterator[Part | str]:
    """Yield the parts of a document that may be spans, with their parsers; a text explains why a part is not a span."""
    if isinstance(document, np.ndarray | tuple):
        document = list(document)
    if levels <= 0:
        yield Words("nested in more than {most} levels, or without end", most=MAX_LEVELS)
    elif isinstance(document, list):
        for item in document:
            yield from _iter_parts(item, levels - 1)
    elif not isinstance(document, Mapping):
        yield Words("{kind} is no trace", kind=type(document).__name__)
    elif (resources := _first_value(document, REQUEST_KEYS)) is not None:
        if not isinstance(parse_if_literal(resources), list | tuple | np.ndarray):
            yield Words("a request to export traces without a list of them")
        yield from _pair_with_parser(parse_span, iter_spans(resources))
    else:
        yield from _iter_object_parts(document, levels)


def _pair_with_parser(parser: Callable[[Mapping[str, Any]], Span], items: Iterable[Any]) -> Iterator[Part | str]:
    for item in items:
        yield (parser, item) if isinstance(item, Mapping) else Words("{kind} is no trace", kind=type(item).__name__)


def _iter_object_parts(document: Mapping[str, Any], levels: int) -> Iterator[Part | str]:
    """Yield the parts of an object that is not a request to export traces."""
    names = {name for name in document if isinstance(name, str)}
    is_score = "value" in names and "name" in names and not {"type", "input"} & names
    if is_run(names):
        yield parse_run, document
    elif is_record(names):
        yield parse_record, document
        yield from _pair_with_parser(parse_call, find_retrievals(document))
    elif isinstance(parse_if_literal(document.get("context")), Mapping) or not names.isdisjoint(SPAN_IDS):
        yield parse_span, document
    elif "id" in names and not names.isdisjoint(("traceId", "trace_id")) and not is_score:
        yield parse_observation, document
    elif isinstance(document.get("trace"), Mapping) or ({"id", "timestamp"} <= names and not is_score):
        trace, observations = split_trace(document)
        yield parse_trace, trace
        if trace.get("id") not in (None, ""):
            yield from _pair_with_parser(parse_observation, observations)
    elif isinstance(items := _first_value(document, LIST_NAMES), list | tuple | np.ndarray):
        yield from _iter_parts(items, levels - 1)
    else:
        first = ", ".join(repr(name[:MAX_NAME_LENGTH]) for name in sorted(map(str, document))[:5])
        yield (Words("an object with {names}", names=first) if first else Words("an object with nothing in it"))


def _first_value(document: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((document[name] for name in names if name in document), None)


def _iter_recorded(store: SpanStore, problems: list[str]) -> Iterator[tuple[str, Record | None]]:
    """Yield the values recorded for every question, store its row for the other tables, and report problems."""
    note_counts, first_ids = Counter[str](), dict[str, str]()
    for spans in store.iter_traces():
        trace_id = spans[0].trace_id
        parsed: ParsedTrace = extract_requests(spans)
        for note in dict.fromkeys(parsed.notes):
            note_counts[note] += 1
            first_ids.setdefault(note, trace_id)
        if parsed.missing:
            store.store_record({"trace": trace_id, "missing": parsed.missing})
        for request in parsed.requests:
            store.store_record({"trace": trace_id, **vars(request)})
            yield _trace_place(trace_id), request.recorded
    problems += [
        Words("{n:,} traces {note} ({first} first)", n=n, note=note, first=first_ids[note])
        for note, n in sorted(note_counts.items())
    ]


def _question_rows(store: SpanStore) -> Iterator[IncomingRow | Rejected]:
    """Yield the rows of the log."""
    for record in store.iter_records():
        place = _trace_place(record["trace"])
        if "missing" in record:
            yield Rejected(place, record["missing"])
            continue
        row = {name: record[name] for name in ("id", "question", "answer", "score", "recorded")}
        yield IncomingRow(place, row | {"user_id": record["user"], "created_at": datetime_from_ns(record["start_ns"])})


def _annotation_rows(store: SpanStore) -> Iterator[IncomingRow]:
    """Yield the dialogs of the questions, and their reference answers.

    References are a column only if a trace has one: an empty column would erase labels that people added since.
    """
    has_references = any(record.get("reference") is not None for record in store.iter_records())
    for record in store.iter_records():
        if "missing" in record or (record["session"] is None and record["reference"] is None):
            continue
        label = {"question_id": record["id"], "dialog_id": record["session"]}
        reference = {"ground_truth_answer": record["reference"]} if has_references else {}
        yield IncomingRow(_trace_place(record["trace"]), label | reference)


def _trace_place(trace_id: str) -> str:
    return Words("trace {id}", id=trace_id)
