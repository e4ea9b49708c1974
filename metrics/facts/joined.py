"""Number words as numbers: «тысяча девятьсот девяносто пятый», "two and a half million", «5 тысяч 300»."""

from math import isnan

from yarus.metrics.facts.numerals import quantity
from yarus.metrics.facts.tokens import Token

CLOSE = frozenset({"", " ", "-", "\u00a0", "\u202f", "\n"})
"""What stands between the words of one number or date."""
CLASSES = {"unit": 1, "teen": 2, "tens": 3, "hundreds": 4}
PIECES = CLASSES.keys() | {"scale"}
BEFORE = {1: 3, 2: 4, 3: 4, 4: 5}
"""The least class of what stands before a piece of a class: a unit follows tens, tens follow hundreds."""
AND_AFTER = frozenset({" and ", " and a "})
TENTHS = {10.0: 0.1, 100.0: 0.01, 1000.0: 0.001}


def join(found: list[Token], low: str) -> list[Token]:
    """The tokens with every number as one.

    Example:
        >>> from yarus.metrics.facts import facts
        >>> [(fact.kind, fact.text) for fact in facts('тысяча девятьсот девяносто пятый')]
        [('number', 'тысяча девятьсот девяносто пятый')]
    """
    if not any(token.role in PIECES or token.role == "fraction" for token in found):
        return found
    whole: list[Token] = []
    at = 0
    while at < len(found):
        token = found[at]
        if token.role in PIECES:
            token, at = _number(found, at, low)
        elif token.role == "number":
            token, at = _scaled(found, at, low)
        elif token.role == "fraction":
            token, at = _fraction(found, at, low)
        else:
            at += 1
        whole.append(token)
    return whole


def _between(low: str, one: Token, other: Token) -> str:
    return low[one.end : other.start]


def _number(found: list[Token], at: int, low: str) -> tuple[Token, int]:
    """The longest number that the words from here on say, with its fraction, and the place after it."""
    token, at = _whole(found, at, low)
    return _with_fraction(token, found, at, low)


def _whole(found: list[Token], at: int, low: str) -> tuple[Token, int]:
    """The longest whole number, and the place after it."""
    total, current, last, scale = 0.0, 0.0, 5, float("inf")
    first, doubtful, ordinal, before = at, True, False, found[at]
    while at < len(found) and not ordinal:
        piece = found[at]
        if at > first and not _goes_on(low, before, piece):
            break
        if piece.role == "oh" and 10 <= current <= 20 and at + 1 < len(found) and found[at + 1].role == "unit":
            current, at, before = current * 100 + found[at + 1].value, at + 2, found[at + 1]  # nineteen oh five
            break
        value = piece.value
        if piece.role == "scale":
            if value == 100 and current and current < 100:  # five hundred, nineteen hundred
                current, last = current * 100, 4
            elif value >= scale:
                if scale != 1000 or value < 1e6:
                    break
                total, current, last, scale = (total + current) * value, 0.0, 5, value  # 162 thousand 584 million
            else:
                total, current, last, scale = total + (current or 1) * value, 0.0, 5, value
        elif piece.role in CLASSES and last >= BEFORE[CLASSES[piece.role]]:
            current, last = current + value, CLASSES[piece.role]
        elif piece.role in CLASSES and _is_year(low, piece, current, total):
            current, last = current * 100 + value, CLASSES[piece.role]
        else:
            break
        doubtful, ordinal, before = doubtful and piece.doubtful, piece.ordinal, piece
        at += 1
    token = _as_number(found[first], before, total + current)
    token.ordinal, token.doubtful = ordinal, doubtful
    token.times = scale if before.role == "scale" else 1.0
    return token, at


def _goes_on(low: str, before: Token, piece: Token) -> bool:
    """Whether a word may go on with the number: in English after "and" or, from a thousand on, a comma."""
    gap = _between(low, before, piece)
    if gap in CLOSE:
        return True
    english_scale = before.role == "scale" and "a" <= low[before.start] <= "z"
    return english_scale and (gap in AND_AFTER or (gap == ", " and before.value >= 1000))


def _is_year(low: str, piece: Token, current: float, total: float) -> bool:
    """Whether it is the second half of a year in English: nineteen eighty-four."""
    return not total and 10 <= current <= 20 and piece.role != "unit" and "a" <= low[piece.start] <= "z"


def _scaled(found: list[Token], at: int, low: str) -> tuple[Token, int]:
    """Digits with the scale after them, and the rest of the number after that."""
    token, total, scale = found[at], 0.0, float("inf")
    last, begun = found[at], at
    while at + 1 < len(found) and found[at].role == "number" and found[at + 1].role == "scale":
        number, of = found[at], found[at + 1]
        if isnan(number.value) or _between(low, number, of) not in CLOSE or of.value >= scale:
            break
        if at > begun and _between(low, last, number) not in CLOSE:
            break
        total, scale, last = total + number.value * of.value, of.value, of
        at += 2
    if at == begun:
        return _with_fraction(token, found, at + 1, low)
    rest = found[at] if at < len(found) else None
    ends = at + 1 >= len(found) or found[at + 1].role != "month"
    if rest is not None and rest.role == "number" and ends and _between(low, last, rest) == " ":
        value = rest.value
        total, last, at = (total + value, rest, at + 1) if 100 <= value < scale else (total, last, at)
    whole = _as_number(token, last, total)
    whole.times = scale if last.role == "scale" else 1.0
    return whole, at


def _with_fraction(token: Token, found: list[Token], at: int, low: str) -> tuple[Token, int]:
    """Two and a half, две трети, пять целых четыре десятых, five point four."""
    if at >= len(found) or isnan(token.value):
        return token, at
    piece = found[at]
    gap = _between(low, token, piece)
    if piece.role == "fraction" and gap in (" and a ", " с ") and piece.value < 1:
        half, scale = token.value + piece.value, found[at + 1] if at + 1 < len(found) else piece
        if scale.role == "scale" and _between(low, piece, scale) in CLOSE:
            return _as_number(token, scale, half * scale.value), at + 2
        return _as_number(token, piece, half), at + 1
    if piece.role == "fraction" and gap in CLOSE and piece.value < 1:
        vulgar = piece.end - piece.start == 1  # 2½
        value = token.value + piece.value if vulgar else token.value * piece.value
        return _as_number(token, piece, value), at + 1
    if piece.role == "whole" and gap in CLOSE and at + 1 < len(found) and found[at + 1].role in CLASSES:
        number, after = _whole(found, at + 1, low)
        return _decimal(token, number, found, after)
    if piece.role == "point" and gap in CLOSE:
        digits, last = "", piece
        while at + 1 < len(found) and found[at + 1].role == "unit" and _between(low, last, found[at + 1]) in CLOSE:
            at, last = at + 1, found[at + 1]
            digits += f"{last.value:.0f}"
        if digits:
            return _as_number(token, last, float(f"{token.value:.0f}.{digits}")), at + 1
    return token, at


def _decimal(token: Token, number: Token, found: list[Token], after: int) -> tuple[Token, int]:
    """«Пять целых четыре десятых»: the last word of the number says of what the rest is."""
    value = number.value
    if number.ordinal and value and value % 1000 == 0:  # «семь тысячных» was read as seven thousand
        return _as_number(token, number, token.value + value / 1e6), after
    if after < len(found) and found[after].ordinal and found[after].value in TENTHS:
        last = found[after]
        return _as_number(token, last, token.value + value * TENTHS[last.value]), after + 1
    return token, after


def _fraction(found: list[Token], at: int, low: str) -> tuple[Token, int]:
    """A fraction on its own, or of a scale: half a million, полтора миллиона, полторы тысячи."""
    piece = found[at]
    if at + 1 < len(found) and found[at + 1].role == "scale":
        scale = found[at + 1]
        if _between(low, piece, scale) in CLOSE | {" a "}:
            return _as_number(piece, scale, piece.value * scale.value), at + 2
    token = _as_number(piece, piece, piece.value)
    token.unit = "fraction"
    return token, at + 1


def _as_number(first: Token, last: Token, value: float) -> Token:
    token = Token("number", first.start, last.end, value)
    token.readings = (quantity(value),)
    if 1000 <= value < 3000 and value == int(value):
        token.readings += (("d", int(value), None, None),)
    return token
