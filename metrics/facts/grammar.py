"""Tokens as facts: a day, its month and its year are one date, a number and what it counts one quantity."""

import re

from yarus.metrics.facts.clock import half_hour, half_past, hours, noon, time, to_hour
from yarus.metrics.facts.dates import day_and_month, lend_month, month
from yarus.metrics.facts.joined import CLOSE
from yarus.metrics.facts.numerals import code, quantity
from yarus.metrics.facts.quantities import lend_scale, measured
from yarus.metrics.facts.reader import Fact, Reader
from yarus.metrics.facts.tokens import Token

NAMED = re.compile(r"[ \u00a0.:]{0,3}(?:№|#|no\.?)?[ \u00a0]{0,2}")
LETTER = re.compile(r"-?[a-zа-я](?![\w-])")
ADJECTIVE = re.compile(r"\w(?:ая|яя|ой|ую|юю|ей|ые|ых)[ \u00a0]+$")
AFTER_PREPOSITION = re.compile(r"(?<!\w)(?:в|во|по|со|с|до|к|на|каждую|эту|следующую|прошлую)[ \u00a0]+$")
BESIDE_ANOTHER = frozenset({"weekday", "time", "date"})


def read(found: list[Token], low: str) -> list[Fact]:
    """The facts that the tokens of a text say, in order; those in doubt marked.

    Example:
        >>> from yarus.metrics.facts import facts
        >>> [(fact.kind, fact.text) for fact in facts('каб. 215')]
        [('room', '215')]
    """
    reader = Reader(found, low)
    while reader.at < len(found):
        token = found[reader.at]
        reader.at += 1
        reads = READERS.get(token.role)
        if reads is not None:
            reads(reader, token)
    for place, fact in enumerate(reader.facts):
        if fact.doubtful and fact.kind in BESIDE_ANOTHER and not low.startswith("сред", fact.start):
            fact.doubtful = not _beside_another(reader, place)
    return reader.facts


def address(reader: Reader, token: Token) -> None:
    """An e-mail, a page or a phone.

    Example:
        >>> from yarus.metrics.facts import facts
        >>> [(fact.kind, fact.text) for fact in facts('см. ssau.ru')]
        [('url', 'ssau.ru')]
    """
    reader.add(token.kind, token, token.readings)


def number(reader: Reader, token: Token) -> None:
    """A number, and all that begins with one.

    Example:
        >>> from yarus.metrics.facts import facts
        >>> [(fact.kind, fact.text) for fact in facts('5 и 10 %')]
        [('percent', '5'), ('percent', '10 %')]
    """
    if _named(reader, token) or day_and_month(reader, token) or time(reader, token):
        return
    fact = reader.add(token.kind, token, token.readings)
    fact.doubtful = token.doubtful
    lend_scale(reader, token, fact)
    measured(reader, token, fact)
    if fact.kind in ("number", "time"):
        hours(reader, fact)
    elif fact.kind == "date":
        lend_month(reader, fact)


def weekday(reader: Reader, token: Token) -> None:
    """A day of the week.

    Example:
        >>> from yarus.metrics.facts import facts
        >>> [(fact.kind, fact.text) for fact in facts('по средам')]
        [('weekday', 'средам')]
    """
    fact = reader.add("weekday", token, (("w", int(token.value)),))
    fact.doubtful = token.doubtful
    if token.doubtful and reader.low.startswith("сред", token.start):
        before = reader.low[max(0, token.start - 14) : token.start]
        is_other_case = reader.low[token.start : token.end] in ("среде", "средой", "сред")
        fact.doubtful = is_other_case or bool(ADJECTIVE.search(before) and not AFTER_PREPOSITION.search(before))


def span(reader: Reader, token: Token) -> None:
    """«Полчаса», «полгода».

    Example:
        >>> from yarus.metrics.facts import facts
        >>> [(fact.kind, fact.text) for fact in facts('полчаса')]
        [('number', 'полчаса')]
    """
    reader.add("number", token, (quantity(0.5, token.unit, token.value),))


def _named(reader: Reader, token: Token) -> bool:
    """Whether it is a room or the number of a document, by the word before it."""
    if reader.at < 2 or (before := reader.tokens[reader.at - 2]).role not in ("room", "document"):
        return False
    said = reader.low[token.start : token.end]
    if not NAMED.fullmatch(reader.low, before.end, token.start) or not any(map(str.isdigit, said)):
        return False
    after = reader.next(CLOSE)
    if after is not None and after.role in ("measure", "month", "year"):  # «корпуса 60 дней»
        return False
    is_room = "room" in (
        before.role,
        *(earlier.role for earlier in reader.tokens[max(0, reader.at - 3) : reader.at - 2]),
    )
    letter = LETTER.match(reader.low, token.end)
    end = letter.end() if letter else token.end
    kept = () if is_room or token.kind != "number" else token.readings
    readings = (("c", code(reader.low[token.start : end])), *kept)
    reader.put("room" if is_room else "code", token.start, end, readings).doubtful = token.doubtful
    return True


def _beside_another(reader: Reader, place: int) -> bool:
    """Whether a date, time or weekday stands next to it; of two words in doubt, linked by more than a space."""
    fact = reader.facts[place]
    for other in reader.facts[max(0, place - 1) : place + 2]:
        gap = reader.low[min(fact.end, other.end) : max(fact.start, other.start)]
        is_near = other is not fact and other.kind in BESIDE_ANOTHER and not gap.strip(" .,:;()-–—и")
        if is_near and (gap != " " or fact.kind != "weekday" or other.kind != "weekday"):
            return True
    return False


READERS = {
    "address": address, "number": number, "month": month, "weekday": weekday, "span": span, "half_hour": half_hour,
    "half_past": half_past, "to_hour": to_hour, "noon": noon,
}  # fmt: skip
"""What each role of a token begins."""
