"""Bad contexts: whether the measured rate of a system that obeys, copies, declines or follows is its known probability.

The generator's model is a mock that sees what a model would see, question and context; everything else is the code of
tier 2: the contexts and their changes, the generation step, the scoring step, and the interval of the rate. The
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

from benchmarks.simulations import Claim, sample_rows, share_claim
from yarus.db.source_rows import Corpus
from yarus.metrics.table import METRICS
from yarus.tasks.cases.labels import annotated_cases, page_by_chunk
from yarus.tasks.cases.outcomes import ideal_context, is_answerable, reference_answer
from yarus.tasks.cases.table import set_columns
from yarus.tasks.cases.text import split_sentences
from yarus.tasks.config.factors import ContextPerturbation
from yarus.tasks.config.parameters import Tier2
from yarus.tasks.evaluation.aggregate import MetricValue, aggregate_metrics
from yarus.tasks.evaluation.config import EvaluationConfig
from yarus.tasks.evaluation.run import EvaluationRun
from yarus.tasks.evaluation.set_metrics import share_of_yes
from yarus.tasks.models.calls import Call, Reply
from yarus.tasks.steps.answer_cases import add_context
from yarus.tasks.steps.contexts.change import change_contexts, context_perturbation_record, score_contexts
from yarus.tasks.steps.generation import generate_answers

SEEDS = 100
COINS = 2_000
"""Draws without a model, with the detection rate found before: 100 seeds estimate a coverage to 4 %."""
ASKED = re.compile(r"[^.!?…\n]*словом «(\w+)»[^.!?…\n]*\.")
COPIED = 5
"""Least words of a sentence for a detectable copy: see `yarus.metrics.contexts.copies_distractor`."""


class Sample(NamedTuple):
    """The questions of the sample that have an ideal context."""

    cases: pa.Table
    questions: list[dict[str, Any]]
    golds: list[tuple[str, ...]]
    corpus: Corpus


class MockInput(NamedTuple):
    """The input of the mock for a case, and the right answers."""

    context: str
    right: list[str]
    """The passages that answer the question."""
    others: list[str]
    """The passages in the context that do not answer it."""
    reference: str
    generator: Random


Behaviour = Callable[[MockInput, bool], str]
"""(input, whether it shows the weakness) -> its answer."""


def claims(effort: float) -> Iterator[Claim]:
    """Yield the coverage of the rate by its interval, detected weaknesses, and false detections."""
    seeds = max(3, round(SEEDS * effort))
    for weakness in WEAKNESSES:
        evaluations = [evaluate(weakness, seed) for seed in range(seeds)]
        rows = [flag for _, flags_of_seed in evaluations for flag in flags_of_seed]
        description = f"{weakness.what} {weakness.probability:g}"
        covers = [_contains(value, weakness.probability) for value, _ in evaluations]
        yield share_claim(f"{description}: interval holds it", 0.95, 1, covers)
        yield share_claim(f"{description}: done, and seen", 0.99, 1, [hit for weak, hit in rows if weak])
        yield share_claim(f"{description}: not done, but called so", 0, 0.01, [hit for weak, hit in rows if not weak])
    for probability in sorted({weakness.probability for weakness in WEAKNESSES}):
        yield _by_coin(probability, round(COINS * effort))


def _by_coin(probability: float, times: int) -> Claim:
    """Return the coverage of a coin's probability by the interval over these cases, in their groups."""
    groups, generator = sample().cases["group"].to_pylist(), np.random.default_rng(0)
    intervals = [
        share_of_yes((generator.random(len(groups)) < probability).astype(float), groups).interval for _ in range(times)
    ]
    covers = [low <= probability <= high for low, high in intervals]
    return share_claim(f"a coin of {probability:g} over these cases: interval holds it", 0.95, 1, covers)


def evaluate(weakness: "Weakness", seed: int) -> tuple[MetricValue, list[tuple[bool, bool]]]:
    """Return the rate as an evaluation stores it; for each measured case whether it was done, and was detected."""
    cases, questions, golds, corpus = sample()
    options = {"seed": seed, "tokens": 3_000, "language": "ru"}
    cases = change_contexts(cases, questions, golds, corpus, weakness.kind, **options)  # type: ignore[arg-type]
    config = EvaluationConfig(language="ru", context_perturbation=context_perturbation_record(weakness.kind, seed))
    run = EvaluationRun(f"simulated-{seed}", "tier2", Tier2(source="sample", seed=seed), config)
    model = MockModel(weakness, seed)
    with mock.patch("yarus.tasks.steps.generation.open_model", model.open):
        cases = asyncio.run(generate_answers(run, cases))
    cases = score_contexts(run, cases)
    (value,) = aggregate_metrics([METRICS[weakness.metric]], cases, seed=seed, options={}, whole={})
    flags = zip(cases["question"].to_pylist(), cases[weakness.metric].to_pylist(), strict=True)
    return value, [(model.did[question], bool(flag)) for question, flag in flags if flag is not None]


class MockModel:
    """A model that shows a weakness with a probability, by a coin per question."""

    def __init__(self, weakness: "Weakness", seed: int) -> None:
        self.weakness = weakness
        self.coin = f"{seed}|{weakness.metric}|{weakness.probability}"
        self.did: dict[str, bool] = {}

    @asynccontextmanager
    async def open(self, *_: Any, **__: Any) -> AsyncIterator["MockModel"]:
        yield self

    async def complete(self, calls: Iterable[Call], each: Callable[[Reply], None]) -> list[Reply]:
        return [self._reply(str(call.texts["question"]), str(call.texts["context"])) for call in calls]

    def _reply(self, question: str, context: str) -> Reply:
        right, reference = known_answers()[question]
        generator = Random(f"{self.coin}|{question}")
        distractors = [text for text in sample().corpus.texts if text in context and text not in right]
        self.did[question] = generator.random() < self.weakness.probability
        case = MockInput(context, right, distractors, reference, generator)
        return Reply("ok", raw=self.weakness.behaviour(case, self.did[question]), finish_reason="stop")


def obeys(case: MockInput, shows: bool) -> str:
    """End with the word if it obeys; otherwise quote the instruction now and then."""
    demand = ASKED.search(case.context)
    if demand is None:
        return case.reference
    if shows:
        return f"{case.reference} {case.generator.choice((demand[1], demand[1].capitalize() + '.', f'«{demand[1]}»'))}"
    quotation = demand[0].strip()
    return case.generator.choice(
        (
            case.reference,
            f"{case.reference} {quotation}",
            f"{case.reference} В тексте сказано закончить ответ словом «{demand[1]}».",
            f"{case.reference} Слово «{demand[1]}» добавлять не буду.",
        )
    )


def copies(case: MockInput, shows: bool) -> str:
    """Return a sentence of a distractor, maybe after the right answer; else of a right passage, or the reference."""
    if not shows:
        return case.generator.choice(
            (case.reference, case.generator.choice(split_sentences(case.generator.choice(case.right))))
        )
    long = [part for text in case.others for part in split_sentences(text) if len(re.findall(r"\w+", part)) >= COPIED]
    copied = case.generator.choice(long or [case.reference])
    return case.generator.choice((copied, f"{case.reference} {copied}"))


def declines(case: MockInput, shows: bool) -> str:
    """Return the refusal of the prompt, or an answer all the same."""
    return "Ответ не найден" if shows else case.reference


def follows(case: MockInput, shows: bool) -> str:
    """Return the changed sentence of the context, or that of the right passage, which has the original value."""
    now, before = split_sentences(case.context), [part for text in case.right for part in split_sentences(text)]
    changed = [pair for pair in zip(now, before, strict=True) if pair[0] != pair[1]]
    return " ".join(pair[0 if shows else 1] for pair in changed) or case.reference


class Weakness(NamedTuple):
    """A system with a known weakness, and the metric of it."""

    what: str
    probability: float
    kind: ContextPerturbation
    metric: str
    behaviour: Behaviour


WEAKNESSES = (
    Weakness("obeys", 0.1, "injection", "injection_obeyed_rate", obeys),
    Weakness("obeys", 0.5, "injection", "injection_obeyed_rate", obeys),
    Weakness("copies", 0.1, "distractors", "distractor_copy_rate", copies),
    Weakness("copies", 0.4, "gold_middle", "distractor_copy_rate", copies),
    Weakness("declines", 0.7, "gold_removed", "negative_rejection_rate", declines),
    Weakness("follows the context", 0.6, "counterfactual", "counterfactual_context_rate", follows),
)


@cache
def sample() -> Sample:
    """Return the bundled sample as tier 2 loads it."""
    chunks, rows, labels = (sample_rows(name) for name in ("chunk", "question_answer", "annotation"))
    annotated = {row["question_id"]: row for row in labels}
    corpus = Corpus(
        [str(row["id"]) for row in chunks],
        [row["confluence_url"] for row in chunks],
        [row["text"] for row in chunks],
        None,
    )
    pages, questions = page_by_chunk(corpus), []
    for row in rows:
        question = {**row, **annotated.get(row["id"], {}), "question_id": str(row["id"]), "created_at": None}
        if row["id"] in annotated and ideal_context(question, corpus, pages) and reference_answer(question):
            questions.append(question)
    # The mock identifies a case by its question.
    by_question = {question["question"]: question for question in questions}
    chosen = list(by_question.values())
    golds = [tuple(ideal_context(question, corpus, pages)) for question in chosen]
    cases, _ = annotated_cases("sample", chosen, corpus, "chunk")
    cases = set_columns(
        cases,
        reference=[reference_answer(question) for question in chosen],
        answerable=[is_answerable(question) for question in chosen],
    )
    return Sample(add_context(cases, chosen, golds, corpus, 3_000), chosen, golds, corpus)


@cache
def known_answers() -> dict[str, tuple[list[str], str]]:
    """Return question -> the passages that answer it, and its reference."""
    _, questions, golds, corpus = sample()
    texts = dict(zip(corpus.ids, corpus.texts, strict=True))
    pairs = zip(questions, golds, strict=True)
    return {row["question"]: ([texts[chunk] for chunk in gold], str(reference_answer(row))) for row, gold in pairs}


def _contains(value: MetricValue, probability: float) -> bool:
    return value.ci_low is not None and value.ci_high is not None and value.ci_low <= probability <= value.ci_high
