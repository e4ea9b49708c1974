"""How a text becomes tokens. This decides what BLEU, ROUGE and WER give, so it stands in their signatures."""

import difflib
import functools
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from itertools import chain

Tokenizer = Callable[[str], list[str]]


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
    """The function that splits one text under this name.

    Args:
        name: `words`, `13a`, `whitespace` or `char`.

    Returns:
        A function from a text (already normalised) to its tokens, in order.

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
    return get_tokenizer(tokenizer)(normalise([text], fold_yo=fold_yo)[0])


# All blocks that hold combining marks: up to the musical symbols and beyond, and the variation selectors of plane 14.
_MARK_BLOCKS = (range(0x300, 0x1F000), range(0xE0100, 0xE01F0))


@functools.cache
def _words_pattern() -> re.Pattern[str]:
    r"""A word: `\w+`, and on through the combining marks inside and after it.

    Python's `\w` lacks the marks (UTS #18 has them): it cuts Thai and Devanagari at every vowel sign and drops it,
    so that two different words become equal. Composed Cyrillic and Latin text has no marks and gives what `\w+` gives.
    A mark that follows no word character (the variation selector of an emoji) starts no word.
    """
    marks = [point for point in chain(*_MARK_BLOCKS) if unicodedata.category(chr(point)).startswith("M")]
    # One range a run of neighbours: point - position is the same all along a run.
    runs: dict[int, list[int]] = {}
    for position, point in enumerate(marks):
        runs.setdefault(point - position, []).append(point)
    ranges = "".join(f"{chr(run[0])}-{chr(run[-1])}" for run in runs.values())
    return re.compile(rf"\w+(?:[{ranges}]+\w*)*")


def _words(text: str) -> list[str]:
    return _words_pattern().findall(text.lower())


# mteval-v13a as sacreBLEU has it: each ASCII sign but ' , - . stands alone; so do a dash after a digit, and a . or ,
# that is not inside a number.
_SIGNS = r"!-&(-+/:-@\[-`{-~"
_13A = re.compile(rf"(?:[^\s{_SIGNS}.,-]+|(?<=[0-9])[.,](?=[0-9])|(?<![0-9])-)+|[{_SIGNS}.,-]")
# What the expression above cannot say: mteval's substitutions do not overlap, so that in a run of . and , before a
# digit the place in the run decides.
_13A_RUN = re.compile(r"[.,][.,][0-9]")
_13A_RULES = (
    (re.compile(rf"([ {_SIGNS}])"), r" \1 "),
    (re.compile(r"([^0-9])([.,])"), r"\1 \2 "),
    (re.compile(r"([.,])([^0-9])"), r" \1 \2"),
    (re.compile(r"([0-9])(-)"), r"\1 \2 "),
)
_13A_REPLACEMENTS = (
    ("<skipped>", ""),
    ("-\n", ""),
    ("\n", " "),
    ("&quot;", '"'),
    ("&amp;", "&"),
    ("&lt;", "<"),
    ("&gt;", ">"),
)


def _13a(text: str) -> list[str]:
    text = (
        text.rstrip()
    )  # sacreBLEU's BLEU does, before it tokenizes; it matters for a text that ends in a dash and a newline
    if "&" in text or "-\n" in text or "<skipped>" in text or _13A_RUN.search(text):
        return _13a_by_rules(text)
    return _13A.findall(text)


def _13a_by_rules(text: str) -> list[str]:
    """The same, substitution by substitution: for the rare texts that need it."""
    for old, new in _13A_REPLACEMENTS:
        text = text.replace(old, new)
    text = f" {text} "
    for pattern, replacement in _13A_RULES:
        text = pattern.sub(replacement, text)
    return text.split()


def _chars(text: str) -> list[str]:
    return list("".join(text.split()))


TOKENIZERS: dict[str, Tokenizer] = {"words": _words, "13a": _13a, "whitespace": str.split, "char": _chars}

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
