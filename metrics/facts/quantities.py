"""Quantities with their units: sums of money, percentages, lengths, years, and the sign before them."""

import re

from yarus.metrics.facts.lexicon import CURRENCIES, SYMBOLS
from yarus.metrics.facts.number_words import CLOSE
from yarus.metrics.facts.numerals import quantity_reading
from yarus.metrics.facts.parser import HOUR_S, Fact, FactParser, is_whole
from yarus.metrics.facts.tokens import Token

BEFORE_SUM = SYMBOLS.keys() | {currency.lower() for currency in CURRENCIES}
MINUS = re.compile(r"(?:^|[( \n\u00a0])[-−]$")
BEFORE_MEASURE = CLOSE | {" an "}


def attach_unit(parser: FactParser, token: Token, fact: Fact) -> None:
    """Give a quantity its unit: a sign before it, or a word or sign after it.

    Example:
        >>> from yarus.metrics.facts import facts
        >>> [(fact.kind, fact.text) for fact in facts('1 500 руб.')]
        [('money', '1 500 руб')]
    """
    if not any(reading[0] == "q" for reading in fact.readings):
        return
    before = parser.tokens[parser.position - 2] if parser.position >= 2 else None
    after = parser.next_token(BEFORE_MEASURE)
    if after is not None and after.role == "year" and token.kind == "number":
        parser.position += 1
        _add_years(token, fact, after)
        return
    if after is not None and after.role == "measure":
        parser.position += 1
        fact.end = after.end
        _add_unit(parser, fact, after)
        _add_hundredths(parser, fact, after)
    elif before is not None and _is_sign(before, parser) and parser.low[before.end : token.start] in ("", " "):
        fact.start = before.start
        _add_unit(parser, fact, before)
    if before is not None and before.role == "minus" and parser.low[before.end : token.start] == " ":
        _negate(fact, before.start)
    elif MINUS.search(parser.low, max(0, fact.start - 2), fact.start) and not any(parser.linked_facts(fact)):
        _negate(fact, fact.start - 1)


def propagate_scale(parser: FactParser, token: Token, fact: Fact) -> None:
    """Give its scale to the numbers before it in a range: «от 7 до 12 тысяч»; they keep their own readings too.

    Example:
        >>> from yarus.metrics.facts import unsupported
        >>> unsupported(['7 000 рублей'], ['от 7 до 12 тыс. рублей'])
        [[]]
    """
    if token.times > 1:
        for linked, _ in parser.linked_facts(fact):
            if linked.kind != "number" or not linked.value < token.value:
                return
            linked.readings += (quantity_reading(linked.value * token.times),)


def _negate(fact: Fact, start: int) -> None:
    fact.start = start
    fact.readings = tuple(("q", -reading[1], reading[2], -reading[3]) for reading in fact.readings if reading[0] == "q")


def _add_years(token: Token, fact: Fact, word: Token) -> None:
    """Give the fact its years: «2026 год» is a date, «5 лет» a time, «первый год» may be either."""
    fact.end = word.end
    if 1000 <= token.value < 3000:
        fact.kind, fact.readings = "date", (("d", int(token.value), None, None), quantity_reading(token.value))
    else:
        bare = (quantity_reading(token.value),) if token.ordinal else ()
        fact.readings = (quantity_reading(token.value, "month", 12), *bare)


def _add_unit(parser: FactParser, fact: Fact, measure: Token) -> None:
    """Give the unit to the fact and to those before it in its list or range."""
    unit, times = measure.unit or "", measure.value
    kind = "percent" if unit == "%" else "money" if unit in CURRENCIES else "number"
    for member in (fact, *(linked for linked, _ in parser.linked_facts(fact))):
        if (member is not fact and member.kind != "number") or _has_unit(member):
            break
        values = [reading[1] for reading in member.readings if reading[0] == "q"]
        if not values:
            break
        hours = tuple(("t", int(value) % 24, 0) for value in values if times == HOUR_S and is_whole(value, 0, 24))
        member.kind, member.readings = kind, tuple(quantity_reading(value, unit, times) for value in values) + hours


def _add_hundredths(parser: FactParser, fact: Fact, measure: Token) -> None:
    """Add the hundredths to a sum: «100 рублей 50 копеек»."""
    number, start = parser.next_token(CLOSE), parser.position
    if measure.unit not in CURRENCIES or number is None or number.role != "number":
        return
    parser.position += 1
    part = parser.next_token(CLOSE)
    if part is not None and part.unit == measure.unit and part.value == 0.01 and is_whole(number.value, 0, 99):
        parser.position += 1
        fact.end = part.end
        fact.readings = (quantity_reading(fact.readings[0][1] + number.value / 100, measure.unit),)
    else:
        parser.position = start


def _has_unit(fact: Fact) -> bool:
    return any(reading[0] == "q" and reading[2] is not None for reading in fact.readings)


def _is_sign(token: Token, parser: FactParser) -> bool:
    """Return whether a currency symbol stands before the next token, and does not belong to an earlier one."""
    last_end = parser.facts[-2].end if len(parser.facts) > 1 else 0
    return token.unit in CURRENCIES and token.start >= last_end and parser.low[token.start : token.end] in BEFORE_SUM
