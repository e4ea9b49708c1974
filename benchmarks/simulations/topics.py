"""Logs with known topics: which topics are reported, of unrelated questions and of frequent ones."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from benchmarks.simulations import Claim
from yarus.tasks.dataset.corpus.cohesion import select_cohesive_topics
from yarus.tasks.dataset.corpus.projection import normalize_rows
from yarus.tasks.dataset.corpus.topics import cluster_questions

LOGS = 20
N, DIMENSIONS = 800, 30
TOPICS, SIZE = 16, 30
"""Planted topics, and the questions of each; the other questions are unique."""
SPREAD = 0.12
"""Spread of a topic's questions in every direction; its center is at distance 1."""
Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


def claims(effort: float) -> Iterator[Claim]:
    """Yield reported false topics, in logs without topics and beside topics; true topics found, and their purity."""
    logs = max(2, round(LOGS * effort))
    rng = np.random.default_rng(0)
    is_false = np.concatenate([_find_false_topics(_draw_unrelated(rng, N), seed) for seed in range(logs)])
    yield Claim("questions that have nothing in common: topics named", 0, 0.06, float(is_false.mean()), len(is_false))
    found_shares, false_topics, lonely_counts = zip(*(_measure_topics(rng, seed) for seed in range(logs)), strict=True)
    yield Claim("questions of topics that are named as one", 0.9, 1, float(np.mean(found_shares)), logs * TOPICS)
    yield Claim("named topics made of questions of nobody else", 0, 0.06, *_share(false_topics))
    yield Claim("questions of nobody else that are in a named topic", 0, 0.15, *_share(lonely_counts))


def _draw_unrelated(rng: np.random.Generator, n: int) -> Floats:
    """Return unrelated questions: few words each, so that most coordinates are small and some are large."""
    return np.asarray(rng.laplace(size=(n, DIMENSIONS)) * np.linspace(1.5, 0.5, DIMENSIONS))


def _find_false_topics(points: Floats, seed: int) -> NDArray[np.bool_]:
    """Return, for each topic of the clustering, whether it is reported."""
    codes = cluster_questions(normalize_rows(points), seed=seed)
    cohesive = select_cohesive_topics(points, codes, seed=seed)
    return np.array([(cohesive.codes[codes == topic] >= 0).any() for topic in range(int(codes.max()) + 1)])


def _measure_topics(rng: np.random.Generator, seed: int) -> tuple[float, tuple[int, int], tuple[int, int]]:
    """Return the share of a log's questions in their topic; counts of false topics, of lonely questions in topics."""
    centers = normalize_rows(rng.normal(size=(TOPICS, DIMENSIONS)))
    truth = np.concatenate([np.repeat(np.arange(TOPICS), SIZE), np.full(N - TOPICS * SIZE, -1)])
    topic_points = centers[truth[truth >= 0]] + SPREAD * rng.normal(size=(TOPICS * SIZE, DIMENSIONS))
    points = np.concatenate([topic_points, 0.2 * _draw_unrelated(rng, N - TOPICS * SIZE)])
    kept = select_cohesive_topics(points, cluster_questions(normalize_rows(points), seed=seed), seed=seed)
    reported = range(int(kept.codes.max()) + 1)
    counts = [np.bincount(truth[kept.codes == topic] + 1, minlength=TOPICS + 1) for topic in reported]
    n_false = sum(int(count.argmax() == 0) for count in counts)
    n_right = sum(int(count[1:].max()) for count in counts)
    lonely = truth < 0
    return (
        n_right / (TOPICS * SIZE),
        (n_false, len(reported)),
        (int((kept.codes[lonely] >= 0).sum()), int(lonely.sum())),
    )


def _share(counts: tuple[tuple[int, int], ...]) -> tuple[float, int]:
    part, total = np.sum(counts, axis=0).tolist()
    return part / max(1, total), max(1, total)
