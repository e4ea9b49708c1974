"""Times of day in words: «половина третьего», «без четверти три», 2 pm, «в 14 ч 30 мин», «с 9 до 18»."""

import re
from itertools import islice

from yarus.metrics.facts.number_words import CLOSE
from yarus.metrics.facts.numerals import quantity_reading
from yarus.metrics.facts.parser import DAY_S, HOUR_S, MINUTE_S, Fact, FactParser, is_whole
from yarus.metrics.facts.tokens import Token

RANGE = frozenset({"-", "–", "—", "−", "до", "по", "to", "till", "until", "and"})
AT = re.compile(r"(?<!\w)(?:в|во|к|с|со|до|после|from|at|by|until|till|before|after)[ \u00a0]$")
TO_HOUR = CLOSE | {" to "}
HALF_DAY = 12


def add_half_hour(parser: FactParser, token: Token) -> None:
    """Add «полтретьего».

    Example:
        >>> from yarus.metrics.facts import facts
        >>> [(fact.kind, fact.text) for fact in facts('в полтретьего')]
        [('time', 'полтретьего')]
    """
    _add_time(parser, token.start, token.end, int(token.value) - 1, 30)


def add_half_past(parser: FactParser, token: Token) -> None:
    """Add «пол третьего»; "half past" begins with its fraction.

    Example:
        >>> from yarus.metrics.facts import facts
        >>> [(fact.kind, fact.text) for fact in facts('в пол третьего')]
        [('time', 'пол третьего')]
    """
    hour = parser.next_token(CLOSE)
    if token.value == 30 and hour is not None and hour.ordinal and _is_hour_of_half_day(hour):
        parser.position += 1
        _add_time(parser, token.start, hour.end, int(hour.value) - 1, 30)


def add_to_hour(parser: FactParser, token: Token) -> None:
    """Add «без четверти три», «без пяти минут два».

    Example:
        >>> from yarus.metrics.facts import facts
        >>> [(fact.kind, fact.text) for fact in facts('без пяти минут два')]
        [('time', 'без пяти минут два')]
    """
    minutes, start = parser.next_token(CLOSE), parser.position
    if minutes is None:
        return
    parser.position += 1
    hour = parser.next_token(CLOSE)
    if hour is not None and hour.role == "measure" and hour.value == MINUTE_S:
        parser.position += 1
        hour = parser.next_token(CLOSE)
    value = minutes.value * 60 if minutes.unit == "fraction" else minutes.value
    if minutes.role == "number" and is_whole(value, 1, 59) and hour is not None and _is_hour_of_half_day(hour):
        parser.position += 1
        _add_time(parser, token.start, hour.end, int(hour.value) - 1, 60 - int(value))
    else:
        parser.position = start


def add_noon(parser: FactParser, token: Token) -> None:
    """Add noon or midnight.

    Example:
        >>> from yarus.metrics.facts import facts
        >>> [(fact.kind, fact.text) for fact in facts('at noon')]
        [('time', 'noon')]
    """
    parser.add("time", token, (("t", int(token.value), 0),))


def add_time_of_number(parser: FactParser, token: Token) -> bool:
    """Add a time if the next tokens make it one («в 14 ч 30 мин», «2 часа дня», 2:30 pm, half past two).

    «3 дня» are days; «в 3 дня» is a time, or three days. Return whether a time was added.

    Example:
        >>> from yarus.metrics.facts import facts
        >>> [(fact.kind, fact.text) for fact in facts('в 2 часа дня')]
        [('time', '2 часа дня')]
    """
    if _add_relative_time(parser, token):
        return True
    for reading in token.readings:
        if reading[0] == "t":
            return _in_part_of_day(parser, token.start, reading[1], reading[2])
    if token.kind != "number" or not is_whole(token.value, 0, 24):
        return False
    start, hour, minute = parser.position, int(token.value), 0
    measure = parser.next_token(CLOSE)
    if measure is not None and measure.role == "measure" and measure.value == HOUR_S:
        parser.position += 1
        minute = _parse_minutes(parser)
    is_day_count = parser.position == start and _counts_days(parser, token)
    if is_day_count and not AT.search(parser.low[max(0, token.start - 8) : token.start]):
        return False
    if _in_part_of_day(parser, token.start, hour, minute):
        if is_day_count:
            parser.facts[-1].readings += (quantity_reading(token.value, "s", DAY_S),)
        return True
    if minute:
        readings = ("t", hour % 24, minute), quantity_reading(hour * HOUR_S + minute * MINUTE_S, "s")
        parser.add_span("time", token.start, parser.tokens[parser.position - 1].end, readings)
        return True
    parser.position = start
    return False


def _counts_days(parser: FactParser, token: Token) -> bool:
    """Return whether «дня» follows a number of which it may be the plural: «2 дня», «двадцать три дня», not «5 дня»."""
    after = parser.next_token(CLOSE)
    return token.value % 10 in (2, 3, 4) and after is not None and parser.low[after.start : after.end] == "дня"


def add_hour_readings(parser: FactParser, fact: Fact) -> None:
    """Add readings as hours to «с 9 до 18», 10-19 and «к девяти».

    Example:
        >>> from yarus.metrics.facts import unsupported
        >>> unsupported(['с 9:00'], ['с 9 до 18'])
        [[]]
    """
    for linked, gap in islice(parser.linked_facts(fact), 1):
        if gap in RANGE:
            for member in (linked, fact):
                if _is_hour(member):
                    member.readings += (("t", int(member.value) % 24, 0),)
            return
    if _is_hour(fact) and AT.search(parser.low[max(0, fact.start - 8) : fact.start]):
        hour = int(fact.value)
        fact.readings += tuple(("t", h % 24, 0) for h in ({hour, hour + HALF_DAY} if hour <= HALF_DAY else {hour}))


def _in_part_of_day(parser: FactParser, start: int, hour: int, minute: int) -> bool:
    """Return whether the next word gives the half of the day of this hour; if so, add the time."""
    shift = _part_of_day(parser)
    if shift is None:
        return False
    hour = hour % HALF_DAY + shift if hour <= HALF_DAY else hour % 24
    fact = parser.add_span("time", start, parser.tokens[parser.position - 1].end, (("t", hour, minute),))
    for linked, _ in islice(parser.linked_facts(fact), 1):  # 1-2 pm, «с 8 до шести вечера»
        if _is_hour(linked):
            linked.readings += tuple(("t", (int(linked.value) + add) % 24, 0) for add in {0, shift})
        elif linked.kind == "time" and linked.readings[0][1] < HALF_DAY:
            linked.readings += tuple(("t", time[1] + shift, time[2]) for time in linked.readings if time[0] == "t")
    return True


def _is_hour(fact: Fact) -> bool:
    return fact.kind == "number" and is_whole(fact.value, 0, 24)


def _is_hour_of_half_day(token: Token) -> bool:
    return token.role == "number" and is_whole(token.value, 1, HALF_DAY)


def _parse_minutes(parser: FactParser) -> int:
    """Return the minutes that follow an hour; 0 if there are none."""
    number, start = parser.next_token(CLOSE), parser.position
    if number is not None and number.role == "number" and is_whole(number.value, 0, 59):
        parser.position += 1
        minutes = parser.next_token(CLOSE)
        glued = parser.tokens[parser.position - 2].end == number.start
        if minutes is not None and (
            minutes.value == MINUTE_S or (glued and parser.low[minutes.start : minutes.end] == "м")
        ):
            parser.position += 1
            return int(number.value)
        if glued and number.end - number.start == 2:  # 19ч30
            return int(number.value)
    parser.position = start
    return 0


def _part_of_day(parser: FactParser) -> int | None:
    """Return the hours to add, given the next word: 0 for night and morning, 12 for day and evening."""
    for suffix, shift in (("a.m", 0), ("p.m", HALF_DAY)):
        end = parser.tokens[parser.position - 1].end
        if parser.low.startswith((suffix, f" {suffix}"), end):
            while parser.position < len(parser.tokens) and parser.tokens[parser.position].start < end + len(suffix) + 1:
                parser.position += 1  # the letters are words too
            return shift
    part = parser.next_token(CLOSE)
    if part is None:
        return None
    if part.role == "part_of_day":
        parser.position += 1
        return int(part.value)
    if parser.low[part.start : part.end] == "дня":
        parser.position += 1
        return HALF_DAY
    return None


def _add_relative_time(parser: FactParser, token: Token) -> bool:
    """Add «половина третьего», half past two, quarter to three, ten past two; return whether it did."""
    is_fraction, start = token.unit == "fraction", parser.position
    minutes = token.value * 60 if is_fraction else token.value
    after = parser.next_token(TO_HOUR)
    if after is None or not is_whole(minutes, 0, 59):
        return False
    parser.position += 1
    is_past = after.role == "half_past" and after.value == 0
    hour = parser.next_token(CLOSE) if is_past else after
    if hour is not None and _is_hour_of_half_day(hour):
        is_to = parser.low[token.end : after.start] == " to "
        if is_past:
            parser.position += 1
            _add_time(parser, token.start, hour.end, int(hour.value), int(minutes))
            return True
        if is_fraction and (is_to or hour.ordinal):
            _add_time(parser, token.start, hour.end, int(hour.value) - 1, int(60 - minutes if is_to else minutes))
            return True
    parser.position = start
    return False


def _add_time(parser: FactParser, start: int, end: int, hour: int, minute: int) -> None:
    """Add a time of one half of the day or the other, unless the next word gives it."""
    shift = _part_of_day(parser)
    hours = (hour % HALF_DAY, hour % HALF_DAY + HALF_DAY) if shift is None else (hour % HALF_DAY + shift,)
    parser.add_span("time", start, end, tuple(("t", value, minute) for value in hours))
