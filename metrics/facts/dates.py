"""Dates of words: 12 January 2026, «с 12 по 20 января», in May."""

from metrics.facts.joined import CLOSE
from metrics.facts.numerals import date
from metrics.facts.reader import LINKS, Fact, Reader
from metrics.facts.tokens import Token

BEFORE_MONTH = CLOSE | {" of ", " day of "}
AFTER_MONTH = CLOSE | {". ", ".", ", ", ",", " of ", " the "}


def month(reader: Reader, token: Token) -> None:
    """A month without a day before it: January 12, 2026; январь 2026; в январе.

    Example:
        >>> from metrics.facts import facts
        >>> [(fact.kind, fact.text) for fact in facts('January 12, 2026')]
        [('date', 'January 12, 2026')]
    """
    number, day, year = reader.next(AFTER_MONTH), None, None
    end = token.end
    if number is not None and number.role == "number" and number.value is not None:
        if 1 <= number.value <= 31 and number.kind == "number" and "a" <= reader.low[token.start] <= "z":
            day, end = int(number.value), number.end
            reader.at += 1
        elif not 1000 <= number.value < 3000:
            number = None
    year, end = _year(reader, end)
    fact = reader.put("date", token.start, end, (date(year, int(token.value or 0), day),))
    fact.doubtful = token.doubtful and day is None and year is None
    if day is not None:
        _following_days(reader, int(token.value or 0), year)


def day_and_month(reader: Reader, token: Token) -> bool:
    """Whether it is the day of a date.

    Example:
        >>> from metrics.facts import facts
        >>> [(fact.kind, fact.text) for fact in facts('12 января 2026')]
        [('date', '12 января 2026')]
    """
    month = reader.next(BEFORE_MONTH)
    if month is None or month.role != "month" or token.value is None or not _is_day(token):
        return False
    reader.at += 1
    year, end = _year(reader, month.end)
    fact = reader.put("date", token.start, end, (date(year, int(month.value or 0), int(token.value)),))
    lend_month(reader, fact)
    return True


def lend_month(reader: Reader, fact: Fact) -> None:
    """Gives the days before it in the same list or range its month: «с 12 по 20 января».

    Example:
        >>> from metrics.facts import facts
        >>> [(fact.kind, fact.text) for fact in facts('с 12 по 20 января')]
        [('date', '12'), ('date', '20 января')]
    """
    _, year, month, day = fact.readings[0]
    if day is None or month is None:
        return
    for other, _ in reader.linked(fact):
        if other.kind != "number" or other.value is None or not 1 <= other.value <= 31 or other.value % 1:
            return
        other.kind, other.readings = "date", (date(year, month, int(other.value)),)


def _year(reader: Reader, end: int) -> tuple[int | None, int]:
    """The year that comes next and where it ends; None and the end so far where none does."""
    number = reader.next(AFTER_MONTH)
    if number is None or number.role != "number" or number.value is None or number.kind != "number":
        return None, end
    value, at = number.value, reader.at
    reader.at += 1
    word = reader.next(CLOSE)
    named = word is not None and word.role == "year"
    if value != int(value) or not (1000 <= value < 3000 or (named and value < 100)):
        reader.at = at
        return None, end
    if named and word is not None:
        reader.at += 1
        end = word.end
    return int(value), max(end, number.end)


def _following_days(reader: Reader, month: int, year: int | None) -> None:
    """January 12-20, January 12 and 13: the second number may be a day too."""
    while reader.at < len(reader.tokens):
        number, gap = (
            reader.tokens[reader.at],
            reader.low[reader.tokens[reader.at - 1].end : reader.tokens[reader.at].start],
        )
        if (
            number.role != "number"
            or gap.strip() not in LINKS
            or not _is_day(number)
            or _is_measured(reader, reader.at)
        ):
            return
        reader.at += 1
        reader.add("date", number, (date(year, month, int(number.value or 0)), *number.readings), number.value)


def _is_measured(reader: Reader, at: int) -> bool:
    after = reader.tokens[at + 1] if at + 1 < len(reader.tokens) else None
    gap = "" if after is None else reader.low[reader.tokens[at].end : after.start]
    return after is not None and after.role in ("measure", "month", "year") and gap in BEFORE_MONTH


def _is_day(token: Token) -> bool:
    return token.value is not None and token.kind == "number" and 1 <= token.value <= 31 and token.value % 1 == 0
