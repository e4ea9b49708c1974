"""Exams: judges of known worth are named for what they are, and the intervals hold what was planted in them."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from benchmarks.simulations import Claim, counted, sample_rows
from yarus.metrics.exam_kinds import PLANTED, PROMPTS
from yarus.metrics.table.exam import exam_metrics
from yarus.tasks.cases.table import table
from yarus.tasks.cases.text import script_of
from yarus.tasks.evaluation.aggregate import summarise
from yarus.tasks.evaluation.findings.exam import FEWEST, ExamScore, exam_of
from yarus.tasks.evaluation.findings_schema import Exam
from yarus.tasks.steps.exam.examine import exam_columns
from yarus.tasks.steps.exam.paper import Other, Paper, Subject, draw_subjects, papers

CASES = 60
FEWEST_OBEYS = 25
"""Questions from which on an exam names a noisy judge that obeys half of the requests."""
PROMPT = "answer_correctness"
PARTS = ("auc", "sensitivity", "specificity")


Figures = tuple[float | None, float | None, float | None]
"""A value and its interval."""


class Judge(NamedTuple):
    """A mock judge: its scores of answers, and what an exam should say of it."""

    score: Callable[[np.random.Generator, bool, str], float]
    """(chance, whether the answer is damaged, the answer) -> score."""
    outcome: str
    auc: float
    sensitivity: float
    specificity: float
    obeys: float = 0.0
    """Probability of a full score where the answer or the context asks for it."""
    blind_to: str | None = None
    """Kind of damage, or script of the question, in which it takes every answer for sound."""


def _planted(chance: np.random.Generator, damaged: bool, answer: str) -> float:
    return float((chance.random() < 0.2) if damaged else (chance.random() < 0.9))


def _graded(chance: np.random.Generator, damaged: bool, answer: str) -> float:
    """Full scores in a quarter of the damaged and nine tenths of the sound; others low ones; in tenths."""
    full = chance.random() < (0.25 if damaged else 0.9)
    return (chance.integers(8, 11) if full else chance.integers(0, 7)) / 10


NAN = float("nan")
JUDGES = {
    "always 1": Judge(lambda chance, damaged, answer: 1.0, "constant", 0.5, 0, 1),
    "always 0.5": Judge(lambda chance, damaged, answer: 0.5, "constant", 0.5, 1, 0),
    "at random": Judge(lambda chance, damaged, answer: float(chance.random()), "chance", 0.5, 0.75, 0.25),
    "by length": Judge(lambda chance, damaged, answer: min(1.0, len(answer) / 200), "length", NAN, NAN, NAN),
    "sensitivity 0.8, specificity 0.9": Judge(_planted, "sound", 0.85, 0.8, 0.9),
    "graded": Judge(_graded, "sound", 0.75 * 0.9 + 0.5 * (0.75 * 0.1 + 0.25 * 0.9), 0.75, 0.9),
    "obeys half": Judge(_graded, "obeys", 0.75 * 0.9 + 0.5 * (0.75 * 0.1 + 0.25 * 0.9), 0.75, 0.9, obeys=0.5),
    "blind to negations": Judge(_planted, "blind", NAN, NAN, NAN, blind_to="negation"),
    "blind to names": Judge(_planted, "blind", NAN, NAN, NAN, blind_to="entity"),
    "reads only Russian": Judge(_planted, "blind", NAN, NAN, NAN, blind_to="latin"),
}
ENGLISH = "Where do I apply?"
"""The question of every second case, so that half of an exam is in another script."""


def claims(effort: float) -> Iterator[Claim]:
    """Every judge sits as many exams, of questions and answers of the sample's own."""
    times = max(40, round(effort * 400))
    for name, judge in JUDGES.items():
        named: Counter[str] = Counter()
        held: Counter[str] = Counter()
        for number in range(times):
            values, exam = sat(judge, np.random.default_rng(number))
            is_named = judge.blind_to is not None and judge.blind_to in exam[PROMPT]["blind_to"]
            named["blind" if is_named else exam[PROMPT]["outcome"]] += 1
            for part in PARTS:
                _, lowest, highest = values[f"exam_{part}_{PROMPT}"]
                held[part] += lowest is not None and highest is not None and lowest <= getattr(judge, part) <= highest
        low = 0.95 if judge.outcome != "chance" else 0.93
        yield Claim(f"{name}: called {judge.outcome}", low, 1, named[judge.outcome] / times, times)
        if judge.outcome in ("chance", "length", "constant"):
            yield Claim(f"{name}: passes", 0, 0, named["sound"] / times, times)
        for part in PARTS:
            truth = getattr(judge, part)
            if 0 < truth < 1 and judge.outcome != "constant":
                yield Claim(f"{name}: exam_{part} holds {truth:g}", 0.93, 0.97, held[part] / times, times)
    yield from obedience_claims(max(40, times // 2))


def obedience_claims(times: int) -> Iterator[Claim]:
    """Yield how often an exam of every prompt names a judge `obeys` for any of them."""
    for name in ("graded", "obeys half"):
        judge = JUDGES[name]
        for cases in (FEWEST, FEWEST_OBEYS, CASES):
            exams = (sat(judge, np.random.default_rng(seed), PROMPTS, cases)[1] for seed in range(times))
            called = ["obeys" in {of["outcome"] for of in exam.values()} for exam in exams]
            low, high = (0.95 if cases >= FEWEST_OBEYS else 0.4, 1) if judge.obeys else (0, 0.05)
            yield counted(f"{name}, all prompts, {cases} questions: any called obeys", low, high, called)


def sat(
    judge: Judge, chance: np.random.Generator, prompts: Sequence[str] = (PROMPT,), n_cases: int = CASES
) -> tuple[dict[str, Figures], Exam]:
    """Return the metrics of one exam with their intervals, and what it says of each prompt."""
    rows = [
        {
            "question_id": paper.subject.question_id,
            "ground_truth_answer": paper.subject.reference,
            "confluence_url": paper.subject.page,
            "score": None,
        }
        for paper in _papers()
    ]
    pages = [row["confluence_url"] for row in rows]
    places = draw_subjects(rows, pages, set(pages), n_cases, seed=int(chance.integers(2**31)))
    drawn = [_papers()[place] for place in places]
    questions = [ENGLISH if number % 2 else paper.subject.question for number, paper in enumerate(drawn)]
    scored = [
        [
            _row(judge, chance, item, prompt, script)
            for item in paper.items
            for prompt in prompts
            if prompt in (*item["damaged"], *item["sound"])
        ]
        for paper, script in zip(drawn, map(script_of, questions), strict=True)
    ]
    cases = table(
        case_id=[paper.subject.question_id for paper in drawn],
        status=["ok"] * n_cases,
        group=[None] * n_cases,
        question=questions,
        exam_scores=scored,
        **exam_columns(scored, prompts),
    )
    metrics = [metric for prompt in prompts for metric in exam_metrics(prompt)]
    results = summarise(metrics, cases, seed=0, options={}, whole={})
    values = {result.metric.name: (result.value, result.ci_low, result.ci_high) for result in results}
    return values, exam_of(cases, values, least_scored=0.95)


def _row(judge: Judge, chance: np.random.Generator, item: Any, prompt: str, script: str) -> ExamScore:
    damaged = prompt in item["damaged"]
    seen = judge.blind_to not in (item["kind"], script)
    obeys = item["kind"] in PLANTED and chance.random() < judge.obeys
    return {
        "prompt": prompt,
        "kind": item["kind"],
        "damaged": damaged,
        "characters": len(item["answer"]),
        "score": 1.0 if obeys else judge.score(chance, damaged and seen, item["answer"]),
        "status": "ok",
    }


@cache
def _papers() -> list[Paper]:
    """Of the sample's questions that have a reference and a chunk."""
    rows: dict[str, dict[str, dict[str, Any]]] = {
        name: {str(row.get("id", row.get("question_id"))): row for row in sample_rows(name)}
        for name in ("question_answer", "annotation", "chunk")
    }
    subjects = []
    for question_id, said in rows["annotation"].items():
        chunks = [rows["chunk"][chunk]["text"] for chunk in said["relevant_chunk_ids"] or {} if chunk in rows["chunk"]]
        if chunks and said["ground_truth_answer"]:
            question, page = rows["question_answer"][question_id]["question"], (said["relevant_urls"] or [None])[0]
            subjects.append(Subject(question_id, question, "\n\n".join(chunks), said["ground_truth_answer"], page))
    others = [Other(s.reference or "", s.page, s.question, s.question_id) for s in subjects]
    return papers(subjects, others, dict.fromkeys(PROMPTS, ()), language="ru", seed=0)
