"""Topics: clusters of the real questions, how well each is served, and what to write next."""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from metrics.embedding import silhouette
from tasks.cases.pseudonyms import cut, without_personal_data
from tasks.cases.text import COMMON_WORDS, STEM
from tasks.corpus.documents import Served, Topic, TopicInShort
from tasks.corpus.question_log import Log, counted

NUMBERS = (2, 3, 5, 8, 12, 18, 25, 35, 50, 70, 100)
"""Of topics, which are tried."""
SMALLEST = 10
"""Questions a topic on average, at least."""
SAMPLE = 4_000
LABEL_WORDS, EXAMPLES, NEXT, PAGES = 4, 3, 10, 5
MISSING, FAILED, NOT_FOUND = 1.0, 0.5, 0.25
"""What a new or better page is expected to gain for a question: whose page is missing; that was answered badly though
nothing relevant was found for it; whose page is there and was not found."""
WORD = re.compile(r"[^\W\d_]{3,}")
ASKING = """
сколько почему зачем какого каком какую каких каким куда откуда кому чего чему кого чем свою свой свои своего сразу
очень надо нужно нужна нужен нужны нельзя будет будут буду хочу хотел могу можем может чтоб если раз тоже только
всех всем через после перед пока вообще просто вроде пожалуйста подскажите подскажи скажите скажи привет
здравствуйте спасибо вот тут там этого этой этом того тем мной меня тебя тебе него нее них нам нами вами ваш ваша
ваши наш делать сделать why whose whom much many need want could would should please hello thanks tell about
"""
COMMON = frozenset(f"{COMMON_WORDS} {ASKING}".replace("ё", "е").split())
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
    order = np.argsort(-np.bincount(chosen), kind="stable") if len(some) else np.zeros(0, dtype=np.int64)
    codes[there] = np.argsort(order)[chosen] if len(some) else chosen
    return codes


def label_words(questions: Sequence[str], topics: Codes) -> dict[int, list[str]]:
    """The words that set each topic apart, best first, by class-based TF-IDF; in the form that most people wrote.

    Words of three letters or more, «ё» as «е», without the commonest; words with the same first five letters are one.

    Reference: Grootendorst 2022, BERTopic: neural topic modeling with a class-based TF-IDF procedure.
    """
    forms: dict[str, Counter[str]] = {}
    counts: dict[int, Counter[str]] = {}
    for question, topic in zip(questions, topics.tolist(), strict=True):
        plain = unicodedata.normalize("NFC", question).casefold().replace("ё", "е")
        for word in dict.fromkeys(word for word in WORD.findall(plain) if word not in COMMON):
            forms.setdefault(word[:STEM], Counter())[word] += 1
            counts.setdefault(topic, Counter())[word[:STEM]] += 1
    overall: Counter[str] = Counter()
    for of_topic in counts.values():
        overall.update(of_topic)
    mean = sum(overall.values()) / max(1, len(counts))
    found = {}
    for topic, of_topic in counts.items():
        weights = {stem: n * math.log(1 + mean / overall[stem]) for stem, n in of_topic.items()}
        best = sorted(weights, key=lambda stem: (-weights[stem], stem))[:LABEL_WORDS]
        found[topic] = [forms[stem].most_common(1)[0][0] for stem in best]
    return found


def served(log: Log, vectors: Floats, topics: Codes) -> Served:
    """Every topic with its size and how well it is served, largest first; and what to write next.

    `gain` adds up, over the topic's questions, what a new page is expected to gain for each: 1 where the page is
    missing, 0.5 where the answer was bad and nothing relevant was found, 0.25 where the page is there and was not
    found; 0 else. Weights of judgement: they put many questions without a page before few, and both before questions
    whose page has only to be found.
    """
    texts = [question["question"] for question in log.questions]
    labels = label_words([without_personal_data(text) for text in texts], topics)  # a person is no topic
    gains = _gains(log)
    rows = [
        _topic(log, topic, labels.get(topic, []), np.flatnonzero(topics == topic), gains, vectors)
        for topic in range(int(topics.max(initial=-1)) + 1)
    ]
    wanted = sorted((row for row in rows if row["gain"] > 0), key=lambda row: (-row["gain"], row["topic"]))
    return {
        "topics": rows,
        "without_topic": int((topics < 0).sum()),
        "next": [_in_short(row) for row in wanted[:NEXT]],
    }


def _in_short(row: Topic) -> TopicInShort:
    return {
        "topic": row["topic"],
        "label": row["label"],
        "n": row["n"],
        "n_missing": row["n_missing"],
        "gain": row["gain"],
        "missing_pages": row["missing_pages"],
        "examples_unserved": row["examples_unserved"],
    }


def _gains(log: Log) -> Floats:
    lost = log.hits == 0
    bad = (log.failures == 1) & ~(log.hits == 1)
    return np.where(log.missing, MISSING, np.where(bad, FAILED, np.where(lost, NOT_FOUND, 0.0)))


def _topic(log: Log, topic: int, words: list[str], rows: NDArray[np.intp], gains: Floats, vectors: Floats) -> Topic:
    near = rows[np.argsort(-(vectors[rows] @ vectors[rows].mean(axis=0)), kind="stable")]
    unserved = near[gains[near] > 0]
    return {
        "topic": topic,
        "label": ", ".join(words) or cut(log.questions[near[0]]["question"], 40),
        "words": words,
        "n": len(rows),
        "share": len(rows) / len(log.questions),
        "hit_rate": _mean(log.hits[rows]),
        "n_hit_known": int((~np.isnan(log.hits[rows])).sum()),
        "failure_rate": _mean(log.failures[rows]),
        "n_failure_known": int((~np.isnan(log.failures[rows])).sum()),
        "n_missing": int(log.missing[rows].sum()),
        "missing_rate": float(log.missing[rows].mean()),
        "gain": float(gains[rows].sum()),
        "pages": counted([log.relevant[row] for row in rows], PAGES),
        "missing_pages": counted([log.gone[row] for row in rows], PAGES),
        "examples": [log.questions[row]["question"] for row in near[:EXAMPLES]],
        "examples_unserved": [log.questions[row]["question"] for row in unserved[:EXAMPLES]],
    }


def _mean(values: Floats) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None
