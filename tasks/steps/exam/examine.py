"""The exam: every judged prompt on correct answers, and on the same answers damaged in known ways."""

import asyncio
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from yarus.db.errors import InputError
from yarus.db.source_rows import Corpus, Row, read_corpus, read_questions
from yarus.db.sources import registered, snapshot
from yarus.db.words import Words
from yarus.metrics import exam
from yarus.metrics.exam_kinds import PLANTED, PROMPTS
from yarus.metrics.metric import RUBRIC
from yarus.tasks.cases.labels import page_named, pages_of
from yarus.tasks.cases.outcomes import ideal_context, reference_of
from yarus.tasks.cases.table import Case, values_of, with_columns
from yarus.tasks.cases.text import fit
from yarus.tasks.cases.vocabulary import CANNOT_BE_MEASURED
from yarus.tasks.config.connections import source
from yarus.tasks.config.parameters import JudgeQuality
from yarus.tasks.config.settings import Settings, settings
from yarus.tasks.evaluation.config import ExamIdentity
from yarus.tasks.evaluation.findings.exam import ExamScore
from yarus.tasks.evaluation.identity import configured, judge_identity
from yarus.tasks.evaluation.repeats import first_repeat
from yarus.tasks.evaluation.run import Run
from yarus.tasks.evaluation.standings import EXAM_NIGHTS
from yarus.tasks.models.calls import Call, Model
from yarus.tasks.models.prompts import Prompt, prompts, rubrics
from yarus.tasks.models.verdicts import NoVerdict, Verdict, ask_for_score, ask_for_yes_no, value_of
from yarus.tasks.steps.exam.paper import Other, Paper, Subject, draw_subjects, papers
from yarus.tasks.steps.judging.judge import with_verdicts
from yarus.tasks.steps.opened import open_model

ABROAD = "another language"
"""In the place of a kind: the reference, with its question and context, in the parallel source's language."""


class Question(NamedTuple):
    """One answer put to one prompt."""

    prompt: str
    kind: str
    damaged: bool | None
    texts: dict[str, str]
    language: str


async def examine(run: Run[JudgeQuality], cases: pa.Table) -> pa.Table:
    """Adds what every prompt scored each paper, and how well that tells sound answers from damaged ones.

    A reply that failed is no score. It makes the status of a case only where nothing else of the case was measured.
    """
    if run.config.exam_of is None:
        return cases
    rows = cases.to_pylist()
    papers = [list(exam_questions(case, run.config.language)) for case in rows]
    given = await _asked(run, configured(run), papers)
    scored: list[list[ExamScore]] = [
        [
            {
                "prompt": question.prompt,
                "kind": question.kind,
                "damaged": question.damaged,
                "characters": len(question.texts["answer"]),
                "score": _score(verdict),
                "status": verdict.status,
            }
            for question, verdict in zip(paper, verdicts, strict=True)
        ]
        for paper, verdicts in zip(papers, given, strict=True)
    ]
    named = [
        {f"exam:{question.prompt}@{question.kind}": verdict for question, verdict in zip(paper, verdicts, strict=True)}
        for paper, verdicts in zip(papers, given, strict=True)
    ]
    lost = [_lost(case, verdicts) for case, verdicts in zip(rows, given, strict=True)]
    cases = with_columns(
        cases,
        status=[verdict.status if verdict else case["status"] for case, verdict in zip(rows, lost, strict=True)],
        reason=[verdict.reason if verdict else case["reason"] for case, verdict in zip(rows, lost, strict=True)],
        exam_scores=[scores or None for scores in scored],
        bias_language=[_shift(scores) for scores in scored],
        **exam_columns(scored, [*run.config.exam_of["judge"]["prompts"], "gate"]),
    )
    return with_verdicts(cases, named, counting="no status but those above")


def exam_questions(case: Case, language: str) -> Iterator[Question]:
    """What a case is examined with.

    Args:
        case: with its paper, if it has one.
        language: of the source.
    """
    texts = {"question": case["question"], "context": case["gold_context"], "reference": case["reference"] or ""}
    for item in case["exam"] or ():
        shown = {**texts, "answer": item["answer"]}
        if planted := item.get("planted"):  # a file of an older version has none
            shown["context"] += f"\n\n{planted}"
        for prompt in (*item["damaged"], *item["sound"]):
            yield Question(prompt, item["kind"], prompt in item["damaged"], shown, language)
    if (abroad := case["parallel"]) is not None:
        there = {**abroad, "reference": abroad["answer"]}
        for prompt in next((item["sound"] for item in case["exam"] if item["kind"] == "reference"), ()):
            yield Question(prompt, ABROAD, None, there, abroad["language"])


async def _asked(
    run: Run[JudgeQuality], configuration: Settings, papers: list[list[Question]]
) -> list[list[Verdict[Any] | NoVerdict]]:
    """What the judge and the gate say, in the papers' order.

    What these nights have bought is not bought again, unless the evaluation repeats another one.
    """
    languages = {question.language for paper in papers for question in paper}
    known = {of: prompts(configuration.model_copy(update={"language": of})) for of in languages}
    repeat = first_repeat(run.id, run.parameters) or run.config.exam_period
    async with (
        open_model(run, "judge", configuration) as judge,
        open_model(run, "gate", configuration) as gate,
    ):

        async def ask(question: Question) -> Verdict[Any] | NoVerdict:
            prompt: Prompt = known[question.language][question.prompt]
            model: Model = gate if prompt.shape.role == "gate" else judge
            if prompt.name.startswith(RUBRIC) and configuration.judge.base_url is None:
                return NoVerdict("not_applicable", Words("a rubric needs a language model"))
            call = Call(prompt, question.texts, repeat)
            return await (ask_for_yes_no if prompt.shape.role == "gate" else ask_for_score)(model, call)

        asked = [asyncio.gather(*map(ask, paper)) for paper in papers]
        return [list(verdicts) for verdicts in await asyncio.gather(*asked)]


def _score(verdict: Verdict[Any] | NoVerdict) -> float | None:
    """A yes of the gate is 1, a no 0."""
    value = value_of(verdict)
    return None if value is None else float(value)


def _lost(case: Case, verdicts: list[Verdict[Any] | NoVerdict]) -> NoVerdict | None:
    """Why a case that is there for the exam alone has no score at all."""
    failed = [verdict for verdict in verdicts if isinstance(verdict, NoVerdict)]
    alone = case["status"] == "ok" and not (case["answer"] and case["context"])
    return failed[0] if alone and failed and len(failed) == len(verdicts) else None


def _shift(scores: list[ExamScore]) -> float | None:
    """How far the scores of the reference lie higher in the other language; mean over the prompts that have both."""
    here = {row["prompt"]: row["score"] for row in scores if row["kind"] == "reference"}
    there = {row["prompt"]: row["score"] for row in scores if row["kind"] == ABROAD}
    apart = [
        score - before for name, score in there.items() if score is not None and (before := here.get(name)) is not None
    ]
    return float(np.mean(apart)) if apart else None


def exam_columns(scored: Sequence[Sequence[ExamScore]], names: Sequence[str]) -> dict[str, list[float]]:
    """The columns of the exam's metrics.

    Args:
        scored: of n cases, the rows of `exam_scores`.
        names: of the prompts.

    Returns:
        Name -> n values, NaN where a case has none.
    """
    columns: dict[str, list[float]] = {}
    for name in names:
        sides = [
            [
                [
                    row["score"]
                    for row in scores
                    if row["prompt"] == name and row["damaged"] is damaged and row["kind"] not in PLANTED
                ]
                for scores in scored
            ]
            for damaged in (False, True)
        ]
        sound, damaged = ([np.array(side, dtype=np.float64) for side in of] for of in sides)
        columns[f"exam_auc_{name}"] = [exam.auc(*pair) for pair in zip(sound, damaged, strict=True)]
        columns[f"exam_sensitivity_{name}"] = [exam.sensitivity(of) for of in damaged]
        columns[f"exam_specificity_{name}"] = [exam.specificity(of) for of in sound]
    return columns


def exam_identity(parameters: JudgeQuality, language: str) -> ExamIdentity:
    """Who is examined in what, as the evaluation's record names it."""
    found: ExamIdentity = {
        "cases": parameters.exam,
        "judge": judge_identity(parameters, language, [*(p for p in PROMPTS if p != "gate"), *rubrics(settings())]),
        "gate": judge_identity(parameters, language, ["gate"], name="gate"),
    }
    return found | ({"parallel": parameters.parallel} if parameters.parallel else {})


def exam_period() -> int:
    """The number of the stretch of nights within which what an exam asks is bought once."""
    return datetime.now(UTC).toordinal() // EXAM_NIGHTS


def with_exam(
    parameters: JudgeQuality,
    cases: pa.Table,
    questions: Sequence[Row],
    chosen: Sequence[Row],
    corpus: Corpus,
    language: str,
) -> pa.Table:
    """Adds the papers of a seeded sample of the cases, those with a reference before those without.

    A case that has nothing else to be measured by is measured by its paper.

    Args:
        parameters: how many, and the seed.
        cases: n rows.
        questions: all of the source, whose answers are what others are exchanged for.
        chosen: those of the cases, n.
        corpus: what answers them.
        language: of the source.

    Raises:
        InputError: no such parallel source, or one in the same language.
    """
    pages = pages_of(corpus)
    named = [page_named(question, pages) for question in chosen]
    numbers = draw_subjects(chosen, named, set(pages.values()), parameters.exam, parameters.seed)
    subjects = [_subject(chosen[number], corpus, pages, parameters.context_tokens) for number in sorted(numbers)]
    given = _papers(parameters, subjects, questions, pages, language)
    by_question = {paper.subject.question_id: paper for paper in given if paper.items}
    in_parallel = _parallel(parameters, list(by_question), language) if parameters.parallel else {}
    found = [by_question.get(question["question_id"]) for question in chosen]
    states = zip(found, values_of(cases, "status"), values_of(cases, "reason"), strict=True)
    now = [("ok", None) if paper and status in CANNOT_BE_MEASURED else (status, why) for paper, status, why in states]
    return with_columns(
        cases,
        status=[status for status, _ in now],
        reason=[why for _, why in now],
        reference=[paper and paper.subject.reference for paper in found],
        gold_context=[paper and paper.subject.context for paper in found],
        exam=[paper and paper.items for paper in found],
        parallel=[paper and in_parallel.get(paper.subject.question_id) for paper in found],
    )


def _subject(question: Row, corpus: Corpus, pages: dict[str, str | None], tokens: int) -> Subject:
    chunks = set(ideal_context(question, corpus, pages))
    context, _ = fit([text for chunk, text in zip(corpus.ids, corpus.texts, strict=True) if chunk in chunks], tokens)
    page = page_named(question, pages)
    return Subject(question["question_id"], question["question"], context, reference_of(question), page)


def _papers(
    parameters: JudgeQuality,
    subjects: Sequence[Subject],
    questions: Sequence[Row],
    pages: dict[str, str | None],
    language: str,
) -> list[Paper]:
    others = [
        Other(reference, page_named(question, pages), question["question"], question["question_id"])
        for question in questions
        if (reference := reference_of(question))
    ]
    lowered_by = {name: rubric.lowered_by for name, rubric in rubrics(settings()).items()}
    prompts = dict.fromkeys(PROMPTS, ()) | lowered_by
    return papers(subjects, others, prompts, language=language, seed=parameters.seed)


def _parallel(parameters: JudgeQuality, question_ids: Sequence[str], language: str) -> dict[str, dict[str, str]]:
    """The same questions of the other source, with reference and context."""
    where = source(str(parameters.parallel))
    wanted = set(question_ids)
    with snapshot(where) as connection:
        where = registered(connection, where)
        if where.language == language:
            raise InputError(
                "--parallel {source}: it is in {language} too; name one in another language",
                source=where.name,
                language=language,
            )
        rows = [row for row in read_questions(connection, where) if row["question_id"] in wanted]
        corpus = read_corpus(connection, where, vectors=False)
    pages = pages_of(corpus)
    subjects = [_subject(row, corpus, pages, parameters.context_tokens) for row in rows if reference_of(row)]
    return {
        subject.question_id: {
            "question": subject.question,
            "context": subject.context,
            "answer": subject.reference,
            "language": where.language,
        }
        for subject in subjects
        if subject.context and subject.reference
    }
