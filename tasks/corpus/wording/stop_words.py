"""Words that say how somebody asks, and not about what; and the words of content that are left."""

import re
import tomllib
import unicodedata
from pathlib import Path

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
        >>> from yarus.tasks.corpus.wording.stop_words import content
        >>> content("Подскажите, где взять пропуск? https://wiki.example/x")
        ['взять', 'пропуск']
    """
    plain = unicodedata.normalize("NFC", text).casefold().replace("ё", "е")
    return [word for word in LONG_WORD.findall(LINK.sub(" ", plain)) if word not in COMMON]
