"""What a row says of its answer: the reference, whether it could be answered, and from what."""

from db.source_rows import Corpus
from tasks.cases.labels import BAD, GOOD, Row, labels_given


def reference_of(question: Row) -> str | None:
    """The ground-truth answer: the annotation's, else what the bot said and a user rated good."""
    if question.get("origin"):
        return question.get("ground_truth_answer") or None
    return (question["answer"] or None) if question["score"] == GOOD else None


def answerable(question: Row) -> bool | None:
    """Whether the corpus has the answer: as annotated, else known only where there is a reference."""
    said: bool | None = question.get("answerable")
    return said if said is not None else (True if reference_of(question) else None)


def shown_rightly(question: Row) -> bool | None:
    """Whether the answer should have been shown: as annotated, else by the user's score."""
    if question.get("origin"):
        said: bool | None = question.get("ground_truth_show")
        return said
    return {GOOD: True, BAD: False}.get(question["score"] or 0)


def ideal_context(question: Row, corpus: Corpus, pages: dict[str, str | None]) -> list[str]:
    """Ids of the chunks that answer the question: those labelled, or where only pages are, all of theirs in order."""
    chunks = [chunk for chunk in labels_given(question, "chunk", pages) if chunk in pages]
    if chunks:
        return chunks
    wanted = labels_given(question, "page", pages)
    return [chunk for chunk in corpus.ids if pages[chunk] in wanted]
