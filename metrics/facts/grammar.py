"""Facts from tokens: a day, its month and its year are one date, a number and its unit one quantity."""

import re

from yarus.metrics.facts.dates import add_day_and_month, add_month, propagate_month
from yarus.metrics.facts.number_words import CLOSE
from yarus.metrics.facts.numerals import normalize_code, quantity_reading
from yarus.metrics.facts.parser import Fact, FactParser
from yarus.metrics.facts.quantities import attach_unit, propagate_scale
from yarus.metrics.facts.times import (
    add_half_hour,
    add_half_past,
    add_hour_readings,
    add_noon,
    add_time_of_number,
    add_to_hour,
)
from yarus.metrics.facts.tokens import Token

ROOM_NUMBER_GAP = re.compile(r"[ \u00a0.:]{0,3}(?:№|#|no\.?)?[ \u00a0]{0,2}")
LETTER = re.compile(r"-?[a-zа-я](?![\w-])")
ADJECTIVE = re.compile(r"\w(?:ая|яя|ой|ую|юю|ей|ые|ых)[ \u00a0]+$")
AFTER_PREPOSITION = re.compile(r"(?<!\w)(?:в|во|по|со|с|до|к|на|каждую|эту|следующую|прошлую)[ \u00a0]+$")
BESIDE_ANOTHER = frozenset({"weekday", "time", "date"})


def parse_facts(tokens: list[Token], low: str) -> list[Fact]:
    """Return the facts that the tokens of a text state, in order; ambiguous ones are marked as doubtful.

    Example:
        >>> from yarus.metrics.facts import facts
        >>> [(fact.kind, fact.text) for fact in facts('каб. 215')]
        [('room', '215')]
    """
    parser = FactParser(tokens, low)
    while parser.position < len(tokens):
        token = tokens[parser.position]
        parser.position += 1
        add_fact = READERS.get(token.role)
        if add_fact is not None:
            add_fact(parser, token)
    for index, fact in enumerate(parser.facts):
        if fact.doubtful and fact.kind in BESIDE_ANOTHER and not low.startswith("сред", fact.start):
            fact.doubtful = not _is_beside_another(parser, index)
    return parser.facts


def add_address(parser: FactParser, token: Token) -> None:
    """Add an e-mail, a page or a phone.

    Example:
        >>> from yarus.metrics.facts import facts
        >>> [(fact.kind, fact.text) for fact in facts('см. ssau.ru')]
        [('url', 'ssau.ru')]
    """
    parser.add(token.kind, token, token.readings)


def add_number(parser: FactParser, token: Token) -> None:
    """Add a number, or a fact that begins with one.

    Example:
        >>> from yarus.metrics.facts import facts
        >>> [(fact.kind, fact.text) for fact in facts('5 и 10 %')]
        [('percent', '5'), ('percent', '10 %')]
    """
    if _add_room_or_code(parser, token) or add_day_and_month(parser, token) or add_time_of_number(parser, token):
        return
    fact = parser.add(token.kind, token, token.readings)
    fact.doubtful = token.doubtful
    propagate_scale(parser, token, fact)
    attach_unit(parser, token, fact)
    if fact.kind in ("number", "time"):
        add_hour_readings(parser, fact)
    elif fact.kind == "date":
        propagate_month(parser, fact)


def add_weekday(parser: FactParser, token: Token) -> None:
    """Add a day of the week.

    Example:
        >>> from yarus.metrics.facts import facts
        >>> [(fact.kind, fact.text) for fact in facts('по средам')]
        [('weekday', 'средам')]
    """
    fact = parser.add("weekday", token, (("w", int(token.value)),))
    fact.doubtful = token.doubtful
    if token.doubtful and parser.low.startswith("сред", token.start):
        before = parser.low[max(0, token.start - 14) : token.start]
        is_other_case = parser.low[token.start : token.end] in ("среде", "средой", "сред")
        fact.doubtful = is_other_case or bool(ADJECTIVE.search(before) and not AFTER_PREPOSITION.search(before))


def add_span(parser: FactParser, token: Token) -> None:
    """Add «полчаса», «полгода».

    Example:
        >>> from yarus.metrics.facts import facts
        >>> [(fact.kind, fact.text) for fact in facts('полчаса')]
        [('number', 'полчаса')]
    """
    parser.add("number", token, (quantity_reading(0.5, token.unit, token.value),))


def _add_room_or_code(parser: FactParser, token: Token) -> bool:
    """Add a room or the number of a document, given the word before it; return whether it is one."""
    if parser.position < 2 or (before := parser.tokens[parser.position - 2]).role not in ("room", "document"):
        return False
    written = parser.low[token.start : token.end]
    if not ROOM_NUMBER_GAP.fullmatch(parser.low, before.end, token.start) or not any(map(str.isdigit, written)):
        return False
    after = parser.next_token(CLOSE)
    if after is not None and after.role in ("measure", "month", "year"):  # «корпуса 60 дней»
        return False
    is_room = "room" in (
        before.role,
        *(earlier.role for earlier in parser.tokens[max(0, parser.position - 3) : parser.position - 2]),
    )
    letter = LETTER.match(parser.low, token.end)
    end = letter.end() if letter else token.end
    number_readings = () if is_room or token.kind != "number" else token.readings
    readings = (("c", normalize_code(parser.low[token.start : end])), *number_readings)
    parser.add_span("room" if is_room else "code", token.start, end, readings).doubtful = token.doubtful
    return True


def _is_beside_another(parser: FactParser, index: int) -> bool:
    """Return whether it is next to a date, time or weekday; two weekdays need more than a space between them."""
    fact = parser.facts[index]
    for neighbour in parser.facts[max(0, index - 1) : index + 2]:
        gap = parser.low[min(fact.end, neighbour.end) : max(fact.start, neighbour.start)]
        is_near = neighbour is not fact and neighbour.kind in BESIDE_ANOTHER and not gap.strip(" .,:;()-–—и")
        if is_near and (gap != " " or fact.kind != "weekday" or neighbour.kind != "weekday"):
            return True
    return False


READERS = {
    "address": add_address, "number": add_number, "month": add_month, "weekday": add_weekday, "span": add_span,
    "half_hour": add_half_hour, "half_past": add_half_past, "to_hour": add_to_hour, "noon": add_noon,
}  # fmt: skip
"""The function for each role of a token that begins a fact."""
