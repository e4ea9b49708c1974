"""Define the span that every trace format is converted to, and store spans until all of a trace are read."""

import json
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any

from yarus.db.importers.traces.extraction import MAX_ID_LENGTH
from yarus.db.importers.traces.plain_values import UnusableSpan
from yarus.db.loading.recorded import Record
from yarus.db.loading.staging import find_defect
from yarus.db.messages import Words

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TIME_UNITS = ((10**11, 10**9), (10**14, 10**6), (10**17, 10**3), (2 * 10**20, 1))
"""Upper limit of a time since 1970 in seconds, milliseconds, microseconds, nanoseconds, and that unit in ns."""
LATEST_NS = 253_000_000_000 * 10**9  # in the year 9987


@dataclass
class Span:
    """One step of a request, with its question, answer, timing and cost as far as they are recorded."""

    trace_id: str
    span_id: str
    parent_id: str | None = None
    kind: str = ""
    """llm, retriever, reranker, chain, agent, tool, embedding, …; '' if unknown."""
    start_ns: int | None = None
    end_ns: int | None = None
    question: str | None = None
    history: list[Record] = field(default_factory=list)
    """Messages before the question: role and content."""
    answer: str | None = None
    error: str | None = None
    passages: list[Record] | None = None
    """Retrieved passages, best first; None if the step retrieves nothing."""
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost_usd: float | None = None
    first_token_ns: int | None = None
    user: str | None = None
    session: str | None = None
    score: int | None = None
    """The user's vote: 5 good, 1 bad."""
    reference: str | None = None
    """The reference answer."""

    def check_ids(self) -> None:
        """Check that the ids can be stored.

        Raises:
            UnusableSpan: an id is too long, or has a character that PostgreSQL cannot store.
        """
        for name, value in (("trace", self.trace_id), ("span", self.span_id)):
            if len(value) > MAX_ID_LENGTH:
                raise UnusableSpan(
                    Words(
                        "the {name} id has {n:,} characters, at most {most} can be stored; is it another field?",
                        name=name,
                        n=len(value),
                        most=MAX_ID_LENGTH,
                    )
                )
            if (defect := find_defect((value,))) is not None:
                raise UnusableSpan(
                    Words("the {name} id {value!r} has {defect}, which PostgreSQL cannot store", name=name,
                          value=value, defect=defect)
                )  # fmt: skip


class SpanStore:
    """Temporary SQLite file that groups spans by trace, in whatever order they arrive.

    Ids are stored as bytes: SQLite refuses a text with half of a surrogate pair.
    """

    def __init__(self) -> None:
        self._store = sqlite3.connect("", check_same_thread=False)
        self._store.execute("CREATE TABLE span (trace BLOB, id BLOB, said TEXT, PRIMARY KEY (trace, id))")
        self._store.execute("CREATE TABLE made (said TEXT)")
        self.n_added = self.n_duplicates = 0

    def add_span(self, span: Span) -> None:
        """Store a span; of two with the same ids keep the longer, which was written when more was known."""
        content = json.dumps(vars(span))
        trace, span_id = (text.encode("utf-8", "surrogatepass") for text in (span.trace_id, span.span_id))
        cursor = self._store.execute("INSERT OR IGNORE INTO span VALUES (?, ?, ?)", (trace, span_id, content))
        self.n_added += 1
        if cursor.rowcount == 0:
            self.n_duplicates += 1
            statement = (
                "UPDATE span SET said = ?1 WHERE trace = ?2 AND id = ?3 AND (length(said), said) < (length(?1), ?1)"
            )
            self._store.execute(statement, (content, trace, span_id))

    def iter_traces(self) -> Iterator[list[Span]]:
        """Yield the spans of each trace, ordered by their ids."""
        rows = self._store.execute("SELECT trace, said FROM span ORDER BY trace, id")
        for _, group in groupby(rows, key=lambda row: bytes(row[0])):
            yield [Span(**json.loads(content)) for _, content in group]

    def store_record(self, record: Mapping[str, Any]) -> None:
        """Store what was parsed from a trace, to be read when another table is filled."""
        self._store.execute("INSERT INTO made VALUES (?)", (json.dumps(record),))

    def iter_records(self) -> Iterator[Record]:
        """Yield the stored records in their order."""
        for (content,) in self._store.execute("SELECT said FROM made ORDER BY rowid"):
            yield json.loads(content)


def parse_time_ns(value: Any) -> int | None:
    """Parse a point in time into nanoseconds since 1970; None if the value is not a time.

    Args:
        value: ISO 8601, in UTC if it has no time zone, or a number since 1970 whose unit follows from its size.
    """
    try:
        time_ns = (
            _parse_time_text(value)
            if isinstance(value, str) and not _is_number_text(value)
            else _parse_time_number(value)
        )
    except (ValueError, OverflowError):
        return None
    return time_ns if 0 < time_ns < LATEST_NS else None


def _is_number_text(text: str) -> bool:
    return text.strip().lstrip("-").replace(".", "", 1).isdecimal()


def _parse_time_text(text: str) -> int:
    time = datetime.fromisoformat(text.strip().removesuffix("UTC").strip())
    return (time.replace(tzinfo=time.tzinfo or UTC) - EPOCH) // timedelta(microseconds=1) * 1_000


def _parse_time_number(value: Any) -> int:
    """Return the nanoseconds of a number; 0 if it is not a number or out of every range."""
    if isinstance(value, str):
        value = float(value) if "." in value else int(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        return 0
    unit_ns = next((unit_ns for limit, unit_ns in TIME_UNITS if value < limit), 0)
    integer = int(value)
    return integer * unit_ns + round((value - integer) * unit_ns / 1_000) * 1_000  # a float has no more digits


def add_seconds_ns(start: int | None, seconds: float | None) -> int | None:
    """Return the time that many seconds after another; None if one of them is unknown, or it is out of range."""
    if start is None or seconds is None or seconds * 10**9 >= LATEST_NS:
        return None
    end = start + int(seconds * 1e9)
    return end if end < LATEST_NS else None


def datetime_from_ns(time_ns: int | None) -> datetime | None:
    """Convert nanoseconds since 1970 to a point in time."""
    return None if time_ns is None else EPOCH + timedelta(microseconds=time_ns // 1_000)
