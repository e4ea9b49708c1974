"""Messages to a bot that no page can answer, recognised by rules that must match the whole text.

The rules favour precision: a text with an unknown content word counts as a question. At most one in a hundred real
questions (XQuAD-ru, XQuAD-en, the sample's log) is misclassified.
"""

import re
import unicodedata
from typing import get_args

from yarus.tasks.dataset.corpus.corpus_schema import NonQuestionKind
from yarus.tasks.dataset.corpus.languages import COMMON, LINK, VOCABULARY, CorpusLanguages, is_foreign

KINDS: tuple[NonQuestionKind, ...] = get_args(NonQuestionKind)
COMMAND = re.compile(r"(?<!\S)/[a-z_]\w*(?:@\w+)?", re.IGNORECASE)
WORD = re.compile(r"[^\W_]+")
CHATTER_WORDS = VOCABULARY["chatter"]
BUTTONS, SOCIAL, FILLERS, TRIALS = (
    frozenset(CHATTER_WORDS[name].split()) for name in ("buttons", "social", "fillers", "trials")
)
EMPTY_WORDS = COMMON | frozenset(CHATTER_WORDS["empty"].split())
PHRASES = re.compile(rf"\b(?:{'|'.join(CHATTER_WORDS['phrases'])})\b")
ADVERTISING_WORDS = re.compile("|".join(CHATTER_WORDS["advertising"]))
"""Words of advertising; two of them, or one and a link, make a text spam."""
LAUGHTER = re.compile(r"(?:а?(?:ха|хи|хе|хо|ах|ех)+[хаие]*|(?:ha|he|hi|ah)+h?|л+о+л+|lo+l)")
SMILEY = re.compile(r"[:;=xх]-?[()dDpP]+\B")
KEYBOARD_ROWS = tuple(
    row + "  " + row[::-1]
    for row in ("qwertyuiop", "asdfghjkl", "zxcvbnm", "йцукенгшщзхъ", "фывапролджэ", "ячсмитьбю", "1234567890")
)
MIN_KEY_RUN = 4
"""Number of neighbouring keys that make a word keyboard noise."""
REPEATED = re.compile(r"(.)\1{2,}|(.{2})\2{2,}|(.{3,4})\3+")
LETTERS = re.compile("[a-zа-я]+")
CYRILLIC_VOWELS, LATIN_VOWELS = frozenset("аеиоуыэюя"), frozenset("aeiouy")
LAYOUT = dict(
    zip("qwertyuiop[]asdfghjkl;'zxcvbnm,.`", "йцукенгшщзхъфывапролджэячсмитьбюё", strict=True)
)  # fmt: skip
TO_CYRILLIC = str.maketrans(LAYOUT)
TO_LATIN = str.maketrans({cyrillic: latin for latin, cyrillic in LAYOUT.items()})
MIN_CONSONANTS = 6
"""Number of letters without a vowel, in either layout, that make a word keyboard noise."""


def non_question_kind(text: str, corpus_languages: CorpusLanguages) -> NonQuestionKind | None:
    """Return the kind of a text that no page of the corpus can answer, or None if it may be a question.

    Args:
        text: text as written.
        corpus_languages: languages of the corpus.

    Example:
        >>> from yarus.tasks.dataset.corpus.chatter import non_question_kind
        >>> from yarus.tasks.dataset.corpus.languages import detect_corpus_languages
        >>> russian = detect_corpus_languages(["Где взять справку и как её заказать?"])
        >>> texts = ("Привет!", "https://x.example", "asdfgh", "а как?", "профком")
        >>> [non_question_kind(text, russian) for text in texts]
        ['small_talk', 'link', 'noise', 'fragment', None]
    """
    normalized = unicodedata.normalize("NFC", text).casefold().replace("ё", "е")
    rest, links = LINK.subn(" ", normalized)
    rest, commands = COMMAND.subn(" ", rest)
    words = WORD.findall(rest)
    n_advertising_words = len(set(ADVERTISING_WORDS.findall(normalized)))
    if n_advertising_words >= 2 or (n_advertising_words and links):
        return "spam"
    if not words:
        return "link" if links else "command" if commands else "empty"
    if set(words) <= BUTTONS:
        return "command"
    if _is_small_talk(words):
        return "small_talk"
    if set(words) <= TRIALS | {word for word in words if word.isdigit()} and not all(map(str.isdigit, words)):
        return "noise"
    if all(map(is_gibberish, words)):
        return "noise"
    if all(len(word) == 1 or word.isdigit() or word in EMPTY_WORDS for word in words):
        return "fragment"
    return "other_language" if is_foreign(rest, corpus_languages) else None


def _is_small_talk(words: list[str]) -> bool:
    without_phrases, phrases = PHRASES.subn(" ", SMILEY.sub(" ", " ".join(words)))
    remaining = without_phrases.split()
    social = [word for word in remaining if word in SOCIAL or LAUGHTER.fullmatch(word)]
    return bool(phrases or social) and all(word in social or word in FILLERS for word in remaining)


def is_gibberish(word: str) -> bool:
    """Return whether a word is gibberish: repetitions, neighbouring keys, or no vowel in either layout.

    Example:
        >>> from yarus.tasks.dataset.corpus.chatter import is_gibberish
        >>> [word for word in ("аааа", "йцуке", "dfgdfg", "вплрдс", "gjlrk", "пгас", "lms") if is_gibberish(word)]
        ['аааа', 'йцуке', 'dfgdfg', 'вплрдс']
    """
    if REPEATED.fullmatch(word) or (
        len(word) >= MIN_KEY_RUN and not word.isdigit() and any(word in row for row in KEYBOARD_ROWS)
    ):
        return True
    letters = set(word)
    vowels = CYRILLIC_VOWELS | LATIN_VOWELS
    switched = set(word.translate(TO_CYRILLIC)) | set(word.translate(TO_LATIN))
    return len(word) >= MIN_CONSONANTS and bool(LETTERS.fullmatch(word)) and not (letters | switched) & vowels
