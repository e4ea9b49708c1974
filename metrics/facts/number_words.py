"""Number words as numbers: «тысяча девятьсот девяносто пятый», "two and a half million", «5 тысяч 300»."""

from math import isnan

from yarus.metrics.facts.numerals import quantity_reading
from yarus.metrics.facts.tokens import Token

CLOSE = frozenset({"", " ", "-", "\u00a0", "\u202f", "\n"})
"""Text between the words of one number or date."""
CLASSES = {"unit": 1, "teen": 2, "tens": 3, "hundreds": 4}
PIECES = CLASSES.keys() | {"scale"}
BEFORE = {1: 3, 2: 4, 3: 4, 4: 5}
"""Least class of the piece before a piece of a class: a unit follows tens, tens follow hundreds."""
AND_AFTER = frozenset({" and ", " and a "})
TENTHS = {10.0: 0.1, 100.0: 0.01, 1000.0: 0.001}


def merge_numbers(tokens: list[Token], low: str) -> list[Token]:
    """Return the tokens, with every number merged into one.

    Example:
        >>> from yarus.metrics.facts import facts
        >>> [(fact.kind, fact.text) for fact in facts('тысяча девятьсот девяносто пятый')]
        [('number', 'тысяча девятьсот девяносто пятый')]
    """
    if not any(token.role in PIECES or token.role == "fraction" for token in tokens):
        return tokens
    merged: list[Token] = []
    index = 0
    while index < len(tokens):
        token = tokens[index]
        if token.role in PIECES:
            token, index = _merge_number(tokens, index, low)
        elif token.role == "number":
            token, index = _merge_scaled(tokens, index, low)
        elif token.role == "fraction":
            token, index = _merge_fraction(tokens, index, low)
        else:
            index += 1
        merged.append(token)
    return merged


def _gap(low: str, first: Token, second: Token) -> str:
    return low[first.end : second.start]


def _merge_number(tokens: list[Token], index: int, low: str) -> tuple[Token, int]:
    """Return the longest number that begins here, with its fraction, and the index after it."""
    token, index = _merge_whole_number(tokens, index, low)
    return _merge_with_fraction(token, tokens, index, low)


def _merge_whole_number(tokens: list[Token], index: int, low: str) -> tuple[Token, int]:
    """Return the longest whole number, and the index after it."""
    total, current, last_class, scale = 0.0, 0.0, 5, float("inf")
    start, doubtful, ordinal, last_piece = index, True, False, tokens[index]
    while index < len(tokens) and not ordinal:
        piece = tokens[index]
        if index > start and not _continues_number(low, last_piece, piece):
            break
        if piece.role == "oh" and 10 <= current <= 20 and index + 1 < len(tokens) and tokens[index + 1].role == "unit":
            # Nineteen oh five.
            current, index, last_piece = current * 100 + tokens[index + 1].value, index + 2, tokens[index + 1]
            break
        value = piece.value
        if piece.role == "scale":
            if value == 100 and current and current < 100:  # five hundred, nineteen hundred
                current, last_class = current * 100, 4
            elif value >= scale:
                if scale != 1000 or value < 1e6:
                    break
                total, current, last_class, scale = (total + current) * value, 0.0, 5, value  # 162 thousand 584 million
            else:
                total, current, last_class, scale = total + (current or 1) * value, 0.0, 5, value
        elif piece.role in CLASSES and last_class >= BEFORE[CLASSES[piece.role]]:
            current, last_class = current + value, CLASSES[piece.role]
        elif piece.role in CLASSES and _is_second_half_of_year(low, piece, current, total):
            current, last_class = current * 100 + value, CLASSES[piece.role]
        else:
            break
        doubtful, ordinal, last_piece = doubtful and piece.doubtful, piece.ordinal, piece
        index += 1
    token = _as_number(tokens[start], last_piece, total + current)
    token.ordinal, token.doubtful = ordinal, doubtful
    token.times = scale if last_piece.role == "scale" else 1.0
    return token, index


def _continues_number(low: str, before: Token, piece: Token) -> bool:
    """Return whether a word may continue the number: in English after "and" or, from a thousand on, a comma."""
    gap = _gap(low, before, piece)
    if gap in CLOSE:
        return True
    english_scale = before.role == "scale" and "a" <= low[before.start] <= "z"
    return english_scale and (gap in AND_AFTER or (gap == ", " and before.value >= 1000))


def _is_second_half_of_year(low: str, piece: Token, current: float, total: float) -> bool:
    """Return whether it is the second half of a year in English: nineteen eighty-four."""
    return not total and 10 <= current <= 20 and piece.role != "unit" and "a" <= low[piece.start] <= "z"


def _merge_scaled(tokens: list[Token], index: int, low: str) -> tuple[Token, int]:
    """Return digits with the scale after them and the rest of the number, and the index after it."""
    token, total, scale = tokens[index], 0.0, float("inf")
    last, start = tokens[index], index
    while index + 1 < len(tokens) and tokens[index].role == "number" and tokens[index + 1].role == "scale":
        number, scale_token = tokens[index], tokens[index + 1]
        if isnan(number.value) or _gap(low, number, scale_token) not in CLOSE or scale_token.value >= scale:
            break
        if index > start and _gap(low, last, number) not in CLOSE:
            break
        total, scale, last = total + number.value * scale_token.value, scale_token.value, scale_token
        index += 2
    if index == start:
        return _merge_with_fraction(token, tokens, index + 1, low)
    rest = tokens[index] if index < len(tokens) else None
    is_last = index + 1 >= len(tokens) or tokens[index + 1].role != "month"
    if rest is not None and rest.role == "number" and is_last and _gap(low, last, rest) == " ":
        value = rest.value
        total, last, index = (total + value, rest, index + 1) if 100 <= value < scale else (total, last, index)
    merged = _as_number(token, last, total)
    merged.times = scale if last.role == "scale" else 1.0
    return merged, index


def _merge_with_fraction(token: Token, tokens: list[Token], index: int, low: str) -> tuple[Token, int]:
    """Merge the fraction: two and a half, две трети, пять целых четыре десятых, five point four."""
    if index >= len(tokens) or isnan(token.value):
        return token, index
    piece = tokens[index]
    gap = _gap(low, token, piece)
    if piece.role == "fraction" and gap in (" and a ", " с ") and piece.value < 1:
        mixed_value, scale = token.value + piece.value, tokens[index + 1] if index + 1 < len(tokens) else piece
        if scale.role == "scale" and _gap(low, piece, scale) in CLOSE:
            return _as_number(token, scale, mixed_value * scale.value), index + 2
        return _as_number(token, piece, mixed_value), index + 1
    if piece.role == "fraction" and gap in CLOSE and piece.value < 1:
        is_symbol = piece.end - piece.start == 1  # 2½
        value = token.value + piece.value if is_symbol else token.value * piece.value
        return _as_number(token, piece, value), index + 1
    if piece.role == "whole" and gap in CLOSE and index + 1 < len(tokens) and tokens[index + 1].role in CLASSES:
        number, after = _merge_whole_number(tokens, index + 1, low)
        return _merge_decimal(token, number, tokens, after)
    if piece.role == "point" and gap in CLOSE:
        digits, last = "", piece
        while (
            index + 1 < len(tokens) and tokens[index + 1].role == "unit" and _gap(low, last, tokens[index + 1]) in CLOSE
        ):
            index, last = index + 1, tokens[index + 1]
            digits += f"{last.value:.0f}"
        if digits:
            return _as_number(token, last, float(f"{token.value:.0f}.{digits}")), index + 1
    return token, index


def _merge_decimal(token: Token, number: Token, tokens: list[Token], after: int) -> tuple[Token, int]:
    """Merge «пять целых четыре десятых», where the last word of the number gives the denominator."""
    value = number.value
    if number.ordinal and value and value % 1000 == 0:  # «семь тысячных» was read as seven thousand
        return _as_number(token, number, token.value + value / 1e6), after
    if after < len(tokens) and tokens[after].ordinal and tokens[after].value in TENTHS:
        last = tokens[after]
        return _as_number(token, last, token.value + value * TENTHS[last.value]), after + 1
    return token, after


def _merge_fraction(tokens: list[Token], index: int, low: str) -> tuple[Token, int]:
    """Merge a fraction with its scale, if it has one: half a million, полтора миллиона, полторы тысячи."""
    piece = tokens[index]
    if index + 1 < len(tokens) and tokens[index + 1].role == "scale":
        scale = tokens[index + 1]
        if _gap(low, piece, scale) in CLOSE | {" a "}:
            return _as_number(piece, scale, piece.value * scale.value), index + 2
    token = _as_number(piece, piece, piece.value)
    token.unit = "fraction"
    return token, index + 1


def _as_number(first: Token, last: Token, value: float) -> Token:
    token = Token("number", first.start, last.end, value)
    token.readings = (quantity_reading(value),)
    if 1000 <= value < 3000 and value == int(value):
        token.readings += (("d", int(value), None, None),)
    return token
