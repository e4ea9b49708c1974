"""Dates of words: 12 January 2026, «с 12 по 20 января», in May."""

from yarus.metrics.facts.joined import CLOSE
from yarus.metrics.facts.numerals import date
from yarus.metrics.facts.reader import LINKS, Fact, Reader, is_whole
from yarus.metrics.facts.tokens import Token

BEFORE_MONTH = CLOSE | {" of ", " day of "}
AFTER_MONTH = CLOSE | {". ", ".", ", ", ",", " of ", " the "}


def month(reader: Reader, token: Token) -> None:
    """A month without a day before it: January 12, 2026; январь 2026; в январе.

    Example:
        >>> from yarus.metrics.facts import facts
        >>> [(fact.kind, fact.text) for fact in facts('January 12, 2026')]
        [('date', 'January 12, 2026')]
    """
    number, day, end = reader.next(AFTER_MONTH), None, token.end
    if number is not None and _is_day(number) and "a" <= reader.low[token.start] <= "z":
        day, end = int(number.value), number.end
        reader.at += 1
    year, end = _year(reader, end)
    fact = reader.put("date", token.start, end, (date(year, int(token.value), day),))
    fact.doubtful = token.doubtful and day is None and year is None
    if day is not None:
        _following_days(reader, int(token.value), year)


def day_and_month(reader: Reader, token: Token) -> bool:
    """Whether it is the day of a date.

    Example:
        >>> from yarus.metrics.facts import facts
        >>> [(fact.kind, fact.text) for fact in facts('12 января 2026')]
        [('date', '12 января 2026')]
    """
    month = reader.next(BEFORE_MONTH)
    if month is None or month.role != "month" or not _is_day(token):
        return False
    reader.at += 1
    year, end = _year(reader, month.end)
    lend_month(reader, reader.put("date", token.start, end, (date(year, int(month.value), int(token.value)),)))
    return True


def lend_month(reader: Reader, fact: Fact) -> None:
    """Gives the days before it in the same list or range its month: «с 12 по 20 января».

    Example:
        >>> from yarus.metrics.facts import facts
        >>> [(fact.kind, fact.text) for fact in facts('с 12 по 20 января')]
        [('date', '12'), ('date', '20 января')]
    """
    _, year, month, day = fact.readings[0]
    if day is None or month is None:
        return
    for other, _ in reader.linked(fact):
        if other.kind != "number" or not is_whole(other.value, 1, 31):
            return
        other.kind, other.readings = "date", (date(year, month, int(other.value)),)


def _year(reader: Reader, end: int) -> tuple[int | None, int]:
    """The year that comes next and where it ends; None and the end so far where none does."""
    number, at = reader.next(AFTER_MONTH), reader.at
    if number is None or number.role != "number" or number.kind != "number" or not is_whole(number.value, 0, 2999):
        return None, end
    reader.at += 1
    word = reader.next(CLOSE)
    if word is not None and word.role == "year" and (number.value < 100 or number.value >= 1000):
        reader.at += 1
        return int(number.value), word.end
    if number.value >= 1000:
        return int(number.value), number.end
    reader.at = at
    return None, end


def _following_days(reader: Reader, month: int, year: int | None) -> None:
    """January 12-20, January 12 and 13: the second number may be a day too."""
    while (number := reader.peek()) is not None and _is_day(number) and not _is_measured(reader):
        if reader.low[reader.tokens[reader.at - 1].end : number.start].strip() not in LINKS:
            return
        reader.at += 1
        reader.add("date", number, (date(year, month, int(number.value)), *number.readings))


def _is_measured(reader: Reader) -> bool:
    """Whether what comes next counts something."""
    number, *rest = reader.tokens[reader.at : reader.at + 2]
    counted = ("measure", "month", "year")
    return any(word.role in counted and reader.low[number.end : word.start] in BEFORE_MONTH for word in rest)


def _is_day(token: Token) -> bool:
    return token.role == "number" and token.kind == "number" and is_whole(token.value, 1, 31)
