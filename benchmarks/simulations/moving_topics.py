"""Years in which the topics of questions change, or weekdays differ, and no answer gets worse: false alarms."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.simulations import Claim, share_claim
from benchmarks.simulations.alarms import CALM, TIERS, YEAR, NightScores, find_incidents, to_nights
from yarus.metrics.statistics.change_detection.mix import WEEK, remove_mix, remove_weekdays
from yarus.metrics.statistics.change_detection.noise import NightlyValue, QuestionCells
from yarus.metrics.statistics.groups import Floats, Ints
from yarus.tasks.steps.question_mix import draw_topics, match_topic

NOISE, LOSS, SOON = 0.02, 0.05, 30
"""Share of answers that change in a night; a true loss, and nights within which it must be detected."""
RATES = np.array([0.95, 0.9, 0.85, 0.8, 0.8, 0.75, 0.65, 0.5])
"""Hit rate of each topic; the last one is new if topics come in."""
SEASON, JUMP, WEEKEND = 0.08, 0.05, 0.02
"""Change of the hit rate by the mix, from top to bottom and at once; and of weekends."""
VOCABULARY, COMMON, IN_A_QUESTION = 12, 60, 3
"""Words of each topic alone, common words, and how many of either make a question."""


class World(NamedTuple):
    """What changes in a year while no answer gets worse."""

    name: str
    n_questions: int = 300
    """Questions per night."""
    new: int = 300
    """New questions among them."""
    season: bool = False
    jump: bool = False
    """After the calm nights the topics change."""
    comes_in: bool = False
    """After the calm nights a tenth of the questions is about a new topic."""
    weekend: bool = False
    by_words: bool = False
    """Whether topics are drawn from words, because nobody annotates them."""


WORLDS = (
    World("season of 8 points, 200 new questions a night", 200, 200, season=True),
    World("season of 8 points, 300 new questions a night", season=True),
    World("season of 8 points, 1,000 new questions a night", 1_000, 1_000, season=True),
    World("season of 8 points, 300 questions, 140 new a night", new=140, season=True),
    World("season of 8 points, 300 new questions a night, topics by words", season=True, by_words=True),
    World("jump of 5 points, 300 new questions a night", jump=True),
    World("jump of 5 points, 1,000 new questions a night", 1_000, 1_000, jump=True),
    World("jump of 5 points, 300 new questions a night, topics by words", jump=True, by_words=True),
    World("a topic comes in, 300 new questions a night", comes_in=True),
    World("a topic comes in, 300 new questions a night, topics by words", comes_in=True, by_words=True),
    World("weekends 2 points lower, frozen set of 300", new=0, weekend=True),
    World("weekends 2 points lower, frozen set of 1,000", 1_000, 0, weekend=True),
    World("weekends 2 points lower, 300 new questions a night", weekend=True),
    World("weekends 2 points lower, 1,000 new questions a night", 1_000, 1_000, weekend=True),
)


def claims(effort: float) -> Iterator[Claim]:
    """Yield false alarms per year in each world, and true losses that are detected during the change."""
    years, repetitions = max(1, round(40 * effort)), max(4, round(100 * effort))
    for number, world in enumerate(WORLDS):
        rate = sum(len(find_alarms(world, YEAR, [1, number, year])) for year in range(years)) / years
        yield Claim(f"{world.name}: false alarms a year of a tier", 0, 1 / TIERS, rate, years)
    for number, world in enumerate(WORLDS):
        opened = (find_alarms(world, CALM + SOON, [2, number, repetition], LOSS) for repetition in range(repetitions))
        is_detected = [any(night >= CALM for night in incident_nights) for incident_nights in opened]
        yield share_claim(f"{world.name}, -5 points: told of within {SOON} nights", 0.9, 1, is_detected)


def find_alarms(world: World, count: int, seed: list[int], loss: float = 0.0) -> list[int]:
    """Return the nights in which an incident began, with a loss that begins after the calm ones."""
    return find_incidents(
        remove_weekdays(remove_mix(simulate_nights(world, count, np.random.default_rng(seed), loss)))
    )[0]


def simulate_nights(world: World, count: int, generator: np.random.Generator, loss: float) -> list[NightlyValue]:
    """Return the stored values of so many nights."""
    first = world.new * np.arange(count)
    total, season_start = world.n_questions + int(first[-1]), int(generator.integers(YEAR))
    first_nights = np.maximum(0, np.arange(total) - world.n_questions + world.new) // max(1, world.new)
    by_night = np.cumsum([_shares(world, night, season_start) for night in range(count)], axis=1)
    topics = (by_night[first_nights] < generator.random((total, 1))).sum(axis=1)
    kinds = _topics_by_words(topics, world.n_questions, generator) if world.by_words else topics
    ability, results = generator.random(total), []
    for index in range(count):
        reduction = (WEEKEND if world.weekend and index % WEEK >= WEEK - 2 else 0.0) + (loss if index >= CALM else 0.0)
        rows = slice(int(first[index]), int(first[index]) + world.n_questions)
        hits = (ability[rows] < RATES[topics[rows]] - reduction) ^ (generator.random(world.n_questions) < NOISE)
        results.append(NightScores(rows.start, hits.astype(np.float64)))
    stored = to_nights(results)
    for number, (night, tonight) in enumerate(zip(stored, results, strict=True)):
        kinds_of_night, new = kinds[tonight.first : tonight.last], slice(-night.n_new or len(tonight.scores), None)
        cells, new_cells = _cells(kinds_of_night, tonight.scores), _cells(kinds_of_night[new], tonight.scores[new])
        stored[number] = night._replace(day=number, cells=cells, new_cells=new_cells)
    return stored


def _shares(world: World, night: int, season_start: int) -> Floats:
    """Return the shares of the topics in one night."""
    usual = np.append(np.ones(len(RATES) - 1), 0.0) / (len(RATES) - 1)
    if world.comes_in:
        return usual if night < CALM else np.append(0.9 * usual[:-1], 0.1)
    shift = SEASON / 2 * np.sin(2 * np.pi * (night + season_start) / YEAR) if world.season else 0.0
    shift -= JUMP if world.jump and night >= CALM else 0.0
    tilt = usual * (RATES - usual @ RATES)
    return np.asarray(usual + shift * tilt / (tilt @ RATES))


def _topics_by_words(topics: Ints, n_first: int, generator: np.random.Generator) -> NDArray[np.str_]:
    """Return the topics of questions by the words of the first night's topics."""
    topic_words = topics[:, None] * VOCABULARY + generator.integers(VOCABULARY, size=(len(topics), IN_A_QUESTION))
    common_words = len(RATES) * VOCABULARY + generator.integers(COMMON, size=(len(topics), IN_A_QUESTION))
    letters = np.array([chr(ord("a") + number) for number in range(16)])
    numbers = np.concatenate([topic_words, common_words], axis=1)
    texts = [
        " ".join(row) for row in np.char.add(np.char.add("xx", letters[numbers // 16]), letters[numbers % 16]).tolist()
    ]
    word_topics = draw_topics(texts[:n_first], [None] * n_first)
    return np.array([match_topic(text, word_topics) or "" for text in texts])


def _cells(kinds: NDArray[Any], scores: Floats) -> QuestionCells:
    names, codes = np.unique(kinds, return_inverse=True)
    n, sums = np.bincount(codes, minlength=len(names)), np.bincount(codes, scores, minlength=len(names))
    return {str(name): (int(count), float(total)) for name, count, total in zip(names, n, sums, strict=True)}
