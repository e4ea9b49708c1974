"""How a text becomes tokens. This decides what BLEU, ROUGE and WER give, so it stands in their signatures."""

import functools
import re
import sys
import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from yarus.metrics.checks import check_one_of

Tokenizer = Callable[[Sequence[str]], list[str]]

# Text in normal form C has none of these three characters, which are composed to others: free to mark places with.
END, _KEPT_POINT, _KEPT_COMMA = "\u0374", "\u037e", "\u0387"
_BETWEEN = f" {END} "


def normalise(texts: Iterable[str], *, fold_yo: bool) -> list[str]:
    """Texts in Unicode normal form C, so that «й» is one letter however typed; with `fold_yo` also «ё» as «е».

    Example:
        >>> from yarus.metrics.text.tokenizers import normalise
        >>> normalise(["Ёлка ещё"], fold_yo=True)
        ['Елка еще']
    """
    composed = [unicodedata.normalize("NFC", text) for text in texts]
    return [text.replace("ё", "е").replace("Ё", "Е") for text in composed] if fold_yo else composed


def get_tokenizer(name: str) -> Tokenizer:
    """The function that splits texts under this name.

    Args:
        name: `words`, `13a`, `whitespace` or `char`.

    Returns:
        A function from normalised texts to all their tokens in a row, those of each text followed by END.

    Raises:
        ValueError: there is no such tokenizer; names the nearest one.

    Example:
        >>> from yarus.metrics.text.tokenizers import get_tokenizer
        >>> get_tokenizer("words")(["Да, конечно!", "Нет."])[:2]
        ['да', 'конечно']
    """
    check_one_of("tokenizer", name, TOKENIZERS)
    return TOKENIZERS[name]


def tokenize(text: str, tokenizer: str = "words", *, fold_yo: bool = False) -> list[str]:
    """The tokens that the text metrics see: normalised to NFC, then split by the named tokenizer.

    Args:
        text: any text.
        tokenizer: `words`: lower-cased runs of letters, digits and underscores; `13a`: sacreBLEU's default, which keeps
            the case and makes punctuation tokens; `whitespace`: what stands between white space; `char`: every
            character but white space.
        fold_yo: read «ё» as «е».

    Returns:
        The tokens in order; none for a text in which the tokenizer finds nothing (punctuation only, for `words`).

    Raises:
        ValueError: there is no such tokenizer.

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
    r"""A word: `\w+`, and on through the combining marks inside and after it.

    Python's `\w` lacks the marks (UTS #18 has them): it cuts Thai and Devanagari at every vowel sign and drops it, so
    that two different words become equal. Composed Cyrillic and Latin text has no marks and gives what `\w+` gives. A
    mark that follows no word character (the variation selector of an emoji) starts no word.
    """
    marks = [sign for sign in map(chr, range(sys.maxunicode)) if unicodedata.category(sign).startswith("M")]
    first_rare = bisect_left(marks, "\U00010000")
    common, rare = _ranges(marks[:first_rare]), _ranges(marks[first_rare:])
    # Outside the first plane a set is searched range by range, so one look decides first whether it is worth it.
    return re.compile(rf"\w[\w{common}]*(?:(?=[\U00010000-\U0010ffff])(?:[{rare}][\w{common}]*)+)?")


def _ranges(ascending: Sequence[str]) -> str:
    """Characters as ranges for a regular expression."""
    runs: dict[int, list[str]] = {}
    for position, character in enumerate(ascending):
        runs.setdefault(ord(character) - position, []).append(character)  # the same all along a run of neighbours
    return "".join(f"{run[0]}-{run[-1]}" for run in runs.values())


def _words(texts: Sequence[str]) -> list[str]:
    whole = _BETWEEN.join([*texts, ""]).lower()
    points = _points(whole)
    seen = np.zeros(int(points.max(initial=0)) + 1, dtype=bool)
    seen[points] = True
    others = [point for point in np.flatnonzero(seen).tolist() if not (chr(point).isalnum() or chr(point) == "_")]
    if any(unicodedata.category(chr(point)).startswith("M") for point in others):
        return _words_pattern().findall(whole)  # END is a letter, as far as that is concerned
    # Without marks, words are what is left when all else is blank, which is faster.
    seen[:] = False
    seen[others] = True
    points[seen[points]] = ord(" ")
    return _text(points).split()


def _points(text: str) -> NDArray[np.uint32]:
    return np.frombuffer(bytearray(text.encode("utf-32-le", "surrogatepass")), dtype="<u4")


def _text(points: NDArray[np.uint32]) -> str:
    return points.tobytes().decode("utf-32-le", "surrogatepass")


# mteval-v13a as sacreBLEU has it: each of these signs is a token; so is a dash after a digit, and a point or a comma
# unless it stands between two digits.
_SIGNS = '!"#$%&()*+/:;<=>?@[\\]^_`{|}~'
_SIGN, _POINT, _DASH, _DIGIT = 1, 2, 3, 4
_KINDS = np.zeros(128, dtype=np.uint8)  # of ASCII characters; the last one stands for all others
for _kind, _characters in {_SIGN: _SIGNS, _POINT: ".,", _DASH: "-", _DIGIT: "0123456789"}.items():
    _KINDS[_points(_characters)] = _kind
# Its substitutions do not overlap, so that in a run of points and commas before a digit the place in the run decides.
# Such texts, and those in which something is replaced first, go through them one by one.
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
    points, kinds = _classify(whole := _BETWEEN.join([*texts, ""]))
    run_before_digit = (kinds[:-2] == _POINT) & (kinds[1:-1] == _POINT) & (kinds[2:] == _DIGIT)
    if _has_replacements(whole) or run_before_digit.any():
        texts = [_by_rules(text) if _needs_rules(text) else text for text in texts]
        points, kinds = _classify(_BETWEEN.join([*texts, ""]))
    # The last character is the space after an END: it has no kind, and so may also stand before the first.
    places = np.flatnonzero(kinds != 0)
    before, kind, after = kinds[places - 1], kinds[places], kinds[places + 1]
    in_number = (before == _DIGIT) & (after == _DIGIT)
    apart = (kind == _SIGN) | ((kind == _POINT) & ~in_number) | ((kind == _DASH) & (before == _DIGIT))
    spaced = np.insert(points, np.concatenate([places[apart], places[apart] + 1]), ord(" "))
    return _text(spaced).replace(_KEPT_POINT, ".").replace(_KEPT_COMMA, ",").split()


def _classify(text: str) -> tuple[NDArray[np.uint32], NDArray[np.uint8]]:
    points = _points(text)
    return points, _KINDS[np.minimum(points, len(_KINDS) - 1)]


def _needs_rules(text: str) -> bool:
    return _has_replacements(text) or _RUN_BEFORE_DIGIT.search(text) is not None


def _has_replacements(text: str) -> bool:
    return "<skipped>" in text or "-\n" in text or ("&" in text and _ENTITY.search(text) is not None)


def _by_rules(text: str) -> str:
    """The text with spaces between its tokens, and points and commas so that they stay where they are."""
    for old, new in _REPLACEMENTS.items():
        text = text.replace(old, new)
    text = f" {text} "
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return text.replace(".", _KEPT_POINT).replace(",", _KEPT_COMMA)


def _whitespace(texts: Sequence[str]) -> list[str]:
    return _BETWEEN.join([*texts, ""]).split()


def _chars(texts: Sequence[str]) -> list[str]:
    return list(END.join([*("".join(text.split()) for text in texts), ""]))


TOKENIZERS: dict[str, Tokenizer] = {"words": _words, "13a": _13a, "whitespace": _whitespace, "char": _chars}

_EDGES = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")


def chrf_words(texts: Iterable[Sequence[str]]) -> list[str]:
    """What chrF++ takes for words, each text's followed by END.

    Args:
        texts: for each text the parts between white space; one ASCII punctuation mark is parted from the end of each
            or, if there is none, from its start.

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
        tokens.append(END)
    return tokens
