"""Examine judges: every judged prompt on correct answers, and on the same answers damaged in known ways."""

import asyncio
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from yarus.db.errors import InputError
from yarus.db.messages import Words
from yarus.db.source_rows import Corpus, QuestionRow, read_corpus, read_questions
from yarus.db.sources import open_snapshot, refresh_source
from yarus.metrics import exam
from yarus.metrics.exam_kinds import INSTRUCTED_KINDS, PROMPTS
from yarus.metrics.metric import RUBRIC_PREFIX
from yarus.tasks.cases.labels import labelled_page, page_by_chunk
from yarus.tasks.cases.outcomes import ideal_context, reference_answer
from yarus.tasks.cases.table import Case, column_values, set_columns
from yarus.tasks.cases.text import join_within_limit
from yarus.tasks.cases.vocabulary import UNMEASURABLE_STATUSES
from yarus.tasks.config.connections import open_source
from yarus.tasks.config.parameters import JudgeQuality
from yarus.tasks.config.settings import Settings, get_settings
from yarus.tasks.evaluation.config import ExamIdentity
from yarus.tasks.evaluation.findings.exam import ExamScore
from yarus.tasks.evaluation.identity import effective_settings, judge_identity
from yarus.tasks.evaluation.judge_standing import EXAM_VALID_NIGHTS
from yarus.tasks.evaluation.repeats import first_repeat_number
from yarus.tasks.evaluation.run import EvaluationRun
from yarus.tasks.models.calls import Call, Model
from yarus.tasks.models.prompts import Prompt, load_rubrics, read_prompts
from yarus.tasks.models.verdicts import MissingVerdict, Verdict, ask_for_score, ask_for_yes_no, get_value
from yarus.tasks.steps.exam.paper import AnsweredQuestion, ExaminedQuestion, Paper, draw_subjects, write_papers
from yarus.tasks.steps.judging.judge import add_verdicts
from yarus.tasks.steps.open_models import open_model

OTHER_LANGUAGE = "another language"
"""Kind of the reference with its question and context in the parallel source's language."""


class Question(NamedTuple):
    """One answer for one prompt."""

    prompt: str
    kind: str
    damaged: bool | None
    texts: dict[str, str]
    language: str


async def examine(run: EvaluationRun[JudgeQuality], cases: pa.Table) -> pa.Table:
    """Add the scores of every prompt on each paper, and how well they separate sound answers from damaged ones.

    A failed reply is not a score. It decides the status of a case only if nothing else of the case was measured.
    """
    if run.config.exam_of is None:
        return cases
    rows = cases.to_pylist()
    papers = [list(exam_questions(case, run.config.language)) for case in rows]
    verdicts_by_case = await _ask_papers(run, effective_settings(run), papers)
    scored: list[list[ExamScore]] = [
        [
            {
                "prompt": question.prompt,
                "kind": question.kind,
                "damaged": question.damaged,
                "characters": len(question.texts["answer"]),
                "score": _score_of(verdict),
                "status": verdict.status,
            }
            for question, verdict in zip(paper, verdicts, strict=True)
        ]
        for paper, verdicts in zip(papers, verdicts_by_case, strict=True)
    ]
    verdicts_by_name = [
        {f"exam:{question.prompt}@{question.kind}": verdict for question, verdict in zip(paper, verdicts, strict=True)}
        for paper, verdicts in zip(papers, verdicts_by_case, strict=True)
    ]
    failures = [_find_failure(case, verdicts) for case, verdicts in zip(rows, verdicts_by_case, strict=True)]
    cases = set_columns(
        cases,
        status=[verdict.status if verdict else case["status"] for case, verdict in zip(rows, failures, strict=True)],
        reason=[verdict.reason if verdict else case["reason"] for case, verdict in zip(rows, failures, strict=True)],
        exam_scores=[scores or None for scores in scored],
        bias_language=[_language_shift(scores) for scores in scored],
        **exam_columns(scored, [*run.config.exam_of["judge"]["prompts"], "gate"]),
    )
    return add_verdicts(cases, verdicts_by_name, counting="no status but those above")


def exam_questions(case: Case, language: str) -> Iterator[Question]:
    """Yield the questions of a case's exam.

    Args:
        case: with its paper, if it has one.
        language: of the source.
    """
    texts = {"question": case["question"], "context": case["gold_context"], "reference": case["reference"] or ""}
    for item in case["exam"] or ():
        item_texts = {**texts, "answer": item["answer"]}
        if planted := item.get("planted"):  # files of older versions do not have it
            item_texts["context"] += f"\n\n{planted}"
        for prompt in (*item["damaged"], *item["sound"]):
            yield Question(prompt, item["kind"], prompt in item["damaged"], item_texts, language)
    if (parallel := case["parallel"]) is not None:
        parallel_texts = {**parallel, "reference": parallel["answer"]}
        for prompt in next((item["sound"] for item in case["exam"] if item["kind"] == "reference"), ()):
            yield Question(prompt, OTHER_LANGUAGE, None, parallel_texts, parallel["language"])


async def _ask_papers(
    run: EvaluationRun[JudgeQuality], configuration: Settings, papers: list[list[Question]]
) -> list[list[Verdict[Any] | MissingVerdict]]:
    """Return the verdicts of the judge and the gate, in the papers' order.

    Calls paid for in the current period are reused, unless the evaluation repeats another one.
    """
    languages = {question.language for paper in papers for question in paper}
    by_language = {
        language: read_prompts(configuration.model_copy(update={"language": language})) for language in languages
    }
    repeat = first_repeat_number(run.id, run.parameters) or run.config.exam_period
    async with (
        open_model(run, "judge", configuration) as judge,
        open_model(run, "gate", configuration) as gate,
    ):

        async def ask(question: Question) -> Verdict[Any] | MissingVerdict:
            prompt: Prompt = by_language[question.language][question.prompt]
            model: Model = gate if prompt.shape.role == "gate" else judge
            if prompt.name.startswith(RUBRIC_PREFIX) and configuration.judge.base_url is None:
                return MissingVerdict("not_applicable", Words("a rubric needs a language model"))
            call = Call(prompt, question.texts, repeat)
            return await (ask_for_yes_no if prompt.shape.role == "gate" else ask_for_score)(model, call)

        pending = [asyncio.gather(*map(ask, paper)) for paper in papers]
        return [list(verdicts) for verdicts in await asyncio.gather(*pending)]


def _score_of(verdict: Verdict[Any] | MissingVerdict) -> float | None:
    """Return the score of a verdict; a yes of the gate is 1, a no 0."""
    value = get_value(verdict)
    return None if value is None else float(value)


def _find_failure(case: Case, verdicts: list[Verdict[Any] | MissingVerdict]) -> MissingVerdict | None:
    """Return why a case that only the exam measures has no score at all."""
    failed = [verdict for verdict in verdicts if isinstance(verdict, MissingVerdict)]
    is_only_examined = case["status"] == "ok" and not (case["answer"] and case["context"])
    return failed[0] if is_only_examined and failed and len(failed) == len(verdicts) else None


def _language_shift(scores: list[ExamScore]) -> float | None:
    """Return how much higher the reference scores in the other language; mean over prompts with both scores."""
    own_scores = {row["prompt"]: row["score"] for row in scores if row["kind"] == "reference"}
    parallel_scores = {row["prompt"]: row["score"] for row in scores if row["kind"] == OTHER_LANGUAGE}
    differences = [
        score - own_score
        for name, score in parallel_scores.items()
        if score is not None and (own_score := own_scores.get(name)) is not None
    ]
    return float(np.mean(differences)) if differences else None


def exam_columns(scored: Sequence[Sequence[ExamScore]], names: Sequence[str]) -> dict[str, list[float]]:
    """Return the columns of the exam's metrics.

    Args:
        scored: of n cases, the rows of `exam_scores`.
        names: of the prompts.

    Returns:
        Name -> n values, NaN for cases without one.
    """
    columns: dict[str, list[float]] = {}
    for name in names:
        sides = [
            [
                [
                    row["score"]
                    for row in scores
                    if row["prompt"] == name and row["damaged"] is damaged and row["kind"] not in INSTRUCTED_KINDS
                ]
                for scores in scored
            ]
            for damaged in (False, True)
        ]
        sound, damaged = ([np.array(side, dtype=np.float64) for side in side_scores] for side_scores in sides)
        columns[f"exam_auc_{name}"] = [exam.auc(*pair) for pair in zip(sound, damaged, strict=True)]
        columns[f"exam_sensitivity_{name}"] = [exam.sensitivity(case_scores) for case_scores in damaged]
        columns[f"exam_specificity_{name}"] = [exam.specificity(case_scores) for case_scores in sound]
    return columns


def exam_identity(parameters: JudgeQuality, language: str) -> ExamIdentity:
    """Return which judges are examined on which prompts, as the evaluation's record names them."""
    identity: ExamIdentity = {
        "cases": parameters.exam,
        "judge": judge_identity(
            parameters, language, [*(prompt for prompt in PROMPTS if prompt != "gate"), *load_rubrics(get_settings())]
        ),
        "gate": judge_identity(parameters, language, ["gate"], name="gate"),
    }
    return identity | ({"parallel": parameters.parallel_source} if parameters.parallel_source else {})


def exam_period() -> int:
    """Return the number of the current period of nights within which exam calls are paid for once."""
    return datetime.now(UTC).toordinal() // EXAM_VALID_NIGHTS


def add_exam(
    parameters: JudgeQuality,
    cases: pa.Table,
    questions: Sequence[QuestionRow],
    chosen: Sequence[QuestionRow],
    corpus: Corpus,
    language: str,
) -> pa.Table:
    """Add the papers of a seeded sample of the cases, those with a reference before those without.

    A case that could not be measured otherwise is measured by its paper.

    Args:
        parameters: how many, and the seed.
        cases: n rows.
        questions: all of the source, whose answers are used as wrong answers.
        chosen: those of the cases, n.
        corpus: the chunks that answer them.
        language: of the source.

    Raises:
        InputError: no such parallel source, or one in the same language.
    """
    pages = page_by_chunk(corpus)
    first_pages = [labelled_page(question, pages) for question in chosen]
    numbers = draw_subjects(chosen, first_pages, set(pages.values()), parameters.exam, parameters.seed)
    subjects = [_to_subject(chosen[number], corpus, pages, parameters.context_tokens) for number in sorted(numbers)]
    drawn_papers = _prepare_papers(parameters, subjects, questions, pages, language)
    by_question = {paper.subject.question_id: paper for paper in drawn_papers if paper.items}
    in_parallel = _read_parallel(parameters, list(by_question), language) if parameters.parallel_source else {}
    papers_by_case = [by_question.get(question["question_id"]) for question in chosen]
    states = zip(papers_by_case, column_values(cases, "status"), column_values(cases, "reason"), strict=True)
    new_states = [
        ("ok", None) if paper and status in UNMEASURABLE_STATUSES else (status, why) for paper, status, why in states
    ]
    return set_columns(
        cases,
        status=[status for status, _ in new_states],
        reason=[why for _, why in new_states],
        reference=[paper and paper.subject.reference for paper in papers_by_case],
        gold_context=[paper and paper.subject.context for paper in papers_by_case],
        exam=[paper and paper.items for paper in papers_by_case],
        parallel=[paper and in_parallel.get(paper.subject.question_id) for paper in papers_by_case],
    )


def _to_subject(question: QuestionRow, corpus: Corpus, pages: dict[str, str | None], tokens: int) -> ExaminedQuestion:
    chunks = set(ideal_context(question, corpus, pages))
    context, _ = join_within_limit(
        [text for chunk, text in zip(corpus.ids, corpus.texts, strict=True) if chunk in chunks], tokens
    )
    page = labelled_page(question, pages)
    return ExaminedQuestion(question["question_id"], question["question"], context, reference_answer(question), page)


def _prepare_papers(
    parameters: JudgeQuality,
    subjects: Sequence[ExaminedQuestion],
    questions: Sequence[QuestionRow],
    pages: dict[str, str | None],
    language: str,
) -> list[Paper]:
    answered_questions = [
        AnsweredQuestion(reference, labelled_page(question, pages), question["question"], question["question_id"])
        for question in questions
        if (reference := reference_answer(question))
    ]
    lowered_by = {name: rubric.lowered_by for name, rubric in load_rubrics(get_settings()).items()}
    prompts = dict.fromkeys(PROMPTS, ()) | lowered_by
    return write_papers(subjects, answered_questions, prompts, language=language, seed=parameters.seed)


def _read_parallel(parameters: JudgeQuality, question_ids: Sequence[str], language: str) -> dict[str, dict[str, str]]:
    """Return the same questions of the other source, with reference and context."""
    source = open_source(str(parameters.parallel_source))
    ids = set(question_ids)
    with open_snapshot(source) as connection:
        source = refresh_source(connection, source)
        if source.language == language:
            raise InputError(
                "--parallel-source {source}: it is in {language} too; name one in another language",
                source=source.name,
                language=language,
            )
        rows = [row for row in read_questions(connection, source) if row["question_id"] in ids]
        corpus = read_corpus(connection, source, vectors=False)
    pages = page_by_chunk(corpus)
    subjects = [_to_subject(row, corpus, pages, parameters.context_tokens) for row in rows if reference_answer(row)]
    return {
        subject.question_id: {
            "question": subject.question,
            "context": subject.context,
            "answer": subject.reference,
            "language": source.language,
        }
        for subject in subjects
        if subject.context and subject.reference
    }
