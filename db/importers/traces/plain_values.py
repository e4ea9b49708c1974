"""Convert values of rows from CSV, Parquet, XLSX, numpy or pandas to JSON types."""

import math
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import numpy as np

from yarus.db.importers.lines import UNREADABLE
from yarus.db.importers.literals import MAX_BITS, MAX_LEVELS
from yarus.db.messages import Words

MISSING_TYPES = ("NAType", "NaTType")
"""Names that pandas gives to the types of its missing values."""
MAX_VALUES = 5_000_000
"""Values of one row. A real trace has thousands; a row that refers to itself is endless."""


class UnusableSpan(ValueError):
    """A span, or a row that should be one, that cannot be read; the message has the reason."""

    def __init__(self, reason: Words) -> None:
        super().__init__(reason)
        self.reason = reason


class MissingIds(UnusableSpan):
    """An object without ids, which is not a span."""


def to_json_types(value: Any) -> Any:
    """Convert a value to JSON types: None, booleans, numbers, texts, lists, and objects with text names.

    Missing values (NaN, NaT, NA) and infinite numbers become None, times ISO 8601 texts, bytes text or hexadecimal
    digits. A value without a JSON form becomes `<its type>`, as tracing SDKs write it.

    Raises:
        UnusableSpan: more than `MAX_LEVELS` nested lists and objects, too many values, or an integer with thousands of
            digits.
    """
    return _Converter().convert(value, 0)


class _Converter:
    """Converts one row, and counts its values."""

    def __init__(self) -> None:
        self._count = 0

    def convert(self, value: Any, level: int) -> Any:
        kind = type(value)
        if kind is str or value is None or kind is bool:  # most values: skip the other checks
            return value
        self._count += 1
        if isinstance(value, np.ndarray | np.generic):
            value = value.tolist()
        is_object = isinstance(value, Mapping)
        if not is_object and not isinstance(value, list | tuple | set | frozenset):
            return _convert_scalar(value)
        if level >= MAX_LEVELS or self._count > MAX_VALUES:
            raise UnusableSpan(Words("nested in more than {most} levels, or without end", most=MAX_LEVELS))
        if is_object:
            return {
                name if type(name) is str else _convert_name(name): self.convert(part, level + 1)
                for name, part in value.items()
            }
        return [self.convert(part, level + 1) for part in value]


def _convert_name(name: Any) -> str:
    scalar = name if isinstance(name, str) else _convert_scalar(name)
    return scalar if isinstance(scalar, str) else str(scalar)


def _convert_scalar(value: Any) -> Any:
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, Enum):
        return _convert_scalar(value.value)
    if value is None or isinstance(value, bool) or type(value).__name__ in MISSING_TYPES:
        return value if isinstance(value, bool) else None
    if isinstance(value, int | float | Decimal):
        return _convert_number(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return _convert_bytes(bytes(value))
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    return value.total_seconds() if isinstance(value, timedelta) else f"<{type(value).__name__}>"


def _convert_number(value: int | float | Decimal) -> int | float | None:
    if isinstance(value, int):
        if value.bit_length() > MAX_BITS:
            raise UnusableSpan(UNREADABLE)
        return int(value)
    number = float(value) if not isinstance(value, Decimal) or not value.is_snan() else math.nan
    return number if math.isfinite(number) else None


def _convert_bytes(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content.hex()
