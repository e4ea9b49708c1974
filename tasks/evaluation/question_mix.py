"""Of which kinds the questions of a night are, and how each kind scores: alarms leave out what only their mix moves."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import pyarrow as pa
from sqlalchemy import Engine, exists, select
from sqlalchemy.engine import RowMapping
from typing_extensions import TypedDict

from db.tables import evaluation
from metrics.statistics.alarms.noise import Cells
from metrics.table import metric
from tasks.cases.pseudonyms import without_personal_data
from tasks.cases.text import WORD, words
from tasks.comparison.common_cases import headline
from tasks.comparison.paired_changes import KIND, cells_of, nights_like
from tasks.config.tiers import TIERS
from tasks.corpus.topics import topics_by_words

LENGTHS = {"short": 5, "medium": 12}
"""Up to how many words a question is that."""
TOPICS, WORDS = 12, 30
"""The largest topics, and words of each, by which questions are sorted."""
Telling = Mapping[str, Mapping[str, float]]
"""Word, as far as words are compared -> topic -> how much the word tells of it."""


class QuestionMix(TypedDict, total=False):
    """`resolved.mix` of an evaluation."""

    topics: Telling
    """By which the questions of this night and of later ones are sorted; in the night that drew them, where none are
    annotated."""
    cells: dict[str, Cells]
    """Headline metric -> kind of question -> how many were measured, and the sum of their values."""


def question_mix(engine: Engine, row: RowMapping, key: str, cases: pa.Table) -> tuple[QuestionMix, pa.Table]:
    """Sort the questions of a night into kinds, by topic and length.

    Args:
        engine: of our own database.
        row: of the evaluation, which has not ended yet.
        key: its comparability key.
        cases: its own.

    Returns:
        What is stored, and the cases with KIND; nothing, and the cases as they are, where they have no questions, or no
        annotated topics and no night before that asked others.
    """
    asked = cases["question"].to_pylist() if "question" in cases.column_names else []
    if not any(asked):
        return {}, cases
    texts = [text or "" for text in asked]
    mix: QuestionMix = {}
    if (topics := annotated_topics(cases)) is None:
        known, asked_others = _before(engine, row, key)
        if known is None and not asked_others:  # to draw topics takes a while, and one set of questions has one mix
            return {}, cases
        if known is None:
            known = mix["topics"] = draw_topics(texts)
        topics = [topic_of(text, known) for text in texts]
    kinds = [f"{topic or 'other'}/{_length(text)}" for topic, text in zip(topics, texts, strict=True)]
    cases = cases.append_column(KIND, pa.array(kinds, pa.string()))
    measured = headline(cases)
    mix["cells"] = {name: cells_of(metric(name), measured) for name in TIERS[row["tier"]].headlines}
    return mix, cases


def annotated_topics(cases: pa.Table) -> list[str | None] | None:
    """Return the topics of the cases, where at least half of them have one."""
    given = [cases[name].to_pylist() for name in ("cluster", "topic") if name in cases.column_names]
    topics = [next((one for one in of if one is not None), None) for of in zip(*given, strict=True)]
    there = sum(topic is not None for topic in topics)
    return topics if there and 2 * there >= len(cases) else None


def draw_topics(texts: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return the words that tell the largest topics of questions from one another (class-based TF-IDF)."""
    plain = tuple(without_personal_data(text) for text in texts)
    counts: dict[str, Counter[str]] = {}
    sizes: Counter[str] = Counter()
    for topic, text in zip(topics_by_words(plain), plain, strict=True):
        if topic is not None:
            sizes[topic] += 1
            counts.setdefault(topic, Counter()).update(words(text))
    overall = sum(counts.values(), Counter[str]())
    usual = overall.total() / max(1, len(counts))
    told: dict[str, dict[str, float]] = {}
    for topic, size in sizes.most_common(TOPICS):
        for word, n in counts[topic].most_common(WORDS):
            if n > 1:  # what one person wrote says nothing of a topic
                told.setdefault(word, {})[topic] = round(n / size * math.log(1 + usual / overall[word]), 4)
    return told


def topic_of(text: str, told: Telling) -> str | None:
    """Return the topic that a question's words tell most of; None where they tell of none."""
    weights: Counter[str] = Counter()
    for word in sorted(words(text)):
        weights.update(told.get(word, {}))
    return max(sorted(weights), key=lambda topic: weights[topic], default=None)


def _length(text: str) -> str:
    n = len(WORD.findall(text))
    return next((length for length, most in LENGTHS.items() if n <= most), "long")


def _before(engine: Engine, row: RowMapping, key: str) -> tuple[Telling | None, bool]:
    """The topics by which the nights before were sorted, and whether one of these asked other questions."""
    of = evaluation.c
    before = nights_like(row, key), of.started_at < row["started_at"]
    drawn = of.resolved["mix"]["topics"]
    newest = select(drawn).where(*before, drawn.astext.is_not(None)).order_by(of.started_at.desc(), of.id.desc())
    others = select(exists().where(*before, of.case_set_hash != row["case_set_hash"]))
    with engine.connect() as connection:
        return connection.scalar(newest.limit(1)), bool(connection.scalar(others))
