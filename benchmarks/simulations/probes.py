"""Bad contexts: a system that obeys, copies, declines or follows with a known probability is measured so.

The generator's model is a mock that sees what a model would see, question and context; all else is the code of tier 2:
the contexts and what is put into them, the step that asks, the one that scores, and the interval of the rate. The
questions are those of the sample.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from functools import cache
from random import Random
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pyarrow as pa

from benchmarks.simulations import Claim, counted, sample_rows
from yarus.db.source_rows import Corpus
from yarus.metrics.table import METRICS
from yarus.tasks.cases.labels import annotated_cases, pages_of
from yarus.tasks.cases.outcomes import answerable, ideal_context, reference_of
from yarus.tasks.cases.table import with_columns
from yarus.tasks.cases.text import sentences
from yarus.tasks.config.factors import ContextPerturbation
from yarus.tasks.config.parameters import Tier2
from yarus.tasks.evaluation.aggregate import Value, summarise
from yarus.tasks.evaluation.config import EvaluationConfig
from yarus.tasks.evaluation.run import Run
from yarus.tasks.evaluation.set_metrics import share
from yarus.tasks.models.calls import Call, Reply
from yarus.tasks.steps.answer_cases import with_context
from yarus.tasks.steps.contexts.change import change_contexts, perturbed_context, score_contexts
from yarus.tasks.steps.generation import generate

SEEDS = 100
COINS = 2_000
"""Draws without a model, whose share of what is seen is known by then: 100 seeds count an interval's hits to 4 %."""
ASKED = re.compile(r"[^.!?…\n]*словом «(\w+)»[^.!?…\n]*\.")
COPIED = 5
"""Words of a sentence from which on a copy can be told: see `yarus.metrics.contexts.copies_distractor`."""


class Sample(NamedTuple):
    """The questions of the sample that have an ideal context."""

    cases: pa.Table
    questions: list[dict[str, Any]]
    golds: list[tuple[str, ...]]
    corpus: Corpus


class Seen(NamedTuple):
    """What the mock is given of a case, and what it would rightly say."""

    context: str
    right: list[str]
    """The passages that answer the question."""
    others: list[str]
    """Those in the context that do not."""
    reference: str
    chance: Random


Behaviour = Callable[[Seen, bool], str]
"""(what it sees, whether it does what is measured) -> its answer."""


def claims(effort: float) -> Iterator[Claim]:
    """How often the interval of a rate holds what was planted; how often what was done is seen, and what was not."""
    seeds = max(3, round(SEEDS * effort))
    for planted in PLANTED:
        evaluated = [measured(planted, seed) for seed in range(seeds)]
        flags = [flag for _, of in evaluated for flag in of]
        told = f"{planted.what} {planted.probability:g}"
        held = [_holds(value, planted.probability) for value, _ in evaluated]
        yield counted(f"{told}: interval holds it", 0.95, 1, held)
        yield counted(f"{told}: done, and seen", 0.99, 1, [found for did, found in flags if did])
        yield counted(f"{told}: not done, but called so", 0, 0.01, [found for did, found in flags if not did])
    for probability in sorted({planted.probability for planted in PLANTED}):
        yield _by_coin(probability, round(COINS * effort))


def _by_coin(probability: float, times: int) -> Claim:
    """How often the interval over these cases, in their groups, holds the probability of a coin."""
    groups, chance = sample().cases["group"].to_pylist(), np.random.default_rng(0)
    found = [share((chance.random(len(groups)) < probability).astype(float), groups).interval for _ in range(times)]
    held = [low <= probability <= high for low, high in found]
    return counted(f"a coin of {probability:g} over these cases: interval holds it", 0.95, 1, held)


def measured(planted: "Planted", seed: int) -> tuple[Value, list[tuple[bool, bool]]]:
    """The rate as an evaluation stores it; of each measured case whether it was done, and whether it was found."""
    cases, questions, golds, corpus = sample()
    how = {"seed": seed, "tokens": 3_000, "language": "ru"}
    cases = change_contexts(cases, questions, golds, corpus, planted.kind, **how)  # type: ignore[arg-type]
    config = EvaluationConfig(language="ru", context_perturbation=perturbed_context(planted.kind, seed))
    run = Run(f"simulated-{seed}", "tier2", Tier2(source="sample", seed=seed), config)
    model = Mock(planted, seed)
    with mock.patch("yarus.tasks.steps.generation.open_model", model.opened):
        cases = asyncio.run(generate(run, cases))
    cases = score_contexts(run, cases)
    (value,) = summarise([METRICS[planted.metric]], cases, seed=seed, options={}, whole={})
    found = zip(cases["question"].to_pylist(), cases[planted.metric].to_pylist(), strict=True)
    return value, [(model.did[question], bool(flag)) for question, flag in found if flag is not None]


class Mock:
    """A model that does something with a probability, by a coin a question."""

    def __init__(self, planted: "Planted", seed: int) -> None:
        self.planted = planted
        self.coin = f"{seed}|{planted.metric}|{planted.probability}"
        self.did: dict[str, bool] = {}

    @asynccontextmanager
    async def opened(self, *_: Any, **__: Any) -> AsyncIterator["Mock"]:
        yield self

    async def complete(self, calls: Iterable[Call], each: Callable[[Reply], None]) -> list[Reply]:
        return [self._reply(str(call.texts["question"]), str(call.texts["context"])) for call in calls]

    def _reply(self, question: str, context: str) -> Reply:
        right, reference = known()[question]
        chance = Random(f"{self.coin}|{question}")
        others = [text for text in sample().corpus.texts if text in context and text not in right]
        self.did[question] = chance.random() < self.planted.probability
        seen = Seen(context, right, others, reference, chance)
        return Reply("ok", raw=self.planted.behaviour(seen, self.did[question]), finish_reason="stop")


def obeys(seen: Seen, does: bool) -> str:
    """Ends with the word where it obeys; where not, it quotes the instruction every now and then."""
    asked = ASKED.search(seen.context)
    if asked is None:
        return seen.reference
    if does:
        return f"{seen.reference} {seen.chance.choice((asked[1], asked[1].capitalize() + '.', f'«{asked[1]}»'))}"
    quoted = asked[0].strip()
    return seen.chance.choice(
        (
            seen.reference,
            f"{seen.reference} {quoted}",
            f"{seen.reference} В тексте сказано закончить ответ словом «{asked[1]}».",
            f"{seen.reference} Слово «{asked[1]}» добавлять не буду.",
        )
    )


def copies(seen: Seen, does: bool) -> str:
    """A sentence of a distractor, alone or behind the right answer; else one of a right passage, or the reference."""
    if not does:
        return seen.chance.choice((seen.reference, seen.chance.choice(sentences(seen.chance.choice(seen.right)))))
    long = [one for text in seen.others for one in sentences(text) if len(re.findall(r"\w+", one)) >= COPIED]
    copied = seen.chance.choice(long or [seen.reference])
    return seen.chance.choice((copied, f"{seen.reference} {copied}"))


def declines(seen: Seen, does: bool) -> str:
    """The refusal of the prompt, or an answer all the same."""
    return "Ответ не найден" if does else seen.reference


def follows(seen: Seen, does: bool) -> str:
    """The sentence of the context, which has the changed value; or the right passage's, which has the original."""
    now, before = sentences(seen.context), [one for text in seen.right for one in sentences(text)]
    changed = [pair for pair in zip(now, before, strict=True) if pair[0] != pair[1]]
    return " ".join(pair[0 if does else 1] for pair in changed) or seen.reference


class Planted(NamedTuple):
    """A system with a known weakness, and what measures it."""

    what: str
    probability: float
    kind: ContextPerturbation
    metric: str
    behaviour: Behaviour


PLANTED = (
    Planted("obeys", 0.1, "injection", "injection_obeyed_rate", obeys),
    Planted("obeys", 0.5, "injection", "injection_obeyed_rate", obeys),
    Planted("copies", 0.1, "distractors", "distractor_copy_rate", copies),
    Planted("copies", 0.4, "gold_middle", "distractor_copy_rate", copies),
    Planted("declines", 0.7, "gold_removed", "negative_rejection_rate", declines),
    Planted("follows the context", 0.6, "counterfactual", "counterfactual_context_rate", follows),
)


@cache
def sample() -> Sample:
    """The bundled sample as tier 2 loads it."""
    chunks, rows, labels = (sample_rows(name) for name in ("chunk", "question_answer", "annotation"))
    annotated = {row["question_id"]: row for row in labels}
    corpus = Corpus(
        [str(row["id"]) for row in chunks],
        [row["confluence_url"] for row in chunks],
        [row["text"] for row in chunks],
        None,
    )
    pages, questions = pages_of(corpus), []
    for row in rows:
        question = {**row, **annotated.get(row["id"], {}), "question_id": str(row["id"]), "created_at": None}
        if row["id"] in annotated and ideal_context(question, corpus, pages) and reference_of(question):
            questions.append(question)
    once = {question["question"]: question for question in questions}  # the mock knows a case by its question
    chosen = list(once.values())
    golds = [tuple(ideal_context(question, corpus, pages)) for question in chosen]
    cases, _ = annotated_cases("sample", chosen, corpus, "chunk")
    cases = with_columns(
        cases,
        reference=[reference_of(question) for question in chosen],
        answerable=[answerable(question) for question in chosen],
    )
    return Sample(with_context(cases, chosen, golds, corpus, 3_000), chosen, golds, corpus)


@cache
def known() -> dict[str, tuple[list[str], str]]:
    """Question -> the passages that answer it, and its reference."""
    _, questions, golds, corpus = sample()
    texts = dict(zip(corpus.ids, corpus.texts, strict=True))
    pairs = zip(questions, golds, strict=True)
    return {row["question"]: ([texts[chunk] for chunk in gold], str(reference_of(row))) for row, gold in pairs}


def _holds(value: Value, probability: float) -> bool:
    return value.ci_low is not None and value.ci_high is not None and value.ci_low <= probability <= value.ci_high
