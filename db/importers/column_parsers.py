"""Parse cells of loosely typed files into the types of our columns."""

import json
import math
import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from yarus.db.errors import TemplatedError
from yarus.db.importers.lines import UNREADABLE
from yarus.db.loading.recorded import Record
from yarus.db.source_rows import EARLIEST, LATEST, MAX_INTEGER

YES = {"true", "t", "yes", "y", "1", "да"}
NO = {"false", "f", "no", "n", "0", "нет"}
DIGITS = re.compile(r"\d{9,}(\.\d*)?")
"""A time since 1970, or an id; the column decides which."""
RUSSIAN_DATE = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4}|\d{2})(?:,?\s+(\d{1,2})(:\d{2}(?::\d{2})?))?")
"""A date as written in Russian, with or without a time: 05.03.2026 10:30, 05.03.26."""
FIRST_SHORT_YEAR = 2015
"""Two-digit years are read from this one to the current one: others may be days of a date that begins with its year."""
UTC_SUFFIX = re.compile(r"(?<=\d)\s*(?:UTC|GMT)$")
"""The time zone that BigQuery adds to times without one."""
YEAR_FIRST_DATE = re.compile(r"(\d{4})([-./])(\d{1,2})\2(\d{1,2})(?:[T\s]\s*(\d{1,2})(:\d{2}.*))?")
"""A date that begins with its year, as tables store it: 2026-3-5 9:05, 2026/03/05."""
MAX_DIMENSIONS = 16_000  # pgvector's limit


class BadValue(TemplatedError, ValueError):
    """A cell cannot be converted to the type of its column; the message explains what is accepted."""


def parse_value(column: str, value: Any) -> Any:
    """Parse a cell into the type of one of our columns; None if the cell is empty.

    Raises:
        BadValue: the value is not of the column's type.
    """
    if value is None or (isinstance(value, str) and not value.strip()) or (isinstance(value, float) and value != value):
        return None
    return PARSERS[column](value)


def _parse_text(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))  # pandas turns a column of integers with gaps into floats
    if isinstance(value, bool | list | dict | bytes):
        raise BadValue("no text")
    return value if isinstance(value, str) else str(value)


def _parse_integer(value: Any) -> int:
    number = _to_number(value)
    if not number.is_integer() or abs(number) > MAX_INTEGER:
        raise BadValue("no whole number")
    return int(number)


def _parse_time(value: Any) -> datetime:
    """Parse a point in time, in UTC if it has no time zone."""
    if isinstance(value, str) and DIGITS.fullmatch(value.strip()):  # Python would read some of them as dates long ago
        value = float(value)
    if isinstance(value, int | float):
        value = _time_since_1970(value)
    elif isinstance(value, str):
        try:
            value = datetime.fromisoformat(_to_iso_format(UTC_SUFFIX.sub("", value.strip())))
        except ValueError:
            value = None
    elif isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if not isinstance(value, datetime):
        raise BadValue("no date; write it like 2026-03-05T10:30:00+03:00")
    point_in_time: datetime = value if value.tzinfo else value.replace(tzinfo=UTC)
    if not EARLIEST <= point_in_time <= LATEST:
        raise BadValue(
            "no date from {earliest:%Y-%m-%d} to {latest:%Y-%m-%d} in UTC; leave it empty",
            earliest=EARLIEST,
            latest=LATEST,
        )
    return point_in_time


def _time_since_1970(number: float) -> datetime | None:
    """Convert a time since 1970 in seconds, milli-, micro- or nanoseconds; None outside of the years 2001 to 2096."""
    unit = next((unit for unit in (1, 10**3, 10**6, 10**9) if unit * 10**9 <= number < unit * 4 * 10**9), None)
    return None if unit is None else datetime.fromtimestamp(number / unit, UTC)


def _to_iso_format(text: str) -> str:
    """Convert a date and its time to ISO order and width; other texts stay unchanged."""
    if match := RUSSIAN_DATE.fullmatch(text):
        day, month, year, hour, clock = match.groups()
        if len(year) == 2:
            if not FIRST_SHORT_YEAR <= int(year) + 2000 <= datetime.now(UTC).year:
                return text
            year = f"20{year}"
    elif match := YEAR_FIRST_DATE.fullmatch(text):
        year, _, month, day, hour, clock = match.groups()
    else:
        return text
    return f"{year}-{month:0>2}-{day:0>2}T{hour or '':0>2}{clock or ':00'}"


def _parse_boolean(value: Any) -> bool:
    word = str(int(value) if isinstance(value, float) and value.is_integer() else value).strip().lower()
    if word not in YES | NO:
        raise BadValue("neither yes nor no")
    return word in YES


def _parse_nuggets(value: Any) -> list[Record]:
    """Parse the facts of a good answer, from JSON text or from Parquet values."""
    items = _parse_json(value) if isinstance(value, str) else value
    if isinstance(items, list) and all(isinstance(item, dict) for item in items):
        nuggets = [_rename_nugget_fields(item) for item in items]
        if all(isinstance(nugget["nugget"], str) and isinstance(nugget["vital"], bool) for nugget in nuggets):
            return nuggets
    raise BadValue('no nuggets; write [{"nugget": "what an answer must say", "vital": true}]')


def _rename_nugget_fields(raw: Record) -> Record:
    """Rename the fields of a nugget to ours; nuggetizer calls them `text` and `importance` (vital or okay)."""
    if "importance" in raw and "vital" not in raw:
        return {
            "nugget": raw.get("text", raw.get("nugget")),
            "vital": str(raw["importance"]).casefold() == "vital",
        }
    return {name: raw.get(name) for name in ("nugget", "vital")}


def _parse_history(value: Any) -> list[dict[str, str]]:
    items = _parse_json(value) if isinstance(value, str) else value
    if isinstance(items, list) and all(isinstance(item, dict) for item in items):
        history = [{name: item.get(name) for name in ("role", "content")} for item in items]
        if all(map(_is_message, history)):
            return history
    raise BadValue('no history; write [{"role": "user", "content": "a text"}]')


def _is_message(message: Record) -> bool:
    return message["role"] in ("user", "assistant", "system") and isinstance(message["content"], str)


def _parse_amount(value: Any) -> float:
    """Parse a number that is at least 0, such as milliseconds or money."""
    number = _to_number(value)
    if not 0 <= number < math.inf:
        raise BadValue("no number from 0")
    return number


def _to_number(value: Any) -> float:
    """Convert a value to a number; NaN if it is not a number or a boolean."""
    try:
        return math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _parse_count(value: Any) -> int:
    if (number := _parse_integer(value)) < 0:
        raise BadValue("no number from 0")
    return number


def _parse_vector(value: Any) -> NDArray[np.float32]:
    try:
        with np.errstate(over="ignore"):  # values beyond float32 become infinite and are rejected below
            vector = np.asarray(_parse_json(value) if isinstance(value, str) else value, dtype=np.float32)
    except (TypeError, ValueError, OverflowError):
        vector = np.empty(0, dtype=np.float32)
    if vector.ndim != 1 or not 0 < len(vector) <= MAX_DIMENSIONS or not np.isfinite(vector).all():
        raise BadValue("no vector; write a list of 1 to {most:,} finite numbers", most=MAX_DIMENSIONS)
    return vector


def _parse_json(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise BadValue("not valid JSON ({reason})", reason=error.msg) from None
    except (ValueError, RecursionError):
        raise BadValue(UNREADABLE) from None


PARSERS: dict[str, Callable[[Any], Any]] = {
    "id": _parse_text,
    "question": _parse_text,
    "embedding": _parse_vector,
    "answer": _parse_text,
    "confluence_url": _parse_text,
    "score": _parse_integer,
    "user_id": _parse_text,
    "created_at": _parse_time,
    "text": _parse_text,
    "page_title": _parse_text,
    "ground_truth_answer": _parse_text,
    "ground_truth_show": _parse_boolean,
    "answerable": _parse_boolean,
    "nuggets": _parse_nuggets,
    "cluster": _parse_text,
    "dialog_id": _parse_text,
    "turn": _parse_integer,
    "origin": _parse_text,
    "history": _parse_history,
    "latency_ms": _parse_amount,
    "first_token_ms": _parse_amount,
    "tokens_in": _parse_count,
    "tokens_out": _parse_count,
    "cost_usd": _parse_amount,
    "error": _parse_text,
    "trace_id": _parse_text,
    "span_id": _parse_text,
}
"""Parser of each column of ours; `cells` parses columns with lists of labels and passages."""
