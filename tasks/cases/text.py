"""Words of a text: normalised, stemmed, without the common ones; texts as one context, cut to a limit of tokens."""

import re
import unicodedata

STEM = 5
CHARACTERS_A_TOKEN = 3  # of Russian text, roughly; English has four
WORD = re.compile(r"\w+")
COMMON_WORDS = """
а без бы был была были было быть в вам вас во вот все вы где да для до его ее если есть еще же за и из или им их к как
какая какие какой ко когда кто ли мне можно мой мы на над не нет но о об он она они от по под при с со так также там то
у уже что чтобы эта эти это этот я
a an and are as at be by can do does for from has have how i if in is it its of on or s that the their there this to
was were what when where which who why will with you your
"""


COMMON = frozenset(COMMON_WORDS.split())


def words(text: str) -> set[str]:
    """The words of a text as the stand-ins compare them."""
    plain = unicodedata.normalize("NFC", text).casefold().replace("ё", "е")
    return {word[:STEM] for word in WORD.findall(plain) if word not in COMMON}


def normalised(text: str) -> str:
    """The words of a text in lower case, ё as е: what makes two texts the same question."""
    return " ".join(WORD.findall(unicodedata.normalize("NFC", text).casefold().replace("ё", "е")))


def fit(texts: list[str], tokens: int) -> tuple[str, bool]:
    """The texts as one, cut to about so many tokens, and whether it was cut."""
    whole = "\n\n".join(texts)
    limit = tokens * CHARACTERS_A_TOKEN
    return whole[:limit], len(whole) > limit
