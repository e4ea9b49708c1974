"""Quantities with what they count: sums of money, percentages, lengths, years, and the sign before them."""

from metrics.facts.joined import CLOSE
from metrics.facts.lexicon import CURRENCIES
from metrics.facts.numerals import quantity
from metrics.facts.reader import Fact, Reader
from metrics.facts.tokens import Token

BEFORE_SUM = frozenset({"$", "€", "£", "¥", "₽", "rub", "usd", "eur", "gbp", "cny", "kzt"})
BEFORE_MEASURE = CLOSE | {" an "}


def measured(reader: Reader, token: Token, fact: Fact) -> None:
    """Gives a quantity its unit: a sign before it, or a word or sign after it.

    Example:
        >>> from metrics.facts import facts
        >>> [(fact.kind, fact.text) for fact in facts('1 500 руб.')]
        [('money', '1 500 руб')]
    """
    if not any(reading[0] == "q" for reading in fact.readings):
        return
    before = reader.tokens[reader.at - 2] if reader.at >= 2 else None
    after = reader.next(BEFORE_MEASURE)
    if after is not None and after.role == "year" and token.kind == "number":
        _years(reader, token, fact, after)
        return
    if after is not None and after.role == "measure":
        reader.at += 1
        fact.end = after.end
        _give(reader, fact, after)
        _hundredths(reader, fact, after)
    elif before is not None and _is_sign(before, reader) and reader.low[before.end : token.start] in ("", " "):
        fact.start = before.start
        _give(reader, fact, before)
    sign = reader.low[fact.start - 1 : fact.start]
    if sign in "-−" and sign and not reader.low[max(0, fact.start - 2) : fact.start - 1].strip("( \n\u00a0"):
        if next(reader.linked(fact), None) is None:
            _negative(reader, fact, fact.start - 1)
    elif before is not None and before.role == "minus" and reader.low[before.end : token.start] == " ":
        _negative(reader, fact, before.start)


def lend_scale(reader: Reader, token: Token, fact: Fact) -> None:
    """Gives the numbers before it in a range its scale: «от 7 до 12 тысяч»; they may be meant as they stand.

    Example:
        >>> from metrics.facts import unsupported
        >>> unsupported(['7 000 рублей'], ['от 7 до 12 тыс. рублей'])
        [[]]
    """
    if token.times > 1:
        for other, _ in reader.linked(fact):
            if other.kind != "number" or other.value is None or other.value >= (token.value or 0):
                return
            other.readings += (quantity(other.value * token.times),)


def _negative(reader: Reader, fact: Fact, start: int) -> None:
    fact.start = start
    fact.readings = tuple(("q", -reading[1], reading[2], -reading[3]) for reading in fact.readings if reading[0] == "q")


def _years(reader: Reader, token: Token, fact: Fact, word: Token) -> None:
    value = token.value or 0
    reader.at += 1
    fact.end = word.end
    if 1000 <= value < 3000:
        fact.kind, fact.readings = "date", (("d", int(value), None, None), quantity(value))
    else:
        fact.readings = (quantity(value, "month", 12), *(quantity(value) for _ in (1,) if token.ordinal))


def _give(reader: Reader, fact: Fact, measure: Token) -> None:
    """The unit, to the fact and to those before it in its list or range."""
    unit = measure.unit or ""
    times = measure.value or 1.0
    kind = "percent" if unit == "%" else "money" if unit in CURRENCIES else "number"
    hours = times == 3600
    for other in (fact, *(linked for linked, _ in reader.linked(fact))):
        if (other is not fact and other.kind != "number") or _has_unit(other):
            break
        values = [reading[1] for reading in other.readings if reading[0] == "q"]
        if not values:
            break
        kept = tuple(("t", int(value) % 24, 0) for value in values if hours and value % 1 == 0 and 0 <= value <= 24)
        other.kind, other.readings = kind, tuple(quantity(value, unit, times) for value in values) + kept


def _hundredths(reader: Reader, fact: Fact, measure: Token) -> None:
    """«100 рублей 50 копеек» is one sum."""
    if measure.unit not in CURRENCIES or reader.at + 1 >= len(reader.tokens):
        return
    number, part = reader.next(CLOSE), reader.tokens[reader.at + 1]
    if number is None or number.role != "number" or part.unit != measure.unit or part.value != 0.01:
        return
    if reader.low[number.end : part.start] in CLOSE and number.value is not None:
        reader.at += 2
        fact.end = part.end
        fact.readings = (quantity(fact.readings[0][1] + number.value / 100, measure.unit),)


def _has_unit(fact: Fact) -> bool:
    return any(reading[0] == "q" and reading[2] is not None for reading in fact.readings)


def _is_sign(token: Token, reader: Reader) -> bool:
    """Whether a currency's sign stands before what comes now, and belongs to nothing before it."""
    taken = reader.facts[-2].end if len(reader.facts) > 1 else 0
    return token.unit in CURRENCIES and token.start >= taken and reader.low[token.start : token.end] in BEFORE_SUM
