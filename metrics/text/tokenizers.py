"""Tokenizers of the text metrics; signatures of BLEU, ROUGE and WER include them, because they change the values."""

import functools
import re
import sys
import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from yarus.metrics.validation import check_one_of

Tokenizer = Callable[[Sequence[str]], list[str]]

# Text in normal form C has none of these three characters, which compose to others: free to use as markers.
TEXT_END, _KEPT_POINT, _KEPT_COMMA = "\u0374", "\u037e", "\u0387"
_BETWEEN = f" {TEXT_END} "


def normalise(texts: Iterable[str], *, fold_yo: bool) -> list[str]:
    """Return texts in Unicode normal form C, so that «й» is one letter however typed; with `fold_yo` also «ё» as «е».

    Example:
        >>> from yarus.metrics.text.tokenizers import normalise
        >>> normalise(["Ёлка ещё"], fold_yo=True)
        ['Елка еще']
    """
    composed = [unicodedata.normalize("NFC", text) for text in texts]
    return [text.replace("ё", "е").replace("Ё", "Е") for text in composed] if fold_yo else composed


def get_tokenizer(name: str) -> Tokenizer:
    """Return the tokenizer with this name.

    Args:
        name: `words`, `13a`, `whitespace` or `char`.

    Returns:
        A function from normalised texts to all their tokens in a row, those of each text followed by TEXT_END.

    Raises:
        ValueError: an unknown tokenizer; the message names the nearest one.

    Example:
        >>> from yarus.metrics.text.tokenizers import get_tokenizer
        >>> get_tokenizer("words")(["Да, конечно!", "Нет."])[:2]
        ['да', 'конечно']
    """
    check_one_of("tokenizer", name, TOKENIZERS)
    return TOKENIZERS[name]


def tokenize(text: str, tokenizer: str = "words", *, fold_yo: bool = False) -> list[str]:
    """Return the tokens of a text as in the text metrics: normalised to NFC, then split by the given tokenizer.

    Args:
        text: any text.
        tokenizer: `words`: lower-cased runs of letters, digits and underscores; `13a`: sacreBLEU's default, which keeps
            the case and makes punctuation tokens; `whitespace`: runs between white space; `char`: every character but
            white space.
        fold_yo: read «ё» as «е».

    Returns:
        The tokens in order; empty if the tokenizer finds nothing (punctuation only, for `words`).

    Raises:
        ValueError: an unknown tokenizer.

    Example:
        >>> from yarus.metrics.text import tokenize
        >>> tokenize("Сдать до 1,5 месяца!")
        ['сдать', 'до', '1', '5', 'месяца']
        >>> tokenize("Сдать до 1,5 месяца!", "13a")
        ['Сдать', 'до', '1,5', 'месяца', '!']
    """
    return get_tokenizer(tokenizer)(normalise([text], fold_yo=fold_yo))[:-1]


@functools.cache
def _words_pattern() -> re.Pattern[str]:
    r"""Return the pattern of a word: `\w+`, and on through the combining marks inside and after it.

    Python's `\w` lacks the marks (UTS #18 has them): it cuts Thai and Devanagari at every vowel sign and drops it, so
    that two different words become equal. Composed Cyrillic and Latin text has no marks and gives what `\w+` gives. A
    mark that follows no word character (the variation selector of an emoji) starts no word.
    """
    marks = [sign for sign in map(chr, range(sys.maxunicode)) if unicodedata.category(sign).startswith("M")]
    first_rare = bisect_left(marks, "\U00010000")
    common, rare = _character_ranges(marks[:first_rare]), _character_ranges(marks[first_rare:])
    # Outside the first plane a set is searched range by range, so one lookahead decides first whether that is
    # necessary.
    return re.compile(rf"\w[\w{common}]*(?:(?=[\U00010000-\U0010ffff])(?:[{rare}][\w{common}]*)+)?")


def _character_ranges(ascending: Sequence[str]) -> str:
    """Return characters as ranges for a regular expression."""
    runs: dict[int, list[str]] = {}
    for position, character in enumerate(ascending):
        runs.setdefault(ord(character) - position, []).append(character)  # the same for all neighbours of a run
    return "".join(f"{run[0]}-{run[-1]}" for run in runs.values())


def _words(texts: Sequence[str]) -> list[str]:
    joined = _BETWEEN.join([*texts, ""]).lower()
    points = _to_code_points(joined)
    seen = np.zeros(int(points.max(initial=0)) + 1, dtype=bool)
    seen[points] = True
    separators = [point for point in np.flatnonzero(seen).tolist() if not (chr(point).isalnum() or chr(point) == "_")]
    if any(unicodedata.category(chr(point)).startswith("M") for point in separators):
        return _words_pattern().findall(joined)  # TEXT_END counts as a letter here
    # Without marks, words are the rest when all separators are blanked, which is faster.
    seen[:] = False
    seen[separators] = True
    points[seen[points]] = ord(" ")
    return _to_text(points).split()


def _to_code_points(text: str) -> NDArray[np.uint32]:
    return np.frombuffer(bytearray(text.encode("utf-32-le", "surrogatepass")), dtype="<u4")


def _to_text(points: NDArray[np.uint32]) -> str:
    return points.tobytes().decode("utf-32-le", "surrogatepass")


# mteval-v13a as in sacreBLEU: each of these signs is a token; so is a dash after a digit, and a point or a comma unless
# it is between two digits.
_SIGNS = '!"#$%&()*+/:;<=>?@[\\]^_`{|}~'
_SIGN, _POINT, _DASH, _DIGIT = 1, 2, 3, 4
_KINDS = np.zeros(128, dtype=np.uint8)  # of ASCII characters; the last one stands for all others
for _kind, _characters in {_SIGN: _SIGNS, _POINT: ".,", _DASH: "-", _DIGIT: "0123456789"}.items():
    _KINDS[_to_code_points(_characters)] = _kind
# Its substitutions do not overlap, so that in a run of points and commas before a digit the position in the run
# decides. Such texts, and those with replacements, are processed one by one.
_RUN_BEFORE_DIGIT = re.compile(r"[.,][.,][0-9]")
_ENTITY = re.compile("&(?:quot|amp|lt|gt);")
_REPLACEMENTS = {"<skipped>": "", "-\n": "", "\n": " ", "&quot;": '"', "&amp;": "&", "&lt;": "<", "&gt;": ">"}
_RULES = (
    (re.compile(rf"([ {re.escape(_SIGNS)}])"), r" \1 "),
    (re.compile(r"([^0-9])([.,])"), r"\1 \2 "),
    (re.compile(r"([.,])([^0-9])"), r" \1 \2"),
    (re.compile(r"([0-9])(-)"), r"\1 \2 "),
)


def _13a(texts: Sequence[str]) -> list[str]:
    texts = [text.rstrip() for text in texts]  # as sacreBLEU's BLEU does first: a last dash and newline depend on it
    points, kinds = _classify(joined := _BETWEEN.join([*texts, ""]))
    run_before_digit = (kinds[:-2] == _POINT) & (kinds[1:-1] == _POINT) & (kinds[2:] == _DIGIT)
    if _has_replacements(joined) or run_before_digit.any():
        texts = [_split_by_rules(text) if _needs_rules(text) else text for text in texts]
        points, kinds = _classify(_BETWEEN.join([*texts, ""]))
    # The last character is the space after a TEXT_END: it has no kind, and so may also precede the first.
    positions = np.flatnonzero(kinds != 0)
    before, kind, after = kinds[positions - 1], kinds[positions], kinds[positions + 1]
    in_number = (before == _DIGIT) & (after == _DIGIT)
    is_separate = (kind == _SIGN) | ((kind == _POINT) & ~in_number) | ((kind == _DASH) & (before == _DIGIT))
    spaced = np.insert(points, np.concatenate([positions[is_separate], positions[is_separate] + 1]), ord(" "))
    return _to_text(spaced).replace(_KEPT_POINT, ".").replace(_KEPT_COMMA, ",").split()


def _classify(text: str) -> tuple[NDArray[np.uint32], NDArray[np.uint8]]:
    points = _to_code_points(text)
    return points, _KINDS[np.minimum(points, len(_KINDS) - 1)]


def _needs_rules(text: str) -> bool:
    return _has_replacements(text) or _RUN_BEFORE_DIGIT.search(text) is not None


def _has_replacements(text: str) -> bool:
    return "<skipped>" in text or "-\n" in text or ("&" in text and _ENTITY.search(text) is not None)


def _split_by_rules(text: str) -> str:
    """Return the text with spaces between its tokens, and points and commas that are not split again."""
    for old, new in _REPLACEMENTS.items():
        text = text.replace(old, new)
    text = f" {text} "
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return text.replace(".", _KEPT_POINT).replace(",", _KEPT_COMMA)


def _whitespace(texts: Sequence[str]) -> list[str]:
    return _BETWEEN.join([*texts, ""]).split()


def _chars(texts: Sequence[str]) -> list[str]:
    return list(TEXT_END.join([*("".join(text.split()) for text in texts), ""]))


TOKENIZERS: dict[str, Tokenizer] = {"words": _words, "13a": _13a, "whitespace": _whitespace, "char": _chars}

_EDGES = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")


def chrf_words(texts: Iterable[Sequence[str]]) -> list[str]:
    """Return the words of chrF++, each text's followed by TEXT_END.

    Args:
        texts: for each text the parts between white space; one ASCII punctuation mark is split from the end of each or,
            if there is none, from its start.

    Example:
        >>> from yarus.metrics.text.tokenizers import chrf_words
        >>> chrf_words([["Да,", "«нет»"]])[:3]
        ['Да', ',', '«нет»']
    """
    tokens: list[str] = []
    for words in texts:
        for word in words:
            if len(word) > 1 and word[-1] in _EDGES:
                tokens += (word[:-1], word[-1])
            elif len(word) > 1 and word[0] in _EDGES:
                tokens += (word[0], word[1:])
            else:
                tokens.append(word)
        tokens.append(TEXT_END)
    return tokens
