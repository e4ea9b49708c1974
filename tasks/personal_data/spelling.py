"""Texts as a pattern can read them, with the way back: how a number is typeset does not hide it."""

import re
import unicodedata
from functools import cache

USUAL = re.compile(r"[^\x00-\x7fА-яЁё«»№…]")
"""Anything that few texts have: typographic signs and spaces, digits of other scripts, letters without a width."""
KEPT = "№…"
"""Signs whose compatible form is several letters, and which the patterns know as they are."""


def plain(text: str) -> tuple[str, list[int] | None]:
    """The text in compatible, composed letters (NFKC), ASCII digits, hyphens and spaces, without invisible signs.

    Args:
        text: any.

    Returns:
        What patterns are to read, and for every place in it, the end included, the place in the given text; None where
        nothing has changed.
    """
    if text.isascii():
        return text, None
    text = text.replace("—", "-").replace("–", "-").replace("\u00a0", " ")  # the frequent ones, at a tenth of the cost
    if USUAL.search(text) is None:
        return text, None
    letters: list[str] = []
    places: list[int] = []
    for place, letter in enumerate(text):
        simple = _simple(letter)
        if letters and unicodedata.combining(letter):
            whole = unicodedata.normalize("NFC", letters[-1] + letter)
            if len(whole) == 1:
                letters[-1] = whole
            continue
        letters += simple
        places += [place] * len(simple)
    return "".join(letters), [*places, len(text)]


def back(places: list[int] | None, start: int, end: int) -> tuple[int, int]:
    """Start and end in the text that was given, of a stretch of what patterns read; a sign is never cut in two."""
    return (start, end) if places is None else (places[start], max(places[end], places[end - 1] + 1))


def lowered(text: str) -> str:
    """The text in lower case and with е for ё, as long as it is; patterns that do not ask for the case are fast."""
    low = text.lower()
    low = low if len(low) == len(text) else "".join(x.lower() if len(x.lower()) == 1 else x for x in text)
    return low.replace("ё", "е")


@cache
def _simple(letter: str) -> str:
    category = unicodedata.category(letter)
    if category == "Nd":
        return str(unicodedata.decimal(letter))
    if category == "Pd" or letter == "−":
        return "-"
    if category == "Cf" or unicodedata.combining(letter) or "\ufe00" <= letter <= "\ufe0f":
        return ""
    if letter in KEPT:
        return letter
    return unicodedata.normalize("NFKC", letter)
