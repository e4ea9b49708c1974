"""Times of day in words: «половина третьего», «без четверти три», 2 pm, «в 14 ч 30 мин», «с 9 до 18»."""

import re
from itertools import islice

from yarus.metrics.facts.joined import CLOSE
from yarus.metrics.facts.numerals import quantity
from yarus.metrics.facts.reader import DAY_S, HOUR_S, MINUTE_S, Fact, Reader, is_whole
from yarus.metrics.facts.tokens import Token

RANGE = frozenset({"-", "–", "—", "−", "до", "по", "to", "till", "until", "and"})
AT = re.compile(r"(?<!\w)(?:в|во|к|с|со|до|после|from|at|by|until|till|before|after)[ \u00a0]$")
TO_HOUR = CLOSE | {" to "}
HALF_DAY = 12


def half_hour(reader: Reader, token: Token) -> None:
    """«Полтретьего».

    Example:
        >>> from yarus.metrics.facts import facts
        >>> [(fact.kind, fact.text) for fact in facts('в полтретьего')]
        [('time', 'полтретьего')]
    """
    _clock(reader, token.start, token.end, int(token.value) - 1, 30)


def half_past(reader: Reader, token: Token) -> None:
    """«Пол третьего»; "half past" begins with its fraction.

    Example:
        >>> from yarus.metrics.facts import facts
        >>> [(fact.kind, fact.text) for fact in facts('в пол третьего')]
        [('time', 'пол третьего')]
    """
    hour = reader.next(CLOSE)
    if token.value == 30 and hour is not None and hour.ordinal and _is_of_half_day(hour):
        reader.at += 1
        _clock(reader, token.start, hour.end, int(hour.value) - 1, 30)


def to_hour(reader: Reader, token: Token) -> None:
    """«Без четверти три», «без пяти минут два».

    Example:
        >>> from yarus.metrics.facts import facts
        >>> [(fact.kind, fact.text) for fact in facts('без пяти минут два')]
        [('time', 'без пяти минут два')]
    """
    minutes, at = reader.next(CLOSE), reader.at
    if minutes is None:
        return
    reader.at += 1
    hour = reader.next(CLOSE)
    if hour is not None and hour.role == "measure" and hour.value == MINUTE_S:
        reader.at += 1
        hour = reader.next(CLOSE)
    value = minutes.value * 60 if minutes.unit == "fraction" else minutes.value
    if minutes.role == "number" and is_whole(value, 1, 59) and hour is not None and _is_of_half_day(hour):
        reader.at += 1
        _clock(reader, token.start, hour.end, int(hour.value) - 1, 60 - int(value))
    else:
        reader.at = at


def noon(reader: Reader, token: Token) -> None:
    """Noon or midnight.

    Example:
        >>> from yarus.metrics.facts import facts
        >>> [(fact.kind, fact.text) for fact in facts('at noon')]
        [('time', 'noon')]
    """
    reader.add("time", token, (("t", int(token.value), 0),))


def time(reader: Reader, token: Token) -> bool:
    """Whether it is a time by what follows: «в 14 ч 30 мин», «2 часа дня», 2:30 pm, half past two.

    «3 дня» are days; «в 3 дня» is a time, or three days.

    Example:
        >>> from yarus.metrics.facts import facts
        >>> [(fact.kind, fact.text) for fact in facts('в 2 часа дня')]
        [('time', '2 часа дня')]
    """
    if _against_hour(reader, token):
        return True
    for reading in token.readings:
        if reading[0] == "t":
            return _in_part_of_day(reader, token.start, reading[1], reading[2])
    if token.kind != "number" or not is_whole(token.value, 0, 24):
        return False
    at, hour, minute = reader.at, int(token.value), 0
    clock = reader.next(CLOSE)
    if clock is not None and clock.role == "measure" and clock.value == HOUR_S:
        reader.at += 1
        minute = _minutes(reader)
    days = reader.at == at and _counts_days(reader, token)
    if days and not AT.search(reader.low[max(0, token.start - 8) : token.start]):
        return False
    if _in_part_of_day(reader, token.start, hour, minute):
        if days:
            reader.facts[-1].readings += (quantity(token.value, "s", DAY_S),)
        return True
    if minute:
        readings = ("t", hour % 24, minute), quantity(hour * HOUR_S + minute * MINUTE_S, "s")
        reader.put("time", token.start, reader.tokens[reader.at - 1].end, readings)
        return True
    reader.at = at
    return False


def _counts_days(reader: Reader, token: Token) -> bool:
    """Whether «дня» follows a number that it may be the plural of: «2 дня», «двадцать три дня», not «5 дня»."""
    after = reader.next(CLOSE)
    return token.value % 10 in (2, 3, 4) and after is not None and reader.low[after.start : after.end] == "дня"


def hours(reader: Reader, fact: Fact) -> None:
    """«С 9 до 18», 10-19 and «к девяти» may be hours.

    Example:
        >>> from yarus.metrics.facts import unsupported
        >>> unsupported(['с 9:00'], ['с 9 до 18'])
        [[]]
    """
    for other, gap in islice(reader.linked(fact), 1):
        if gap in RANGE:
            for one in (other, fact):
                if _is_hour(one):
                    one.readings += (("t", int(one.value) % 24, 0),)
            return
    if _is_hour(fact) and AT.search(reader.low[max(0, fact.start - 8) : fact.start]):
        hour = int(fact.value)
        fact.readings += tuple(("t", of % 24, 0) for of in ({hour, hour + HALF_DAY} if hour <= HALF_DAY else {hour}))


def _in_part_of_day(reader: Reader, start: int, hour: int, minute: int) -> bool:
    """Whether the next word says of which half of the day this hour is."""
    shift = _part_of_day(reader)
    if shift is None:
        return False
    hour = hour % HALF_DAY + shift if hour <= HALF_DAY else hour % 24
    fact = reader.put("time", start, reader.tokens[reader.at - 1].end, (("t", hour, minute),))
    for other, _ in islice(reader.linked(fact), 1):  # 1-2 pm, «с 8 до шести вечера»
        if _is_hour(other):
            other.readings += tuple(("t", (int(other.value) + add) % 24, 0) for add in {0, shift})
        elif other.kind == "time" and other.readings[0][1] < HALF_DAY:
            other.readings += tuple(("t", of[1] + shift, of[2]) for of in other.readings if of[0] == "t")
    return True


def _is_hour(fact: Fact) -> bool:
    return fact.kind == "number" and is_whole(fact.value, 0, 24)


def _is_of_half_day(token: Token) -> bool:
    return token.role == "number" and is_whole(token.value, 1, HALF_DAY)


def _minutes(reader: Reader) -> int:
    """Those that follow an hour; 0 where none do."""
    number, at = reader.next(CLOSE), reader.at
    if number is not None and number.role == "number" and is_whole(number.value, 0, 59):
        reader.at += 1
        minutes = reader.next(CLOSE)
        glued = reader.tokens[reader.at - 2].end == number.start
        if minutes is not None and (
            minutes.value == MINUTE_S or (glued and reader.low[minutes.start : minutes.end] == "м")
        ):
            reader.at += 1
            return int(number.value)
        if glued and number.end - number.start == 2:  # 19ч30
            return int(number.value)
    reader.at = at
    return 0


def _part_of_day(reader: Reader) -> int | None:
    """The hours to add by what follows: 0 of the night and morning, 12 of the day and evening."""
    for letters, shift in (("a.m", 0), ("p.m", HALF_DAY)):
        end = reader.tokens[reader.at - 1].end
        if reader.low.startswith((letters, f" {letters}"), end):
            while reader.at < len(reader.tokens) and reader.tokens[reader.at].start < end + len(letters) + 1:
                reader.at += 1  # the letters are words too
            return shift
    part = reader.next(CLOSE)
    if part is None:
        return None
    if part.role == "part_of_day":
        reader.at += 1
        return int(part.value)
    if reader.low[part.start : part.end] == "дня":
        reader.at += 1
        return HALF_DAY
    return None


def _against_hour(reader: Reader, token: Token) -> bool:
    """«Половина третьего», half past two, quarter to three, ten past two."""
    is_fraction, at = token.unit == "fraction", reader.at
    minutes = token.value * 60 if is_fraction else token.value
    after = reader.next(TO_HOUR)
    if after is None or not is_whole(minutes, 0, 59):
        return False
    reader.at += 1
    is_past = after.role == "half_past" and after.value == 0
    hour = reader.next(CLOSE) if is_past else after
    if hour is not None and _is_of_half_day(hour):
        is_to = reader.low[token.end : after.start] == " to "
        if is_past:
            reader.at += 1
            _clock(reader, token.start, hour.end, int(hour.value), int(minutes))
            return True
        if is_fraction and (is_to or hour.ordinal):
            _clock(reader, token.start, hour.end, int(hour.value) - 1, int(60 - minutes if is_to else minutes))
            return True
    reader.at = at
    return False


def _clock(reader: Reader, start: int, end: int, hour: int, minute: int) -> None:
    """A time of one half of the day or the other, unless what follows says which."""
    shift = _part_of_day(reader)
    hours = (hour % HALF_DAY, hour % HALF_DAY + HALF_DAY) if shift is None else (hour % HALF_DAY + shift,)
    reader.put("time", start, end, tuple(("t", of, minute) for of in hours))
