"""Which topics hold together, against shuffled logs; and messages that no page could answer."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from yarus.db.source_rows import Row
from yarus.tasks.cases.labels import graded
from yarus.tasks.dataset.corpus.chatter import KINDS, chatter
from yarus.tasks.dataset.corpus.corpus_schema import Chatter, Kind
from yarus.tasks.dataset.corpus.languages import spoken
from yarus.tasks.dataset.corpus.projection import unit
from yarus.tasks.dataset.corpus.question_log import Log

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
LEVEL = 0.95
"""Of the topics of shuffled logs, so many hold together less than `by_chance`."""
SHUFFLED, FEWEST = 200, 2
"""Topics of shuffled logs that are made, and logs at least."""
LEAST = 5
"""Questions of a topic; fewer may be alike by chance, and are no reason to write."""
SAMPLE = 4_000
"""Questions of a shuffled log at most."""
EQUAL = 1 - 1e-6
"""Questions that are this alike are the same question, whatever chance finds."""


class Held(NamedTuple):
    """The topics that hold together."""

    codes: Codes
    """The topic of every question, by size: 0 is the largest; -1 where it has nothing in common with others."""
    cohesion: Floats
    """Of each topic, as it was found: the mean cosine of two of its questions."""
    by_chance: float
    """What that is to be above; NaN where there is only one topic, and nothing to shuffle."""


def held_together(points: Floats, codes: Codes, *, seed: int) -> Held:
    """The topics that hold together better than chance; the others are dissolved.

    Chance is a log in which every direction is used as often and as strongly as in this one, but independently of the
    others: every coordinate is shuffled among the questions (seeded), and the result is clustered into as many topics.
    A topic counts where it holds together better than 95 % of such topics. Of its questions those stay that are as
    like the others, on average, as that, and there are to be five of them.

    Args:
        points: (n, d) coordinates; NaN where a question has none.
        codes: the topic of each; -1: none.
        seed: of shuffling and clustering.

    Reference: Buja and Eyuboglu 1992, Remarks on parallel analysis (shuffled columns as what chance has).
    """
    directions = unit(points)
    number = int(codes.max(initial=-1)) + 1
    alike = to_others(directions, codes)
    found = np.array([alike[codes == topic].mean() for topic in range(number)])
    level = chance(points[codes >= 0], number, seed=seed)
    needed = np.fmin(level, EQUAL)
    kept = np.full(len(codes), -1, dtype=np.int64)
    holds = np.append(found >= needed, False)  # of -1: never
    stays = holds[codes] & (alike >= needed)
    kept[stays] = codes[stays]
    sizes = np.bincount(kept[stays], minlength=number)
    order = np.argsort(-sizes, kind="stable")[: int((sizes >= LEAST).sum())]
    places = np.full(number + 1, -1, dtype=np.int64)
    places[order] = np.arange(len(order))
    return Held(places[kept], found[order], level)


def to_others(directions: Floats, codes: Codes) -> Floats:
    """The mean cosine of each question with the others of its topic; NaN where it is alone, or has no topic.

    Args:
        directions: (n, d) of length 1, or 0.
        codes: the topic of each.
    """
    n = np.bincount(codes + 1)
    sums = np.zeros((len(n), directions.shape[1]))
    np.add.at(sums, codes + 1, directions)
    total = np.einsum("ij,ij->i", directions, sums[codes + 1] - directions)
    others = n[codes + 1] - 1.0
    return np.where((codes >= 0) & (others > 0), total / np.where(others > 0, others, np.nan), np.nan)


def chance(points: Floats, number: int, *, seed: int) -> float:
    """How well 95 % of the topics of shuffled logs hold together at most; NaN for fewer than two topics.

    Args:
        points: (n, d) coordinates.
        number: of topics.
        seed: of shuffling and clustering.
    """
    from sklearn.cluster import KMeans

    if number < 2:
        return float("nan")
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.permutation(len(points))[:SAMPLE])
    found: list[float] = []
    for _ in range(max(FEWEST, -(-SHUFFLED // number))):
        shuffled = unit(rng.permuted(points[rows], axis=0))
        distinct = len(np.unique(shuffled.round(6), axis=0))
        with threadpool_limits(1):  # as for the topics themselves
            start = int(rng.integers(2**31))
            codes = KMeans(min(number, distinct), random_state=start, n_init=3).fit_predict(shuffled)
        alike = to_others(shuffled, codes.astype(np.int64))
        found += [float(alike[codes == topic].mean()) for topic in range(int(codes.max()) + 1)]
    return float(np.nanquantile(found, LEVEL))


EXAMPLES = 3
LABELS = ("relevant_chunk_ids", "relevant_urls")


def kinds_of(log: Log) -> list[Kind | None]:
    """What each question is, if no page could answer it; None of those that people have labelled a page for."""
    of = spoken(log.corpus.texts)
    return [None if _labelled(row) else chatter(row["question"], of) for row in log.questions]


def counted_apart(log: Log, kinds: Sequence[Kind | None]) -> list[Chatter]:
    """How many there are of each kind, the commonest kind first, with the texts that are written most often."""
    texts: dict[Kind, Counter[str]] = {kind: Counter() for kind in KINDS}
    for row, kind in zip(log.questions, kinds, strict=True):
        if kind is not None:
            texts[kind][" ".join(row["question"].split())] += 1
    rows: list[Chatter] = [
        {"kind": kind, "n": of.total(), "examples": [text for text, _ in of.most_common(EXAMPLES)]}
        for kind, of in texts.items()
        if of
    ]
    return sorted(rows, key=lambda row: -row["n"])


def _labelled(row: Row) -> bool:
    return any(graded(row, column) for column in LABELS)
