"""Topics that are more cohesive than topics of shuffled logs; and counts of messages that are not questions."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from yarus.db.source_rows import QuestionRow
from yarus.tasks.cases.labels import parse_grades
from yarus.tasks.dataset.corpus.chatter import KINDS, non_question_kind
from yarus.tasks.dataset.corpus.corpus_schema import NonQuestionKind, NonQuestions
from yarus.tasks.dataset.corpus.languages import detect_corpus_languages
from yarus.tasks.dataset.corpus.projection import normalize_rows
from yarus.tasks.dataset.corpus.question_log import QuestionLog

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
CHANCE_QUANTILE = 0.95
"""Quantile of the cohesion of topics of shuffled logs that a topic must exceed."""
N_SHUFFLED_TOPICS, MIN_SHUFFLED_LOGS = 200, 2
"""Minimum numbers of topics of shuffled logs, and of shuffled logs."""
MIN_TOPIC_QUESTIONS = 5
"""Minimum number of questions of a topic; fewer may be similar by chance."""
MAX_SHUFFLED_QUESTIONS = 4_000
"""Maximum number of questions of a shuffled log."""
EQUAL_SIMILARITY = 1 - 1e-6
"""Similarity from which two questions count as equal, whatever the chance level."""


class CohesiveTopics(NamedTuple):
    """Topics that are more cohesive than chance."""

    codes: Codes
    """Topic of each question, by size: 0 is the largest; -1 for a question without a topic."""
    cohesion: Floats
    """Cohesion of each topic as clustered: the mean cosine of two of its questions."""
    chance_level: float
    """Threshold of cohesion; NaN for a single topic, because there is nothing to shuffle."""


def select_cohesive_topics(points: Floats, codes: Codes, *, seed: int) -> CohesiveTopics:
    """Return the topics that are more cohesive than chance; dissolve the others.

    Chance is a log with the same coordinates, each shuffled among the questions independently (seeded), and clustered
    into the same number of topics. A topic is cohesive if its cohesion exceeds that of 95 % of such topics. It keeps
    the questions whose mean similarity to the others reaches this level, and needs at least five of them.

    Args:
        points: (n, d) coordinates; NaN for questions without coordinates.
        codes: topic of each question; -1 for none.
        seed: seed of shuffling and clustering.

    Reference: Buja and Eyuboglu 1992, Remarks on parallel analysis (shuffled columns as the null model).
    """
    directions = normalize_rows(points)
    n_topics = int(codes.max(initial=-1)) + 1
    similarities = mean_similarity_to_topic(directions, codes)
    cohesions = np.array([similarities[codes == topic].mean() for topic in range(n_topics)])
    level = chance_cohesion(points[codes >= 0], n_topics, seed=seed)
    threshold = np.fmin(level, EQUAL_SIMILARITY)
    kept_codes = np.full(len(codes), -1, dtype=np.int64)
    is_cohesive = np.append(cohesions >= threshold, False)  # never for -1
    is_kept = is_cohesive[codes] & (similarities >= threshold)
    kept_codes[is_kept] = codes[is_kept]
    sizes = np.bincount(kept_codes[is_kept], minlength=n_topics)
    order = np.argsort(-sizes, kind="stable")[: int((sizes >= MIN_TOPIC_QUESTIONS).sum())]
    ranks = np.full(n_topics + 1, -1, dtype=np.int64)
    ranks[order] = np.arange(len(order))
    return CohesiveTopics(ranks[kept_codes], cohesions[order], level)


def mean_similarity_to_topic(directions: Floats, codes: Codes) -> Floats:
    """Return the mean cosine of each question with the others of its topic; NaN if it has none.

    Args:
        directions: (n, d) vectors of length 1 or 0.
        codes: topic of each question.
    """
    n = np.bincount(codes + 1)
    sums = np.zeros((len(n), directions.shape[1]))
    np.add.at(sums, codes + 1, directions)
    total = np.einsum("ij,ij->i", directions, sums[codes + 1] - directions)
    n_others = n[codes + 1] - 1.0
    return np.where((codes >= 0) & (n_others > 0), total / np.where(n_others > 0, n_others, np.nan), np.nan)


def chance_cohesion(points: Floats, n_topics: int, *, seed: int) -> float:
    """Return the 95 % quantile of cohesion over topics of shuffled logs; NaN for fewer than two topics.

    Args:
        points: (n, d) coordinates.
        n_topics: number of topics.
        seed: seed of shuffling and clustering.
    """
    from sklearn.cluster import KMeans

    if n_topics < 2:
        return float("nan")
    generator = np.random.default_rng(seed)
    rows = np.sort(generator.permutation(len(points))[:MAX_SHUFFLED_QUESTIONS])
    cohesions: list[float] = []
    for _ in range(max(MIN_SHUFFLED_LOGS, -(-N_SHUFFLED_TOPICS // n_topics))):
        shuffled = normalize_rows(generator.permuted(points[rows], axis=0))
        distinct = len(np.unique(shuffled.round(6), axis=0))
        with threadpool_limits(1):  # as for clustering the topics
            start = int(generator.integers(2**31))
            codes = KMeans(min(n_topics, distinct), random_state=start, n_init=3).fit_predict(shuffled)
        similarities = mean_similarity_to_topic(shuffled, codes.astype(np.int64))
        cohesions += [float(similarities[codes == topic].mean()) for topic in range(int(codes.max()) + 1)]
    return float(np.nanquantile(cohesions, CHANCE_QUANTILE))


EXAMPLES = 3
LABELS = ("relevant_chunk_ids", "relevant_urls")


def non_question_kinds(log: QuestionLog) -> list[NonQuestionKind | None]:
    """Return the kind of each message that is not a question; None for questions and messages with labelled pages."""
    corpus_languages = detect_corpus_languages(log.corpus.texts)
    return [None if _has_labels(row) else non_question_kind(row["question"], corpus_languages) for row in log.questions]


def count_non_questions(log: QuestionLog, kinds: Sequence[NonQuestionKind | None]) -> list[NonQuestions]:
    """Return the number of messages per kind, the most common kind first, with their most frequent texts."""
    texts: dict[NonQuestionKind, Counter[str]] = {kind: Counter() for kind in KINDS}
    for row, kind in zip(log.questions, kinds, strict=True):
        if kind is not None:
            texts[kind][" ".join(row["question"].split())] += 1
    rows: list[NonQuestions] = [
        {"kind": kind, "n": counts.total(), "examples": [text for text, _ in counts.most_common(EXAMPLES)]}
        for kind, counts in texts.items()
        if counts
    ]
    return sorted(rows, key=lambda row: -row["n"])


def _has_labels(row: QuestionRow) -> bool:
    return any(parse_grades(row, column) for column in LABELS)
