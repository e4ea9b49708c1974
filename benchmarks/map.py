"""The map of 50,000 questions over 5,000 chunks, and their topics: seconds against the limit of two minutes."""

import random
import time
from collections.abc import Iterator
from typing import Any

from benchmarks import Row

QUESTIONS, CHUNKS, LIMIT_S = 50_000, 5_000, 120.0
SYLLABLES = [consonant + vowel for consonant in "бвгдзклмнпрстх" for vowel in "аеиоу"]


def draw_texts(n: int, words: int, seed: int) -> list[str]:
    """Return texts of invented words, drawn from topics with their own words."""
    rng = random.Random(seed)
    vocabulary = ["".join(rng.choices(SYLLABLES, k=rng.randint(2, 4))) for _ in range(4_000)]
    topics = [rng.sample(vocabulary, 60) for _ in range(80)]
    return [" ".join(rng.choices(topics[rng.randrange(80)], k=words)) for _ in range(n)]


def run() -> Iterator[Row]:
    """Map once: vectors by the lexical embedder, components, coordinates, cohesive topics, their words."""
    import numpy as np
    from sqlalchemy import create_engine

    from yarus.tasks.dataset.corpus.cohesion import select_cohesive_topics
    from yarus.tasks.dataset.corpus.projection import normalize_rows, reduce_dimensions
    from yarus.tasks.dataset.corpus.topics import cluster_questions, topic_words
    from yarus.tasks.models.embedding.embedders import get_embedder

    questions, chunks = draw_texts(QUESTIONS, 7, 1), draw_texts(CHUNKS, 60, 2)
    no_store: Any = create_engine("sqlite://")  # the lexical embedder stores nothing
    start = time.perf_counter()
    points, chunk_points, _ = reduce_dimensions(questions, chunks, get_embedder("lexical"), no_store, seed=0)
    topics = cluster_questions(normalize_rows(points), seed=0)
    cohesive_topics = select_cohesive_topics(points, topics, seed=0)
    words = topic_words(questions, topics)
    seconds = time.perf_counter() - start
    assert points.shape == (QUESTIONS, 50)
    assert chunk_points.shape == (CHUNKS, 50)
    assert len(cohesive_topics.codes) == QUESTIONS
    assert len(words) == len(np.unique(topics)) > 10
    what = f"map and topics of {QUESTIONS:,} questions and {CHUNKS:,} chunks"
    yield Row(what, "limit of two minutes", seconds, LIMIT_S)
