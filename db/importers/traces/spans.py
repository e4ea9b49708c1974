"""Spans as every format of traces comes down to, and where they wait until all of a trace are there."""

import json
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any

from yarus.db.importers.traces.plain_values import UnusableSpan
from yarus.db.importers.traces.values import LONGEST_ID
from yarus.db.loading.recorded import Record
from yarus.db.loading.staging import find_defect
from yarus.db.words import Words

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
UNITS = ((10**11, 10**9), (10**14, 10**6), (10**17, 10**3), (2 * 10**20, 1))
"""Below the first number a time since 1970 is in seconds, milliseconds, microseconds, nanoseconds; how many ns each."""
LATEST_NS = 253_000_000_000 * 10**9  # in the year 9987


@dataclass
class Span:
    """One step of a request, as far as it tells of a question, its answer, and what that took."""

    trace_id: str
    span_id: str
    parent_id: str | None = None
    kind: str = ""
    """llm, retriever, reranker, chain, agent, tool, embedding, …; '' where it does not say."""
    start_ns: int | None = None
    end_ns: int | None = None
    question: str | None = None
    history: list[Record] = field(default_factory=list)
    """What was said before the question: role and content."""
    answer: str | None = None
    error: str | None = None
    passages: list[Record] | None = None
    """What was retrieved, best first; None where the step retrieves nothing."""
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost_usd: float | None = None
    first_token_ns: int | None = None
    user: str | None = None
    session: str | None = None
    score: int | None = None
    """The user's: 5 good, 1 bad."""
    reference: str | None = None
    """The answer that people wanted."""

    def check_ids(self) -> None:
        """Check that the ids can be stored.

        Raises:
            UnusableSpan: an id is too long, or has a character that PostgreSQL cannot store.
        """
        for name, value in (("trace", self.trace_id), ("span", self.span_id)):
            if len(value) > LONGEST_ID:
                raise UnusableSpan(
                    Words(
                        "the {name} id has {n:,} characters, at most {most} can be stored; is it another field?",
                        name=name,
                        n=len(value),
                        most=LONGEST_ID,
                    )
                )
            if (defect := find_defect((value,))) is not None:
                raise UnusableSpan(
                    Words("the {name} id {value!r} has {defect}, which PostgreSQL cannot store", name=name,
                          value=value, defect=defect)
                )  # fmt: skip


class Spool:
    """Spans by trace, in whatever order they came, in a file of SQLite's own that goes when it is closed.

    Ids are kept as bytes: SQLite refuses a text with half of a surrogate pair.
    """

    def __init__(self) -> None:
        self._store = sqlite3.connect("", check_same_thread=False)
        self._store.execute("CREATE TABLE span (trace BLOB, id BLOB, said TEXT, PRIMARY KEY (trace, id))")
        self._store.execute("CREATE TABLE made (said TEXT)")
        self.added = self.doubled = 0

    def add(self, span: Span) -> None:
        """Keeps a span; of one that came twice the longer, for it was written when more was known."""
        said = json.dumps(vars(span))
        trace, name = (text.encode("utf-8", "surrogatepass") for text in (span.trace_id, span.span_id))
        new = self._store.execute("INSERT OR IGNORE INTO span VALUES (?, ?, ?)", (trace, name, said))
        self.added += 1
        if new.rowcount == 0:
            self.doubled += 1
            longer = (
                "UPDATE span SET said = ?1 WHERE trace = ?2 AND id = ?3 AND (length(said), said) < (length(?1), ?1)"
            )
            self._store.execute(longer, (said, trace, name))

    def traces(self) -> Iterator[list[Span]]:
        """The spans of each trace, in the order of their ids."""
        rows = self._store.execute("SELECT trace, said FROM span ORDER BY trace, id")
        for _, of_one in groupby(rows, key=lambda row: bytes(row[0])):
            yield [Span(**json.loads(said)) for _, said in of_one]

    def keep(self, made: Mapping[str, Any]) -> None:
        """Keeps what was made of a trace, to be read when another table is filled."""
        self._store.execute("INSERT INTO made VALUES (?)", (json.dumps(made),))

    def kept(self) -> Iterator[Record]:
        """What was kept, in its order."""
        for (said,) in self._store.execute("SELECT said FROM made ORDER BY rowid"):
            yield json.loads(said)


def moment_ns(value: Any) -> int | None:
    """A point in time in nanoseconds since 1970; None where it is none.

    Args:
        value: ISO 8601, in UTC where it names no zone, or a number since 1970 whose unit its size tells.
    """
    try:
        ns = _from_text(value) if isinstance(value, str) and not _is_number(value) else _from_number(value)
    except (ValueError, OverflowError):
        return None
    return ns if 0 < ns < LATEST_NS else None


def _is_number(text: str) -> bool:
    return text.strip().lstrip("-").replace(".", "", 1).isdecimal()


def _from_text(text: str) -> int:
    moment = datetime.fromisoformat(text.strip().removesuffix("UTC").strip())
    return (moment.replace(tzinfo=moment.tzinfo or UTC) - EPOCH) // timedelta(microseconds=1) * 1_000


def _from_number(value: Any) -> int:
    """Return the nanoseconds of a number; 0 if it is none, or out of every range."""
    if isinstance(value, str):
        value = float(value) if "." in value else int(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        return 0
    unit = next((unit for below, unit in UNITS if value < below), 0)
    whole = int(value)
    return whole * unit + round((value - whole) * unit / 1_000) * 1_000  # a float knows no more digits


def later_ns(start: int | None, seconds: float | None) -> int | None:
    """Return the time so many seconds after another; None if one of them is not known, or it is out of range."""
    if start is None or seconds is None or seconds * 10**9 >= LATEST_NS:
        return None
    end = start + int(seconds * 1e9)
    return end if end < LATEST_NS else None


def when(ns: int | None) -> datetime | None:
    """The same as a point in time."""
    return None if ns is None else EPOCH + timedelta(microseconds=ns // 1_000)
