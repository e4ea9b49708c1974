"""Typos, the other keyboard layout, letter case: pure functions of a question."""

import hashlib
import random
import re

from yarus.db.errors import InputError
from yarus.tasks.config.factors import Perturbation
from yarus.tasks.config.parameters import Parameters, Perturbable
from yarus.tasks.config.settings import settings

KEYS_RU = "йцукенгшщзхъ\\фывапролджэячсмитьбю.ё"
KEYS_EN = "qwertyuiop[]\\asdfghjkl;'zxcvbnm,./`"
SHIFTED_RU = "ЙЦУКЕНГШЩЗХЪ/ФЫВАПРОЛДЖЭЯЧСМИТЬБЮ,Ё№?"
SHIFTED_EN = 'QWERTYUIOP{}|ASDFGHJKL:"ZXCVBNM<>?~#&'
TO_LATIN = str.maketrans(KEYS_RU + SHIFTED_RU, KEYS_EN + SHIFTED_EN)
TO_CYRILLIC = str.maketrans(KEYS_EN + SHIFTED_EN, KEYS_RU + SHIFTED_RU)
"""What stands on the same key of a Russian and an American keyboard."""
ROWS = ("йцукенгшщзхъ", "фывапролджэ", "ячсмитьбю", "qwertyuiop", "asdfghjkl", "zxcvbnm")
NEIGHBOURS = {
    key: row[max(0, place - 1) : place] + row[place + 1 : place + 2] for row in ROWS for place, key in enumerate(row)
}


WORD = re.compile(r"[^\W\d_]{4,}")
WORDS_A_TYPO = 6


def perturbed(parameters: Parameters) -> str | None:
    """What the evaluation's record says of the changed questions; None where they are asked as they are.

    Raises:
        InputError: a paraphrase is asked for, and there is no language model.
    """
    kind = parameters.perturbation if isinstance(parameters, Perturbable) else None
    if kind is None:
        return None
    if kind == "paraphrase" and settings().generator.base_url is None:
        raise InputError("the perturbation 'paraphrase' needs a language model: set YARUS_GENERATOR__BASE_URL")
    return f"{kind}|seed:{parameters.seed}|v:1"


def change(question: str, kind: Perturbation, *, seed: int) -> str:
    """The question as another user could have typed it.

    Args:
        question: any text.
        kind: all but `paraphrase`, which takes a model.
        seed: of the typing errors; equal questions get equal ones.

    Raises:
        ValueError: a kind that is no pure function of the text.
    """
    if kind == "typos":
        return typos(question, seed=seed)
    if kind == "yo":
        return question.replace("ё", "е").replace("Ё", "Е").replace("е\u0308", "е").replace("Е\u0308", "Е")
    if kind == "lower":
        return question.lower()
    if kind == "layout":
        return wrong_layout(question)
    raise ValueError(f"{kind!r} is no change that can be computed")


def typos(text: str, *, seed: int) -> str:
    """The text with a typing error in every sixth word of four letters or more, at least in one.

    An error is two letters exchanged, one left out, one doubled, or the key beside; the first letter stays.
    """
    found = list(WORD.finditer(text))
    if not found:
        return text
    digest = hashlib.sha256(f"{seed}|{text}".encode("utf-8", "surrogatepass")).digest()
    generator = random.Random(int.from_bytes(digest[:8]))
    for match in sorted(generator.sample(found, -(-len(found) // WORDS_A_TYPO)), key=re.Match.start, reverse=True):
        text = text[: match.start()] + _mistyped(match[0], generator) + text[match.end() :]
    return text


def wrong_layout(text: str) -> str:
    """The text as it comes out when the other layout is on: «привет» becomes `ghbdtn`, and the other way round.

    The script of most letters decides what the typist thought was on.
    """
    cyrillic = len(re.findall("[а-яё]", text, re.IGNORECASE))
    latin = len(re.findall("[a-z]", text, re.IGNORECASE))
    return text.translate(TO_LATIN if cyrillic >= latin else TO_CYRILLIC)


def _mistyped(word: str, generator: random.Random) -> str:
    place = generator.randrange(1, len(word))
    letter, kind = word[place], generator.choice(("exchange", "omit", "double", "beside"))
    beside = NEIGHBOURS.get(letter.lower(), "")
    if kind == "beside" and beside:
        return word[:place] + generator.choice(beside) + word[place + 1 :]
    if kind == "exchange" and place + 1 < len(word) and word[place + 1] != letter:
        return word[:place] + word[place + 1] + letter + word[place + 2 :]
    if kind == "double":
        return word[:place] + letter + word[place:]
    return word[:place] + word[place + 1 :]
