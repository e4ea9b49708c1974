"""Outcomes of cases: reference, answerability, refusal, and which cases could be measured."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa

from yarus.db.source_rows import Corpus, Row
from yarus.db.words import Words
from yarus.tasks.cases.labels import BAD, GOOD, is_reviewed, labels_given
from yarus.tasks.cases.table import values_if_any, values_of, with_columns
from yarus.tasks.cases.text import plain
from yarus.tasks.cases.vocabulary import CANNOT_BE_MEASURED, SEVERITY, Outcome, Status


class Done(NamedTuple):
    """What the system did with a case."""

    outcome: Outcome | None = None
    """None where it was not asked, or only in part: for the ranking of a question whose answer nobody could judge."""
    reason: str | None = None
    """Why it failed or refused."""


def fail(cases: pa.Table, failures: Iterable[tuple[int, Status, str | None]]) -> pa.Table:
    """The cases with the worst of the statuses that each has had; a refusal stays one, since the system has declined.

    Args:
        cases: n rows.
        failures: number of the case, status, reason; of equally bad ones the first counts.
    """
    statuses, reasons = values_of(cases, "status"), values_of(cases, "reason")
    for number, status, reason in failures:
        if statuses[number] != "sut_refusal" and SEVERITY.index(status) < SEVERITY.index(statuses[number]):
            statuses[number], reasons[number] = status, reason
    return with_columns(cases, status=statuses, reason=reasons)


def with_failures(cases: pa.Table, failures: Mapping[int, str | None]) -> pa.Table:
    """The cases with those marked at which the system failed, labelled or not; `unmeasurable` keeps what the label was.

    Args:
        cases: n rows.
        failures: number of the case -> why.
    """
    failed = fail(cases, ((number, "sut_error", why) for number, why in failures.items()))
    return with_columns(failed, unmeasurable=unmeasurable(cases))


def with_outcomes(cases: pa.Table, done: Sequence[Done]) -> pa.Table:
    """The cases with what the system did; a failure is the status of any, a refusal of one that could be measured.

    Args:
        cases: n rows.
        done: what it did with each; where it was not asked, a failure that was marked before stays one.
    """
    cases = with_failures(cases, {number: of.reason for number, of in enumerate(done) if of.outcome == "failed"})
    statuses, reasons = values_of(cases, "status"), values_of(cases, "reason")
    outcomes = [of.outcome for of in done]
    for number, lacks in enumerate(values_of(cases, "unmeasurable")):
        if outcomes[number] == "refused" and statuses[number] == "ok":
            statuses[number], reasons[number] = "sut_refusal", done[number].reason
        elif outcomes[number] is None and statuses[number] == "sut_error" and lacks is None:
            outcomes[number] = "failed"
    return with_columns(cases, status=statuses, reason=reasons, outcome=outcomes)


def unmeasurable(cases: pa.Table) -> list[str | None]:
    """Why each case could not be measured whatever the system does; None where it could.

    Of cases that no system can have failed at, and of those stored by earlier versions, it is the status.
    """
    now = [status if status in CANNOT_BE_MEASURED else None for status in values_of(cases, "status")]
    return [known or status for known, status in zip(values_if_any(cases, "unmeasurable"), now, strict=True)]


def reference_given(question: Row) -> str | None:
    """Return the ground-truth answer of the annotation, or None where it has none but white space."""
    given: str | None = question.get("ground_truth_answer")
    return given if given and given.strip() else None


def logged_reference(question: Row) -> str | None:
    """Return the bot's answer that a user rated good, where nobody gave a reference, or said that there is none."""
    if reference_given(question) or question.get("answerable") is False or is_reviewed(question):
        return None
    answer: str | None = question["answer"]
    return answer if question["score"] == GOOD and answer and answer.strip() else None


def reference_of(question: Row) -> str | None:
    """The ground-truth answer: the annotation's, else what the bot said and a user rated good."""
    return reference_given(question) or logged_reference(question)


def answerable(question: Row) -> bool | None:
    """Whether the corpus has the answer: as annotated, else known only where there is a reference."""
    said: bool | None = question.get("answerable")
    return said if said is not None else (True if reference_of(question) else None)


def shown_rightly(question: Row) -> bool | None:
    """Whether the answer should have been shown: as annotated, else by the user's score."""
    given: bool | None = question.get("ground_truth_show")
    if given is not None or is_reviewed(question):
        return given
    return {GOOD: True, BAD: False}.get(question["score"] or 0)


def ideal_context(question: Row, corpus: Corpus, pages: dict[str, str | None]) -> list[str]:
    """Ids of the chunks that answer the question: those labelled, or where only pages are, all of theirs in order."""
    chunks = [chunk for chunk in labels_given(question, "chunk", pages) if chunk in pages]
    if chunks:
        return chunks
    wanted = labels_given(question, "page", pages)
    return [chunk for chunk in corpus.ids if pages[chunk] in wanted]


def declined(answer: str, phrases: list[str], path: str | None = None) -> str | None:
    """Why an answer is none, or None if it is one.

    An answer without text is a refusal, not an error: otherwise silence would take the hard questions out of the means.

    Args:
        answer: what the system said.
        phrases: an answer that has one of them in its first sentence is a refusal, whatever their case.
        path: what the system says that it did; `hidden`: its gate kept the answer from the user.
    """
    if path == HIDDEN:
        return Words("the system's gate hid the answer")
    if not answer.strip():
        return Words("the answer is empty")
    first = plain(answer.strip()).split("\n")[0].split(". ")[0]
    return Words("the system declined to answer") if any(plain(phrase) in first for phrase in phrases) else None


HIDDEN = "hidden"
"""What `path` says when the system's gate kept the answer from the user."""
