"""A text as facts are looked for in it: small letters, «е» for «ё», one alphabet a word, nothing invisible."""

import re
from unicodedata import combining, normalize

SIGNS = "*`_<&\u20e3"
INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufe0f\ufeff\u0300-\u036f]")
HIDDEN = re.compile(
    INVISIBLE.pattern + r"|(?<!\d)\*+|\*+(?!\d)|`|(?<!\w)_+|_+(?!\w)|</?[a-zA-Z][^<>]{0,100}>|&nbsp;|\d\ufe0f?\u20e3"
)
"""What is not seen, or stands over the letter before it: soft hyphens, directions, accents, marks of a page's text."""
HYPHENS = str.maketrans("\u2010\u2011", "--")
MIXED, WORD = re.compile("[a-z][а-я]|[а-я][a-z]"), re.compile(r"\w+")
LATIN, CYRILLIC = "aeopcyxkmthb", "аеорсухкмтнв"
TO_CYRILLIC, TO_LATIN = str.maketrans(LATIN, CYRILLIC), str.maketrans(CYRILLIC, LATIN)
ZERO = re.compile(r"(?<=\d)[oо](?=[\doо]|\b)")
"""A letter where a digit is meant."""


def plain(text: str) -> tuple[str, list[int] | None]:
    """The text as facts are looked for in it.

    Returns:
        The text, and the place of each of its signs in what was given, with the end; None where they are the same.

    Example:
        >>> from yarus.metrics.facts.spelling import plain
        >>> plain('Всё с\\u00ad 2О26')
        ('все с 2026', [0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11])
    """
    places: list[int] | None = None
    low = text.lower()
    if len(low) != len(text) or any(sign in low for sign in SIGNS) or INVISIBLE.search(low):
        text, places = _composed(text)
        low = "".join(letter if len(letter := sign.lower()) == 1 else sign for sign in text)
    if not low.isascii():
        low = low.replace("ё", "е").translate(HYPHENS)
        if MIXED.search(low):
            low = WORD.sub(_one_alphabet, low)
    return ZERO.sub("0", low) if "o" in low or "о" in low else low, places


def _one_alphabet(match: re.Match[str]) -> str:
    """A word of two alphabets in that of most of its letters, where the odd ones have twins there."""
    word = match[0]
    if MIXED.search(word) is None:
        return word
    latin = sum("a" <= letter <= "z" for letter in word)
    cyrillic = sum("а" <= letter <= "я" for letter in word)
    twin = word.translate(TO_CYRILLIC if cyrillic >= latin else TO_LATIN)
    return word if MIXED.search(twin) else twin


def _composed(text: str) -> tuple[str, list[int]]:
    """Signs and their accents as one, without what is not seen."""
    signs: list[str] = []
    places: list[int] = []
    last = 0
    for match in HIDDEN.finditer(text):
        signs += text[last : match.start()]
        places += range(last, match.start())
        last = match.end()
        if combining(match[0][0]) and signs:
            joined = normalize("NFC", signs[-1] + match[0])
            signs[-1] = joined if len(joined) == 1 else signs[-1]
        elif match[0] == "&nbsp;":
            signs.append(" ")
            places.append(match.start())
    signs += text[last:]
    return "".join(signs), [*places, *range(last, len(text) + 1)]
