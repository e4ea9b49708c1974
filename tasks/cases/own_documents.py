"""Questions that are documents of the corpus themselves: their own id leaves the ranking, as BEIR has it."""

from collections.abc import Sequence

import pyarrow as pa

from yarus.db.retrieval_sets import is_query_document, page_of_document
from yarus.db.source_rows import Corpus, Row
from yarus.tasks.cases.labels import graded
from yarus.tasks.cases.table import values_if_any, with_columns
from yarus.tasks.cases.vocabulary import Note


def with_own_documents(cases: pa.Table, questions: Sequence[Row], corpus: Corpus) -> tuple[pa.Table, list[Note]]:
    """Adds `own_document` and a note, if any question is a document itself, as in retrieval sets.

    Its chunk has the id of the question and the page that only documents of retrieval sets have, its text is that of
    the question, and nobody labelled it as relevant to itself.

    Args:
        cases: n rows.
        questions: their rows in the source.
        corpus: the chunks.
    """
    wanted = {question["question_id"]: question for question in questions}
    found = {
        chunk
        for chunk, url, text in zip(corpus.ids, corpus.urls, corpus.texts, strict=True)
        if chunk in wanted
        and url == page_of_document(chunk)
        and is_query_document(wanted[chunk]["question"], text)
        and not graded(wanted[chunk], "relevant_chunk_ids").get(chunk, 0) > 0
    }
    own = [question["question_id"] if question["question_id"] in found else None for question in questions]
    n = sum(name is not None for name in own)
    return (with_columns(cases, own_document=own), [{"note": "own documents", "n": n}]) if n else (cases, [])


def own_of(cases: pa.Table) -> list[str | None]:
    """The document that each case is itself, if any."""
    return values_if_any(cases, "own_document")
