"""Logs of which it is known what belongs together: which topics are named, of bags and of what is often asked."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from benchmarks.simulations import Claim
from yarus.tasks.dataset.corpus.cohesion import held_together
from yarus.tasks.dataset.corpus.projection import unit
from yarus.tasks.dataset.corpus.topics import cluster

LOGS = 20
N, DIMENSIONS = 800, 30
TOPICS, SIZE = 16, 30
"""That are planted, and the questions of each; the rest are asked by nobody else."""
SPREAD = 0.12
"""Of a topic's questions in every direction, where its centre is at distance 1."""
Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


def claims(effort: float) -> Iterator[Claim]:
    """Bags that are named, in logs without topics and beside topics; topics that are found, and kept free of others."""
    logs = max(2, round(LOGS * effort))
    rng = np.random.default_rng(0)
    bags = np.concatenate([_bags(_alone(rng, N), seed) for seed in range(logs)])
    yield Claim("questions that have nothing in common: topics named", 0, 0.06, float(bags.mean()), len(bags))
    found, others, alone = zip(*(_beside(rng, seed) for seed in range(logs)), strict=True)
    yield Claim("questions of topics that are named as one", 0.9, 1, float(np.mean(found)), logs * TOPICS)
    yield Claim("named topics made of questions of nobody else", 0, 0.06, *_share(others))
    yield Claim("questions of nobody else that are in a named topic", 0, 0.15, *_share(alone))


def _alone(rng: np.random.Generator, n: int) -> Floats:
    """Questions that have nothing in common: few words each, so that most coordinates are small and some are large."""
    return np.asarray(rng.laplace(size=(n, DIMENSIONS)) * np.linspace(1.5, 0.5, DIMENSIONS))


def _bags(points: Floats, seed: int) -> NDArray[np.bool_]:
    """Of each topic that clustering makes, whether it is named."""
    codes = cluster(unit(points), seed=seed)
    held = held_together(points, codes, seed=seed)
    return np.array([(held.codes[codes == topic] >= 0).any() for topic in range(int(codes.max()) + 1)])


def _beside(rng: np.random.Generator, seed: int) -> tuple[float, tuple[int, int], tuple[int, int]]:
    """Of a log with topics: the share of their questions in a topic that is mostly theirs; bags; questions in them."""
    centres = unit(rng.normal(size=(TOPICS, DIMENSIONS)))
    truth = np.concatenate([np.repeat(np.arange(TOPICS), SIZE), np.full(N - TOPICS * SIZE, -1)])
    clumps = centres[truth[truth >= 0]] + SPREAD * rng.normal(size=(TOPICS * SIZE, DIMENSIONS))
    points = np.concatenate([clumps, 0.2 * _alone(rng, N - TOPICS * SIZE)])
    held = held_together(points, cluster(unit(points), seed=seed), seed=seed)
    named = range(int(held.codes.max()) + 1)
    counts = [np.bincount(truth[held.codes == topic] + 1, minlength=TOPICS + 1) for topic in named]
    bags = sum(int(count.argmax() == 0) for count in counts)
    right = sum(int(count[1:].max()) for count in counts)
    lonely = truth < 0
    return right / (TOPICS * SIZE), (bags, len(named)), (int((held.codes[lonely] >= 0).sum()), int(lonely.sum()))


def _share(counts: tuple[tuple[int, int], ...]) -> tuple[float, int]:
    some, of = np.sum(counts, axis=0).tolist()
    return some / max(1, of), max(1, of)
