"""Languages of a corpus, by letters and by the commonest words; and the words of content in a question."""

import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from yarus.tasks.cases.text import COMMON_WORDS

VOCABULARY = tomllib.loads((Path(__file__).parent / "vocabulary.toml").read_text(encoding="utf-8"))
COMMON = frozenset(f"{COMMON_WORDS} {VOCABULARY['asking']}".replace("ё", "е").split())
LONG_WORD = re.compile(r"[^\W\d_]{3,}")
LINK = re.compile(
    r"(?:https?|ftp)(?::/*\S*|\b)|\bwww\.\S+|\S+@\S+\.\w+|(?<!\w)@\w+"
    r"|\b[\w.-]+\.(?:ru|com|org|net|рф|io|me|info|biz|su|xyz|site)\b\S*",
    re.IGNORECASE,
)
"""An address of the web or of mail, or a name in a messenger."""


def content(text: str) -> list[str]:
    """The words of a text that say what it is about, in lower case, «ё» as «е»; without addresses.

    Example:
        >>> from yarus.tasks.dataset.corpus.languages import content
        >>> content("Подскажите, где взять пропуск? https://wiki.example/x")
        ['взять', 'пропуск']
    """
    plain = unicodedata.normalize("NFC", text).casefold().replace("ё", "е")
    return [word for word in LONG_WORD.findall(LINK.sub(" ", plain)) if word not in COMMON]


FUNCTION_WORDS = {language: frozenset(words.split()) for language, words in VOCABULARY["languages"].items()}
LETTERS = re.compile(r"[^\W\d_]+")
LEAST_WORDS, LEAST_HITS, HITS = 3, 2, 0.3
"""Words of a text that tell its language; how many of them are the language's commonest, and which share, at least."""
HITS_OF_PROSE = 0.12
"""The same share of a text of a corpus, which is longer than a question."""
RARE, RARE_LETTER = 0.01, 1e-4
"""Of the texts, or the letters, of a corpus: what is rarer is not of its languages."""
CHUNKS = 2_000
"""Of a corpus that are looked at."""
SEVERAL = 2
"""Words with letters that the corpus has not: one may be a name."""


class Spoken(NamedTuple):
    """What a corpus is written in."""

    languages: frozenset[str]
    """Of those that are known by their words; none where its language is none of them."""
    scripts: frozenset[str]
    letters: frozenset[str]


def spoken(texts: Sequence[str]) -> Spoken:
    """What texts are written in: up to 2,000 of them, evenly spread."""
    seen = [text.casefold() for text in texts[:: len(texts) // CHUNKS + 1]]
    hits = [_hits(text, HITS_OF_PROSE) for text in seen]
    languages = Counter(max(of, key=of.__getitem__) for of in hits if of)
    letters = Counter(sign for text in seen for sign in text if sign.isalpha())
    total = sum(letters.values())
    scripts: Counter[str] = Counter()
    for letter, n in letters.items():
        scripts[script(letter)] += n
    return Spoken(
        frozenset(name for name, n in languages.items() if n >= RARE * len(seen)),
        frozenset(name for name, n in scripts.items() if n >= RARE * total),
        frozenset(letter for letter, n in letters.items() if n >= RARE_LETTER * total),
    )


def is_foreign(text: str, of: Spoken) -> bool:
    """Whether a text is in another language than a corpus.

    It is where most of its letters are of a script that the corpus hardly has (but for Latin ones: any text may have
    names in them), where two of its words or more, and half of them, have letters that the corpus has not, or where its
    commonest words are another language's.
    """
    words = LETTERS.findall(unicodedata.normalize("NFC", text).casefold())
    letters = "".join(words)
    strange = sum(script(letter) not in of.scripts and script(letter) != "LATIN" for letter in letters)
    if letters and 2 * strange > len(letters):
        return True
    odd = sum(any(letter not in of.letters and script(letter) in of.scripts for letter in word) for word in words)
    if odd >= SEVERAL and 2 * odd >= len(words) and "LATIN" not in {script(letter) for letter in letters}:
        return True
    hits = _hits(text, HITS)
    own = max((n for name, n in hits.items() if name in of.languages), default=0)
    return bool(of.languages) and any(n > own for n in hits.values())


def _hits(text: str, share: float) -> dict[str, int]:
    """Language -> words of a text that are of its commonest, where these are enough to tell."""
    words = LETTERS.findall(unicodedata.normalize("NFC", text).casefold())
    if len(words) < LEAST_WORDS:
        return {}
    hits = {name: sum(word in common for word in words) for name, common in FUNCTION_WORDS.items()}
    return {name: n for name, n in hits.items() if n >= max(LEAST_HITS, share * len(words))}


@lru_cache(maxsize=10_000)
def script(letter: str) -> str:
    """The script of a letter, as Unicode names it.

    Example:
        >>> from yarus.tasks.dataset.corpus.languages import script
        >>> script("ж"), script("q"), script("学")
        ('CYRILLIC', 'LATIN', 'CJK')
    """
    return unicodedata.name(letter, "UNKNOWN").split(" ")[0].split("-")[0]
