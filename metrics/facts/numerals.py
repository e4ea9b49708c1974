"""Possible readings of digits: `12.01` is a date, a time or a decimal, `1,500` fifteen hundred or one and a half.

A reading is a tuple that begins with its kind:

    ("q", value, unit, base)  a quantity in its own and in the base unit of `yarus.metrics.facts.lexicon`; None: no unit
    ("d", year, month, day)   a date; None for a missing part
    ("t", hour, minute)       a time of day
    ("w", number)             a weekday, Monday is 1
    ("p", digits)             a phone: its last ten digits, or fewer if it has fewer
    ("e", address), ("u", address)   an e-mail, a page
    ("c", letters and digits) a code: a room, the number of a document
"""

import re
from functools import lru_cache
from typing import Any

from yarus.metrics.facts.spelling import TO_CYRILLIC

Reading = tuple[Any, ...]
LONGEST = 18
"""Most digits of a number; longer ones are codes."""
LARGEST_POWER = 60
"""Largest power of ten of a number."""
MOST = 40
"""Most signs of a piece that is read as anything but a code."""
SEPARATORS = re.compile(r"\D+")
EXPONENT = re.compile(r"(\d+(?:[.,]\d+)?)(?:e|\s?[·×x*]\s?10\^?)([+-]?\d{1,3})|10\^([+-]?\d{1,3})")
BETWEEN_DIGITS = re.compile(r"(?<=\d)\W+(?=\d)")
RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")


def quantity_reading(value: float, unit: str | None = None, times: float = 1.0) -> Reading:
    """Return a quantity, rounded so that equal values are equal however they were computed.

    Args:
        value: the number as written.
        unit: the base unit.
        times: how many base units the written unit is.

    Example:
        >>> from yarus.metrics.facts.numerals import quantity_reading
        >>> quantity_reading(0.1 + 0.2, 'm', 1000)
        ('q', 0.3, 'm', 300.0)
    """
    return "q", _round_to_12_digits(value), unit, _round_to_12_digits(value * times)


def _round_to_12_digits(value: float) -> float:
    return value if value % 1 == 0 and abs(value) < 1e12 else float(f"{value:.12g}")


def date_reading(year: int | None, month: int | None, day: int | None) -> Reading:
    """Return a date; years of two digits up to 50 are in this century.

    Example:
        >>> from yarus.metrics.facts.numerals import date_reading
        >>> date_reading(26, 1, 12)
        ('d', 2026, 1, 12)
    """
    if year is not None and year < 100:
        year += 2000 if year <= 50 else 1900
    return ("d", year, month, day)


@lru_cache(maxsize=4096)
def read_digits(piece: str) -> tuple[str, tuple[Reading, ...]]:
    """Return the possible readings of digits with signs between them, the likeliest first.

    Args:
        piece: such as "12", "12.01.2026", "1,500", "14:30", "267-43-70", "2 000".

    Returns:
        The kind of the first reading: number, date, time, phone or code; and the readings.

    Example:
        >>> from yarus.metrics.facts.numerals import read_digits
        >>> read_digits('9.45')
        ('time', (('t', 9, 45), ('q', 9.45, None, 9.45)))
    """
    possible = _parse(piece) or [("c", normalize_code(piece))]
    return _KINDS[possible[0][0]], tuple(possible)


def normalize_code(text: str) -> str:
    """Return a code in canonical letters of one alphabet, without signs between letters and digits, "/" between digits.

    Example:
        >>> from yarus.metrics.facts.numerals import normalize_code
        >>> normalize_code('123-фз'), normalize_code('45-1')
        ('123фз', '45/1')
    """
    joined = "".join(sign for sign in BETWEEN_DIGITS.sub("/", text) if sign.isalnum() or sign == "/")
    joined = joined.strip("/").translate(TO_CYRILLIC)
    return (joined.lstrip("0") or "0") if joined.isdecimal() else joined


_KINDS = {"q": "number", "d": "date", "t": "time", "p": "phone", "c": "code"}


def _parse(piece: str) -> list[Reading]:
    """Return the readings; empty for a code."""
    if piece.isdecimal():
        return _number_or_phone(piece) if len(piece) <= LONGEST else []
    if len(piece) > MOST:
        return []
    if (match := EXPONENT.fullmatch(piece)) is not None:
        head, power, bare = match.groups()
        is_number = abs(int(power or bare)) <= LARGEST_POWER
        return [quantity_reading(float(f"{(head or '1').replace(',', '.')}e{power or bare}"))] if is_number else []
    parts = SEPARATORS.split(piece)
    signs = set(SEPARATORS.findall(piece))
    if signs <= {" ", "\u00a0", "\u202f", "\u2009", "'", "’"}:
        return [quantity_reading(float("".join(parts)))]
    shape = _SHAPES.get(signs.pop()) if len(signs) == 1 else None
    return shape(parts, tuple(map(len, parts))) if shape else _read_mixed_separators(piece)


def _number_or_phone(digits: str) -> list[Reading]:
    number = ("q", float(digits), None, float(digits))
    if len(digits) in (10, 11) and digits[0] in "789":
        return [("p", digits[-10:]), number]
    return [number, ("d", int(digits), None, None)] if len(digits) == 4 and digits[0] in "12" else [number]


def _day_month(day: str, month: str, year: str | None = None) -> list[Reading]:
    if 1 <= int(day) <= 31 and 1 <= int(month) <= 12:
        return [date_reading(None if year is None else int(year), int(month), int(day))]
    return []


def _read_clock(hour: str, minute: str) -> list[Reading]:
    return [("t", int(hour) % 24, int(minute))] if int(hour) <= 24 and int(minute) < 60 and len(minute) == 2 else []


def _read_dotted(parts: list[str], lengths: tuple[int, ...]) -> list[Reading]:
    joined = "".join(parts)
    if len(parts) == 2:
        numbers = [quantity_reading(float(".".join(parts)))]
        dates = _day_month(*parts) if lengths in ((2, 2), (1, 2)) else []
        times = _read_clock(*parts) if max(lengths) == 2 else []
        thousands = [quantity_reading(float(joined))] if lengths[1] == 3 and lengths[0] <= 3 and parts[0] != "0" else []
        return [*dates, *times, *thousands, *numbers]
    if lengths in ((4, 2, 2), (2, 2, 4), (1, 2, 4), (1, 1, 4), (2, 1, 4), (2, 2, 2)):
        year, month, day = parts if lengths[0] == 4 else parts[::-1]
        return [*_day_month(day, month, year), ("c", normalize_code(".".join(parts)))]
    if set(lengths[1:]) == {3} and lengths[0] <= 3 and parts[0] != "0":
        return [quantity_reading(float(joined))]
    return []


def _read_comma(parts: list[str], lengths: tuple[int, ...]) -> list[Reading]:
    thousands = (
        [quantity_reading(float("".join(parts)))]
        if set(lengths[1:]) == {3} and lengths[0] <= 3 and parts[0] != "0"
        else []
    )
    return [*thousands, quantity_reading(float(".".join(parts)))] if len(parts) == 2 else thousands


def _read_slash(parts: list[str], lengths: tuple[int, ...]) -> list[Reading]:
    if len(parts) == 2:
        dates = [*_day_month(*parts), *_day_month(*parts[::-1])] if max(lengths) <= 2 else []
        fraction = [quantity_reading(int(parts[0]) / int(parts[1]))] if int(parts[1]) > 0 and max(lengths) <= 3 else []
        return [*fraction, *dates, ("c", normalize_code("/".join(parts)))]
    if lengths[0] == 4:
        return _day_month(parts[2], parts[1], parts[0]) if len(parts) == 3 else []
    if len(parts) == 3 and lengths[2] in (2, 4):
        return [*_day_month(*parts), *_day_month(parts[1], parts[0], parts[2])]
    return []


def _read_dashed(parts: list[str], lengths: tuple[int, ...]) -> list[Reading]:
    if len(parts) == 3 and lengths == (4, 2, 2):
        return _day_month(parts[2], parts[1], parts[0])
    if len(parts) == 3 and max(lengths[:2]) <= 2 and lengths[2] == 4:
        return [*_day_month(*parts), *_day_month(parts[1], parts[0], parts[2])]
    digits = "".join(parts)
    if (lengths[-2:] == (2, 2) and len(parts) <= 4 and 5 <= len(digits) <= 11) or lengths in ((3, 3, 4), (3, 4)):
        return [("p", digits[-10:]), *(_day_month(*parts) if lengths == (2, 2, 2) else [])]
    return []


def _read_colons(parts: list[str], lengths: tuple[int, ...]) -> list[Reading]:
    if len(parts) <= 3 and set(lengths[1:]) == {2} and (times := _read_clock(parts[0], parts[1])):
        return [*times, ("c", normalize_code(":".join(parts)))]
    return [("c", normalize_code(":".join(parts)))]


_SHAPES = {".": _read_dotted, ",": _read_comma, "/": _read_slash, "-": _read_dashed, ":": _read_colons}


def _read_mixed_separators(piece: str) -> list[Reading]:
    """Read thousands and decimals with different signs: 1,234.56 or 1 234,5."""
    decimal = max(piece.rfind("."), piece.rfind(","))
    head, tail = piece[:decimal], piece[decimal + 1 :]
    groups = SEPARATORS.split(head)
    if decimal < 0 or not tail.isdecimal() or {len(group) for group in groups[1:]} != {3} or "-" in head or "/" in head:
        return []
    return [quantity_reading(float(f"{''.join(groups)}.{tail}"))]
