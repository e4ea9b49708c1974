"""Perturb questions by typos, the wrong keyboard layout, or letter case: pure functions of a question."""

import hashlib
import random
import re

from yarus.db.errors import InputError
from yarus.tasks.config.factors import Perturbation
from yarus.tasks.config.parameters import Parameters, PerturbationParameters
from yarus.tasks.config.settings import get_settings

KEYS_RU = "йцукенгшщзхъ\\фывапролджэячсмитьбю.ё"
KEYS_EN = "qwertyuiop[]\\asdfghjkl;'zxcvbnm,./`"
SHIFTED_KEYS_RU = "ЙЦУКЕНГШЩЗХЪ/ФЫВАПРОЛДЖЭЯЧСМИТЬБЮ,Ё№?"
SHIFTED_KEYS_EN = 'QWERTYUIOP{}|ASDFGHJKL:"ZXCVBNM<>?~#&'
TO_LATIN = str.maketrans(KEYS_RU + SHIFTED_KEYS_RU, KEYS_EN + SHIFTED_KEYS_EN)
TO_CYRILLIC = str.maketrans(KEYS_EN + SHIFTED_KEYS_EN, KEYS_RU + SHIFTED_KEYS_RU)
"""Characters on the same key of a Russian and an American keyboard."""
KEYBOARD_ROWS = ("йцукенгшщзхъ", "фывапролджэ", "ячсмитьбю", "qwertyuiop", "asdfghjkl", "zxcvbnm")
NEIGHBOURS = {
    key: row[max(0, index - 1) : index] + row[index + 1 : index + 2]
    for row in KEYBOARD_ROWS
    for index, key in enumerate(row)
}


LONG_WORD = re.compile(r"[^\W\d_]{4,}")
WORDS_PER_TYPO = 6


def perturbation_signature(parameters: Parameters) -> str | None:
    """Return how an evaluation's record names its perturbation; None without one.

    Raises:
        InputError: the perturbation is a paraphrase, and no language model is configured.
    """
    kind = parameters.perturbation if isinstance(parameters, PerturbationParameters) else None
    if kind is None:
        return None
    if kind == "paraphrase" and get_settings().generator.base_url is None:
        raise InputError("the perturbation 'paraphrase' needs a language model: set YARUS_GENERATOR__BASE_URL")
    return f"{kind}|seed:{parameters.seed}|v:1"


def perturb_question(question: str, kind: Perturbation, *, seed: int) -> str:
    """Return the question as another user could have typed it.

    Args:
        question: the question.
        kind: any perturbation but `paraphrase`, which needs a model.
        seed: seed of the typing errors; equal questions get equal ones.

    Raises:
        ValueError: the perturbation cannot be computed from the text.
    """
    if kind == "typos":
        return add_typos(question, seed=seed)
    if kind == "yo":
        return question.replace("ё", "е").replace("Ё", "Е").replace("е\u0308", "е").replace("Е\u0308", "Е")
    if kind == "lower":
        return question.lower()
    if kind == "layout":
        return swap_layout(question)
    raise ValueError(f"{kind!r} is no change that can be computed")


def add_typos(text: str, *, seed: int) -> str:
    """Add a typing error to every sixth word of four letters or more, and to at least one.

    An error swaps two letters, omits or doubles one, or hits a neighbouring key; the first letter stays.
    """
    words = list(LONG_WORD.finditer(text))
    if not words:
        return text
    digest = hashlib.sha256(f"{seed}|{text}".encode("utf-8", "surrogatepass")).digest()
    generator = random.Random(int.from_bytes(digest[:8]))
    for match in sorted(generator.sample(words, -(-len(words) // WORDS_PER_TYPO)), key=re.Match.start, reverse=True):
        text = text[: match.start()] + _add_typo(match[0], generator) + text[match.end() :]
    return text


def swap_layout(text: str) -> str:
    """Return the text typed with the other keyboard layout: «привет» becomes `ghbdtn`, and vice versa.

    The script of most letters decides which layout the typist intended.
    """
    cyrillic = len(re.findall("[а-яё]", text, re.IGNORECASE))
    latin = len(re.findall("[a-z]", text, re.IGNORECASE))
    return text.translate(TO_LATIN if cyrillic >= latin else TO_CYRILLIC)


def _add_typo(word: str, generator: random.Random) -> str:
    index = generator.randrange(1, len(word))
    letter, kind = word[index], generator.choice(("exchange", "omit", "double", "beside"))
    neighbours = NEIGHBOURS.get(letter.lower(), "")
    if kind == "beside" and neighbours:
        return word[:index] + generator.choice(neighbours) + word[index + 1 :]
    if kind == "exchange" and index + 1 < len(word) and word[index + 1] != letter:
        return word[:index] + word[index + 1] + letter + word[index + 2 :]
    if kind == "double":
        return word[:index] + letter + word[index:]
    return word[:index] + word[index + 1 :]
