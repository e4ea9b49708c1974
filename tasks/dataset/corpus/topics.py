"""Topics: clusters of the real questions, how well each is served, and what to write next."""

import math
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from yarus.metrics.embedding import silhouette
from yarus.tasks.cases.labels import BAD
from yarus.tasks.cases.privacy.pseudonyms import cut, without_personal_data
from yarus.tasks.cases.text import STEM, normalised, words
from yarus.tasks.dataset.corpus.cohesion import Held
from yarus.tasks.dataset.corpus.corpus_schema import Served, Topic, TopicInShort
from yarus.tasks.dataset.corpus.languages import content
from yarus.tasks.dataset.corpus.projection import unit
from yarus.tasks.dataset.corpus.question_log import Log, counted

NUMBERS = (2, 3, 5, 8, 12, 18, 25, 35, 50, 70, 100)
"""Of topics, which are tried."""
SMALLEST = 10
"""Questions a topic on average, at least."""
SAMPLE = 4_000
LABEL_WORDS, EXAMPLES, NEXT, PAGES = 4, 3, 10, 5
SHARED, COVERED = 0.2, 0.5
"""A word names a topic that this share of its questions has; words do of which this share has at least one."""
MISSING, FAILED = 1.0, 0.5
"""What a new page is expected to gain for a question: whose page is not in the corpus; that was answered badly, and of
which no page is known."""
DIMENSIONS = 50
"""In which questions are compared by their words."""
LABEL = 60
"""Characters of a question that names a topic."""
Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


def cluster(vectors: Floats, *, seed: int) -> Codes:
    """The topic of every question, by size: 0 is the largest.

    k-means of unit vectors. Of several numbers of topics the one with the largest mean silhouette (cosine, on a sample)
    is taken; a number counts only where its topics have ten questions on average. Fewer than twenty questions, or
    questions that are all alike, are one topic.

    Args:
        vectors: (n, d) rows of length 1, or 0 where the embedder sees nothing in the question: topic -1.
        seed: of the starts and of the sample.

    Returns:
        (n,) topic numbers.

    Reference: Rousseeuw 1987, Silhouettes; Sculley 2010, Web-scale k-means clustering.
    """
    from sklearn.cluster import KMeans, MiniBatchKMeans

    there = np.linalg.norm(vectors, axis=1) > 0
    some = vectors[there]
    distinct = len(np.unique(some.round(6), axis=0)) if len(some) <= SAMPLE else SAMPLE
    chosen: Codes = np.zeros(len(some), dtype=np.int64)
    best = -math.inf
    rows = np.sort(np.random.default_rng(seed).permutation(len(some))[:SAMPLE])
    for number in NUMBERS:
        if number * SMALLEST > len(some) or number > distinct:
            break
        kind = KMeans if len(some) <= SAMPLE else MiniBatchKMeans
        with threadpool_limits(1):  # more threads add up in another order, and the topics would not be the same
            labels = kind(number, random_state=seed, n_init=3).fit_predict(some)
        score = silhouette(some[rows], labels[rows].tolist())
        if score > best:
            chosen, best = labels, score
    codes = np.full(len(vectors), -1, dtype=np.int64)
    order = np.argsort(-np.bincount(chosen), kind="stable")
    codes[there] = np.argsort(order)[chosen]
    return codes


@lru_cache(maxsize=4)  # the tiers of a night ask the same questions
def topics_by_words(texts: tuple[str | None, ...]) -> list[str | None]:
    """A topic for every question, named by the words that set it apart; None where it has no words."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    asked = [text or "" for text in texts]
    try:
        weights = TfidfVectorizer(analyzer=lambda text: sorted(words(text)), min_df=2).fit_transform(asked)
    except ValueError:  # no word stands in two questions
        return [None] * len(asked)
    if weights.shape[1] <= 2:
        return [None] * len(asked)
    with np.errstate(invalid="ignore"):  # of questions that are all alike, whose share of variance nobody reads
        vectors = TruncatedSVD(min(DIMENSIONS, weights.shape[1] - 1), random_state=0).fit_transform(weights)
    codes = cluster(unit(vectors), seed=0)
    named = {topic: ", ".join(of) for topic, of in label_words(asked, codes).items()}
    return [named.get(code) or None if code >= 0 else None for code in codes.tolist()]


def label_words(questions: Sequence[str], topics: Codes) -> dict[int, list[str]]:
    """The words that set each topic apart and that its questions share, best first, in the form that most people wrote.

    By class-based TF-IDF, of words that a fifth of the topic's questions have, and two of them at least. Words of three
    letters or more, «ё» as «е», without addresses and without those that only ask; words with the same first five
    letters are one. Empty where the questions share no word.

    Reference: Grootendorst 2022, BERTopic: neural topic modeling with a class-based TF-IDF procedure.
    """
    forms: dict[str, Counter[str]] = {}
    counts: dict[int, Counter[str]] = {topic: Counter() for topic in topics.tolist()}
    for question, topic in zip(questions, topics.tolist(), strict=True):
        stems: dict[str, str] = {}
        for word in content(question):
            stems.setdefault(word[:STEM], word)
        counts[topic].update(stems.keys())
        for stem, word in stems.items():
            forms.setdefault(stem, Counter())[word] += 1
    overall: Counter[str] = Counter()
    for of_topic in counts.values():
        overall.update(of_topic)
    mean = sum(overall.values()) / max(1, len(counts))
    sizes = Counter(topics.tolist())
    found = {}
    for topic, of_topic in counts.items():
        least = max(min(2, sizes[topic]), SHARED * sizes[topic])
        weights = {stem: n * math.log(1 + mean / overall[stem]) for stem, n in of_topic.items() if n >= least}
        best = sorted(weights, key=lambda stem: (-weights[stem], stem))[:LABEL_WORDS]
        found[topic] = [forms[stem].most_common(1)[0][0] for stem in best]
    return found


def served(log: Log, vectors: Floats, held: Held) -> Served:
    """Every topic with its size and how well it is served, largest first; and what to write next.

    `gain` adds up, over the topic's questions, what a new page is expected to gain for each: 1 where the page is not in
    the corpus, 0.5 where the answer was bad and no page is known; nothing where a page is there. So it is never above
    the number of questions without a page.
    """
    topics = held.codes
    plain = [without_personal_data(question["question"]) for question in log.questions]  # a person is no topic
    names = label_words(plain, topics)
    gains = _gains(log)
    rows = [
        _topic(log, topic, names.get(topic, []), float(cohesion), np.flatnonzero(topics == topic), gains, vectors)
        for topic, cohesion in enumerate(held.cohesion)
    ]
    wanted = sorted((row for row in rows if row["gain"] > 0), key=lambda row: (-row["gain"], row["topic"]))
    alone = topics < 0
    unserved = [log.questions[row]["question"] for row in np.flatnonzero(alone & (gains > 0))]
    return {
        "topics": rows,
        "cohesion_by_chance": None if math.isnan(held.by_chance) else held.by_chance,
        "without_topic": int(alone.sum()),
        "without_topic_or_page": len(unserved),
        "examples_unserved": _different(unserved)[:EXAMPLES],
        "next": [_in_short(row) for row in wanted[:NEXT]],
    }


def _in_short(row: Topic) -> TopicInShort:
    return {name: row[name] for name in TopicInShort.__annotations__}  # type: ignore[literal-required, return-value]


def _gains(log: Log) -> Floats:
    """What a new page is expected to gain for each question."""
    unanswered = (log.failures == 1) & np.isnan(log.hits)
    return np.where(log.missing, MISSING, np.where(unanswered, FAILED, 0.0))


def _topic(
    log: Log,
    topic: int,
    words: list[str],
    cohesion: float,
    rows: NDArray[np.intp],
    gains: Floats,
    vectors: Floats,
) -> Topic:
    near = rows[np.argsort(-(vectors[rows] @ vectors[rows].mean(axis=0)), kind="stable")]
    texts = [log.questions[row]["question"] for row in near]
    unserved = [log.questions[row]["question"] for row in near if gains[row] > 0]
    stems = {word[:STEM] for word in words}
    covered = np.mean([any(word[:STEM] in stems for word in content(text)) for text in texts])
    return {
        "topic": topic,
        "label": ", ".join(words) if covered >= COVERED else cut(" ".join(texts[0].split()), LABEL),
        "words": words,
        "representative": texts[0],
        "n": len(rows),
        "n_distinct": len(_different(texts)),
        "cohesion": cohesion,
        "share": len(rows) / len(log.questions),
        "hit_rate": _mean(log.hits[rows]),
        "n_hit_known": int((~np.isnan(log.hits[rows])).sum()),
        "failure_rate": _mean(log.failures[rows]),
        "n_failure_known": int((~np.isnan(log.failures[rows])).sum()),
        "n_missing": int(log.missing[rows].sum()),
        "n_unanswered": int((gains[rows] == FAILED).sum()),
        "n_not_found": int((log.hits[rows] == 0).sum()),
        "n_downvoted": sum(log.questions[row]["score"] == BAD for row in rows.tolist()),
        "missing_rate": float(log.missing[rows].mean()),
        "gain": float(gains[rows].sum()),
        "pages": counted([log.relevant[row] for row in rows], PAGES),
        "missing_pages": counted([log.gone[row] for row in rows], PAGES),
        "examples": _different(texts)[:EXAMPLES],
        "examples_unserved": _different(unserved)[:EXAMPLES],
    }


def _different(texts: Sequence[str]) -> list[str]:
    """The first of those that ask the same in the same words of content."""
    first: dict[str, str] = {}
    for text in texts:
        first.setdefault(" ".join(content(text)) or normalised(text), text)
    return list(first.values())


def _mean(values: Floats) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None
