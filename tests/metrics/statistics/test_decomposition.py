"""Decompositions: exact sums, planted mixes, and questions that cannot be compared."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yarus.metrics.statistics.differences.decomposition import assign_cells, decompose

NAN = float("nan")
VALUE = st.one_of(st.just(NAN), st.floats(0, 1))


@given(st.lists(st.tuples(VALUE, VALUE, st.integers(0, 3)), min_size=2, max_size=60))
def test_decompose_components_add_up(rows: list[tuple[float, float, int]]) -> None:
    before, after, kinds = (list(column) for column in zip(*rows, strict=True))
    split = decompose(before, after, kinds, parts={0: "even", 1: "odd", 2: "even", 3: "odd"})
    if np.isnan(split.answers.value):
        return
    assert split.questions.value + split.answers.value == pytest.approx(split.difference, abs=1e-9)
    assert sum(part.value for part in split.parts.values()) == pytest.approx(split.answers.value, abs=1e-9)
    assert split.by_case.sum() == pytest.approx(split.answers.value, abs=1e-9)
    for part in (split.questions, split.answers):
        assert not part.interval.low > part.value and not part.interval.high < part.value


def test_decompose_same_questions_have_no_question_effect() -> None:
    before, after = np.array([1.0] * 50 + [0.0] * 50), np.array([1.0] * 40 + [0.0] * 60)
    split = decompose(before, after, [0] * 60 + [1] * 40)
    assert split.questions.value == 0 and split.questions.interval == (0, 0)
    assert split.answers.value == pytest.approx(-0.1) and split.answers.interval.high < 0


def test_decompose_allows_for_unseen_change() -> None:
    split = decompose([1.0] * 100, [1.0] * 100, [0] * 100)
    assert split.answers.value == 0
    assert -0.05 < split.answers.interval.low < 0 < split.answers.interval.high < 0.05


def test_decompose_by_user() -> None:
    chance = np.random.default_rng(0)
    users = np.repeat(np.arange(20), 20)
    before = np.ones(400)
    after = (chance.random(20) < 0.7)[users].astype(float)  # of a user all are lost, or none
    ungrouped, grouped = (decompose(before, after, [0] * 400, groups=names) for names in (None, users.tolist()))
    wide = [split.answers.interval.high - split.answers.interval.low for split in (ungrouped, grouped)]
    assert wide[1] > 2 * wide[0]


def test_decompose_answers_undefined_without_common_cell() -> None:
    split = decompose([1.0] * 10 + [NAN] * 10, [NAN] * 10 + [0.0] * 10, [0] * 10 + [1] * 10)
    assert split.difference == -1 == split.questions.value and np.isnan(split.answers.value)
    assert split.questions.interval.low <= -1 <= split.questions.interval.high


def test_decompose_undefined_without_values() -> None:
    split = decompose([NAN, NAN], [1.0, 0.0], [0, 0], parts={0: "all"})
    assert np.isnan(split.difference) and np.isnan(split.parts["all"].value)


def test_decompose_refuses_unequal_lengths() -> None:
    with pytest.raises(ValueError, match="2 values before, 1 after and 2 cells"):
        decompose([1.0, 0.0], [1.0], [0, 0])


def test_cells_separate_questions_of_one_side() -> None:
    topics = ["old"] * 6 + ["new"] * 6 + ["rare", "odd"]
    before = [1] * 6 + [0] * 6 + [1, 1]
    after = [0] * 6 + [1] * 6 + [1, 1]
    kinds = assign_cells([topics], before, after)
    assert len({kinds[0], kinds[6], kinds[12]}) == 3 and kinds[12] == kinds[13]


def test_decompose_merges_many_groups() -> None:
    chance = np.random.default_rng(1)
    before, after = (chance.random(4_000) < 0.6).astype(float), (chance.random(4_000) < 0.5).astype(float)
    split = decompose(before, after, chance.integers(0, 5, 4_000))
    wide = split.answers.interval.high - split.answers.interval.low
    assert wide == pytest.approx(2 * 1.96 * np.sqrt((0.24 + 0.25) / 4_000), rel=0.15)
