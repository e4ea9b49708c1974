"""A source reloaded during its evaluation: the evaluation uses one load, or fails with the reason."""

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Engine

from tests.support.evaluations import make_passages, question
from tests.support.steps import open_run
from yarus.db.errors import SourceChanged
from yarus.db.loading.load_rows import ImportedRows, load_rows
from yarus.db.loading.staging import IncomingRow
from yarus.db.sources import find_loaded_source, open_snapshot, refresh_source
from yarus.tasks.models.embedding.embedders import get_embedder
from yarus.tasks.steps.search import rank_results

QUESTION = [make_passages(10)[3]["text"]]
TEXTS = [passage["text"] for passage in make_passages(10)]


def load_source(engine: Engine, name: str, vectors: Iterable[Any], *, language: str = "ru") -> None:
    """Load ten chunks with these vectors, and ten questions."""
    chunks = [
        IncomingRow(f"c{number}", passage | {"embedding": vector})
        for number, (passage, vector) in enumerate(zip(make_passages(10), vectors, strict=True))
    ]
    questions = [question(number) for number in range(10)]
    rows = [
        IncomingRow(row["id"], {"id": row["id"], "question": row["question"], "answer": row["answer"]})
        for row in questions
    ]
    labels = [
        IncomingRow(row["id"], {"question_id": row["id"], "relevant_chunk_ids": row["relevant_chunk_ids"]})
        for row in questions
    ]
    load_rows(
        engine, name, ImportedRows(chunks=chunks, questions=rows, annotations=labels), language=language, origin="test"
    )


def test_rank_fails_when_source_is_reloaded(at_home: Path, engine: Engine) -> None:
    """pgvector searches the source's own vectors, batch by batch, long after the corpus was read."""
    vectors = get_embedder("lexical").encode(TEXTS)
    load_source(engine, "loaded_anew", vectors)
    run = open_run(source="loaded_anew", retriever="pgvector", vectors="stored", unit="chunk")
    [before] = rank_results(run, QUESTION, 10, unit="chunk", timed=0)
    assert before.ids[0] == "c3"
    load_source(engine, "loaded_anew", vectors)  # the same once more changes nothing
    assert rank_results(run, QUESTION, 10, unit="chunk", timed=0) == [before]
    load_source(engine, "loaded_anew", np.roll(vectors, 1, axis=0))
    with pytest.raises(SourceChanged, match="'loaded_anew' was loaded anew while its vectors were searched"):
        rank_results(run, QUESTION, 10, unit="chunk", timed=0)


def test_rank_uses_corpus_as_read(at_home: Path, engine: Engine) -> None:
    vectors = get_embedder("lexical").encode(TEXTS)
    load_source(engine, "read_before", vectors)
    run = open_run(source="read_before", retriever="dense", vectors="stored", unit="chunk")
    load_source(engine, "read_before", np.roll(vectors, 1, axis=0))
    [after] = rank_results(run, QUESTION, 10, unit="chunk", timed=0)
    assert after.ids[0] == "c3"


def test_language_matches_the_rows_read(at_home: Path, engine: Engine) -> None:
    vectors = get_embedder("lexical").encode(TEXTS)
    load_source(engine, "of_two_languages", vectors)
    loaded_source = find_loaded_source(engine, "of_two_languages")
    load_source(engine, "of_two_languages", np.roll(vectors, 1, axis=0), language="en")
    with open_snapshot(loaded_source) as connection:
        now = refresh_source(connection, loaded_source)
    assert (loaded_source.language, now.language) == ("ru", "en")
    assert isinstance(now.loaded_at, datetime)
