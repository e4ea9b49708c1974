"""Questions on their way: the generator writes them, checks and the judge sort them, round by round."""

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from yarus.db.source_rows import Corpus, Row
from yarus.tasks.cases.privacy.masking import mask, own_key
from yarus.tasks.cases.text import fit
from yarus.tasks.config.settings import Settings
from yarus.tasks.dataset.synthesis.checks import Known, Plan, copied, wrong_language
from yarus.tasks.dataset.synthesis.generator import Pair, invent, prompts_of
from yarus.tasks.models.calls import Call, Model, Reply
from yarus.tasks.models.prompts import Prompt
from yarus.tasks.models.verdicts import Score, ask_for_score, value_of

log = logging.getLogger("yarus")
ENOUGH = 0.5
"""A judge's score above it says that the context answers the question, below it that it does not."""
CONTEXT_TOKENS = 3_000
"""A longer chunk is cut to so many, of about three characters."""
ROUND = 500
"""Questions asked for at once: a large order keeps no more in memory, and says how far it is."""
NEAREST = 3
"""Chunks in which the answer to an unanswerable question is looked for, beside its own."""


@dataclass(frozen=True)
class Material:
    """What questions are made from."""

    source: str
    language: str
    questions: list[Row]
    corpus: Corpus
    taken: list[str]
    """Questions that the receiving source has already and that a new one may not repeat."""


@dataclass
class Made:
    """What came of it: accepted pairs with their plans, and why others were rejected."""

    accepted: list[tuple[Plan, Pair]] = field(default_factory=list)
    rejected: Counter[str] = field(default_factory=Counter)
    replies: list[Reply] = field(default_factory=list)
    generator: str = ""
    judge: str = ""


class Makers:
    """The models with their prompts, and what they are asked about."""

    def __init__(self, configuration: Settings, material: Material, generator: Model, judge: Model) -> None:
        self.generator, self.judge, self.material = generator, judge, material
        self.prompts: dict[str, Prompt] = prompts_of(configuration)
        self.key = own_key()

    def passages(self, plan: Plan) -> list[str]:
        """The texts of a plan, cut to what a model takes."""
        texts = (self.material.corpus.texts[place] for place in plan.chunks)
        return [fit([text], CONTEXT_TOKENS // len(plan.chunks))[0] for text in texts]

    def nearest(self, question: str) -> list[str]:
        """The chunks most like a question."""
        vectors, matrix = self._vectors
        likeness = (matrix @ vectors.transform([question]).T).toarray().ravel()
        return [fit([self.material.corpus.texts[place]], CONTEXT_TOKENS)[0] for place in likeness.argsort()[-NEAREST:]]

    @cached_property
    def _vectors(self) -> tuple[Any, Any]:
        """The vectorizer and the vectors of all chunks; only unanswerable questions need them, and scikit-learn."""
        from sklearn.feature_extraction.text import TfidfVectorizer

        vectors = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 4), sublinear_tf=True, dtype=np.float32)
        return vectors, vectors.fit_transform(self.material.corpus.texts)


async def rounds(makers: Makers, waiting: Sequence[Plan], wanted: int, known: Known, made: Made) -> None:
    """Asks for as many questions as are missing, until none is, no plan is left, or the money is spent."""
    missing, place = wanted, 0
    while missing and place < len(waiting) and not made.rejected["budget"]:
        some = waiting[place : place + min(missing, ROUND)]
        place += len(some)
        pairs = await asyncio.gather(*(_invented(makers, plan) for plan in some))
        fresh: list[tuple[Plan, Pair]] = []
        for plan, pair in zip(some, pairs, strict=True):
            made.replies += pair.replies
            problem = pair.problem or _text_problem(makers, plan, pair, known)
            if problem:
                made.rejected[problem] += 1
            else:
                known.add(pair.question)
                fresh.append((plan, pair))
        problems = await asyncio.gather(*(_judged_problem(makers, plan, pair, made) for plan, pair in fresh))
        made.rejected.update(problem for problem in problems if problem)
        good = [one for one, problem in zip(fresh, problems, strict=True) if not problem]
        made.accepted += good
        missing -= len(good)
        log.info("%s: %d questions, %d to go", some[0].kind, len(made.accepted), missing)


async def _invented(makers: Makers, plan: Plan) -> Pair:
    language = makers.material.language
    examples = [mask(text, makers.key, language) for text in plan.examples]
    return await invent(makers.generator, makers.prompts[plan.kind], makers.passages(plan), examples, plan.repeat)


def _text_problem(makers: Makers, plan: Plan, pair: Pair, known: Known) -> str:
    texts = (pair.question,) if plan.kind == "unanswerable" else (pair.question, pair.answer)
    if any(wrong_language(text, makers.material.language) for text in texts if any(map(str.isalpha, text))):
        return "wrong_language"
    if copied(pair.question, "\n".join(makers.passages(plan))):
        return "copy"
    return "duplicate" if known.has(pair.question) else ""


async def _judged_problem(makers: Makers, plan: Plan, pair: Pair, made: Made) -> str:
    """What the judge finds wrong with a pair: each passage and claim is judged on its own."""
    passages = makers.passages(plan)
    whole = "\n\n".join(passages)

    async def answers(context: str) -> float | None:
        call = Call(makers.prompts["answerability"], {"question": pair.question, "context": context})
        return _value(await ask_for_score(makers.judge, call), made)

    if plan.kind == "unanswerable":
        scores = await asyncio.gather(*map(answers, (whole, *makers.nearest(pair.question))))
        return _first(("judge_error", None in scores), ("answerable", any((s or 0) >= ENOUGH for s in scores)))
    texts = {"question": pair.question, "answer": pair.answer, "context": whole}
    faithful = _value(await ask_for_score(makers.judge, Call(makers.prompts["faithfulness"], texts)), made)
    score, *alone = await asyncio.gather(*map(answers, (whole, *(passages if plan.kind == "multi" else ()))))
    return _first(
        ("judge_error", None in (faithful, score, *alone)),
        ("not_answerable", (score or 0) <= ENOUGH),
        ("unfaithful", (faithful or 0) <= ENOUGH),
        ("one_chunk_is_enough", any((one or 0) > ENOUGH for one in alone)),
    )


def _value(verdict: Score, made: Made) -> float | None:
    made.replies += verdict.replies
    if verdict.status == "skipped_budget":
        made.rejected["budget"] += 1
    return value_of(verdict)


def _first(*problems: tuple[str, bool]) -> str:
    return next((name for name, there in problems if there), "")
