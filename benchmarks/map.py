"""The map of 50,000 questions over 5,000 chunks, and their topics: seconds against the limit of two minutes."""

import random
import time
from collections.abc import Iterator
from typing import Any

from benchmarks import Row

QUESTIONS, CHUNKS, LIMIT_S = 50_000, 5_000, 120.0
SYLLABLES = [consonant + vowel for consonant in "бвгдзклмнпрстх" for vowel in "аеиоу"]


def texts(n: int, words: int, seed: int) -> list[str]:
    """Texts of invented words, drawn from topics of their own."""
    rng = random.Random(seed)
    known = ["".join(rng.choices(SYLLABLES, k=rng.randint(2, 4))) for _ in range(4_000)]
    topics = [rng.sample(known, 60) for _ in range(80)]
    return [" ".join(rng.choices(topics[rng.randrange(80)], k=words)) for _ in range(n)]


def run() -> Iterator[Row]:
    """One round: vectors by the lexical embedder, components, coordinates, topics that hold together, their words."""
    import numpy as np
    from sqlalchemy import create_engine

    from yarus.tasks.dataset.corpus.cohesion import held_together
    from yarus.tasks.dataset.corpus.projection import reduced, unit
    from yarus.tasks.dataset.corpus.topics import cluster, label_words
    from yarus.tasks.models.embedding.embedders import embedder

    questions, chunks = texts(QUESTIONS, 7, 1), texts(CHUNKS, 60, 2)
    nowhere: Any = create_engine("sqlite://")  # the lexical embedder stores nothing
    start = time.perf_counter()
    points, others, _ = reduced(questions, chunks, embedder("lexical"), nowhere, seed=0)
    topics = cluster(unit(points), seed=0)
    held = held_together(points, topics, seed=0)
    words = label_words(questions, topics)
    seconds = time.perf_counter() - start
    assert points.shape == (QUESTIONS, 50)
    assert others.shape == (CHUNKS, 50)
    assert len(held.codes) == QUESTIONS
    assert len(words) == len(np.unique(topics)) > 10
    what = f"map and topics of {QUESTIONS:,} questions and {CHUNKS:,} chunks"
    yield Row(what, "limit of two minutes", seconds, LIMIT_S)
