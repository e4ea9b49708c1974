"""What a row says of its answer: the reference, whether it could be answered, and from what.

A label counts wherever it stands, with or without the others. What the log knows takes the place of a label only where
no person and no file gave that one: each label for itself, unless somebody has looked at the question as a whole
(`yarus.tasks.cases.labels.is_reviewed`), for then what is empty was left empty.
"""

from yarus.db.source_rows import Corpus
from yarus.tasks.cases.labels import BAD, GOOD, Row, is_reviewed, labels_given


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
