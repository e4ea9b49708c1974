"""Years in which other topics are asked, or weekdays differ, and no answer is worse: what alarms make of them."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.simulations import Claim, counted
from benchmarks.simulations.alarms import CALM, TIERS, YEAR, Asked, nights_of, watched
from yarus.metrics.statistics.alarms.mix import WEEK, remove_mix, remove_weekdays
from yarus.metrics.statistics.alarms.noise import Cells, Night
from yarus.metrics.statistics.groups import Floats, Ints
from yarus.tasks.steps.question_mix import draw_topics, topic_of

NOISE, LOSS, SOON = 0.02, 0.05, 30
"""Share of answers that come out otherwise in a night; a true loss, and nights within which it is to be told of."""
RATES = np.array([0.95, 0.9, 0.85, 0.8, 0.8, 0.75, 0.65, 0.5])
"""Hit rate of each topic; the last one is new where topics come in."""
SEASON, JUMP, WEEKEND = 0.08, 0.05, 0.02
"""What the mix moves the hit rate by, from top to bottom and at once; by what weekends are lower."""
VOCABULARY, COMMON, IN_A_QUESTION = 12, 60, 3
"""Words that each topic has to itself, words of all, and how many of either make a question."""


class World(NamedTuple):
    """What moves in a year while no answer is worse."""

    name: str
    asked: int = 300
    """Questions a night."""
    new: int = 300
    """Of them."""
    season: bool = False
    jump: bool = False
    """After the calm nights the topics are others."""
    comes_in: bool = False
    """After the calm nights a tenth of the questions are about what nobody has asked before."""
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
    """False alarms a year in each world, and true losses told of in the midst of it."""
    years, repetitions = max(1, round(40 * effort)), max(4, round(100 * effort))
    for number, world in enumerate(WORLDS):
        rate = sum(len(alarms(world, YEAR, [1, number, year])) for year in range(years)) / years
        yield Claim(f"{world.name}: false alarms a year of a tier", 0, 1 / TIERS, rate, years)
    for number, world in enumerate(WORLDS):
        opened = (alarms(world, CALM + SOON, [2, number, one], LOSS) for one in range(repetitions))
        told = [any(night >= CALM for night in begun) for begun in opened]
        yield counted(f"{world.name}, -5 points: told of within {SOON} nights", 0.9, 1, told)


def alarms(world: World, count: int, seed: list[int], loss: float = 0.0) -> list[int]:
    """The nights in which an incident began, of a loss that begins after the calm ones."""
    return watched(remove_weekdays(remove_mix(nights(world, count, np.random.default_rng(seed), loss))))[0]


def nights(world: World, count: int, chance: np.random.Generator, loss: float) -> list[Night]:
    """What evaluations keep of so many nights."""
    first = world.new * np.arange(count)
    total, begins = world.asked + int(first[-1]), int(chance.integers(YEAR))
    asked_in = np.maximum(0, np.arange(total) - world.asked + world.new) // max(1, world.new)
    by_night = np.cumsum([_shares(world, night, begins) for night in range(count)], axis=1)
    topics = (by_night[asked_in] < chance.random((total, 1))).sum(axis=1)
    kinds = _by_words(topics, world.asked, chance) if world.by_words else topics
    able, results = chance.random(total), []
    for night in range(count):
        lower = (WEEKEND if world.weekend and night % WEEK >= WEEK - 2 else 0.0) + (loss if night >= CALM else 0.0)
        rows = slice(int(first[night]), int(first[night]) + world.asked)
        hits = (able[rows] < RATES[topics[rows]] - lower) ^ (chance.random(world.asked) < NOISE)
        results.append(Asked(rows.start, hits.astype(np.float64)))
    found = nights_of(results)
    for number, (one, tonight) in enumerate(zip(found, results, strict=True)):
        of, new = kinds[tonight.first : tonight.last], slice(-one.n_new or len(tonight.scores), None)
        cells, new_cells = _cells(of, tonight.scores), _cells(of[new], tonight.scores[new])
        found[number] = one._replace(day=number, cells=cells, new_cells=new_cells)
    return found


def _shares(world: World, night: int, begins: int) -> Floats:
    """Of the topics in one night."""
    usual = np.append(np.ones(len(RATES) - 1), 0.0) / (len(RATES) - 1)
    if world.comes_in:
        return usual if night < CALM else np.append(0.9 * usual[:-1], 0.1)
    moved = SEASON / 2 * np.sin(2 * np.pi * (night + begins) / YEAR) if world.season else 0.0
    moved -= JUMP if world.jump and night >= CALM else 0.0
    beyond = usual * (RATES - usual @ RATES)
    return np.asarray(usual + moved * beyond / (beyond @ RATES))


def _by_words(topics: Ints, asked: int, chance: np.random.Generator) -> NDArray[np.str_]:
    """What the topics of the first night, told by words, make of questions about topics."""
    own = topics[:, None] * VOCABULARY + chance.integers(VOCABULARY, size=(len(topics), IN_A_QUESTION))
    common = len(RATES) * VOCABULARY + chance.integers(COMMON, size=(len(topics), IN_A_QUESTION))
    letters = np.array([chr(ord("a") + number) for number in range(16)])
    numbers = np.concatenate([own, common], axis=1)
    texts = [
        " ".join(of) for of in np.char.add(np.char.add("xx", letters[numbers // 16]), letters[numbers % 16]).tolist()
    ]
    drawn = draw_topics(texts[:asked], [None] * asked)
    return np.array([topic_of(text, drawn) or "" for text in texts])


def _cells(kinds: NDArray[Any], scores: Floats) -> Cells:
    names, codes = np.unique(kinds, return_inverse=True)
    n, sums = np.bincount(codes, minlength=len(names)), np.bincount(codes, scores, minlength=len(names))
    return {str(name): (int(of), float(total)) for name, of, total in zip(names, n, sums, strict=True)}
