"""Questions that are documents of the corpus: their own id leaves the ranking, as in BEIR."""

from collections.abc import Sequence

import pyarrow as pa

from yarus.db.retrieval_sets import is_query_document, page_of_document
from yarus.db.source_rows import Corpus, QuestionRow
from yarus.tasks.cases.labels import parse_grades
from yarus.tasks.cases.table import optional_column_values, set_columns
from yarus.tasks.cases.vocabulary import Note


def add_own_documents(cases: pa.Table, questions: Sequence[QuestionRow], corpus: Corpus) -> tuple[pa.Table, list[Note]]:
    """Add `own_document` and a note, if any question is itself a document, as in retrieval sets.

    Its chunk has the question's id, a page as only documents of retrieval sets have, and the question's text. No label
    names it as relevant to itself.

    Args:
        cases: n rows.
        questions: their rows in the source.
        corpus: the chunks.
    """
    questions_by_id = {question["question_id"]: question for question in questions}
    own_chunks = {
        chunk
        for chunk, url, text in zip(corpus.ids, corpus.urls, corpus.texts, strict=True)
        if chunk in questions_by_id
        and url == page_of_document(chunk)
        and is_query_document(questions_by_id[chunk]["question"], text)
        and not parse_grades(questions_by_id[chunk], "relevant_chunk_ids").get(chunk, 0) > 0
    }
    documents = [question["question_id"] if question["question_id"] in own_chunks else None for question in questions]
    n = sum(document is not None for document in documents)
    return (set_columns(cases, own_document=documents), [{"note": "own documents", "n": n}]) if n else (cases, [])


def own_documents(cases: pa.Table) -> list[str | None]:
    """Return, per case, the document that the question itself is; None for others."""
    return optional_column_values(cases, "own_document")
