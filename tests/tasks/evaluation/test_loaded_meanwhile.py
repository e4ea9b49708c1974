"""A source that is loaded anew while it is evaluated: the evaluation is of one load, or ends with the reason."""

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Engine

from tests.support.evaluations import passages, question
from tests.support.steps import opened
from yarus.db.errors import SourceChanged
from yarus.db.loading.fill import Rows, fill
from yarus.db.loading.staging import Row
from yarus.db.sources import loaded, registered, snapshot
from yarus.tasks.models.embedding.embedders import embedder
from yarus.tasks.steps.search import rank

QUESTION = [passages(10)[3]["text"]]
TEXTS = [passage["text"] for passage in passages(10)]


def load(engine: Engine, name: str, vectors: Iterable[Any], *, language: str = "ru") -> None:
    """Ten chunks with these vectors, and ten questions."""
    chunks = [
        Row(f"c{number}", passage | {"embedding": vector})
        for number, (passage, vector) in enumerate(zip(passages(10), vectors, strict=True))
    ]
    asked = [question(number) for number in range(10)]
    rows = [Row(row["id"], {"id": row["id"], "question": row["question"], "answer": row["answer"]}) for row in asked]
    labels = [
        Row(row["id"], {"question_id": row["id"], "relevant_chunk_ids": row["relevant_chunk_ids"]}) for row in asked
    ]
    fill(engine, name, Rows(chunks=chunks, questions=rows, annotations=labels), language=language, origin="test")


def test_rankings_of_two_loads_are_no_rankings(at_home: Path, engine: Engine) -> None:
    """pgvector searches the source's own vectors, batch by batch, long after the corpus was read."""
    vectors = embedder("lexical").encode(TEXTS)
    load(engine, "loaded_anew", vectors)
    run = opened(source="loaded_anew", retriever="pgvector", vectors="stored", unit="chunk")
    [before] = rank(run, QUESTION, 10, unit="chunk", timed=0)
    assert before.ids[0] == "c3"
    load(engine, "loaded_anew", vectors)  # the same once more changes nothing
    assert rank(run, QUESTION, 10, unit="chunk", timed=0) == [before]
    load(engine, "loaded_anew", np.roll(vectors, 1, axis=0))
    with pytest.raises(SourceChanged, match="'loaded_anew' was loaded anew while its vectors were searched"):
        rank(run, QUESTION, 10, unit="chunk", timed=0)


def test_the_corpus_that_was_read_is_searched_as_it_was(at_home: Path, engine: Engine) -> None:
    vectors = embedder("lexical").encode(TEXTS)
    load(engine, "read_before", vectors)
    run = opened(source="read_before", retriever="dense", vectors="stored", unit="chunk")
    load(engine, "read_before", np.roll(vectors, 1, axis=0))
    [after] = rank(run, QUESTION, 10, unit="chunk", timed=0)
    assert after.ids[0] == "c3"


def test_the_language_is_that_of_the_rows_that_are_read(at_home: Path, engine: Engine) -> None:
    vectors = embedder("lexical").encode(TEXTS)
    load(engine, "of_two_languages", vectors)
    found = loaded(engine, "of_two_languages")
    load(engine, "of_two_languages", np.roll(vectors, 1, axis=0), language="en")
    with snapshot(found) as connection:
        now = registered(connection, found)
    assert (found.language, now.language) == ("ru", "en")
    assert isinstance(now.loaded_at, datetime)
