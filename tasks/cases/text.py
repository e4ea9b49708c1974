"""Words and sentences of a text; texts as one context, cut to a limit of tokens, and the context as texts again."""

import re
import unicodedata
from array import array
from collections.abc import Sequence
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

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


def words(text: str) -> set[str]:
    """The words of a text as the stand-ins compare them."""
    plain = unicodedata.normalize("NFC", text).casefold().replace("ё", "е")
    return {word[:STEM] for word in WORD.findall(plain) if word not in COMMON}


def normalised(text: str) -> str:
    """The words of a text in lower case, ё as е: what makes two texts the same question."""
    return " ".join(WORD.findall(unicodedata.normalize("NFC", text).casefold().replace("ё", "е")))


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


SIZES = (3, 4)
AT_ONCE = 1_000
"""Texts whose n-grams are in memory."""


def ngram_counts(texts: Sequence[str], features: int) -> NDArray[np.float32]:
    """How often each n-gram of 3 and 4 characters stands in each text, counted where its hash falls.

    Texts are lower-cased and parted at white space; every word has a blank before and behind it. Half of the n-grams
    count as -1, so that those that fall on one place cancel each other on average.

    Args:
        texts: n texts that UTF-8 can hold.
        features: places.

    Returns:
        (n, features) float32, as `HashingVectorizer(analyzer="char_wb", ngram_range=(3, 4), norm=None)` has them.

    Reference:
        Weinberger et al., Feature hashing for large scale multitask learning, 2009.
    """
    counts = np.zeros((len(texts), features), dtype=np.float32)
    for start in range(0, len(texts), AT_ONCE):
        _count(texts[start : start + AT_ONCE], counts[start : start + AT_ONCE])
    return counts


def _count(texts: Sequence[str], counts: NDArray[np.float32]) -> None:
    numbers: dict[str, int] = {}
    by_word: dict[str, array[int]] = {}
    found, lengths = array("i"), []
    for text in texts:
        before = len(found)
        for word in text.lower().split():
            if word not in by_word:
                spaced = f" {word} "
                grams = (spaced[at : at + n] for n in SIZES for at in range(len(spaced) + 1 - n))
                by_word[word] = array("i", [numbers.setdefault(gram, len(numbers)) for gram in grams])
            found.extend(by_word[word])
        lengths.append(len(found) - before)
    hashes = murmur3([gram.encode() for gram in numbers])[np.frombuffer(found, dtype=np.int32)]
    rows = np.repeat(np.arange(len(texts)), lengths)
    signs = np.where(hashes < 0, np.float32(-1), np.float32(1))
    np.add.at(counts.reshape(-1), rows * counts.shape[1] + np.abs(hashes) % counts.shape[1], signs)


def murmur3(keys: Sequence[bytes]) -> NDArray[np.int64]:
    """MurmurHash3 (32 bits, seed 0) of each key, as a signed number.

    Reference:
        Appleby, MurmurHash3_x86_32, 2011.
    """
    lengths = np.array([len(key) for key in keys], dtype=np.uint32)
    width = 4 * (int(lengths.max(initial=0)) // 4 + 1)
    words = np.frombuffer(b"".join(key.ljust(width, b"\0") for key in keys), dtype="<u4").reshape(len(keys), width // 4)
    hashed = np.zeros(len(keys), dtype=np.uint32)
    for place in range(width // 4):
        mixed = _rotated(words[:, place] * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593) ^ hashed
        whole = _rotated(mixed, 13) * np.uint32(5) + np.uint32(0xE6546B64)
        # A word of four bytes is mixed in whole; the last few bytes once; behind them there is nothing.
        hashed = np.where(lengths >= 4 * place + 4, whole, np.where(lengths > 4 * place, mixed, hashed))
    hashed ^= lengths
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        hashed = (hashed ^ hashed >> np.uint32(shift)) * np.uint32(factor)
    return np.asarray((hashed ^ hashed >> np.uint32(16)).view(np.int32), dtype=np.int64)


def _rotated(words: NDArray[np.uint32], by: int) -> NDArray[np.uint32]:
    return words << np.uint32(by) | words >> np.uint32(32 - by)
