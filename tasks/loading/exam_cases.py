"""What the judge is examined with: papers beside some of the cases, in the source's language and in another."""

from collections.abc import Sequence
from datetime import UTC, datetime

import pyarrow as pa

from yarus.db.errors import InputError
from yarus.db.source_rows import Corpus, read_corpus, read_questions
from yarus.db.sources import registered, snapshot
from yarus.metrics.exam_kinds import PROMPTS
from yarus.tasks.cases.answers import ideal_context, reference_of
from yarus.tasks.cases.exam.draw import draw_subjects
from yarus.tasks.cases.exam.paper import Other, Paper, Subject, papers
from yarus.tasks.cases.labels import Row, page_named, pages_of
from yarus.tasks.cases.table import with_columns
from yarus.tasks.cases.text import fit
from yarus.tasks.cases.vocabulary import CANNOT_BE_MEASURED
from yarus.tasks.config.connections import source
from yarus.tasks.config.parameters import JudgeQuality
from yarus.tasks.config.settings import settings
from yarus.tasks.evaluation.identity import judge_identity
from yarus.tasks.prompts import rubrics
from yarus.tasks.results.exam.standings import EXAM_NIGHTS
from yarus.tasks.results.system import ExamIdentity


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
    states = zip(found, cases["status"].to_pylist(), cases["reason"].to_pylist(), strict=True)
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
