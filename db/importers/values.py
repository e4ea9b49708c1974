"""What a cell of a table means: values of files, whose types say little, become those of our columns."""

import json
import math
import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from yarus.db.errors import Told
from yarus.db.importers.lines import UNREADABLE
from yarus.db.loading.recorded import Record
from yarus.db.source_rows import EARLIEST, LARGEST, LATEST

YES = {"true", "t", "yes", "y", "1", "да"}
NO = {"false", "f", "no", "n", "0", "нет"}
NUMBER = re.compile(r"\d{9,}(\.\d*)?")
"""A time since 1970, or an id: its name says which."""
DOTTED = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4}|\d{2})(?:,?\s+(\d{1,2})(:\d{2}(?::\d{2})?))?")
"""A day as it is written in Russian, with its time: 05.03.2026 10:30, 05.03.26."""
FIRST_SHORT_YEAR = 2015
"""Years of two digits are from this one to the current one: others may be days of a date that begins with its year."""
ZONE = re.compile(r"(?<=\d)\s*(?:UTC|GMT)$")
"""The zone of times that name none, as BigQuery writes it."""
YEAR_FIRST = re.compile(r"(\d{4})([-./])(\d{1,2})\2(\d{1,2})(?:[T\s]\s*(\d{1,2})(:\d{2}.*))?")
"""A day that begins with its year, as tables save it: 2026-3-5 9:05, 2026/03/05."""
MAX_DIMENSIONS = 16_000  # pgvector's limit


class BadValue(Told, ValueError):
    """A cell cannot be what its column is; the message says what it can be."""


def parse(column: str, value: Any) -> Any:
    """A cell's value as the column of ours takes it; None where the cell is empty.

    Raises:
        BadValue: it is not of the column's type.
    """
    if value is None or (isinstance(value, str) and not value.strip()) or (isinstance(value, float) and value != value):
        return None
    return KINDS[column](value)


def _text(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))  # a column of whole numbers with gaps comes as floats out of pandas
    if isinstance(value, bool | list | dict | bytes):
        raise BadValue("no text")
    return value if isinstance(value, str) else str(value)


def _whole(value: Any) -> int:
    number = _number(value)
    if not number.is_integer() or abs(number) > LARGEST:
        raise BadValue("no whole number")
    return int(number)


def _moment(value: Any) -> datetime:
    """A point in time; where it names no zone, it is UTC."""
    if isinstance(value, str) and NUMBER.fullmatch(value.strip()):  # Python reads some as a day of long ago
        value = float(value)
    if isinstance(value, int | float):
        value = _since_1970(value)
    elif isinstance(value, str):
        try:
            value = datetime.fromisoformat(_iso(ZONE.sub("", value.strip())))
        except ValueError:
            value = None
    elif isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if not isinstance(value, datetime):
        raise BadValue("no date; write it like 2026-03-05T10:30:00+03:00")
    moment: datetime = value if value.tzinfo else value.replace(tzinfo=UTC)
    if not EARLIEST <= moment <= LATEST:
        raise BadValue(
            "no date from {earliest:%Y-%m-%d} to {latest:%Y-%m-%d} in UTC; leave it empty",
            earliest=EARLIEST,
            latest=LATEST,
        )
    return moment


def _since_1970(number: float) -> datetime | None:
    """A time since 1970 in seconds, or in milli-, micro- or nanoseconds; None outside of the years 2001 to 2096."""
    unit = next((unit for unit in (1, 10**3, 10**6, 10**9) if unit * 10**9 <= number < unit * 4 * 10**9), None)
    return None if unit is None else datetime.fromtimestamp(number / unit, UTC)


def _iso(text: str) -> str:
    """A day and its time in ISO's order and width; anything else as it is."""
    if found := DOTTED.fullmatch(text):
        day, month, year, hour, rest = found.groups()
        if len(year) == 2:
            if not FIRST_SHORT_YEAR <= int(year) + 2000 <= datetime.now(UTC).year:
                return text
            year = f"20{year}"
    elif found := YEAR_FIRST.fullmatch(text):
        year, _, month, day, hour, rest = found.groups()
    else:
        return text
    return f"{year}-{month:0>2}-{day:0>2}T{hour or '':0>2}{rest or ':00'}"


def _yes_no(value: Any) -> bool:
    word = str(int(value) if isinstance(value, float) and value.is_integer() else value).strip().lower()
    if word not in YES | NO:
        raise BadValue("neither yes nor no")
    return word in YES


def _nuggets(value: Any) -> list[Record]:
    """What a good answer must contain, as JSON in a text or as it comes out of Parquet."""
    found = _json(value) if isinstance(value, str) else value
    if isinstance(found, list) and all(isinstance(one, dict) for one in found):
        kept = [_nugget(one) for one in found]
        if all(isinstance(one["nugget"], str) and isinstance(one["vital"], bool) for one in kept):
            return kept
    raise BadValue('no nuggets; write [{"nugget": "what an answer must say", "vital": true}]')


def _nugget(given: Record) -> Record:
    """A nugget under our names; nuggetizer calls them `text` and `importance` (vital or okay)."""
    if "importance" in given and "vital" not in given:
        return {
            "nugget": given.get("text", given.get("nugget")),
            "vital": str(given["importance"]).casefold() == "vital",
        }
    return {name: given.get(name) for name in ("nugget", "vital")}


def _history(value: Any) -> list[dict[str, str]]:
    found = _json(value) if isinstance(value, str) else value
    if isinstance(found, list) and all(isinstance(one, dict) for one in found):
        kept = [{name: one.get(name) for name in ("role", "content")} for one in found]
        if all(map(_is_message, kept)):
            return kept
    raise BadValue('no history; write [{"role": "user", "content": "a text"}]')


def _is_message(message: Record) -> bool:
    return message["role"] in ("user", "assistant", "system") and isinstance(message["content"], str)


def _amount(value: Any) -> float:
    """A number from 0, such as milliseconds or money."""
    number = _number(value)
    if not 0 <= number < math.inf:
        raise BadValue("no number from 0")
    return number


def _number(value: Any) -> float:
    """NaN where it is none; a yes is not a 1."""
    try:
        return math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _count(value: Any) -> int:
    if (number := _whole(value)) < 0:
        raise BadValue("no number from 0")
    return number


def _vector(value: Any) -> NDArray[np.float32]:
    try:
        with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite, and is refused below
            vector = np.asarray(_json(value) if isinstance(value, str) else value, dtype=np.float32)
    except (TypeError, ValueError, OverflowError):
        vector = np.empty(0, dtype=np.float32)
    if vector.ndim != 1 or not 0 < len(vector) <= MAX_DIMENSIONS or not np.isfinite(vector).all():
        raise BadValue("no vector; write a list of 1 to {most:,} finite numbers", most=MAX_DIMENSIONS)
    return vector


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise BadValue("not valid JSON ({reason})", reason=error.msg) from None
    except (ValueError, RecursionError):
        raise BadValue(UNREADABLE) from None


KINDS: dict[str, Callable[[Any], Any]] = {
    "id": _text,
    "question": _text,
    "embedding": _vector,
    "answer": _text,
    "confluence_url": _text,
    "score": _whole,
    "user_id": _text,
    "created_at": _moment,
    "text": _text,
    "page_title": _text,
    "ground_truth_answer": _text,
    "ground_truth_show": _yes_no,
    "answerable": _yes_no,
    "nuggets": _nuggets,
    "cluster": _text,
    "dialog_id": _text,
    "turn": _whole,
    "origin": _text,
    "history": _history,
    "latency_ms": _amount,
    "first_token_ms": _amount,
    "tokens_in": _count,
    "tokens_out": _count,
    "cost_usd": _amount,
    "error": _text,
    "trace_id": _text,
    "span_id": _text,
}
"""What reads a cell of each column of ours; `cells` reads those with lists of labels and passages."""
