"""Topics: clusters of real questions, answer quality per topic, and content gaps."""

import math
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from yarus.metrics.embedding import silhouette
from yarus.tasks.cases.labels import BAD
from yarus.tasks.cases.privacy.pseudonyms import remove_personal_data, truncate_text
from yarus.tasks.cases.text import STEM_LENGTH, normalise_question, word_stems
from yarus.tasks.dataset.corpus.cohesion import CohesiveTopics
from yarus.tasks.dataset.corpus.corpus_schema import ContentGap, Topic, TopicAnalysis
from yarus.tasks.dataset.corpus.languages import content_words
from yarus.tasks.dataset.corpus.projection import normalize_rows
from yarus.tasks.dataset.corpus.question_log import QuestionLog, most_common_pages

TOPIC_COUNTS = (2, 3, 5, 8, 12, 18, 25, 35, 50, 70, 100)
"""Numbers of topics that are tried."""
MIN_MEAN_TOPIC_SIZE = 10
"""Minimum mean number of questions per topic."""
SAMPLE = 4_000
LABEL_WORDS, EXAMPLES, MAX_GAPS, PAGES = 4, 3, 10, 5
MIN_WORD_SHARE, MIN_COVERED = 0.2, 0.5
"""Minimum share of a topic's questions that have a naming word, and that have at least one of the naming words."""
MISSING_GAIN, FAILED_GAIN = 1.0, 0.5
"""Expected gain of a new page for a question whose page is missing; and for one with a bad answer and no known page."""
DIMENSIONS = 50
"""Dimensions in which questions are compared by their words."""
MAX_CHARS = 60
"""Maximum characters of a question that names a topic."""
Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


def cluster_questions(vectors: Floats, *, seed: int) -> Codes:
    """Return the topic of each question, by size: 0 is the largest.

    Topics are k-means clusters of unit vectors. The number of topics maximises the mean silhouette (cosine, on a
    sample) and leaves at least ten questions per topic on average. Fewer than twenty questions, or equal questions, are
    one topic.

    Args:
        vectors: (n, d) rows of length 1, or of length 0 for questions without features, which get topic -1.
        seed: seed of the starts and of the sample.

    Returns:
        (n,) topic numbers.

    Reference: Rousseeuw 1987, Silhouettes; Sculley 2010, Web-scale k-means clustering.
    """
    from sklearn.cluster import KMeans, MiniBatchKMeans

    has_vector = np.linalg.norm(vectors, axis=1) > 0
    nonzero_vectors = vectors[has_vector]
    n_distinct = len(np.unique(nonzero_vectors.round(6), axis=0)) if len(nonzero_vectors) <= SAMPLE else SAMPLE
    best_codes: Codes = np.zeros(len(nonzero_vectors), dtype=np.int64)
    best_score = -math.inf
    rows = np.sort(np.random.default_rng(seed).permutation(len(nonzero_vectors))[:SAMPLE])
    for n_topics in TOPIC_COUNTS:
        if n_topics * MIN_MEAN_TOPIC_SIZE > len(nonzero_vectors) or n_topics > n_distinct:
            break
        estimator = KMeans if len(nonzero_vectors) <= SAMPLE else MiniBatchKMeans
        with threadpool_limits(1):  # with more threads the order of summation, and so the topics, would vary
            labels = estimator(n_topics, random_state=seed, n_init=3).fit_predict(nonzero_vectors)
        score = silhouette(nonzero_vectors[rows], labels[rows].tolist())
        if score > best_score:
            best_codes, best_score = labels, score
    codes = np.full(len(vectors), -1, dtype=np.int64)
    order = np.argsort(-np.bincount(best_codes), kind="stable")
    codes[has_vector] = np.argsort(order)[best_codes]
    return codes


@lru_cache(maxsize=4)  # all tiers of a nightly run have the same questions
def name_topics_by_words(texts: tuple[str | None, ...]) -> list[str | None]:
    """Return a topic for each question, named by its distinctive words; None for questions without words."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    questions = [text or "" for text in texts]
    try:
        weights = TfidfVectorizer(analyzer=lambda text: sorted(word_stems(text)), min_df=2).fit_transform(questions)
    except ValueError:  # no word occurs in two questions
        return [None] * len(questions)
    if weights.shape[1] <= 2:
        return [None] * len(questions)
    with np.errstate(invalid="ignore"):  # equal questions have no variance; its share is not used
        vectors = TruncatedSVD(min(DIMENSIONS, weights.shape[1] - 1), random_state=0).fit_transform(weights)
    codes = cluster_questions(normalize_rows(vectors), seed=0)
    names = {topic: ", ".join(words) for topic, words in topic_words(questions, codes).items()}
    return [names.get(code) or None if code >= 0 else None for code in codes.tolist()]


def topic_words(questions: Sequence[str], topics: Codes) -> dict[int, list[str]]:
    """Return the distinctive shared words of each topic, best first, in their most common form.

    Words are ranked by class-based TF-IDF. They occur in at least a fifth of the topic's questions, and in two of them.
    Words have three letters or more, with «ё» as «е» and without addresses and question words. Words with the same
    first five letters count as one. The list is empty if the questions share no word.

    Reference: Grootendorst 2022, BERTopic: neural topic modeling with a class-based TF-IDF procedure.
    """
    forms: dict[str, Counter[str]] = {}
    counts: dict[int, Counter[str]] = {topic: Counter() for topic in topics.tolist()}
    for question, topic in zip(questions, topics.tolist(), strict=True):
        stems: dict[str, str] = {}
        for word in content_words(question):
            stems.setdefault(word[:STEM_LENGTH], word)
        counts[topic].update(stems.keys())
        for stem, word in stems.items():
            forms.setdefault(stem, Counter())[word] += 1
    overall: Counter[str] = Counter()
    for topic_counts in counts.values():
        overall.update(topic_counts)
    mean = sum(overall.values()) / max(1, len(counts))
    sizes = Counter(topics.tolist())
    words_by_topic = {}
    for topic, topic_counts in counts.items():
        min_count = max(min(2, sizes[topic]), MIN_WORD_SHARE * sizes[topic])
        weights = {stem: n * math.log(1 + mean / overall[stem]) for stem, n in topic_counts.items() if n >= min_count}
        best_stems = sorted(weights, key=lambda stem: (-weights[stem], stem))[:LABEL_WORDS]
        words_by_topic[topic] = [forms[stem].most_common(1)[0][0] for stem in best_stems]
    return words_by_topic


def analyse_topics(log: QuestionLog, vectors: Floats, cohesive: CohesiveTopics) -> TopicAnalysis:
    """Return each topic with its size and answer quality, largest first, and the content gaps.

    `expected_gain` is the sum of the gains of a new page over the topic's questions: 1 if the page is missing in the
    corpus, 0.5 if the answer was bad and no page is known, and 0 otherwise. So it never exceeds the number of questions
    without a page.
    """
    topics = cohesive.codes
    # Without personal data, because a person is not a topic.
    masked_questions = [remove_personal_data(question["question"]) for question in log.questions]
    names = topic_words(masked_questions, topics)
    gains = _expected_gains(log)
    rows = [
        _describe_topic(
            log, topic, names.get(topic, []), float(cohesion), np.flatnonzero(topics == topic), gains, vectors
        )
        for topic, cohesion in enumerate(cohesive.cohesion)
    ]
    gaps = sorted(
        (row for row in rows if row["expected_gain"] > 0), key=lambda row: (-row["expected_gain"], row["topic"])
    )
    is_unclustered = topics < 0
    unserved = [log.questions[row]["question"] for row in np.flatnonzero(is_unclustered & (gains > 0))]
    return {
        "topics": rows,
        "cohesion_threshold": None if math.isnan(cohesive.chance_level) else cohesive.chance_level,
        "n_unclustered": int(is_unclustered.sum()),
        "n_unclustered_without_page": len(unserved),
        "unserved_examples": _distinct_questions(unserved)[:EXAMPLES],
        "content_gaps": [_summarize_topic(row) for row in gaps[:MAX_GAPS]],
    }


def _summarize_topic(row: Topic) -> ContentGap:
    return {name: row[name] for name in ContentGap.__annotations__}  # type: ignore[literal-required, return-value]


def _expected_gains(log: QuestionLog) -> Floats:
    """Return the expected gain of a new page for each question."""
    is_unanswered = (log.failures == 1) & np.isnan(log.hits)
    return np.where(log.is_missing, MISSING_GAIN, np.where(is_unanswered, FAILED_GAIN, 0.0))


def _describe_topic(
    log: QuestionLog,
    topic: int,
    words: list[str],
    cohesion: float,
    rows: NDArray[np.intp],
    gains: Floats,
    vectors: Floats,
) -> Topic:
    rows_by_similarity = rows[np.argsort(-(vectors[rows] @ vectors[rows].mean(axis=0)), kind="stable")]
    texts = [log.questions[row]["question"] for row in rows_by_similarity]
    unserved = [log.questions[row]["question"] for row in rows_by_similarity if gains[row] > 0]
    stems = {word[:STEM_LENGTH] for word in words}
    covered = np.mean([any(word[:STEM_LENGTH] in stems for word in content_words(text)) for text in texts])
    return {
        "topic": topic,
        "label": ", ".join(words) if covered >= MIN_COVERED else truncate_text(" ".join(texts[0].split()), MAX_CHARS),
        "words": words,
        "representative": texts[0],
        "n": len(rows),
        "n_distinct": len(_distinct_questions(texts)),
        "cohesion": cohesion,
        "share": len(rows) / len(log.questions),
        "hit_rate": _finite_mean(log.hits[rows]),
        "n_with_hit_rate": int((~np.isnan(log.hits[rows])).sum()),
        "failure_rate": _finite_mean(log.failures[rows]),
        "n_with_failure_rate": int((~np.isnan(log.failures[rows])).sum()),
        "n_missing": int(log.is_missing[rows].sum()),
        "n_unanswered": int((gains[rows] == FAILED_GAIN).sum()),
        "n_not_found": int((log.hits[rows] == 0).sum()),
        "n_downvoted": sum(log.questions[row]["score"] == BAD for row in rows.tolist()),
        "missing_rate": float(log.is_missing[rows].mean()),
        "expected_gain": float(gains[rows].sum()),
        "pages": most_common_pages([log.relevant[row] for row in rows], PAGES),
        "missing_pages": most_common_pages([log.removed_pages[row] for row in rows], PAGES),
        "examples": _distinct_questions(texts)[:EXAMPLES],
        "unserved_examples": _distinct_questions(unserved)[:EXAMPLES],
    }


def _distinct_questions(texts: Sequence[str]) -> list[str]:
    """Return the first question for each set of content words."""
    first_by_words: dict[str, str] = {}
    for text in texts:
        first_by_words.setdefault(" ".join(content_words(text)) or normalise_question(text), text)
    return list(first_by_words.values())


def _finite_mean(values: Floats) -> float | None:
    finite = values[~np.isnan(values)]
    return float(finite.mean()) if len(finite) else None
