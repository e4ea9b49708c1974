"""The normal form of a text for facts: lower case, «е» for «ё», one alphabet per word, nothing invisible."""

import re
from unicodedata import combining, normalize

SIGNS = "*`_<&\u20e3"
INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufe0f\ufeff\u0300-\u036f]")
HIDDEN = re.compile(
    INVISIBLE.pattern + r"|(?<!\d)\*+|\*+(?!\d)|`|(?<!\w)_+|_+(?!\w)|</?[a-zA-Z][^<>]{0,100}>|&nbsp;|\d\ufe0f?\u20e3"
)
"""Characters that are invisible or combine with the letter before: soft hyphens, directions, accents, markup."""
HYPHENS = str.maketrans("\u2010\u2011", "--")
MIXED, WORD = re.compile("[a-z][а-я]|[а-я][a-z]"), re.compile(r"\w+")
LATIN, CYRILLIC = "aeopcyxkmthb", "аеорсухкмтнв"
TO_CYRILLIC, TO_LATIN = str.maketrans(LATIN, CYRILLIC), str.maketrans(CYRILLIC, LATIN)
ZERO = re.compile(r"(?<=\d)[oо](?=[\doо]|\b)")
"""A letter in the place of a digit."""


def normalize_spelling(text: str) -> tuple[str, list[int] | None]:
    """Return the normal form of a text.

    Returns:
        The text, and the position of each of its characters in the original, with the end; None if they are equal.

    Example:
        >>> from yarus.metrics.facts.spelling import normalize_spelling
        >>> normalize_spelling('Всё с\\u00ad 2О26')
        ('все с 2026', [0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11])
    """
    positions: list[int] | None = None
    low = text.lower()
    if len(low) != len(text) or any(sign in low for sign in SIGNS) or INVISIBLE.search(low):
        text, positions = _compose(text)
        low = "".join(letter if len(letter := sign.lower()) == 1 else sign for sign in text)
    if not low.isascii():
        low = low.replace("ё", "е").translate(HYPHENS)
        if MIXED.search(low):
            low = WORD.sub(_unify_alphabet, low)
    return ZERO.sub("0", low) if "o" in low or "о" in low else low, positions


def _unify_alphabet(match: re.Match[str]) -> str:
    """Return a word of two alphabets in that of most of its letters, if the others have look-alikes there."""
    word = match[0]
    if MIXED.search(word) is None:
        return word
    latin = sum("a" <= letter <= "z" for letter in word)
    cyrillic = sum("а" <= letter <= "я" for letter in word)
    unified = word.translate(TO_CYRILLIC if cyrillic >= latin else TO_LATIN)
    return word if MIXED.search(unified) else unified


def _compose(text: str) -> tuple[str, list[int]]:
    """Combine characters with their accents, and remove invisible ones."""
    signs: list[str] = []
    positions: list[int] = []
    last = 0
    for match in HIDDEN.finditer(text):
        signs += text[last : match.start()]
        positions += range(last, match.start())
        last = match.end()
        if combining(match[0][0]) and signs:
            joined = normalize("NFC", signs[-1] + match[0])
            signs[-1] = joined if len(joined) == 1 else signs[-1]
        elif match[0] == "&nbsp;":
            signs.append(" ")
            positions.append(match.start())
    signs += text[last:]
    return "".join(signs), [*positions, *range(last, len(text) + 1)]
