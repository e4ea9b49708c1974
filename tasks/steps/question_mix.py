"""Kinds of a night's questions, and the scores of each kind: alarms ignore changes that only their mix causes."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product

import pyarrow as pa
from sqlalchemy import Engine, select
from sqlalchemy.engine import RowMapping
from typing_extensions import TypedDict

from yarus.db.tables import config_value, evaluation
from yarus.metrics.statistics.change_detection.noise import QuestionCells
from yarus.metrics.table import get_metric
from yarus.tasks.cases.privacy.pseudonyms import remove_personal_data
from yarus.tasks.cases.table import column_values
from yarus.tasks.cases.text import WORD_PATTERN, word_stems
from yarus.tasks.comparison.common_cases import select_headline_cases
from yarus.tasks.comparison.metric_values import ERROR_RATE
from yarus.tasks.comparison.paired_changes import KIND_COLUMN, count_cells, history_condition
from yarus.tasks.config.tiers import TIERS
from yarus.tasks.dataset.corpus.topics import name_topics_by_words

LENGTHS = {"short": 5, "medium": 12}
"""Class of length -> most words of its questions."""
TOPICS, SEVERAL, SURE = 12, 3, 4.0
"""Most topics that are chosen; least number of people who used a topic's word; Poisson standard deviations by which
that number must exceed the one expected by chance."""
TopicWords = Mapping[str, Mapping[str, float]]
"""Normalised word -> topic -> logarithm of how much likelier the word is in the topic's questions."""


class QuestionMix(TypedDict, total=False):
    """`resolved.mix` of an evaluation."""

    topics: TopicWords
    """By which the questions of this night and of later ones are sorted; in the night that drew them, where none are
    annotated."""
    cells: dict[str, QuestionCells]
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
        The mix to store, and the cases with KIND_COLUMN. An empty mix and unchanged cases, if the cases are not
        questions, or no topics are annotated and none can be found.
    """
    if "question" not in cases.column_names:
        return {}, cases
    mix: QuestionMix = {}
    texts = [text or "" for text in column_values(cases, "question")]
    if (topics := find_annotated_topics(cases)) is None:
        words_of_topics = _read_earlier_topics(engine, row, key)
        if words_of_topics is None:
            words_of_topics = mix["topics"] = draw_topics(texts, column_values(cases, "group"))
        if not words_of_topics:
            return {}, cases
        topics = [match_topic(text, words_of_topics) for text in texts]
    kinds = [f"{topic or 'other'}/{_length_class(text)}" for topic, text in zip(topics, texts, strict=True)]
    cases = cases.append_column(KIND_COLUMN, pa.array(kinds, pa.string()))
    chosen = select_headline_cases(cases)
    cells = {name: count_cells(get_metric(name), chosen) for name in TIERS[row["tier"]].headlines if name != ERROR_RATE}
    mix["cells"] = {name: metric_cells for name, metric_cells in cells.items() if metric_cells}
    return mix, cases


def find_annotated_topics(cases: pa.Table) -> list[str | None] | None:
    """Return the topics of the cases, if at least half of them have one."""
    columns = [column_values(cases, name) for name in ("cluster", "topic") if name in cases.column_names]
    topics = [next(filter(None, case_topics), None) for case_topics in zip(*columns, strict=True)]
    n_known = sum(topic is not None for topic in topics)
    return topics if n_known and 2 * n_known >= len(cases) else None


def draw_topics(texts: Sequence[str], users: Sequence[str | None]) -> dict[str, dict[str, float]]:
    """Return the words that distinguish the largest topics of questions.

    A word counts for a topic if more people use it in that topic's questions than expected by chance, and it has no
    digit. Words of few people, such as names, are not stored.

    Args:
        texts: the questions.
        users: who asked each; None if unknown.
    """
    masked_texts = tuple(remove_personal_data(text) for text in texts)
    topics = name_topics_by_words(masked_texts)
    sizes = Counter(topics)
    people: dict[tuple[str, str | None], set[str]] = {}  # by word and topic, and of all topics under None
    for topic, text, user in zip(topics, masked_texts, users, strict=True):
        for key in product(word_stems(text), {topic, None}):
            people.setdefault(key, set()).add(user or text)
    largest = {topic for topic, _ in sizes.most_common(TOPICS)}
    topic_words: dict[str, dict[str, float]] = {}
    for (word, topic), word_users in people.items():
        if topic is None or topic not in largest:
            continue
        n_users, expected = len(word_users), len(people[word, None]) * sizes[topic] / len(texts)
        is_typical = n_users >= SEVERAL and n_users - expected > SURE * expected**0.5
        if is_typical and not any(map(str.isdigit, word)):
            topic_words.setdefault(word, {})[topic] = round(math.log(n_users / expected), 2)
    return topic_words


def match_topic(text: str, topic_words: TopicWords) -> str | None:
    """Return the topic that a question's words indicate most; None if they indicate none."""
    weights: dict[str, float] = {}
    for word in sorted(word_stems(text) & topic_words.keys()):
        for topic, weight in topic_words[word].items():
            weights[topic] = weights.get(topic, 0.0) + weight
    return max(sorted(weights), key=lambda topic: weights[topic], default=None)


def _length_class(text: str) -> str:
    n = len(WORD_PATTERN.findall(text))
    return next((length for length, most in LENGTHS.items() if n <= most), "long")


def _read_earlier_topics(engine: Engine, row: RowMapping, key: str) -> TopicWords | None:
    """Return the words by which the questions of earlier nights were sorted."""
    columns = evaluation.c
    topics_column = config_value("mix", "topics")
    conditions = history_condition(row, key), columns.started_at < row["started_at"], topics_column.astext.is_not(None)
    newest = select(topics_column).where(*conditions).order_by(columns.started_at.desc(), columns.id.desc()).limit(1)
    with engine.connect() as connection:
        topics: TopicWords | None = connection.scalar(newest)
    return topics
