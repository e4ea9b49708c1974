"""The same question asked otherwise: typing errors, no «ё», lower case, wrong keyboard layout, other words.

Everything but the paraphrase is a pure function of the text and a seed. The system is asked the changed question;
labels, references and the judge keep to the question as it was meant.
"""

import pyarrow as pa

from yarus.db.words import Words
from yarus.tasks.cases.perturbations import change
from yarus.tasks.cases.table import with_columns
from yarus.tasks.config.connections import database
from yarus.tasks.config.parameters import Perturbable
from yarus.tasks.config.settings import settings
from yarus.tasks.evaluation.run import Run
from yarus.tasks.models.calls import Call
from yarus.tasks.models.chat import chat
from yarus.tasks.personal_data.masking import mask, own_key
from yarus.tasks.prompts import FOLDER, Prompt, Shape

PARAPHRASE = Shape("generator", "text", ("question",), "question")


async def perturb_questions(run: Run[Perturbable], cases: pa.Table) -> pa.Table:
    """Puts the changed question in the place of the question until `restore_questions`, which undoes it.

    A question that the model could not paraphrase is `not_applicable`: it is nobody's failure, and no measurement.
    """
    questions, kind = cases["question"].to_pylist(), run.parameters.perturbation
    if kind is None:
        return cases
    statuses, reasons = cases["status"].to_pylist(), cases["reason"].to_pylist()
    if kind == "paraphrase":
        asked = await _paraphrases(run, questions)
        for number, text in enumerate(asked):
            if text is None and statuses[number] == "ok":
                statuses[number], reasons[number] = "not_applicable", Words("the generator gave no paraphrase")
    else:
        # Pseudonyms come before the change, after which no name has a capital letter and no address its @.
        key = own_key() if settings().mask_calls else None
        plain = [question if key is None else mask(question, key, run.resolved["language"]) for question in questions]
        asked = [change(question, kind, seed=run.parameters.seed) for question in plain]
    shown = [question if text is None else text for question, text in zip(questions, asked, strict=True)]
    kept = [None if text is None else question for question, text in zip(questions, asked, strict=True)]
    return with_columns(cases, question=shown, asked=kept, status=statuses, reason=reasons)


def restore_questions(run: Run, cases: pa.Table) -> pa.Table:
    """Puts the question back, for judging and scoring; what was asked is kept beside it."""
    if "perturbation" not in run.resolved:
        return cases
    asked, meant = cases["question"].to_pylist(), cases["asked"].to_pylist()
    came = zip(cases["retrieved"].to_pylist(), cases["outcome"].to_pylist(), strict=True)
    rows = [(said, question, *of) for said, question, of in zip(asked, meant, came, strict=True)]
    return with_columns(
        cases,
        question=[said if question is None else question for said, question, *_ in rows],
        asked=[None if question is None else said for said, question, *_ in rows],
        retrieved=[None if question is None else ranking for _, question, ranking, _ in rows],
        outcome=[None if question is None else done for _, question, _, done in rows],
    )


async def _paraphrases(run: Run, questions: list[str]) -> list[str | None]:
    prompt = _prompt(run.resolved["language"])
    calls = [Call(prompt, {"question": question}) for question in questions]
    # By the settings' generator, whatever model the evaluation measures: all are asked the same questions.
    async with chat("generator", settings(), database(), evaluation=run.id) as model:
        replies = await model.complete(calls)
    return [reply.text.strip() or None if reply.status == "ok" else None for reply in replies]


def _prompt(language: str) -> Prompt:
    text = (FOLDER / language / "paraphrase.txt").read_text(encoding="utf-8")
    return Prompt("paraphrase", PARAPHRASE, text, "")
