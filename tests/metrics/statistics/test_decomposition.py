"""A difference taken apart: sums that are exact, planted mixes, and questions that cannot be compared."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yarus.metrics.statistics.differences.decomposition import cells, decompose

NAN = float("nan")
VALUE = st.one_of(st.just(NAN), st.floats(0, 1))


@given(st.lists(st.tuples(VALUE, VALUE, st.integers(0, 3)), min_size=2, max_size=60))
def test_the_parts_add_up(rows: list[tuple[float, float, int]]) -> None:
    before, after, kinds = (list(column) for column in zip(*rows, strict=True))
    found = decompose(before, after, kinds, parts={0: "even", 1: "odd", 2: "even", 3: "odd"})
    if np.isnan(found.answers.value):
        return
    assert found.questions.value + found.answers.value == pytest.approx(found.difference, abs=1e-9)
    assert sum(part.value for part in found.parts.values()) == pytest.approx(found.answers.value, abs=1e-9)
    assert found.by_case.sum() == pytest.approx(found.answers.value, abs=1e-9)
    for part in (found.questions, found.answers):
        assert not part.interval.low > part.value and not part.interval.high < part.value


def test_the_same_questions_leave_nothing_to_the_questions() -> None:
    before, after = np.array([1.0] * 50 + [0.0] * 50), np.array([1.0] * 40 + [0.0] * 60)
    found = decompose(before, after, [0] * 60 + [1] * 40)
    assert found.questions.value == 0 and found.questions.interval == (0, 0)
    assert found.answers.value == pytest.approx(-0.1) and found.answers.interval.high < 0


def test_where_nothing_changed_a_change_that_nobody_saw_has_its_place() -> None:
    found = decompose([1.0] * 100, [1.0] * 100, [0] * 100)
    assert found.answers.value == 0
    assert -0.05 < found.answers.interval.low < 0 < found.answers.interval.high < 0.05


def test_users_of_many_questions_count_as_one_each() -> None:
    chance = np.random.default_rng(0)
    users = np.repeat(np.arange(20), 20)
    before = np.ones(400)
    after = (chance.random(20) < 0.7)[users].astype(float)  # of a user all are lost, or none
    alone, grouped = (decompose(before, after, [0] * 400, groups=of) for of in (None, users.tolist()))
    wide = [found.answers.interval.high - found.answers.interval.low for found in (alone, grouped)]
    assert wide[1] > 2 * wide[0]


def test_no_common_kind_leaves_the_answers_untold() -> None:
    found = decompose([1.0] * 10 + [NAN] * 10, [NAN] * 10 + [0.0] * 10, [0] * 10 + [1] * 10)
    assert found.difference == -1 == found.questions.value and np.isnan(found.answers.value)
    assert found.questions.interval.low <= -1 <= found.questions.interval.high


def test_a_side_without_a_value_has_no_difference() -> None:
    found = decompose([NAN, NAN], [1.0, 0.0], [0, 0], parts={0: "all"})
    assert np.isnan(found.difference) and np.isnan(found.parts["all"].value)


def test_lengths_must_agree() -> None:
    with pytest.raises(ValueError, match="2 values before, 1 after and 2 cells"):
        decompose([1.0, 0.0], [1.0], [0, 0])


def test_what_only_one_side_has_stays_apart() -> None:
    topics = ["old"] * 6 + ["new"] * 6 + ["rare", "odd"]
    before = [1] * 6 + [0] * 6 + [1, 1]
    after = [0] * 6 + [1] * 6 + [1, 1]
    kinds = cells([topics], before, after)
    assert len({kinds[0], kinds[6], kinds[12]}) == 3 and kinds[12] == kinds[13]


def test_many_groups_are_put_together_and_tell_the_same() -> None:
    chance = np.random.default_rng(1)
    before, after = (chance.random(4_000) < 0.6).astype(float), (chance.random(4_000) < 0.5).astype(float)
    found = decompose(before, after, chance.integers(0, 5, 4_000))
    wide = found.answers.interval.high - found.answers.interval.low
    assert wide == pytest.approx(2 * 1.96 * np.sqrt((0.24 + 0.25) / 4_000), rel=0.15)
