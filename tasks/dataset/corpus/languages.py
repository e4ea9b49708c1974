"""Languages of a corpus, by letters and most common words; and content words of questions."""

import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from yarus.tasks.cases.text import STOP_WORD_LIST

VOCABULARY = tomllib.loads((Path(__file__).parent / "vocabulary.toml").read_text(encoding="utf-8"))
COMMON = frozenset(f"{STOP_WORD_LIST} {VOCABULARY['asking']}".replace("ё", "е").split())
LONG_WORD = re.compile(r"[^\W\d_]{3,}")
LINK = re.compile(
    r"(?:https?|ftp)(?::/*\S*|\b)|\bwww\.\S+|\S+@\S+\.\w+|(?<!\w)@\w+"
    r"|\b[\w.-]+\.(?:ru|com|org|net|рф|io|me|info|biz|su|xyz|site)\b\S*",
    re.IGNORECASE,
)
"""A web or e-mail address, or a user name in a messenger."""


def content_words(text: str) -> list[str]:
    """Return the content words of a text in lower case, with «ё» as «е» and without addresses.

    Example:
        >>> from yarus.tasks.dataset.corpus.languages import content_words
        >>> content_words("Подскажите, где взять пропуск? https://wiki.example/x")
        ['взять', 'пропуск']
    """
    normalized = unicodedata.normalize("NFC", text).casefold().replace("ё", "е")
    return [word for word in LONG_WORD.findall(LINK.sub(" ", normalized)) if word not in COMMON]


FUNCTION_WORDS = {language: frozenset(words.split()) for language, words in VOCABULARY["languages"].items()}
LETTERS = re.compile(r"[^\W\d_]+")
MIN_WORDS, MIN_HITS, MIN_HIT_SHARE = 3, 2, 0.3
"""Minimum words of a text, minimum common words of a language among them, and their minimum share."""
MIN_HIT_SHARE_IN_PROSE = 0.12
"""Minimum share for a text of a corpus, which is longer than a question."""
MIN_SHARE, MIN_LETTER_SHARE = 0.01, 1e-4
"""Minimum share of texts, and of letters, for a language or letter to count as one of the corpus."""
MAX_CHUNKS = 2_000
"""Maximum number of chunks that are analysed."""
MIN_FOREIGN_WORDS = 2
"""Minimum number of words with foreign letters; a single word may be a name."""


class CorpusLanguages(NamedTuple):
    """Languages, scripts and letters of a corpus."""

    languages: frozenset[str]
    """Languages recognised by their words; empty if none is recognised."""
    scripts: frozenset[str]
    letters: frozenset[str]


def detect_corpus_languages(texts: Sequence[str]) -> CorpusLanguages:
    """Detect the languages of texts from an even sample of up to 2,000 of them."""
    sample = [text.casefold() for text in texts[:: len(texts) // MAX_CHUNKS + 1]]
    hits = [_count_common_words(text, MIN_HIT_SHARE_IN_PROSE) for text in sample]
    languages = Counter(max(counts, key=counts.__getitem__) for counts in hits if counts)
    letters = Counter(sign for text in sample for sign in text if sign.isalpha())
    total = sum(letters.values())
    scripts: Counter[str] = Counter()
    for letter, n in letters.items():
        scripts[letter_script(letter)] += n
    return CorpusLanguages(
        frozenset(name for name, n in languages.items() if n >= MIN_SHARE * len(sample)),
        frozenset(name for name, n in scripts.items() if n >= MIN_SHARE * total),
        frozenset(letter for letter, n in letters.items() if n >= MIN_LETTER_SHARE * total),
    )


def is_foreign(text: str, corpus: CorpusLanguages) -> bool:
    """Return whether a text is in another language than a corpus.

    A text is foreign if:
    - most of its letters are of a script that is rare in the corpus, except for Latin, which occurs in names;
    - at least two words, and half of all words, have letters that the corpus does not have; or
    - its most common words are those of another language.
    """
    words = LETTERS.findall(unicodedata.normalize("NFC", text).casefold())
    letters = "".join(words)
    n_rare = sum(letter_script(letter) not in corpus.scripts and letter_script(letter) != "LATIN" for letter in letters)
    if letters and 2 * n_rare > len(letters):
        return True
    n_foreign = sum(
        any(letter not in corpus.letters and letter_script(letter) in corpus.scripts for letter in word)
        for word in words
    )
    if (
        n_foreign >= MIN_FOREIGN_WORDS
        and 2 * n_foreign >= len(words)
        and "LATIN" not in {letter_script(letter) for letter in letters}
    ):
        return True
    hits = _count_common_words(text, MIN_HIT_SHARE)
    own_hits = max((n for name, n in hits.items() if name in corpus.languages), default=0)
    return bool(corpus.languages) and any(n > own_hits for n in hits.values())


def _count_common_words(text: str, share: float) -> dict[str, int]:
    """Return language -> number of its common words in a text, if there are enough of them."""
    words = LETTERS.findall(unicodedata.normalize("NFC", text).casefold())
    if len(words) < MIN_WORDS:
        return {}
    hits = {name: sum(word in common for word in words) for name, common in FUNCTION_WORDS.items()}
    return {name: n for name, n in hits.items() if n >= max(MIN_HITS, share * len(words))}


@lru_cache(maxsize=10_000)
def letter_script(letter: str) -> str:
    """Return the script of a letter, as Unicode names it.

    Example:
        >>> from yarus.tasks.dataset.corpus.languages import letter_script
        >>> letter_script("ж"), letter_script("q"), letter_script("学")
        ('CYRILLIC', 'LATIN', 'CJK')
    """
    return unicodedata.name(letter, "UNKNOWN").split(" ")[0].split("-")[0]
