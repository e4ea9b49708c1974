"""Words and sentences of texts; joining texts into one context with a token limit, and splitting it again."""

import re
import unicodedata
from itertools import accumulate, pairwise

STEM_LENGTH = 5
CHARACTERS_PER_TOKEN = 3  # roughly, in Russian text; English has four
WORD_PATTERN = re.compile(r"\w+")
SENTENCE_BREAK = re.compile(r"(?<=[.!?…])\s+|\n+")
CYRILLIC, LATIN = re.compile("[Ѐ-ӿ]"), re.compile("[A-Za-z]")
CONTEXT_SEPARATOR = "\n\n"
"""Separator of the texts in a context."""
STOP_WORD_LIST = """
а без бы был была были было быть в вам вас во вот все вы где да для до его ее если есть еще же за и из или им их к как
какая какие какой ко когда кто ли мне можно мой мы на над не нет но о об он она они от по под при с со так также там то
у уже что чтобы эта эти это этот я
a an and are as at be by can do does for from has have how i if in is it its of on or s that the their there this to
was were what when where which who why will with you your
"""


STOP_WORDS = frozenset(STOP_WORD_LIST.split())


def fold_case(text: str) -> str:
    """Return a text in normal form and lower case, ё as е."""
    return unicodedata.normalize("NFC", text).casefold().replace("ё", "е")


def word_stems(text: str) -> set[str]:
    """Return the word stems of a text, without common words, as the offline stand-ins compare them."""
    return {word[:STEM_LENGTH] for word in WORD_PATTERN.findall(fold_case(text)) if word not in STOP_WORDS}


def normalise_question(text: str) -> str:
    """Return the words of a text in lower case, ё as е; equal for equal questions."""
    return " ".join(WORD_PATTERN.findall(fold_case(text)))


def fold_text(text: str) -> str:
    """Return a text without case and with single spaces; equal for texts that differ only in these."""
    return " ".join(text.casefold().split())


def claim_key(text: str) -> str:
    """Return a key that is equal for equal claims or nuggets; signs stay, because -5 is not 5."""
    return text.casefold().rstrip(" .!…")


def join_within_limit(texts: list[str], tokens: int) -> tuple[str, bool]:
    """Join the texts, cut to about that many tokens; return the context and whether it was cut."""
    context = CONTEXT_SEPARATOR.join(texts)
    limit = tokens * CHARACTERS_PER_TOKEN
    return context[:limit], len(context) > limit


def text_offsets(texts: list[str], context: str) -> list[int]:
    """Return the offset of each text in the context made from them; texts cut off have none."""
    offsets = accumulate((len(text) + len(CONTEXT_SEPARATOR) for text in texts[:-1]), initial=0)
    return [offset for offset in offsets if offset < len(context)]


def split_context(context: str | None, begin: list[int] | None) -> list[str]:
    """Split a context into its texts; without offsets it is one text.

    Args:
        context: the joined texts; None or empty without any.
        begin: offsets, as `text_offsets` returns them.

    Example:
        >>> from yarus.tasks.cases.text import split_context, text_offsets
        >>> split_context("один\\n\\nдва", text_offsets(["один", "два"], "один\\n\\nдва"))
        ['один', 'два']
    """
    if not context:
        return []
    bounds = [*(begin or [0]), len(context) + len(CONTEXT_SEPARATOR)]
    return [text for start, end in pairwise(bounds) if (text := context[start : end - len(CONTEXT_SEPARATOR)]).strip()]


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text, in order, without blank ones; a line break ends a sentence."""
    return [part.strip() for part in SENTENCE_BREAK.split(text) if part.strip()]


def main_script(text: str | None) -> str:
    """Return the script of most letters: cyrillic, latin or other.

    Example:
        >>> from yarus.tasks.cases.text import main_script
        >>> main_script("Где взять VPN?"), main_script("Where is the VPN?"), main_script("42?")
        ('cyrillic', 'latin', 'other')
    """
    counts = {name: len(pattern.findall(text or "")) for name, pattern in (("cyrillic", CYRILLIC), ("latin", LATIN))}
    commonest = max(counts, key=lambda name: counts[name])
    return commonest if counts[commonest] else "other"
