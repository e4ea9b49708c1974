"""Of which kinds the questions of a night are, and how each kind scores: alarms leave out what only their mix moves."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product

import pyarrow as pa
from sqlalchemy import Engine, select
from sqlalchemy.engine import RowMapping
from typing_extensions import TypedDict

from yarus.db.tables import config_at, evaluation
from yarus.metrics.statistics.alarms.noise import Cells
from yarus.metrics.table import metric
from yarus.tasks.cases.privacy.pseudonyms import without_personal_data
from yarus.tasks.cases.table import values_of
from yarus.tasks.cases.text import WORD, words
from yarus.tasks.comparison.common_cases import headline
from yarus.tasks.comparison.paired_changes import KIND, cells_of, nights_like
from yarus.tasks.comparison.totals import ERRORS
from yarus.tasks.config.tiers import TIERS
from yarus.tasks.dataset.corpus.topics import topics_by_words

LENGTHS = {"short": 5, "medium": 12}
"""Up to how many words a question is that."""
TOPICS, SEVERAL, SURE = 12, 3, 4.0
"""Topics that are drawn, at most; people who must have used a word of one; standard deviations (of a count, as of
Poisson) by which more of them must have than would by chance."""
Telling = Mapping[str, Mapping[str, float]]
"""Word, as far as words are compared -> topic -> logarithm of how much likelier the word is in its questions."""


class QuestionMix(TypedDict, total=False):
    """`resolved.mix` of an evaluation."""

    topics: Telling
    """By which the questions of this night and of later ones are sorted; in the night that drew them, where none are
    annotated."""
    cells: dict[str, Cells]
    """Headline metric that is a mean over questions -> kind of question -> how many were measured, and the sum of their
    values."""


def question_mix(engine: Engine, row: RowMapping, key: str, cases: pa.Table) -> tuple[QuestionMix, pa.Table]:
    """Sort the questions of a night into kinds, by topic and length.

    Args:
        engine: of our own database.
        row: of the evaluation, which has not ended yet.
        key: its comparability key.
        cases: its own.

    Returns:
        What is stored, and the cases with KIND; nothing, and the cases as they are, where these are no questions, or no
        topics are annotated and none can be drawn.
    """
    if "question" not in cases.column_names:
        return {}, cases
    mix: QuestionMix = {}
    texts = [text or "" for text in values_of(cases, "question")]
    if (topics := annotated_topics(cases)) is None:
        words_of_topics = _drawn_before(engine, row, key)
        if words_of_topics is None:
            words_of_topics = mix["topics"] = draw_topics(texts, values_of(cases, "group"))
        if not words_of_topics:
            return {}, cases
        topics = [topic_of(text, words_of_topics) for text in texts]
    kinds = [f"{topic or 'other'}/{_length(text)}" for topic, text in zip(topics, texts, strict=True)]
    cases = cases.append_column(KIND, pa.array(kinds, pa.string()))
    measured = headline(cases)
    cells = {name: cells_of(metric(name), measured) for name in TIERS[row["tier"]].headlines if name != ERRORS}
    mix["cells"] = {name: of for name, of in cells.items() if of}
    return mix, cases


def annotated_topics(cases: pa.Table) -> list[str | None] | None:
    """Return the topics of the cases, where at least half of them have one."""
    given = [values_of(cases, name) for name in ("cluster", "topic") if name in cases.column_names]
    topics = [next(filter(None, of), None) for of in zip(*given, strict=True)]
    there = sum(topic is not None for topic in topics)
    return topics if there and 2 * there >= len(cases) else None


def draw_topics(texts: Sequence[str], users: Sequence[str | None]) -> dict[str, dict[str, float]]:
    """Return the words that tell the largest topics of questions from one another.

    A word is used for a topic if more people have it in questions of that topic than would by chance, and it has no
    digit: what few people wrote, as a name, is not kept.

    Args:
        texts: the questions.
        users: who asked each; None where that is not known.
    """
    plain = tuple(without_personal_data(text) for text in texts)
    topics = topics_by_words(plain)
    sizes = Counter(topics)
    people: dict[tuple[str, str | None], set[str]] = {}  # by word and topic, and of all topics under None
    for topic, text, user in zip(topics, plain, users, strict=True):
        for key in product(words(text), {topic, None}):
            people.setdefault(key, set()).add(user or text)
    largest = {topic for topic, _ in sizes.most_common(TOPICS)}
    told: dict[str, dict[str, float]] = {}
    for (word, topic), of in people.items():
        if topic is None or topic not in largest:
            continue
        n, by_chance = len(of), len(people[word, None]) * sizes[topic] / len(texts)
        shared = n >= SEVERAL and n - by_chance > SURE * by_chance**0.5
        if shared and not any(map(str.isdigit, word)):
            told.setdefault(word, {})[topic] = round(math.log(n / by_chance), 2)
    return told


def topic_of(text: str, told: Telling) -> str | None:
    """Return the topic that a question's words tell most of; None where they tell of none."""
    weights: dict[str, float] = {}
    for word in sorted(words(text) & told.keys()):
        for topic, weight in told[word].items():
            weights[topic] = weights.get(topic, 0.0) + weight
    return max(sorted(weights), key=lambda topic: weights[topic], default=None)


def _length(text: str) -> str:
    n = len(WORD.findall(text))
    return next((length for length, most in LENGTHS.items() if n <= most), "long")


def _drawn_before(engine: Engine, row: RowMapping, key: str) -> Telling | None:
    """The words by which the nights before were sorted."""
    of = evaluation.c
    drawn = config_at("mix", "topics")
    before = nights_like(row, key), of.started_at < row["started_at"], drawn.astext.is_not(None)
    newest = select(drawn).where(*before).order_by(of.started_at.desc(), of.id.desc()).limit(1)
    with engine.connect() as connection:
        found: Telling | None = connection.scalar(newest)
    return found
