"""How a text becomes tokens. This decides what BLEU, ROUGE and WER give, so it stands in their signatures."""

import difflib
import functools
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from itertools import chain

Tokenizer = Callable[[Sequence[str]], list[list[str]]]


def normalise(texts: Iterable[str], *, fold_yo: bool = False) -> list[str]:
    """Texts in Unicode normal form C, so that «й» is one letter however typed; with `fold_yo` also «ё» as «е»."""
    composed = [unicodedata.normalize("NFC", text) for text in texts]
    return [text.replace("ё", "е").replace("Ё", "Е") for text in composed] if fold_yo else composed


def nearest(value: object, allowed: Iterable[str]) -> str:
    """The end of an error message: what is allowed, and which of it was probably meant."""
    names = list(allowed)
    close = difflib.get_close_matches(str(value), names, n=1, cutoff=0.3)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    return f"allowed are {', '.join(map(repr, names))}{hint}"


def get_tokenizer(name: str) -> Tokenizer:
    """The function that splits texts under this name.

    Args:
        name: `words`, `13a`, `whitespace` or `char`.

    Returns:
        A function from texts (already normalised) to the tokens of each, in order.

    Raises:
        ValueError: there is no such tokenizer; names the nearest one.
    """
    if name not in TOKENIZERS:
        raise ValueError(f"no tokenizer {name!r}; {nearest(name, TOKENIZERS)}")
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
    """
    return get_tokenizer(tokenizer)(normalise([text], fold_yo=fold_yo))[0]


@functools.cache
def _words_pattern() -> re.Pattern[str]:
    r"""A word: `\w+`, and on through the combining marks inside and after it.

    Python's `\w` lacks the marks (UTS #18 has them): it cuts Thai and Devanagari at every vowel sign and drops it, so
    that two different words become equal. Composed Cyrillic and Latin text has no marks and gives what `\w+` gives. A
    mark that follows no word character (the variation selector of an emoji) starts no word.
    """
    common, rare = _marks(0x300, 0x10000), _marks(0x10000, 0xE01F0)
    # Outside the first plane a set is searched range by range, so one look decides first whether it is worth it.
    return re.compile(rf"\w[\w{common}]*(?:(?=[\U00010000-\U0010ffff])(?:[{rare}][\w{common}]*)+)?")


def _marks(start: int, stop: int) -> str:
    """The combining marks among these code points, as ranges for a regular expression."""
    marks = [point for point in range(start, stop) if unicodedata.category(chr(point)).startswith("M")]
    runs: dict[int, list[int]] = {}
    for position, point in enumerate(marks):
        runs.setdefault(point - position, []).append(point)  # the same all along a run of neighbours
    return "".join(f"{chr(run[0])}-{chr(run[-1])}" for run in runs.values())


def _words(texts: Sequence[str]) -> list[list[str]]:
    find = _words_pattern().findall
    return [find(text.lower()) for text in texts]


def _whitespace(texts: Sequence[str]) -> list[list[str]]:
    return [text.split() for text in texts]


# mteval-v13a as sacreBLEU has it: each of these signs is a token; so is a dash after a digit, and a point or a comma
# unless it stands between two digits.
_SIGNS = '!"#$%&()*+/:;<=>?@[\\]^_`{|}~'
_IN_NUMBER = re.compile(r"[0-9](?:-|[.,](?=[0-9]))")
_KEPT = {".": "\x00", ",": "\x01"}
# The substitutions of mteval do not overlap, so that in a run of points and commas before a digit the place in the run
# decides. Such texts, and those in which something is replaced first, go through them one by one.
_RUN = re.compile(r"[.,][.,][0-9]")
_REPLACEMENTS = {"<skipped>": "", "-\n": "", "\n": " ", "&quot;": '"', "&amp;": "&", "&lt;": "<", "&gt;": ">"}
_RULES = (
    (re.compile(rf"([ {re.escape(_SIGNS)}])"), r" \1 "),
    (re.compile(r"([^0-9])([.,])"), r"\1 \2 "),
    (re.compile(r"([.,])([^0-9])"), r" \1 \2"),
    (re.compile(r"([0-9])(-)"), r"\1 \2 "),
)


def _13a(texts: Sequence[str]) -> list[list[str]]:
    return [
        _13a_one(text.rstrip()) for text in texts
    ]  # stripped as sacreBLEU's BLEU does, before a last dash and newline


def _13a_one(text: str) -> list[str]:
    if _needs_rules(text):
        return _13a_by_rules(text)
    for sign in _SIGNS:
        if sign in text:
            text = text.replace(sign, f" {sign} ")
    text = _IN_NUMBER.sub(_keep, text).replace(".", " . ").replace(",", " , ")
    return text.replace("\x00", ".").replace("\x01", ",").split()


def _keep(match: re.Match[str]) -> str:
    found = match[0]
    return found[0] + _KEPT.get(found[1], " - ")


def _needs_rules(text: str) -> bool:
    if "&" in text or "-\n" in text or "<skipped>" in text or "\x00" in text or "\x01" in text:
        return True
    return (".." in text or ",," in text or ".," in text or ",." in text) and bool(_RUN.search(text))


def _13a_by_rules(text: str) -> list[str]:
    for old, new in _REPLACEMENTS.items():
        text = text.replace(old, new)
    text = f" {text} "
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return text.split()


def _chars(texts: Sequence[str]) -> list[list[str]]:
    return [list("".join(text.split())) for text in texts]


TOKENIZERS: dict[str, Tokenizer] = {"words": _words, "13a": _13a, "whitespace": _whitespace, "char": _chars}

_EDGES = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")


def chrf_words(words: Sequence[str]) -> list[str]:
    """Words as chrF++ has them: one ASCII punctuation mark parted from a word's end or, if none is there, its start."""
    return list(chain.from_iterable(map(_part_edge, words)))


def _part_edge(word: str) -> tuple[str, ...]:
    if len(word) == 1:
        return (word,)
    if word[-1] in _EDGES:
        return (word[:-1], word[-1])
    return (word[0], word[1:]) if word[0] in _EDGES else (word,)
