"""Synthesis rounds: the generator writes questions, the checks and the judge filter them."""

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from yarus.db.source_rows import Corpus, QuestionRow
from yarus.tasks.cases.privacy.masking import load_own_key, mask
from yarus.tasks.cases.text import join_within_limit
from yarus.tasks.config.settings import Settings
from yarus.tasks.dataset.synthesis.checks import KnownQuestions, SynthesisPlan, is_copied, is_wrong_language
from yarus.tasks.dataset.synthesis.generator import QAPair, generate_pair, load_synthesis_prompts
from yarus.tasks.models.calls import Call, Model, Reply
from yarus.tasks.models.prompts import Prompt
from yarus.tasks.models.verdicts import Score, ask_for_score, get_value

log = logging.getLogger("yarus")
MIN_SUPPORT = 0.5
"""Judge's score above which the context answers the question, and below which it does not."""
CONTEXT_TOKENS = 3_000
"""Token limit of a chunk, with about three characters per token."""
ROUND_SIZE = 500
"""Maximum number of questions per round; it limits memory and sets the interval of progress messages."""
N_NEAREST = 3
"""Number of other chunks in which the answer to an unanswerable question is searched for."""


@dataclass(frozen=True)
class SynthesisInput:
    """Input of a synthesis."""

    source: str
    language: str
    questions: list[QuestionRow]
    corpus: Corpus
    taken: list[str]
    """Questions of the receiving source that new ones must not repeat."""


@dataclass
class SynthesisOutcome:
    """Outcome of a synthesis: accepted pairs with their plans, and counts of rejections."""

    accepted: list[tuple[SynthesisPlan, QAPair]] = field(default_factory=list)
    rejected: Counter[str] = field(default_factory=Counter)
    replies: list[Reply] = field(default_factory=list)
    generator: str = ""
    judge: str = ""


class SynthesisModels:
    """Models with their prompts, and the input of the synthesis."""

    def __init__(self, configuration: Settings, material: SynthesisInput, generator: Model, judge: Model) -> None:
        self.generator, self.judge, self.material = generator, judge, material
        self.prompts: dict[str, Prompt] = load_synthesis_prompts(configuration)
        self.key = load_own_key()

    def passages(self, plan: SynthesisPlan) -> list[str]:
        """Return the texts of a plan, cut to the token limit."""
        texts = (self.material.corpus.texts[position] for position in plan.chunks)
        return [join_within_limit([text], CONTEXT_TOKENS // len(plan.chunks))[0] for text in texts]

    def nearest(self, question: str) -> list[str]:
        """Return the chunks most similar to a question."""
        vectors, matrix = self._vectors
        likeness = (matrix @ vectors.transform([question]).T).toarray().ravel()
        return [
            join_within_limit([self.material.corpus.texts[position]], CONTEXT_TOKENS)[0]
            for position in likeness.argsort()[-N_NEAREST:]
        ]

    @cached_property
    def _vectors(self) -> tuple[Any, Any]:
        """Return the vectorizer and the vectors of all chunks; only unanswerable questions need scikit-learn."""
        from sklearn.feature_extraction.text import TfidfVectorizer

        vectors = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 4), sublinear_tf=True, dtype=np.float32)
        return vectors, vectors.fit_transform(self.material.corpus.texts)


async def run_rounds(
    models: SynthesisModels,
    plans: Sequence[SynthesisPlan],
    n_wanted: int,
    known_questions: KnownQuestions,
    outcome: SynthesisOutcome,
) -> None:
    """Generate the missing questions until there are enough, or plans or budget are exhausted."""
    n_missing, position = n_wanted, 0
    while n_missing and position < len(plans) and not outcome.rejected["budget"]:
        batch = plans[position : position + min(n_missing, ROUND_SIZE)]
        position += len(batch)
        pairs = await asyncio.gather(*(_generate(models, plan) for plan in batch))
        checked: list[tuple[SynthesisPlan, QAPair]] = []
        for plan, pair in zip(batch, pairs, strict=True):
            outcome.replies += pair.replies
            problem = pair.problem or _text_problem(models, plan, pair, known_questions)
            if problem:
                outcome.rejected[problem] += 1
            else:
                known_questions.add(pair.question)
                checked.append((plan, pair))
        problems = await asyncio.gather(*(_find_judged_problem(models, plan, pair, outcome) for plan, pair in checked))
        outcome.rejected.update(problem for problem in problems if problem)
        accepted = [checked_pair for checked_pair, problem in zip(checked, problems, strict=True) if not problem]
        outcome.accepted += accepted
        n_missing -= len(accepted)
        log.info("%s: %d questions, %d to go", batch[0].kind, len(outcome.accepted), n_missing)


async def _generate(models: SynthesisModels, plan: SynthesisPlan) -> QAPair:
    language = models.material.language
    examples = [mask(text, models.key, language) for text in plan.examples]
    return await generate_pair(
        models.generator, models.prompts[plan.kind], models.passages(plan), examples, plan.repeat
    )


def _text_problem(models: SynthesisModels, plan: SynthesisPlan, pair: QAPair, known_questions: KnownQuestions) -> str:
    texts = (pair.question,) if plan.kind == "unanswerable" else (pair.question, pair.answer)
    if any(is_wrong_language(text, models.material.language) for text in texts if any(map(str.isalpha, text))):
        return "wrong_language"
    if is_copied(pair.question, "\n".join(models.passages(plan))):
        return "copy"
    return "duplicate" if known_questions.has(pair.question) else ""


async def _find_judged_problem(
    models: SynthesisModels, plan: SynthesisPlan, pair: QAPair, outcome: SynthesisOutcome
) -> str:
    """Return the problem that the judge finds with a pair; each passage and claim is judged separately."""
    passages = models.passages(plan)
    whole = "\n\n".join(passages)

    async def score_context(context: str) -> float | None:
        call = Call(models.prompts["answerability"], {"question": pair.question, "context": context})
        return _record_score(await ask_for_score(models.judge, call), outcome)

    if plan.kind == "unanswerable":
        scores = await asyncio.gather(*map(score_context, (whole, *models.nearest(pair.question))))
        return _first_problem(
            ("judge_error", None in scores), ("answerable", any((value or 0) >= MIN_SUPPORT for value in scores))
        )
    texts = {"question": pair.question, "answer": pair.answer, "context": whole}
    support = _record_score(await ask_for_score(models.judge, Call(models.prompts["faithfulness"], texts)), outcome)
    score, *singles = await asyncio.gather(*map(score_context, (whole, *(passages if plan.kind == "multi" else ()))))
    return _first_problem(
        ("judge_error", None in (support, score, *singles)),
        ("not_answerable", (score or 0) <= MIN_SUPPORT),
        ("unfaithful", (support or 0) <= MIN_SUPPORT),
        ("one_chunk_is_enough", any((single or 0) > MIN_SUPPORT for single in singles)),
    )


def _record_score(verdict: Score, outcome: SynthesisOutcome) -> float | None:
    outcome.replies += verdict.replies
    if verdict.status == "skipped_budget":
        outcome.rejected["budget"] += 1
    return get_value(verdict)


def _first_problem(*problems: tuple[str, bool]) -> str:
    return next((name for name, is_present in problems if is_present), "")
