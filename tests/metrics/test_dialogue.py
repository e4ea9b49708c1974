"""Dialogue metrics: values worked out by hand, their definitions spelt out naively, order of time, bad input."""

import datetime as dt
import itertools
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples import for_all
from yarus.metrics import dialogue
from yarus.metrics.dialogue import (
    cache_hit_rate,
    cache_wrong_hit_rate,
    consistency_by_dialog,
    context_preservation,
    context_similarity_by_dialog,
    is_cache_hit,
    multi_turn_consistency,
    nearest_earlier_question,
)

NAN = math.nan
ROOT = math.sqrt(0.5)
# 0, 90, 45, 180 degrees; and one whose cosine with EAST is exactly 0.6, with NORTH 0.8
EAST, NORTH, NORTHEAST, WEST, STEEP = [2.0, 0.0], [0.0, 1.0], [3.0, 3.0], [-1.0, 0.0], [3.0, 4.0]


def cosine(first: Any, second: Any) -> float:
    """By definition."""
    return float(np.dot(first, second) / (np.linalg.norm(first) * np.linalg.norm(second)))


# The cache


@for_all(
    "questions, cached, threshold, expected",
    [
        ([EAST, NORTH, NORTHEAST, WEST], [[1, 0], [0, 5]], 0.85, 2 / 4),  # cosines 1, 1, 0.707, 0
        ([EAST, NORTH, NORTHEAST, WEST], [[1, 0], [0, 5]], 0.7, 3 / 4),
        ([EAST, NORTH, NORTHEAST, WEST], [[1, 0], [0, 5]], -0.5, 1),
        ([STEEP], [EAST], 0.6, 0),  # equal is not above
        ([STEEP], [EAST], 0.5999, 1),
        ([EAST], [EAST], 1, 0),
        ([WEST], [EAST], -1, 0),
        ([EAST, NORTH], np.empty((0, 2)), 0.85, NAN),  # nothing could have been hit
        ([], [], 0.85, NAN),
        ([], [EAST], 0.85, NAN),
    ],
)
def test_cache_hit_rate(questions: Any, cached: Any, threshold: float, expected: float) -> None:
    assert cache_hit_rate(questions, cached, threshold=threshold) == pytest.approx(expected, nan_ok=True)


def test_cache_default_threshold() -> None:
    angles = np.arccos([0.849, 0.851])
    questions = np.column_stack((np.cos(angles), np.sin(angles)))
    assert cache_hit_rate(questions, [EAST]) == 0.5
    assert is_cache_hit([0.85, 0.851, NAN, 0.849]).tolist() == [False, True, False, False]
    assert cache_wrong_hit_rate([0.85, 0.851], [1, 0]) == 1


@pytest.mark.parametrize(
    ("right", "threshold", "expected"),
    [
        # hits above 0.85: the first three
        ([1, 0, 0, 0, 1], 0.85, 2 / 3),
        ([True, True, True, False, False], 0.85, 0),
        ([1, NAN, 0, 0, 0], 0.85, 1 / 2),  # not known: left out
        ([NAN, NAN, NAN, 1, 1], 0.85, NAN),
        ([1, 1, 1, 0, 0], 0.95, 0),
        ([0, 1, 1, 0, 0], 0.95, 1),
        ([0, 0, 0, 0, 0], 0.99, NAN),  # no hit
    ],
)
def test_cache_wrong_hit_rate(right: list[float], threshold: float, expected: float) -> None:
    value = cache_wrong_hit_rate([0.99, 0.9, 0.95, 0.85, NAN], right, threshold=threshold)
    assert value == pytest.approx(expected, nan_ok=True)


def test_nearest_earlier_only_earlier_candidates() -> None:
    vectors = [EAST, NORTH, NORTHEAST, WEST, STEEP]
    times = [30, 10, 20, 30, 40]
    # 20: NORTH; 30 (EAST): NORTH 0, NORTHEAST 0.707; 30 (WEST): NORTH 0 before NORTHEAST -0.707; EAST is not earlier;
    # 40: STEEP with NORTHEAST 7 / (5 * sqrt(2)) = 0.99, before NORTH 0.8 and EAST 0.6
    near, rows = nearest_earlier_question(vectors, times)
    np.testing.assert_allclose(near, [ROOT, NAN, ROOT, 0, 1.4 * ROOT], atol=1e-11)
    assert rows.tolist() == [2, -1, 1, 1, 2]
    near, rows = nearest_earlier_question(vectors, times, candidates=[True, True, False, False, True])
    np.testing.assert_allclose(near, [0, NAN, ROOT, 0, 0.8], atol=1e-11)
    assert rows.tolist() == [1, -1, 1, 1, 1]
    near, rows = nearest_earlier_question(vectors, times, candidates=[False] * 5)
    assert np.isnan(near).all()
    assert rows.tolist() == [-1] * 5
    near, rows = nearest_earlier_question(vectors, times, asked=[True, False, False, False, True])  # from among all
    np.testing.assert_allclose(near, [ROOT, NAN, NAN, NAN, 1.4 * ROOT], atol=1e-11)
    assert rows.tolist() == [2, -1, -1, -1, 2]


def test_nearest_earlier_prefers_earliest_of_ties() -> None:
    vectors = np.random.default_rng(0).normal(size=384)[None, :] * np.linspace(1, 3, 1500)[:, None]
    times = np.arange(1500)[::-1]
    near, rows = nearest_earlier_question(vectors, times)
    assert (near[:-1] == 1).all()
    assert (rows[:-1] == 1499).all()
    assert rows[-1] == -1


def test_nearest_earlier_with_dates() -> None:
    start = dt.datetime(2026, 3, 1, tzinfo=dt.UTC)
    days = [start + dt.timedelta(days=day) for day in (1, 0, 2)]
    assert nearest_earlier_question([EAST, STEEP, NORTH], days)[1].tolist() == [1, -1, 1]
    naive = np.array(["2026-03-02", "2026-03-01", "2026-03-03"], dtype="datetime64[D]")
    assert nearest_earlier_question([EAST, STEEP, NORTH], naive)[1].tolist() == [1, -1, 1]


@pytest.mark.parametrize("side", [1, 3, 1024])
def test_nearest_earlier_equals_its_definition(monkeypatch: pytest.MonkeyPatch, side: int) -> None:
    monkeypatch.setattr(dialogue, "BLOCK_SIDE", side)
    rng = np.random.default_rng(side)
    vectors, times, candidates = rng.normal(size=(40, 3)), rng.integers(0, 15, 40), rng.random(40) < 0.6
    near, rows = nearest_earlier_question(vectors, times, candidates=candidates)
    for row in range(40):
        earlier = [candidate for candidate in range(40) if candidates[candidate] and times[candidate] < times[row]]
        best = max(earlier, key=lambda candidate, row=row: cosine(vectors[row], vectors[candidate]), default=-1)
        assert rows[row] == best
        if best >= 0:
            assert near[row] == pytest.approx(cosine(vectors[row], vectors[best]), abs=1e-11)
        else:
            assert math.isnan(near[row])
    expected = np.mean([max(cosine(q, c) for c in vectors[20:]) > 0.9 for q in vectors[:20]])
    assert cache_hit_rate(vectors[:20], vectors[20:], threshold=0.9) == expected


# Dialogs


def test_dialog_metrics_by_hand() -> None:
    # x: EAST, NORTHEAST, NORTH: consecutive 0.707, 0.707; all pairs 0.707, 0.707, 0. y: one question.
    # z: EAST, WEST: -1, as a pair 0. They are interleaved.
    vectors = [EAST, STEEP, NORTHEAST, EAST, NORTH, WEST]
    dialogs = ["x", "y", "x", "z", "x", "z"]
    np.testing.assert_allclose(context_similarity_by_dialog(vectors, dialogs), [ROOT, NAN, -1], atol=1e-15)
    np.testing.assert_allclose(consistency_by_dialog(vectors, dialogs), [2 * ROOT / 3, NAN, 0], atol=1e-15)
    assert context_preservation(vectors, dialogs) == pytest.approx((ROOT - 1) / 2, abs=1e-15)
    assert multi_turn_consistency(vectors, dialogs) == pytest.approx(ROOT / 3, abs=1e-15)


def test_dialog_metrics_and_order_of_turns() -> None:
    there, back = [EAST, NORTHEAST, NORTH], [EAST, NORTH, NORTHEAST]
    assert context_preservation(there, [1] * 3) == pytest.approx(ROOT)
    assert context_preservation(back, [1] * 3) == pytest.approx(ROOT / 2)
    assert multi_turn_consistency(back, [1] * 3) == pytest.approx(multi_turn_consistency(there, [1] * 3))


@pytest.mark.parametrize("function", [context_preservation, multi_turn_consistency])
def test_dialog_metrics_undefined_without_pairs(function: Callable[..., float]) -> None:
    assert math.isnan(function([], []))
    assert math.isnan(function([EAST], ["x"]))
    assert math.isnan(function([EAST, NORTH], ["x", "y"]))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_dialog_metrics_of_repeated_question(dtype: Any) -> None:
    vectors = np.tile(np.random.default_rng(0).normal(size=384), (7, 1)).astype(dtype)
    assert context_preservation(vectors, ["x"] * 7) == pytest.approx(1, abs=1e-15)
    assert multi_turn_consistency(vectors, ["x"] * 7) == pytest.approx(1, abs=1e-15)


@st.composite
def talks(draw: st.DrawFn) -> tuple[np.ndarray, list[str]]:
    """Small integer vectors, none zero, in a few dialogs."""
    n = draw(st.integers(1, 12))
    row = st.lists(st.integers(-3, 3), min_size=2, max_size=2).filter(any)
    return np.array(draw(st.lists(row, min_size=n, max_size=n)), float), draw(
        st.lists(st.sampled_from("абв"), min_size=n, max_size=n)
    )


@given(talks())
def test_dialog_metrics_equal_definition(data: tuple[np.ndarray, list[str]]) -> None:
    vectors, dialogs = data
    context, pairs = [], []
    for name in dict.fromkeys(dialogs):
        turns = [vector for vector, dialog in zip(vectors, dialogs, strict=True) if dialog == name]
        steps = [cosine(turn, later) for turn, later in itertools.pairwise(turns)]
        similarities = [max(0, cosine(turn, later)) for index, turn in enumerate(turns) for later in turns[index + 1 :]]
        context.append(np.mean(steps) if steps else NAN)
        pairs.append(np.mean(similarities) if similarities else NAN)
    contexts, consistencies = context_similarity_by_dialog(vectors, dialogs), consistency_by_dialog(vectors, dialogs)
    np.testing.assert_allclose(contexts, context, rtol=0, atol=1e-12)
    np.testing.assert_allclose(consistencies, pairs, rtol=0, atol=1e-12)
    assert (np.isnan(contexts) | (np.abs(contexts) <= 1)).all()
    assert (np.isnan(consistencies) | ((consistencies >= 0) & (consistencies <= 1))).all()


def test_dialog_metrics_of_long_dialogs(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = np.random.default_rng(0).normal(size=(50, 4))
    expected = multi_turn_consistency(vectors, ["x"] * 50)
    monkeypatch.setattr(dialogue, "BLOCK_SIDE", 7)
    assert multi_turn_consistency(vectors, ["x"] * 50) == pytest.approx(expected, abs=1e-12)


# Bad input


def test_dialogue_metrics_refuse_bad_vectors() -> None:
    for function in (
        lambda vectors: cache_hit_rate(vectors, [EAST]),
        lambda vectors: cache_hit_rate([EAST], vectors),
        lambda vectors: context_preservation(vectors, ["x", "x"]),
        lambda vectors: multi_turn_consistency(vectors, ["x", "x"]),
    ):
        with pytest.raises(ValueError, match="vector 1 is zero"):
            function([EAST, [0.0, 0.0]])
        with pytest.raises(ValueError, match="vector 1 is not finite"):
            function([EAST, [NAN, 0.0]])


def test_dialogue_metrics_refuse_bad_lengths_and_values() -> None:
    for function in (context_preservation, multi_turn_consistency):
        with pytest.raises(ValueError, match="2 vectors but 1 dialogs"):
            function([EAST, NORTH], ["x"])
        with pytest.raises(ValueError, match="has no label"):
            function([EAST, NORTH], ["x", None])
    for times, candidates in (([1], [True, True]), ([1, 2], [True])):
        message = f"2 vectors but {len(times)} times, {len(candidates)} candidates"
        with pytest.raises(ValueError, match=message):
            nearest_earlier_question([EAST, NORTH], times, candidates=candidates)
    with pytest.raises(ValueError, match="time 1 is nan; leave the question out"):
        nearest_earlier_question([EAST, NORTH], [1.0, NAN])
    with pytest.raises(ValueError, match="time 0 is NaT"):
        nearest_earlier_question([EAST, NORTH], np.array(["NaT", "2026-01-01"], dtype="datetime64[D]"))
    with pytest.raises(ValueError, match="questions of 2 dimensions but known ones of 3"):
        cache_hit_rate([EAST], [[1.0, 2.0, 3.0]])
    with pytest.raises(ValueError, match=re.escape("(2,) similarities but (1,) verdicts")):
        cache_wrong_hit_rate([0.5, 0.9], [1])


@pytest.mark.parametrize("threshold", [-1.01, 1.01, 85, NAN])
def test_cache_threshold_must_be_cosine(threshold: float) -> None:
    with pytest.raises(ValueError, match=f"threshold = {threshold} is not a cosine, -1 to 1"):
        cache_hit_rate([EAST], [EAST], threshold=threshold)
