"""How a text becomes tokens. This decides what BLEU, ROUGE and WER give, so it stands in their signatures."""

import functools
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence

from metrics.checks import check_one_of

Tokenizer = Callable[[Sequence[str]], list[str]]

# Text in normal form C has none of these three characters, which are composed to others: free to mark places with.
END, _KEPT_POINT, _KEPT_COMMA = "\u0374", "\u037e", "\u0387"
_BETWEEN = f" {END} "


def normalise(texts: Iterable[str], *, fold_yo: bool = False) -> list[str]:
    """Texts in Unicode normal form C, so that «й» is one letter however typed; with `fold_yo` also «ё» as «е»."""
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
    """
    return get_tokenizer(tokenizer)(normalise([text], fold_yo=fold_yo))[:-1]


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


def _words(texts: Sequence[str]) -> list[str]:
    return _words_pattern().findall(_BETWEEN.join([*texts, ""]).lower())  # END is a letter to a regular expression


# mteval-v13a as sacreBLEU has it: each of these signs is a token; so is a dash after a digit, and a point or a comma
# unless it stands between two digits.
_SIGNS = '!"#$%&()*+/:;<=>?@[\\]^_`{|}~'
_IN_NUMBER = re.compile(r"[0-9](?:-|[.,](?=[0-9]))")
# Its substitutions do not overlap, so that in a run of points and commas before a digit the place in the run decides.
# Such texts, and those in which something is replaced first, go through them one by one.
_RUNS = ("..", ".,", ",.", ",,")
_RUN_BEFORE_DIGIT = re.compile(r"[.,][.,][0-9]")
_REPLACEMENTS = {"<skipped>": "", "-\n": "", "\n": " ", "&quot;": '"', "&amp;": "&", "&lt;": "<", "&gt;": ">"}
_BY_RULES = ("&", "-\n", "<skipped>", *_RUNS)
_RULES = (
    (re.compile(rf"([ {re.escape(_SIGNS)}])"), r" \1 "),
    (re.compile(r"([^0-9])([.,])"), r"\1 \2 "),
    (re.compile(r"([.,])([^0-9])"), r" \1 \2"),
    (re.compile(r"([0-9])(-)"), r"\1 \2 "),
)


def _13a(texts: Sequence[str]) -> list[str]:
    texts = [text.rstrip() for text in texts]  # as sacreBLEU's BLEU does first: a last dash and newline depend on it
    whole = _BETWEEN.join([*texts, ""])
    signs = [sign for sign in _SIGNS if sign in whole]
    if marks := [mark for mark in _BY_RULES if mark in whole]:
        texts = [_by_rules(text) if _needs_rules(text, marks) else text for text in texts]
    whole = _BETWEEN.join([*(_space(text, signs) for text in texts), ""])
    whole = _IN_NUMBER.sub(_keep, whole).replace(".", " . ").replace(",", " , ")
    return whole.replace(_KEPT_POINT, ".").replace(_KEPT_COMMA, ",").split()


def _space(text: str, signs: Sequence[str]) -> str:
    for sign in signs:
        if sign in text:
            text = text.replace(sign, f" {sign} ")
    return text


def _keep(match: re.Match[str]) -> str:
    digit, sign = match[0][0], match[0][1]
    return digit + {".": _KEPT_POINT, ",": _KEPT_COMMA}.get(sign, " - ")


def _needs_rules(text: str, marks: Sequence[str]) -> bool:
    found = [mark for mark in marks if mark in text]
    return bool(found) and (found[0] not in _RUNS or bool(_RUN_BEFORE_DIGIT.search(text)))


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
