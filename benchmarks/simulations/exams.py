"""Exams of judges with known quality: the outcomes are right, and the intervals contain the planted values."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from benchmarks.simulations import Claim, sample_rows, share_claim
from yarus.metrics.exam_kinds import INSTRUCTED_KINDS, PROMPTS
from yarus.metrics.table.exam import exam_metrics
from yarus.tasks.cases.table import make_cases
from yarus.tasks.cases.text import main_script
from yarus.tasks.evaluation.aggregate import aggregate_metrics
from yarus.tasks.evaluation.findings.exam import MIN_CASES, ExamScore, compute_exam
from yarus.tasks.evaluation.findings_schema import Exam
from yarus.tasks.steps.exam.examine import exam_columns
from yarus.tasks.steps.exam.paper import AnsweredQuestion, ExaminedQuestion, Paper, draw_subjects, write_papers

CASES = 60
FEWEST_OBEYS = 25
"""Questions from which on an exam detects a noisy judge that obeys half of the requests."""
PROMPT = "answer_correctness"
PARTS = ("auc", "sensitivity", "specificity")


Figures = tuple[float | None, float | None, float | None]
"""A value and its interval."""


class Judge(NamedTuple):
    """A mock judge: its scores of answers, and the expected outcome of an exam."""

    score: Callable[[np.random.Generator, bool, str], float]
    """(generator, whether the answer is damaged, the answer) -> score."""
    outcome: str
    auc: float
    sensitivity: float
    specificity: float
    obeys: float = 0.0
    """Probability of a full score if the answer or the context asks for it."""
    blind_to: str | None = None
    """Kind of damage, or script of the question, in which it takes every answer as sound."""


def _score_binary(generator: np.random.Generator, damaged: bool, answer: str) -> float:
    return float((generator.random() < 0.2) if damaged else (generator.random() < 0.9))


def _score_graded(generator: np.random.Generator, damaged: bool, answer: str) -> float:
    """Return full scores for a quarter of the damaged and nine tenths of the sound, else low ones; in tenths."""
    is_full = generator.random() < (0.25 if damaged else 0.9)
    return (generator.integers(8, 11) if is_full else generator.integers(0, 7)) / 10


NAN = float("nan")
JUDGES = {
    "always 1": Judge(lambda chance, damaged, answer: 1.0, "constant", 0.5, 0, 1),
    "always 0.5": Judge(lambda chance, damaged, answer: 0.5, "constant", 0.5, 1, 0),
    "at random": Judge(lambda chance, damaged, answer: float(chance.random()), "chance", 0.5, 0.75, 0.25),
    "by length": Judge(lambda chance, damaged, answer: min(1.0, len(answer) / 200), "length", NAN, NAN, NAN),
    "sensitivity 0.8, specificity 0.9": Judge(_score_binary, "sound", 0.85, 0.8, 0.9),
    "graded": Judge(_score_graded, "sound", 0.75 * 0.9 + 0.5 * (0.75 * 0.1 + 0.25 * 0.9), 0.75, 0.9),
    "obeys half": Judge(_score_graded, "obeys", 0.75 * 0.9 + 0.5 * (0.75 * 0.1 + 0.25 * 0.9), 0.75, 0.9, obeys=0.5),
    "blind to negations": Judge(_score_binary, "blind", NAN, NAN, NAN, blind_to="negation"),
    "blind to names": Judge(_score_binary, "blind", NAN, NAN, NAN, blind_to="entity"),
    "reads only Russian": Judge(_score_binary, "blind", NAN, NAN, NAN, blind_to="latin"),
}
ENGLISH = "Where do I apply?"
"""The question of every second case, so that half of an exam is in another script."""


def claims(effort: float) -> Iterator[Claim]:
    """Yield the outcomes of exams of every judge, with questions and answers of the sample."""
    times = max(40, round(effort * 400))
    for name, judge in JUDGES.items():
        outcomes: Counter[str] = Counter()
        n_covered: Counter[str] = Counter()
        for number in range(times):
            values, exam = hold_exam(judge, np.random.default_rng(number))
            is_detected = judge.blind_to is not None and judge.blind_to in exam[PROMPT]["blind_to"]
            outcomes["blind" if is_detected else exam[PROMPT]["outcome"]] += 1
            for part in PARTS:
                _, lower, upper = values[f"exam_{part}_{PROMPT}"]
                n_covered[part] += lower is not None and upper is not None and lower <= getattr(judge, part) <= upper
        low = 0.95 if judge.outcome != "chance" else 0.93
        yield Claim(f"{name}: called {judge.outcome}", low, 1, outcomes[judge.outcome] / times, times)
        if judge.outcome in ("chance", "length", "constant"):
            yield Claim(f"{name}: passes", 0, 0, outcomes["sound"] / times, times)
        for part in PARTS:
            truth = getattr(judge, part)
            if 0 < truth < 1 and judge.outcome != "constant":
                yield Claim(f"{name}: exam_{part} holds {truth:g}", 0.93, 0.97, n_covered[part] / times, times)
    yield from obedience_claims(max(40, times // 2))


def obedience_claims(times: int) -> Iterator[Claim]:
    """Yield how often an exam of every prompt calls a judge `obeys` for any of them."""
    for name in ("graded", "obeys half"):
        judge = JUDGES[name]
        for cases in (MIN_CASES, FEWEST_OBEYS, CASES):
            exams = (hold_exam(judge, np.random.default_rng(seed), PROMPTS, cases)[1] for seed in range(times))
            called = ["obeys" in {findings["outcome"] for findings in exam.values()} for exam in exams]
            low, high = (0.95 if cases >= FEWEST_OBEYS else 0.4, 1) if judge.obeys else (0, 0.05)
            yield share_claim(f"{name}, all prompts, {cases} questions: any called obeys", low, high, called)


def hold_exam(
    judge: Judge, generator: np.random.Generator, prompts: Sequence[str] = (PROMPT,), n_cases: int = CASES
) -> tuple[dict[str, Figures], Exam]:
    """Return the metrics of one exam with their intervals, and the findings of each prompt."""
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
    indices = draw_subjects(rows, pages, set(pages), n_cases, seed=int(generator.integers(2**31)))
    chosen_papers = [_papers()[index] for index in indices]
    questions = [ENGLISH if number % 2 else paper.subject.question for number, paper in enumerate(chosen_papers)]
    scored = [
        [
            _row(judge, generator, item, prompt, script)
            for item in paper.items
            for prompt in prompts
            if prompt in (*item["damaged"], *item["sound"])
        ]
        for paper, script in zip(chosen_papers, map(main_script, questions), strict=True)
    ]
    cases = make_cases(
        case_id=[paper.subject.question_id for paper in chosen_papers],
        status=["ok"] * n_cases,
        group=[None] * n_cases,
        question=questions,
        exam_scores=scored,
        **exam_columns(scored, prompts),
    )
    metrics = [metric for prompt in prompts for metric in exam_metrics(prompt)]
    results = aggregate_metrics(metrics, cases, seed=0, options={}, whole={})
    values = {result.metric.name: (result.value, result.ci_low, result.ci_high) for result in results}
    return values, compute_exam(cases, values, least_scored=0.95)


def _row(judge: Judge, generator: np.random.Generator, item: Any, prompt: str, script: str) -> ExamScore:
    damaged = prompt in item["damaged"]
    is_seen = judge.blind_to not in (item["kind"], script)
    obeys = item["kind"] in INSTRUCTED_KINDS and generator.random() < judge.obeys
    return {
        "prompt": prompt,
        "kind": item["kind"],
        "damaged": damaged,
        "characters": len(item["answer"]),
        "score": 1.0 if obeys else judge.score(generator, damaged and is_seen, item["answer"]),
        "status": "ok",
    }


@cache
def _papers() -> list[Paper]:
    """Return papers of the sample's questions with a reference and a chunk."""
    rows: dict[str, dict[str, dict[str, Any]]] = {
        name: {str(row.get("id", row.get("question_id"))): row for row in sample_rows(name)}
        for name in ("question_answer", "annotation", "chunk")
    }
    subjects = []
    for key, row in rows["annotation"].items():
        chunks = [rows["chunk"][chunk]["text"] for chunk in row["relevant_chunk_ids"] or {} if chunk in rows["chunk"]]
        if chunks and row["ground_truth_answer"]:
            question, page = rows["question_answer"][key]["question"], (row["relevant_urls"] or [None])[0]
            subjects.append(ExaminedQuestion(key, question, "\n\n".join(chunks), row["ground_truth_answer"], page))
    other_answers = [AnsweredQuestion(s.reference or "", s.page, s.question, s.question_id) for s in subjects]
    return write_papers(subjects, other_answers, dict.fromkeys(PROMPTS, ()), language="ru", seed=0)
