"""Dates in words: 12 January 2026, «с 12 по 20 января», in May."""

from yarus.metrics.facts.number_words import CLOSE
from yarus.metrics.facts.numerals import date_reading
from yarus.metrics.facts.parser import LINKS, Fact, FactParser, is_whole
from yarus.metrics.facts.tokens import Token

BEFORE_MONTH = CLOSE | {" of ", " day of "}
AFTER_MONTH = CLOSE | {". ", ".", ", ", ",", " of ", " the "}


def add_month(parser: FactParser, token: Token) -> None:
    """Add a month without a day before it: January 12, 2026; январь 2026; в январе.

    Example:
        >>> from yarus.metrics.facts import facts
        >>> [(fact.kind, fact.text) for fact in facts('January 12, 2026')]
        [('date', 'January 12, 2026')]
    """
    number, day, end = parser.next_token(AFTER_MONTH), None, token.end
    if number is not None and _is_day(number) and "a" <= parser.low[token.start] <= "z":
        day, end = int(number.value), number.end
        parser.position += 1
    year, end = _parse_year(parser, end)
    fact = parser.add_span("date", token.start, end, (date_reading(year, int(token.value), day),))
    fact.doubtful = token.doubtful and day is None and year is None
    if day is not None:
        _following_days(parser, int(token.value), year)


def add_day_and_month(parser: FactParser, token: Token) -> bool:
    """Add a date if the token is its day; return whether it is.

    Example:
        >>> from yarus.metrics.facts import facts
        >>> [(fact.kind, fact.text) for fact in facts('12 января 2026')]
        [('date', '12 января 2026')]
    """
    month = parser.next_token(BEFORE_MONTH)
    if month is None or month.role != "month" or not _is_day(token):
        return False
    parser.position += 1
    year, end = _parse_year(parser, month.end)
    propagate_month(
        parser, parser.add_span("date", token.start, end, (date_reading(year, int(month.value), int(token.value)),))
    )
    return True


def propagate_month(parser: FactParser, fact: Fact) -> None:
    """Give its month to the days before it in the same list or range: «с 12 по 20 января».

    Example:
        >>> from yarus.metrics.facts import facts
        >>> [(fact.kind, fact.text) for fact in facts('с 12 по 20 января')]
        [('date', '12'), ('date', '20 января')]
    """
    _, year, month, day = fact.readings[0]
    if day is None or month is None:
        return
    for linked, _ in parser.linked_facts(fact):
        if linked.kind != "number" or not is_whole(linked.value, 1, 31):
            return
        linked.kind, linked.readings = "date", (date_reading(year, month, int(linked.value)),)


def _parse_year(parser: FactParser, end: int) -> tuple[int | None, int]:
    """Return the next year and its end; None and the given end if there is none."""
    number, start = parser.next_token(AFTER_MONTH), parser.position
    if number is None or number.role != "number" or number.kind != "number" or not is_whole(number.value, 0, 2999):
        return None, end
    parser.position += 1
    word = parser.next_token(CLOSE)
    if word is not None and word.role == "year" and (number.value < 100 or number.value >= 1000):
        parser.position += 1
        return int(number.value), word.end
    if number.value >= 1000:
        return int(number.value), number.end
    parser.position = start
    return None, end


def _following_days(parser: FactParser, month: int, year: int | None) -> None:
    """Add the second number of January 12-20, January 12 and 13, which may also be a day."""
    while (number := parser.peek()) is not None and _is_day(number) and not _is_measured(parser):
        if parser.low[parser.tokens[parser.position - 1].end : number.start].strip() not in LINKS:
            return
        parser.position += 1
        parser.add("date", number, (date_reading(year, month, int(number.value)), *number.readings))


def _is_measured(parser: FactParser) -> bool:
    """Return whether the next number counts something."""
    number, *rest = parser.tokens[parser.position : parser.position + 2]
    counting_roles = ("measure", "month", "year")
    return any(word.role in counting_roles and parser.low[number.end : word.start] in BEFORE_MONTH for word in rest)


def _is_day(token: Token) -> bool:
    return token.role == "number" and token.kind == "number" and is_whole(token.value, 1, 31)
