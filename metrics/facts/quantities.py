"""Quantities with what they count: sums of money, percentages, lengths, years, and the sign before them."""

import re

from yarus.metrics.facts.joined import CLOSE
from yarus.metrics.facts.lexicon import CURRENCIES, SYMBOLS
from yarus.metrics.facts.numerals import quantity
from yarus.metrics.facts.reader import HOUR_S, Fact, Reader, is_whole
from yarus.metrics.facts.tokens import Token

BEFORE_SUM = SYMBOLS.keys() | {currency.lower() for currency in CURRENCIES}
MINUS = re.compile(r"(?:^|[( \n\u00a0])[-−]$")
BEFORE_MEASURE = CLOSE | {" an "}


def measured(reader: Reader, token: Token, fact: Fact) -> None:
    """Gives a quantity its unit: a sign before it, or a word or sign after it.

    Example:
        >>> from yarus.metrics.facts import facts
        >>> [(fact.kind, fact.text) for fact in facts('1 500 руб.')]
        [('money', '1 500 руб')]
    """
    if not any(reading[0] == "q" for reading in fact.readings):
        return
    before = reader.tokens[reader.at - 2] if reader.at >= 2 else None
    after = reader.next(BEFORE_MEASURE)
    if after is not None and after.role == "year" and token.kind == "number":
        reader.at += 1
        _years(token, fact, after)
        return
    if after is not None and after.role == "measure":
        reader.at += 1
        fact.end = after.end
        _give(reader, fact, after)
        _hundredths(reader, fact, after)
    elif before is not None and _is_sign(before, reader) and reader.low[before.end : token.start] in ("", " "):
        fact.start = before.start
        _give(reader, fact, before)
    if before is not None and before.role == "minus" and reader.low[before.end : token.start] == " ":
        _negative(fact, before.start)
    elif MINUS.search(reader.low, max(0, fact.start - 2), fact.start) and not any(reader.linked(fact)):
        _negative(fact, fact.start - 1)


def lend_scale(reader: Reader, token: Token, fact: Fact) -> None:
    """Gives the numbers before it in a range its scale: «от 7 до 12 тысяч»; they may be meant as they stand.

    Example:
        >>> from yarus.metrics.facts import unsupported
        >>> unsupported(['7 000 рублей'], ['от 7 до 12 тыс. рублей'])
        [[]]
    """
    if token.times > 1:
        for other, _ in reader.linked(fact):
            if other.kind != "number" or not other.value < token.value:
                return
            other.readings += (quantity(other.value * token.times),)


def _negative(fact: Fact, start: int) -> None:
    fact.start = start
    fact.readings = tuple(("q", -reading[1], reading[2], -reading[3]) for reading in fact.readings if reading[0] == "q")


def _years(token: Token, fact: Fact, word: Token) -> None:
    """«2026 год» is a date, «5 лет» a time, «первый год» may be either's number."""
    fact.end = word.end
    if 1000 <= token.value < 3000:
        fact.kind, fact.readings = "date", (("d", int(token.value), None, None), quantity(token.value))
    else:
        bare = (quantity(token.value),) if token.ordinal else ()
        fact.readings = (quantity(token.value, "month", 12), *bare)


def _give(reader: Reader, fact: Fact, measure: Token) -> None:
    """The unit, to the fact and to those before it in its list or range."""
    unit, times = measure.unit or "", measure.value
    kind = "percent" if unit == "%" else "money" if unit in CURRENCIES else "number"
    for other in (fact, *(linked for linked, _ in reader.linked(fact))):
        if (other is not fact and other.kind != "number") or _has_unit(other):
            break
        values = [reading[1] for reading in other.readings if reading[0] == "q"]
        if not values:
            break
        kept = tuple(("t", int(value) % 24, 0) for value in values if times == HOUR_S and is_whole(value, 0, 24))
        other.kind, other.readings = kind, tuple(quantity(value, unit, times) for value in values) + kept


def _hundredths(reader: Reader, fact: Fact, measure: Token) -> None:
    """«100 рублей 50 копеек» is one sum."""
    number, at = reader.next(CLOSE), reader.at
    if measure.unit not in CURRENCIES or number is None or number.role != "number":
        return
    reader.at += 1
    part = reader.next(CLOSE)
    if part is not None and part.unit == measure.unit and part.value == 0.01 and is_whole(number.value, 0, 99):
        reader.at += 1
        fact.end = part.end
        fact.readings = (quantity(fact.readings[0][1] + number.value / 100, measure.unit),)
    else:
        reader.at = at


def _has_unit(fact: Fact) -> bool:
    return any(reading[0] == "q" and reading[2] is not None for reading in fact.readings)


def _is_sign(token: Token, reader: Reader) -> bool:
    """Whether a currency's sign stands before what comes now, and belongs to nothing before it."""
    taken = reader.facts[-2].end if len(reader.facts) > 1 else 0
    return token.unit in CURRENCIES and token.start >= taken and reader.low[token.start : token.end] in BEFORE_SUM
