"""What moved: a log whose questions change and whose answers do not, and the reverse, taken apart by the real code."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from benchmarks.simulations import Claim, counted
from yarus.metrics.table import metric
from yarus.tasks.cases.table import table
from yarus.tasks.comparison.explanation.explain import explained_metric
from yarus.tasks.comparison.explanation.questions import read_questions

N, TOPICS, FLIPS = 400, 12, 0.02
WORDS = ("где", "когда", "сколько", "какая", "справка", "договор", "пропуск", "сессия", "оплата", "корпус")
LOSS = 0.08


class World(NamedTuple):
    """What is planted."""

    mix: bool
    """Whether topics are asked about as often as before."""
    loss: float
    """By which every answer is likelier to be wrong."""
    shared: float
    """Questions that are asked again."""
    users: int | None
    """Whose questions these are, ten each; None: everybody asks once."""


def claims(effort: float) -> Iterator[Claim]:
    """How often the interval of what did not change holds 0, and that of what did what was planted."""
    repetitions = max(40, round(400 * effort))
    for shared in (0.0, 0.6, 1.0):
        for users in (None, N // 10):
            named = f"{shared:.0%} of the questions asked again" + (", ten a user" if users else "")
            if shared < 1:
                found = [split(World(True, 0.0, shared, users), seed) for seed in range(repetitions)]
                held = [low <= 0 <= high for (low, high), _ in found]
                yield counted(f"only the mix changed: the answers' interval holds 0; {named}", 0.93, 1, held)
            found = [split(World(False, LOSS, shared, users), seed) for seed in range(repetitions)]
            held = [low <= 0 <= high for _, (low, high) in found]
            yield counted(f"only answers changed: the mix's interval holds 0; {named}", 0.93, 1, held)
            held = [low <= -LOSS <= high for (low, high), _ in found]
            yield counted(f"only answers changed: their interval holds the {LOSS} planted; {named}", 0.93, 1, held)


def split(world: World, seed: int) -> tuple[tuple[float, float], tuple[float, float]]:
    """The intervals of what the answers changed, and of what the questions did."""
    before, after = sides(world, seed)
    questions = read_questions((before, after), None, {})
    values = tuple(side["hit_rate@1"].to_numpy() for side in (before, after))
    found = explained_metric(metric("hit_rate@1"), questions, (values[0], values[1]), (None, None))
    assert found is not None and found["answers"] is not None
    answers, mix = found["answers"], found["questions"]
    return (answers["ci_low"], answers["ci_high"]), (mix["ci_low"], mix["ci_high"])


def sides(world: World, seed: int) -> tuple[pa.Table, pa.Table]:
    """The cases before and after."""
    chance = np.random.default_rng(seed)
    right = chance.uniform(0.35, 0.95, TOPICS)
    shares = [chance.dirichlet(np.full(TOPICS, 2.0))] * 2
    if world.mix:
        shares[1] = chance.dirichlet(np.full(TOPICS, 2.0))
    kept, fresh = round(N * world.shared), N - round(N * world.shared)
    parts = [(shares[0], fresh), ((shares[0] + shares[1]) / 2, kept), (shares[1], fresh)]
    topics = np.concatenate([chance.choice(TOPICS, n, p=of) for of, n in parts])
    lengths = chance.integers(2, 9, len(topics))
    users = chance.integers(0, world.users, len(topics)) if world.users else None
    ability = chance.normal(0, 0.1, world.users)[users] if users is not None else 0.0
    likely = np.clip(right[topics] - 0.02 * lengths + ability, LOSS, 1)
    before = (chance.random(len(topics)) < likely).astype(float)
    lost = chance.random(len(topics)) < world.loss / likely
    again = np.where(chance.random(len(topics)) < FLIPS, 1 - before, before)  # by itself; gains and losses alike
    again = np.where((again == 1) & lost, 0.0, again)
    anew = (chance.random(len(topics)) < likely - world.loss).astype(float)
    asked = [" ".join(WORDS[(row + place) % len(WORDS)] for place in range(n)) for row, n in enumerate(lengths)]
    columns: dict[str, list[str | None]] = {
        "case_id": [f"log:{row}" for row in range(len(topics))],
        "question": [*asked],
        "status": ["ok"] * len(topics),
        "group": [None] * len(topics) if users is None else [f"user {user}" for user in users],
        "topic": [f"topic {topic}" for topic in topics],
    }
    rows = range(fresh + kept), range(fresh, len(topics))
    after = np.where(np.arange(len(topics)) < fresh + kept, again, anew)
    return (_side(columns, before, rows[0]), _side(columns, after, rows[1]))


def _side(columns: dict[str, list[str | None]], values: np.ndarray, rows: range) -> pa.Table:
    own = {name: [of[row] for row in rows] for name, of in columns.items()}
    return table(**own, **{"hit_rate@1": values[list(rows)]})
