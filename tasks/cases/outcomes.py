"""Outcomes of cases: reference, answerability, refusal, and which cases could be measured."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa

from yarus.db.messages import Words
from yarus.db.source_rows import Corpus, QuestionRow
from yarus.tasks.cases.labels import BAD, GOOD, is_reviewed, relevance_grades
from yarus.tasks.cases.table import column_values, optional_column_values, set_columns
from yarus.tasks.cases.text import fold_case
from yarus.tasks.cases.vocabulary import STATUSES_BY_SEVERITY, UNMEASURABLE_STATUSES, Outcome, Status


class CaseOutcome(NamedTuple):
    """The outcome of a case."""

    outcome: Outcome | None = None
    """None if the system was not asked, or only for the ranking of a question whose answer cannot be judged."""
    reason: str | None = None
    """Why the system failed or refused."""


def set_failures(cases: pa.Table, failures: Iterable[tuple[int, Status, str | None]]) -> pa.Table:
    """Give each case the worst of its statuses; a refusal stays, since the system has declined.

    Args:
        cases: n rows.
        failures: position of the case, status, reason; of equally bad ones the first counts.
    """
    statuses, reasons = column_values(cases, "status"), column_values(cases, "reason")
    for row, status, reason in failures:
        if statuses[row] != "sut_refusal" and STATUSES_BY_SEVERITY.index(status) < STATUSES_BY_SEVERITY.index(
            statuses[row]
        ):
            statuses[row], reasons[row] = status, reason
    return set_columns(cases, status=statuses, reason=reasons)


def mark_failures(cases: pa.Table, failures: Mapping[int, str | None]) -> pa.Table:
    """Mark the cases at which the system failed, labelled or not; `unmeasurable` keeps the status by labels.

    Args:
        cases: n rows.
        failures: position of the case -> reason.
    """
    failed = set_failures(cases, ((row, "sut_error", reason) for row, reason in failures.items()))
    return set_columns(failed, unmeasurable=unmeasurable_reasons(cases))


def add_outcomes(cases: pa.Table, done: Sequence[CaseOutcome]) -> pa.Table:
    """Add the outcomes: a failure is the status of any case, a refusal only of measurable ones.

    Args:
        cases: n rows.
        done: the outcome of each; if the system was not asked, an earlier failure stays.
    """
    cases = mark_failures(cases, {row: result.reason for row, result in enumerate(done) if result.outcome == "failed"})
    statuses, reasons = column_values(cases, "status"), column_values(cases, "reason")
    outcomes = [result.outcome for result in done]
    for row, unmeasurable in enumerate(column_values(cases, "unmeasurable")):
        if outcomes[row] == "refused" and statuses[row] == "ok":
            statuses[row], reasons[row] = "sut_refusal", done[row].reason
        elif outcomes[row] is None and statuses[row] == "sut_error" and unmeasurable is None:
            outcomes[row] = "failed"
    return set_columns(cases, status=statuses, reason=reasons, outcome=outcomes)


def unmeasurable_reasons(cases: pa.Table) -> list[str | None]:
    """Return why each case cannot be measured, whatever the system does; None if it can be.

    If a case has no such entry, as in evaluations of earlier versions, its status decides.
    """
    from_status = [status if status in UNMEASURABLE_STATUSES else None for status in column_values(cases, "status")]
    return [
        stored or status
        for stored, status in zip(optional_column_values(cases, "unmeasurable"), from_status, strict=True)
    ]


def annotated_reference(question: QuestionRow) -> str | None:
    """Return the annotation's ground-truth answer; None if it is missing or blank."""
    reference: str | None = question.get("ground_truth_answer")
    return reference if reference and reference.strip() else None


def logged_reference(question: QuestionRow) -> str | None:
    """Return the bot's answer if a user rated it good and no annotation decides about the reference."""
    if annotated_reference(question) or question.get("answerable") is False or is_reviewed(question):
        return None
    answer: str | None = question["answer"]
    return answer if question["score"] == GOOD and answer and answer.strip() else None


def reference_answer(question: QuestionRow) -> str | None:
    """Return the reference answer: the annotation's, else the bot's answer that a user rated good."""
    return annotated_reference(question) or logged_reference(question)


def is_answerable(question: QuestionRow) -> bool | None:
    """Return whether the corpus has the answer: as annotated, else True if there is a reference."""
    annotated: bool | None = question.get("answerable")
    return annotated if annotated is not None else (True if reference_answer(question) else None)


def should_be_shown(question: QuestionRow) -> bool | None:
    """Return whether the answer should have been shown: as annotated, else by the user's score."""
    annotated: bool | None = question.get("ground_truth_show")
    if annotated is not None or is_reviewed(question):
        return annotated
    return {GOOD: True, BAD: False}.get(question["score"] or 0)


def ideal_context(question: QuestionRow, corpus: Corpus, pages: dict[str, str | None]) -> list[str]:
    """Return the ids of the chunks that answer the question: labelled ones, else all chunks of labelled pages."""
    chunks = [chunk for chunk in relevance_grades(question, "chunk", pages) if chunk in pages]
    if chunks:
        return chunks
    labelled_pages = relevance_grades(question, "page", pages)
    return [chunk for chunk in corpus.ids if pages[chunk] in labelled_pages]


def refusal_reason(answer: str, phrases: list[str], path: str | None = None) -> str | None:
    """Return why an answer counts as a refusal; None if it does not.

    An answer without text is a refusal, not an error: otherwise silence would remove hard questions from the means.

    Args:
        answer: the system's answer.
        phrases: an answer with one of them in its first sentence is a refusal; case is ignored.
        path: how the system handled the question, by its own report; `hidden`: its gate hid the answer.
    """
    if path == HIDDEN_PATH:
        return Words("the system's gate hid the answer")
    if not answer.strip():
        return Words("the answer is empty")
    start = fold_case(answer.strip()).split("\n")[0].split(". ")[0]
    return Words("the system declined to answer") if any(fold_case(phrase) in start for phrase in phrases) else None


HIDDEN_PATH = "hidden"
"""Value of `path` if the system's gate hid the answer from the user."""
