"""The words, digits and signs of a text that make up facts, in order."""

import re
from collections.abc import Iterator
from math import nan

from yarus.metrics.facts.lexicon import LEXICON, ORDINAL_ENDINGS, SYMBOLS
from yarus.metrics.facts.numerals import RAISED, Reading, normalize_code, quantity_reading, read_digits

FRACTIONS = {"½": 0.5, "⅓": 1 / 3, "⅔": 2 / 3, "¼": 0.25, "¾": 0.75}
PIECE = re.compile(
    rf"([^\W\d_{''.join(FRACTIONS)}¹²³⁰-⁹]+)"
    "|(\\d{1,3}(?:[ \u00a0\u202f\u2009'’]\\d{3})+(?!\\d|-\\d\\d-)(?:[.,]\\d+(?![\\d-]))?"
    r"|\d+(?:[.,]\d+)?(?:e[+-]?\d{1,3}(?!\w)|\s?[·×x*]\s?10(?:\^[+-]?\d{1,3}|[⁻⁰¹²³⁴-⁹]{1,4}))|10(?:\^[+-]?\d{1,3}|[⁻⁰¹²³⁴-⁹]{1,4})"
    r"|\d+(?:[.,:/-]\d+)*)"
    f"|([{''.join((*SYMBOLS, *FRACTIONS))}№#])"
)
CODE, HYPHENED = re.compile(r"\d[\w/-]*"), re.compile(r"-\d[\w/-]*")
TAIL = re.compile(r"(-?)([a-zа-я]+)")
CODE_TAIL = re.compile(r"(?:-?[^\W\d_]+|[/-]?\d+)*")
MARKERS = re.compile(
    r"(?m)^[ \t>•|#(–-]*(?:\d{1,2}[.)](?=[^\S\n]+\S|[^\W\d])"
    r"|\d(?:\.\d){1,2}\.?(?=[^\S\n]+[A-ZА-ЯЁ])|\d{1,2}(?=[ \t]*\|))"
    r"|\[(?:\w{1,10} )?\d{1,3}(?:, ?\d{1,3}){0,9}\]|[.;:!?]\s+\d{1,2}(?:\)(?=\s)|\.(?=\s+[A-ZА-ЯЁ]))"
)
"""Numbers of list items and of sources, which are not facts."""
MARKED = frozenset("0123456789|#>*•(–-")
"""Characters that a list item may begin with."""
ROMAN = re.compile(
    r"(?<![\w-])(?:[IVXLХ]{2,}"
    r"|[IVXХ](?=[ \u00a0-]+(?:век|в\.|курс|семестр|квартал|кв\.|степен|групп|тур|этап|раздел|глав|част"
    r"|[Cc]entur|[Ss]emester|[Dd]egree|[Pp]art\b|[Cc]hapter)|[–-][IVXLХ])|(?<=[IVXLХ][–])[IVXХ])(?!\w)"
)
ROMAN_LIKE = re.compile("[IVXLХ][IVXLХ \u00a0–-]")
CANONICAL = re.compile(r"(XL|L?X{0,3})(IX|IV|V?I{0,3})")
NO_NUMBER_BEFORE = {
    False: re.compile(r"\b(?:no|each|any|every|some|this|that|the|ни) $"),
    True: re.compile(r"\b(?:at |во-)$"),
}
NO_NUMBER_AFTER = re.compile(
    r"\s(?:of|another|who|which|that|из|друг\w*|и т\w{1,2} же|очередь|стороны|раза|взгляда)\b|['’]s"
)
"""Contexts in which "one" and "first" do not count anything, by whether the word is ordinal."""
CAPITAL_AFTER = re.compile(
    r"\b(?:in|since|until|by|of|from|to|and|between|during|through|late|early|mid|last|next|this"
    r"|after|before|for|on)[ -]$"
)
TIMES = re.compile(r"(?<=\d)[xх](?=\d)")
"""Between the dimensions of a sheet: 3х4."""
RAISED_UNIT = re.compile(r"[23²³](?!\w)")
AFTER_CODE = frozenset("0123456789-")
YEARS = re.compile(r"([12]\d{3})/(\d\d|[12]\d{3})")
HALF = re.compile(r"\d+(?:[.,:/]\d+)*")
GLUED = {"k": 1e3, "m": 1e6, "b": 1e9, "bn": 1e9}
"""Letters after a sum: $1.5m."""
MOST_OF_CODE = 6
"""Most letters before the hyphen of a code such as F-16."""


class Token:
    """A word, a piece of digits or a sign, with its possible readings."""

    __slots__ = ("doubtful", "end", "kind", "ordinal", "readings", "role", "start", "times", "unit", "value")

    def __init__(self, role: str, start: int, end: int, value: float = nan, unit: str | None = None) -> None:
        self.role, self.start, self.end, self.value, self.unit = role, start, end, value, unit
        """The value is NaN if there is none, as for a code: it is not in any range."""
        self.kind = "number"
        self.readings: tuple[Reading, ...] = ()
        self.ordinal = self.doubtful = False
        self.times = 1.0
        """The scale of a number: 1000 in «5 тысяч»."""


def tokenize(low: str, text: str) -> list[Token]:
    """Return the tokens of a text.

    Args:
        low: the text in the normal form of `yarus.metrics.facts.spelling.normalize_spelling`.
        text: the same with its capital letters, character by character.

    Example:
        >>> from yarus.metrics.facts.tokens import tokenize
        >>> [token.role for token in tokenize('до 5 мая', 'до 5 мая')]
        ['number', 'month']
    """
    parsed: list[Token] = []
    last_end = 0
    for match in PIECE.finditer(low):
        start, end = match.span()
        if start < last_end:
            continue
        if match.lastindex == 1:
            word = match[0]
            if word not in LEXICON and low[end : end + 1] not in AFTER_CODE and word[:3] != "пол":
                continue
            token = _word_token(word, start, end, low, text)
        elif match.lastindex == 2:
            token = _digits_token(match[0], start, end, low, text)
        else:
            token = _sign_token(match[0], start, end)
        if token is not None:
            last_end = token.end
            follows_document = bool(parsed) and parsed[-1].role == "document"
            is_pair = match.lastindex == 2 and not follows_document and ("-" in match[0] or "/" in match[0])
            parsed += _split_range(token, low) if is_pair else (token,)
    if "[" in low or "\n" in low or ". " in low or ") " in low or low[:1] in MARKED:
        _mark_list_numbers(parsed, text)
    romans = list(_roman_numbers(text)) if ROMAN_LIKE.search(text) else []
    return _without_overlaps(sorted((*parsed, *romans), key=lambda token: token.start)) if romans else parsed


def _without_overlaps(tokens_by_start: list[Token]) -> list[Token]:
    """Return the tokens that begin after the end of the one before."""
    separate = tokens_by_start[:1]
    for token in tokens_by_start[1:]:
        if token.start >= separate[-1].end:
            separate.append(token)
    return separate


def _mark_list_numbers(parsed: list[Token], text: str) -> None:
    """Mark the numbers of list items and of sources as doubtful."""
    by_start = {token.start: token for token in parsed}
    for match in MARKERS.finditer(text):
        for digits in re.finditer(r"(?<![\d.])\d", match[0]):
            if (token := by_start.get(match.start() + digits.start())) is not None:
                token.doubtful = True


def _word_token(word: str, start: int, end: int, low: str, text: str) -> Token | None:
    entry = LEXICON.get(word)
    if entry is None:
        if TIMES.match(low, start):
            return None
        match = CODE.match(low, end) or (HYPHENED.match(low, end) if len(word) <= MOST_OF_CODE else None)
        if match is not None:
            return _code_token(low, start, match.end())
        if word.startswith("пол") and (hour := LEXICON.get(word[3:])) is not None and hour.ordinal:
            return Token("half_hour", start, end, hour.value)
        return None
    token = Token(entry.role, start, end, entry.value, entry.unit)
    token.ordinal, token.doubtful = entry.ordinal, entry.doubtful
    if entry.unit == "m" and RAISED_UNIT.match(low, end):
        token.end += 1
    if word in ("may", "march"):
        token.doubtful = not (text[start].isupper() and CAPITAL_AFTER.search(low[max(0, start - 10) : start]))
    elif entry.role == "unit" and entry.value == 1:
        before = low[max(0, start - 6) : start]
        token.doubtful = bool(NO_NUMBER_BEFORE[entry.ordinal].search(before) or NO_NUMBER_AFTER.match(low, end))
    return token


def _digits_token(piece: str, start: int, end: int, low: str, text: str) -> Token:
    tail = TAIL.match(low, end)
    ordinal, times = False, 1.0
    if tail is not None:
        hyphen, letters = tail.groups()
        if letters in ORDINAL_ENDINGS and (hyphen or len(letters) > 1 or letters == "s"):
            ordinal, end = True, tail.end()
        elif not hyphen and letters in GLUED and (letters == "k" or low[start - 1 : start] in SYMBOLS):
            times, end = GLUED[letters], tail.end()
        elif letters not in LEXICON and not TIMES.match(low, end) and (not hyphen or text[tail.end() - 1].isupper()):
            return _code_token(low, start, (CODE_TAIL.match(low, end) or tail).end())
    token = Token("number", start, end)
    flattened = piece if piece.isascii() else _flatten_exponents(piece)
    token.kind, token.readings = read_digits(flattened)
    token.ordinal = ordinal
    values = [reading[1] for reading in token.readings if reading[0] == "q"]
    if values and token.kind in ("number", "phone"):
        token.value = values[0] * times
        if times != 1:
            token.readings = (quantity_reading(token.value),)
    return token


def _flatten_exponents(piece: str) -> str:
    """Return superscript exponents as 10^n."""
    flat = piece.translate(RAISED)
    return re.sub(r"10(?=[-\d])", "10^", flat) if flat != piece else piece


def _sign_token(sign: str, start: int, end: int) -> Token:
    if sign in FRACTIONS:
        return Token("fraction", start, end, FRACTIONS[sign])
    if sign in SYMBOLS:
        return Token("measure", start, end, 1.0, SYMBOLS[sign])
    return Token("document", start, end)


def _code_token(low: str, start: int, end: int) -> Token:
    while low[end - 1] in "-/_":
        end -= 1
    token = Token("number", start, end)
    token.kind = "code"
    token.readings = (("c", normalize_code(low[start:end])),)
    return token


def _split_range(token: Token, low: str) -> Iterator[Token]:
    """Yield both ends of a range without spaces, 10-15 or 9.00-18.00, both years of 2025/26, or the whole piece."""
    piece = low[token.start : token.end]
    if (years := YEARS.fullmatch(piece)) is not None:
        first, second = years.groups()
        yield _digits_token(first, token.start, token.start + 4, low, low)
        yield _digits_token(first[: 4 - len(second)] + second, token.end - len(second), token.end, low, low)
        return
    is_fraction = "/" in piece and "-" not in piece and (len(piece) > len("31/12") or "." in piece)
    halves = piece.split("/" if is_fraction else "-")
    if (token.kind != "code" and not is_fraction) or len(halves) != 2 or not all(map(HALF.fullmatch, halves)):
        yield token
        return
    start = token.start
    for half in halves:
        yield _digits_token(half, start, start + len(half), low, low)
        start += len(half) + 1


def _roman_numbers(text: str) -> Iterator[Token]:
    for match in ROMAN.finditer(text):
        numeral = CANONICAL.fullmatch(match[0].replace("Х", "X"))
        if numeral is not None and match[0] != "XL":
            tens, units = numeral.groups()
            value = 40 if tens == "XL" else 50 * ("L" in tens) + 10 * tens.count("X")
            value += {"IX": 9, "IV": 4}.get(units, 5 * ("V" in units) + units.count("I"))
            token = Token("number", match.start(), match.end(), float(value))
            token.readings, token.ordinal = (quantity_reading(value),), True
            yield token
