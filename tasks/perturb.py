"""The same question asked otherwise: typing errors, no «ё», lower case, wrong keyboard layout, other words.

Everything but the paraphrase is a pure function of the text and a seed. The system is asked the changed question;
labels, references and the judge keep to the question as it was meant.
"""

import hashlib
import random
import re
from pathlib import Path
from typing import Any

import pyarrow as pa

from db.errors import InputError
from tasks.cases import with_columns
from tasks.connect import database
from tasks.dataset.personal import mask, own_key
from tasks.models.calls import Call
from tasks.models.chat import chat
from tasks.parameters import Asking, Parameters, Perturbation
from tasks.prompts import Prompt, Shape
from tasks.run import Run
from tasks.settings import Language, settings

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
PARAPHRASE = Shape("generator", "text", ("question",), "question")


def perturbed(parameters: Parameters) -> dict[str, Any]:
    """What the evaluation's record says of the changed questions: nothing where they are asked as they are.

    Raises:
        InputError: a paraphrase is asked for, and there is no language model.
    """
    kind = parameters.perturbation if isinstance(parameters, Asking) else None
    if kind is None:
        return {}
    if kind == "paraphrase" and settings().generator.base_url is None:
        raise InputError("the perturbation 'paraphrase' needs a language model: set YARUS_GENERATOR__BASE_URL")
    return {"perturbation": f"{kind}|seed:{parameters.seed}|v:1"}


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


async def ask_otherwise(run: Run, cases: pa.Table) -> pa.Table:
    """Puts the changed question in the place of the question until `as_meant`, which undoes it.

    A question that the model could not paraphrase is `not_applicable`: it is nobody's failure, and no measurement.
    """
    if "perturbation" not in run.resolved:
        return cases
    questions, kind = cases["question"].to_pylist(), run.resolved["perturbation"].partition("|")[0]
    statuses, reasons = cases["status"].to_pylist(), cases["reason"].to_pylist()
    if kind == "paraphrase":
        asked = await _paraphrases(run, questions)
        for number, text in enumerate(asked):
            if text is None and statuses[number] == "ok":
                statuses[number], reasons[number] = "not_applicable", "the generator gave no paraphrase"
    else:
        # Pseudonyms come before the change, after which no name has a capital letter and no address its @.
        key = own_key() if settings().mask_calls else None
        plain = [question if key is None else mask(question, key, run.resolved["language"]) for question in questions]
        asked = [change(question, kind, seed=run.parameters.seed) for question in plain]
    shown = [question if text is None else text for question, text in zip(questions, asked, strict=True)]
    kept = [None if text is None else question for question, text in zip(questions, asked, strict=True)]
    return with_columns(cases, question=shown, asked=kept, status=statuses, reason=reasons)


def as_meant(run: Run, cases: pa.Table) -> pa.Table:
    """Puts the question back, for judging and scoring; what was asked is kept beside it."""
    if "perturbation" not in run.resolved:
        return cases
    asked, meant = cases["question"].to_pylist(), cases["asked"].to_pylist()
    rows = list(zip(asked, meant, cases["retrieved"].to_pylist(), strict=True))
    return with_columns(
        cases,
        question=[said if question is None else question for said, question, _ in rows],
        asked=[None if question is None else said for said, question, _ in rows],
        retrieved=[None if question is None else ranking for _, question, ranking in rows],
    )


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


async def _paraphrases(run: Run, questions: list[str]) -> list[str | None]:
    prompt = _prompt(run.resolved["language"])
    calls = [Call(prompt, {"question": question}) for question in questions]
    # By the settings' generator, whatever model the evaluation measures: all are asked the same questions.
    async with chat("generator", settings(), database(), evaluation=run.id) as model:
        replies = await model.complete(calls)
    return [reply.text.strip() or None if reply.status == "ok" else None for reply in replies]


def _prompt(language: Language) -> Prompt:
    folder = Path(__file__).parent / "prompts" / language
    return Prompt("paraphrase", PARAPHRASE, (folder / "paraphrase.txt").read_text(encoding="utf-8"), "")
