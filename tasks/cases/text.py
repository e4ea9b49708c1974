"""Words and sentences of a text; texts as one context, cut to a limit of tokens, and the context as texts again."""

import re
import unicodedata
from itertools import accumulate, pairwise

STEM = 5
CHARACTERS_A_TOKEN = 3  # of Russian text, roughly; English has four
WORD = re.compile(r"\w+")
SENTENCE = re.compile(r"(?<=[.!?…])\s+|\n+")
CYRILLIC, LATIN = re.compile("[Ѐ-ӿ]"), re.compile("[A-Za-z]")
BETWEEN = "\n\n"
"""Stands between the texts of a context."""
COMMON_WORDS = """
а без бы был была были было быть в вам вас во вот все вы где да для до его ее если есть еще же за и из или им их к как
какая какие какой ко когда кто ли мне можно мой мы на над не нет но о об он она они от по под при с со так также там то
у уже что чтобы эта эти это этот я
a an and are as at be by can do does for from has have how i if in is it its of on or s that the their there this to
was were what when where which who why will with you your
"""


COMMON = frozenset(COMMON_WORDS.split())


def plain(text: str) -> str:
    """A text in normal form and lower case, ё as е."""
    return unicodedata.normalize("NFC", text).casefold().replace("ё", "е")


def words(text: str) -> set[str]:
    """The words of a text as the stand-ins compare them."""
    return {word[:STEM] for word in WORD.findall(plain(text)) if word not in COMMON}


def normalised(text: str) -> str:
    """The words of a text in lower case, ё as е: what makes two texts the same question."""
    return " ".join(WORD.findall(plain(text)))


def folded(text: str) -> str:
    """A text without case, and with single blanks between its words: what is equal but for how it is written."""
    return " ".join(text.casefold().split())


def same_said(text: str) -> str:
    """Equal for claims, or nuggets, that say the same: signs stay, for -5 is not 5, nor 12.01 the time 12:01."""
    return text.casefold().rstrip(" .!…")


def fit(texts: list[str], tokens: int) -> tuple[str, bool]:
    """The texts as one, cut to about so many tokens, and whether it was cut."""
    whole = BETWEEN.join(texts)
    limit = tokens * CHARACTERS_A_TOKEN
    return whole[:limit], len(whole) > limit


def starts(texts: list[str], context: str) -> list[int]:
    """Where each text begins in the context that was made of them; those that were cut off begin nowhere."""
    places = accumulate((len(text) + len(BETWEEN) for text in texts[:-1]), initial=0)
    return [place for place in places if place < len(context)]


def parts(context: str | None, begin: list[int] | None) -> list[str]:
    """The texts that a context was made of; the whole as one where nobody has noted where they begin.

    Args:
        context: the texts as one; None or empty where there is none.
        begin: as `starts` gives it.

    Example:
        >>> from yarus.tasks.cases.text import parts, starts
        >>> parts("один\\n\\nдва", starts(["один", "два"], "один\\n\\nдва"))
        ['один', 'два']
    """
    if not context:
        return []
    bounds = [*(begin or [0]), len(context) + len(BETWEEN)]
    return [text for start, end in pairwise(bounds) if (text := context[start : end - len(BETWEEN)]).strip()]


def sentences(text: str) -> list[str]:
    """The sentences of a text, in their order, without what is blank; a new line begins another one."""
    return [part.strip() for part in SENTENCE.split(text) if part.strip()]


def script_of(text: str | None) -> str:
    """What most of its letters are: cyrillic, latin or other.

    Example:
        >>> from yarus.tasks.cases.text import script_of
        >>> script_of("Где взять VPN?"), script_of("Where is the VPN?"), script_of("42?")
        ('cyrillic', 'latin', 'other')
    """
    counts = {name: len(one.findall(text or "")) for name, one in (("cyrillic", CYRILLIC), ("latin", LATIN))}
    most = max(counts, key=lambda name: counts[name])
    return most if counts[most] else "other"
