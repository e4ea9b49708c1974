"""Guess the encoding of a text from its bytes."""

import codecs
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice, pairwise

MIN_LETTERS = 50
"""A guess from fewer Cyrillic letters is uncertain."""
MAX_WHOLE_BYTES = 1 << 16
"""Bytes; a longer content may be a sample."""
MAX_WORDS = 3_000
"""Words beyond ASCII that a guess looks at."""
CYRILLIC_ENCODINGS = ("cp1251", "koi8-r", "cp866")
"""The encodings of Russian texts that have one byte per letter; if two fit equally well, the first wins."""
BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark begins with the same two bytes
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
FREQUENCIES = {
    "о": 1097, "е": 845, "а": 801, "и": 735, "н": 670, "т": 626, "с": 547, "р": 473, "в": 454, "л": 440, "к": 349,
    "м": 321, "д": 298, "п": 281, "у": 262, "я": 201, "ы": 190, "ь": 174, "г": 170, "з": 165, "б": 159, "ч": 144,
    "й": 121, "х": 97, "ж": 94, "ш": 73, "ю": 64, "ц": 48, "щ": 36, "э": 32, "ф": 26, "ъ": 4, "ё": 4,
}  # fmt: skip
"""How often a letter occurs in Russian texts (the National Corpus of the Russian Language)."""
COMMON_PAIRS_TEXT = (
    "стноентонаовниравокорореалпрлипоотолваосернетакаоретанлаелодльитдозариголотьсоойоминобогтедемиветрсе"
    "иясясьиескныыхлеатмомаамдаивимпебывыииемийчаонисиздисиесилкркттиутую"
)
COMMON_PAIRS = frozenset(COMMON_PAIRS_TEXT[start : start + 2] for start in range(0, len(COMMON_PAIRS_TEXT), 2))
"""The commonest letter pairs: they distinguish capitals in one encoding from small letters in another."""
SIGNS = "«»„“”’–—…№°§•©®\N{NO-BREAK SPACE}"
"""Signs beyond ASCII that Russian texts have."""
SIGN_SCORE, OTHER_CYRILLIC, OTHER_CHARACTER = math.log(0.003), math.log(0.0005), math.log(0.00001)
SCORES = {letter: math.log(count / 10_000) for letter, count in FREQUENCIES.items()} | dict.fromkeys(SIGNS, SIGN_SCORE)
UPPER_SCORE, UPPER_INSIDE_SCORE, COMMON_PAIR_SCORE = -0.25, -4.0, 1.0
"""Scores of a capital letter, of one that follows a small letter, and of a common pair of letters."""
MIN_RUSSIAN_SCORE = -4.2
"""The mean score of a letter; Russian texts have about -3."""
LETTERS = re.compile(r"[^\W\d_]+")
NON_ASCII_WORD = re.compile(rb"[A-Za-z]*[\x80-\xff][A-Za-z\x80-\xff]*")
DECLARABLE = re.compile(r"(windows-?|cp|iso-?8859-|koi8-|ibm|mac|x-mac-|gb|big5|shift|euc|utf-?8)[\w-]*", re.IGNORECASE)
"""Encodings that a page may name; Python knows others, which unpack or run through a text."""


@dataclass(frozen=True)
class EncodingGuess:
    """The encoding of a text."""

    encoding: str
    """Python's name of the encoding."""
    letters: int | None = None
    """How many letters beyond ASCII decided; None if the bytes leave no doubt (ASCII, UTF-8, UTF-16, UTF-32)."""

    @property
    def is_uncertain(self) -> bool:
        """Return whether a Cyrillic encoding was guessed from too few letters."""
        return self.encoding in CYRILLIC_ENCODINGS and self.letters is not None and self.letters < MIN_LETTERS


def guess_encoding(content: bytes) -> EncodingGuess:
    """Guess the encoding of a text or of its beginning, which may end within a letter.

    Args:
        content: the bytes; a sample of 100 KB decides as well as the whole text.
    """
    for mark, encoding in BYTE_ORDER_MARKS:
        if content.startswith(mark):
            return EncodingGuess(encoding)
    if wide := _guess_wide(content):
        return EncodingGuess(wide)
    if _is_utf8(content):
        return EncodingGuess("utf-8")
    words = [match[0] for match in islice(NON_ASCII_WORD.finditer(content), MAX_WORDS)]
    return _guess_single_byte(words)


def decode_text(content: bytes, declared: str | None = None) -> tuple[str, str]:
    """Decode a text.

    Args:
        content: the whole text.
        declared: the encoding that the text itself names, if it does; ignored if the text is not in that encoding.

    Returns:
        The text without a byte-order mark, and the name of the encoding. A byte that the encoding does not have
        becomes U+FFFD.
    """
    guess = guess_encoding(content)
    encoding = guess.encoding
    if guess.letters is not None and declared and _can_decode(content, declared):
        encoding = declared
    return content.decode(encoding, "replace"), encoding


def _can_decode(content: bytes, encoding: str) -> bool:
    if not DECLARABLE.fullmatch(encoding):
        return False
    try:
        content.decode(encoding)
    except (LookupError, UnicodeError):
        return False
    return True


def _is_utf8(content: bytes) -> bool:
    """Return whether a text is UTF-8; one wrong byte among fifty letters does not make it another encoding."""
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(content)
    except UnicodeDecodeError:
        text = content.decode("utf-8", "replace")
        n_beyond_ascii = len(text) - len(text.encode("ascii", "ignore"))
        return text.count("\N{REPLACEMENT CHARACTER}") * 50 < n_beyond_ascii
    # Only the last letter is cut, or nothing; a short text with no other letter beyond ASCII is not UTF-8.
    return content.isascii() or not text.isascii() or len(content) > MAX_WHOLE_BYTES


def _guess_wide(content: bytes) -> str | None:
    """Detect UTF-16 and UTF-32 without a mark by their upper bytes: 0 for Latin, 4 for Cyrillic letters."""
    sample = content[: 1 << 16]
    if len(sample) >= 8 and not any(sample[2::4]) and not any(sample[3::4]):
        return "utf-32-le"
    if len(sample) >= 8 and not any(sample[0::4]) and not any(sample[1::4]):
        return "utf-32-be"
    first, second = (_share_of_upper_bytes(sample[start::2]) for start in (0, 1))
    if max(first, second) < 0.9 or min(first, second) > 0.5:
        return None
    return "utf-16-le" if second > first else "utf-16-be"


def _share_of_upper_bytes(column: bytes) -> float:
    return (column.count(0) + column.count(4)) / len(column) if len(column) > 1 else 0.0


def _guess_single_byte(words: list[bytes]) -> EncodingGuess:
    readings = {encoding: [word.decode(encoding, "replace") for word in words] for encoding in CYRILLIC_ENCODINGS}
    scores = {encoding: sum(map(_score_word, readings[encoding])) for encoding in CYRILLIC_ENCODINGS}
    best = max(CYRILLIC_ENCODINGS, key=scores.__getitem__)
    letters, lonely = _count_letters(readings[best])
    if lonely * 2 >= letters:
        return _guess_western(words)
    n_bytes = sum(byte >= 0x80 for word in words for byte in word)
    return EncodingGuess(best, letters if scores[best] > MIN_RUSSIAN_SCORE * n_bytes else 0)


def _guess_western(words: list[bytes]) -> EncodingGuess:
    """Choose cp1252, which is latin-1 with more signs, or latin-1 if a byte has no sign there."""
    joined = b" ".join(words)
    encoding = "cp1252" if _can_decode(joined, "cp1252") else "latin-1"
    return EncodingGuess(encoding, sum(letter.isalpha() and not letter.isascii() for letter in joined.decode(encoding)))


def _score_word(word: str) -> float:
    """Score the letters beyond ASCII of a word: the logarithm of how likely they are in a Russian text."""
    score = sum(_score_letter(letter) for letter in word if not letter.isascii())
    capitals = sum(letter.isupper() and not letter.isascii() for letter in word)
    return score + UPPER_SCORE * capitals + sum(_score_pair(first, second) for first, second in pairwise(word))


def _score_pair(first: str, second: str) -> float:
    if first.islower() and second.isupper():
        return UPPER_INSIDE_SCORE
    return COMMON_PAIR_SCORE if f"{first}{second}".lower() in COMMON_PAIRS else 0.0


def _score_letter(letter: str) -> float:
    score = SCORES.get(letter.lower())
    if score is not None:
        return score
    return OTHER_CYRILLIC if "Ѐ" <= letter <= "ҁ" else OTHER_CHARACTER


def _count_letters(words: Iterable[str]) -> tuple[int, int]:
    """Count the Cyrillic letters, and those alone or within a Latin word (misread West European ones)."""
    letters = lonely = 0
    for word in words:
        for token in LETTERS.findall(word):
            cyrillic = sum("Ѐ" <= letter <= "ӿ" for letter in token)
            letters += cyrillic
            if cyrillic < len(token) or cyrillic == 1:
                lonely += cyrillic
    return letters, lonely
