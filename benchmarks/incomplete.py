"""Incomplete labels at size: judged shares and bounds of 100,000 questions, duplicates among 100,000 chunks."""

import time
from collections.abc import Iterator
from resource import RUSAGE_CHILDREN, getrusage
from subprocess import run as start
from sys import executable

import numpy as np

from benchmarks import Row
from yarus.metrics import incomplete, retrieval

QUESTIONS, DEPTH, LIMIT_S = 100_000, 10, 1.0
CHUNKS, TWINS_S, TWINS_GB = 100_000, 120.0, 2.0
FIND = f"""
import random
from yarus.db.source_rows import Corpus
from yarus.tasks.dataset.duplicates import duplicate_representatives
chance = random.Random(0)
words = ["".join(chance.choices("абвгдежзиклмнопрстуфхцчшщыэюя", k=chance.randint(2, 11))) for _ in range(30_000)]
lines = [" ".join(chance.choices(words, k=20)) for _ in range(20_000)]
texts = [". ".join(chance.sample(lines, 5)) for _ in range({CHUNKS})]
copies = {CHUNKS} // 5
texts[-copies:] = texts[:copies]
ids = [str(number) for number in range({CHUNKS})]
assert len(duplicate_representatives(Corpus(ids, [None] * {CHUNKS}, texts, None), "chunk")) == 2 * copies
"""
"""Chunks of 770 letters, a fifth of them copies, and many that share a sentence; in a separate process."""


def run() -> Iterator[Row]:
    """Compare both with their limit."""
    generator = np.random.default_rng(0)
    rankings = [list(row) for row in generator.integers(0, 10**9, (QUESTIONS, DEPTH)).tolist()]
    judged = [{ranking[1 + number % 5]: 1, ranking[0]: 0, -1: 1} for number, ranking in enumerate(rankings)]
    start_time = time.perf_counter()
    matrix, n_relevant, n_irrelevant = incomplete.judgement_matrix(rankings, judged, depth=DEPTH)
    ideal = retrieval.ideal_gains(judged, depth=DEPTH)
    gains = incomplete.gains_if_unjudged_relevant(matrix)
    for k in (1, 5, 10):
        incomplete.judged(matrix, k=k)
        retrieval.hit_rate(gains, k=k)
        incomplete.recall_upper_bound(matrix, n_relevant, k=k)
    retrieval.reciprocal_rank(gains)
    incomplete.ndcg_upper_bound(matrix, ideal, k=10)
    incomplete.unjudged_above(matrix)
    incomplete.bpref(matrix, n_relevant, n_irrelevant)
    incomplete.inf_ap(matrix, n_relevant)
    seconds = time.perf_counter() - start_time
    yield Row(f"judged@k, bpref, infAP, bounds, {QUESTIONS:,} x {DEPTH}", "limit", seconds, LIMIT_S)
    start_time = time.perf_counter()
    start([executable, "-c", FIND], check=True)
    seconds, peak_gb = time.perf_counter() - start_time, getrusage(RUSAGE_CHILDREN).ru_maxrss / 1e6
    yield Row(f"twins among {CHUNKS:,} chunks", "limit", seconds, TWINS_S)
    yield Row(f"twins among {CHUNKS:,} chunks, GB", "limit", peak_gb, TWINS_GB)
