"""What people write to a bot that no page could answer: recognised by rules, each of which needs the whole text.

Rules are for precision: a word of content that they do not know makes a text a question. Of real questions (XQuAD-ru,
XQuAD-en, the sample's log) at most one in a hundred is taken for something else.
"""

import re
import unicodedata
from typing import get_args

from yarus.tasks.dataset.corpus.corpus_schema import Kind
from yarus.tasks.dataset.corpus.languages import COMMON, LINK, VOCABULARY, Spoken, is_foreign

KINDS: tuple[Kind, ...] = get_args(Kind)
COMMAND = re.compile(r"(?<!\S)/[a-z_]\w*(?:@\w+)?", re.IGNORECASE)
WORD = re.compile(r"[^\W_]+")
GIVEN = VOCABULARY["chatter"]
BUTTONS, SOCIAL, FILLERS, TRIALS = (
    frozenset(GIVEN[name].split()) for name in ("buttons", "social", "fillers", "trials")
)
EMPTY_WORDS = COMMON | frozenset(GIVEN["empty"].split())
PHRASES = re.compile(rf"\b(?:{'|'.join(GIVEN['phrases'])})\b")
ADVERTISING = re.compile("|".join(GIVEN["advertising"]))
"""What advertising says; one such word is none, two are, or one beside a link."""
LAUGHTER = re.compile(r"(?:а?(?:ха|хи|хе|хо|ах|ех)+[хаие]*|(?:ha|he|hi|ah)+h?|л+о+л+|lo+l)")
SMILEY = re.compile(r"[:;=xх]-?[()dDpP]+\B")
ROWS = tuple(
    row + "  " + row[::-1]
    for row in ("qwertyuiop", "asdfghjkl", "zxcvbnm", "йцукенгшщзхъ", "фывапролджэ", "ячсмитьбю", "1234567890")
)
RUN = 4
"""Neighbouring keys that make a word keyboard noise."""
REPEATED = re.compile(r"(.)\1{2,}|(.{2})\2{2,}|(.{3,4})\3+")
LETTERS = re.compile("[a-zа-я]+")
CYRILLIC_VOWELS, LATIN_VOWELS = frozenset("аеиоуыэюя"), frozenset("aeiouy")
LAYOUT = dict(
    zip("qwertyuiop[]asdfghjkl;'zxcvbnm,.`", "йцукенгшщзхъфывапролджэячсмитьбюё", strict=True)
)  # fmt: skip
TO_CYRILLIC = str.maketrans(LAYOUT)
TO_LATIN = str.maketrans({theirs: ours for ours, theirs in LAYOUT.items()})
CONSONANTS = 6
"""Letters without a vowel, in either layout, that make a word keyboard noise."""


def chatter(text: str, of: Spoken) -> Kind | None:
    """What a text is, if it is no question that a page of the corpus could answer; None: it may be one.

    Args:
        text: as somebody wrote it.
        of: what the corpus is written in.

    Example:
        >>> from yarus.tasks.dataset.corpus.chatter import chatter
        >>> from yarus.tasks.dataset.corpus.languages import spoken
        >>> russian = spoken(["Где взять справку и как её заказать?"])
        >>> [chatter(text, russian) for text in ("Привет!", "https://x.example", "asdfgh", "а как?", "профком")]
        ['small_talk', 'link', 'noise', 'fragment', None]
    """
    plain = unicodedata.normalize("NFC", text).casefold().replace("ё", "е")
    rest, links = LINK.subn(" ", plain)
    rest, commands = COMMAND.subn(" ", rest)
    words = WORD.findall(rest)
    told = len(set(ADVERTISING.findall(plain)))
    if told >= 2 or (told and links):
        return "spam"
    if not words:
        return "link" if links else "command" if commands else "empty"
    if set(words) <= BUTTONS:
        return "command"
    if _is_small_talk(words):
        return "small_talk"
    if set(words) <= TRIALS | {word for word in words if word.isdigit()} and not all(map(str.isdigit, words)):
        return "noise"
    if all(map(is_noise, words)):
        return "noise"
    if all(len(word) == 1 or word.isdigit() or word in EMPTY_WORDS for word in words):
        return "fragment"
    return "other_language" if is_foreign(rest, of) else None


def _is_small_talk(words: list[str]) -> bool:
    said, phrases = PHRASES.subn(" ", SMILEY.sub(" ", " ".join(words)))
    left = said.split()
    social = [word for word in left if word in SOCIAL or LAUGHTER.fullmatch(word)]
    return bool(phrases or social) and all(word in social or word in FILLERS for word in left)


def is_noise(word: str) -> bool:
    """Whether a word is none: one letter or syllable again and again, neighbouring keys, or no vowel in either layout.

    Example:
        >>> from yarus.tasks.dataset.corpus.chatter import is_noise
        >>> [word for word in ("аааа", "йцуке", "dfgdfg", "вплрдс", "gjlrk", "пгас", "lms") if is_noise(word)]
        ['аааа', 'йцуке', 'dfgdfg', 'вплрдс']
    """
    if REPEATED.fullmatch(word) or (len(word) >= RUN and not word.isdigit() and any(word in row for row in ROWS)):
        return True
    letters = set(word)
    vowels = CYRILLIC_VOWELS | LATIN_VOWELS
    switched = set(word.translate(TO_CYRILLIC)) | set(word.translate(TO_LATIN))
    return len(word) >= CONSONANTS and bool(LETTERS.fullmatch(word)) and not (letters | switched) & vowels
