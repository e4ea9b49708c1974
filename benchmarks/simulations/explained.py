"""Explanations of changes: a log with changed questions and equal answers, and the reverse."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from benchmarks.simulations import Claim, share_claim
from yarus.metrics.table import get_metric
from yarus.tasks.cases.table import make_cases
from yarus.tasks.comparison.explanation.explain import explain_metric
from yarus.tasks.comparison.explanation.questions import align_questions

N, TOPICS, FLIPS = 400, 12, 0.02
WORDS = ("где", "когда", "сколько", "какая", "справка", "договор", "пропуск", "сессия", "оплата", "корпус")
LOSS = 0.08


class World(NamedTuple):
    """A simulated change."""

    mix: bool
    """Whether the shares of topics change."""
    loss: float
    """By how much every answer is likelier to be wrong."""
    shared: float
    """Share of questions that are repeated."""
    users: int | None
    """Number of users with ten questions each; None: every question has its own user."""


def claims(effort: float) -> Iterator[Claim]:
    """Yield the coverage of 0 by the interval of the unchanged component, and of the planted change by the other."""
    repetitions = max(40, round(400 * effort))
    for shared in (0.0, 0.6, 1.0):
        for users in (None, N // 10):
            what = f"{shared:.0%} of the questions asked again" + (", ten a user" if users else "")
            if shared < 1:
                intervals = [decompose_change(World(True, 0.0, shared, users), seed) for seed in range(repetitions)]
                covers = [low <= 0 <= high for (low, high), _ in intervals]
                yield share_claim(f"only the mix changed: the answers' interval holds 0; {what}", 0.93, 1, covers)
            intervals = [decompose_change(World(False, LOSS, shared, users), seed) for seed in range(repetitions)]
            covers = [low <= 0 <= high for _, (low, high) in intervals]
            yield share_claim(f"only answers changed: the mix's interval holds 0; {what}", 0.93, 1, covers)
            covers = [low <= -LOSS <= high for (low, high), _ in intervals]
            yield share_claim(f"only answers changed: their interval holds the {LOSS} planted; {what}", 0.93, 1, covers)


def decompose_change(world: World, seed: int) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the intervals of the effect of the answers, and of the questions."""
    before, after = simulate_sides(world, seed)
    questions = align_questions((before, after), None, {})
    values = tuple(side["hit_rate@1"].to_numpy() for side in (before, after))
    explanation = explain_metric(get_metric("hit_rate@1"), questions, (values[0], values[1]), (None, None))
    assert explanation is not None and explanation["answers"] is not None
    answers, mix = explanation["answers"], explanation["questions"]
    return (answers["ci_low"], answers["ci_high"]), (mix["ci_low"], mix["ci_high"])


def simulate_sides(world: World, seed: int) -> tuple[pa.Table, pa.Table]:
    """Return the cases before and after."""
    generator = np.random.default_rng(seed)
    accuracy = generator.uniform(0.35, 0.95, TOPICS)
    shares = [generator.dirichlet(np.full(TOPICS, 2.0))] * 2
    if world.mix:
        shares[1] = generator.dirichlet(np.full(TOPICS, 2.0))
    n_repeated, n_new = round(N * world.shared), N - round(N * world.shared)
    parts = [(shares[0], n_new), ((shares[0] + shares[1]) / 2, n_repeated), (shares[1], n_new)]
    topics = np.concatenate([generator.choice(TOPICS, n, p=topic_shares) for topic_shares, n in parts])
    lengths = generator.integers(2, 9, len(topics))
    users = generator.integers(0, world.users, len(topics)) if world.users else None
    ability = generator.normal(0, 0.1, world.users)[users] if users is not None else 0.0
    p_right = np.clip(accuracy[topics] - 0.02 * lengths + ability, LOSS, 1)
    before = (generator.random(len(topics)) < p_right).astype(float)
    is_lost = generator.random(len(topics)) < world.loss / p_right
    # Spontaneous changes; gains and losses alike.
    repeated_scores = np.where(generator.random(len(topics)) < FLIPS, 1 - before, before)
    repeated_scores = np.where((repeated_scores == 1) & is_lost, 0.0, repeated_scores)
    new_scores = (generator.random(len(topics)) < p_right - world.loss).astype(float)
    questions = [" ".join(WORDS[(row + index) % len(WORDS)] for index in range(n)) for row, n in enumerate(lengths)]
    columns: dict[str, list[str | None]] = {
        "case_id": [f"log:{row}" for row in range(len(topics))],
        "question": [*questions],
        "status": ["ok"] * len(topics),
        "group": [None] * len(topics) if users is None else [f"user {user}" for user in users],
        "topic": [f"topic {topic}" for topic in topics],
    }
    rows = range(n_new + n_repeated), range(n_new, len(topics))
    after = np.where(np.arange(len(topics)) < n_new + n_repeated, repeated_scores, new_scores)
    return (_side(columns, before, rows[0]), _side(columns, after, rows[1]))


def _side(columns: dict[str, list[str | None]], values: np.ndarray, rows: range) -> pa.Table:
    selected = {name: [values_of_column[row] for row in rows] for name, values_of_column in columns.items()}
    return make_cases(**selected, **{"hit_rate@1": values[list(rows)]})
