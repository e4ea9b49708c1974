"""Corrected means: equal to ppi-python where it has the case, right with weights and groups, and what is refused."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yarus.metrics.statistics.corrected import corrected_mean
from yarus.metrics.statistics.labels_needed import expected_width, labels_needed
from yarus.metrics.statistics.rogan_gladen import rogan_gladen

NAN = float("nan")
THEIRS = json.loads((Path(__file__).parent / "ppi_python.json").read_text(encoding="utf-8"))
"""Six data sets with the point estimate and the standard error of ppi-python 0.2.3:

    value = ppi_mean_pointestimate(labels, scores, unlabelled)
    low, high = ppi_mean_ci(labels, scores, unlabelled, alpha=0.05)
    error = (high - low) / 2 / norm.ppf(0.975)
"""


@pytest.mark.parametrize("number", range(len(THEIRS)))
def test_it_is_that_of_ppi_python(number: int) -> None:
    theirs = THEIRS[number]
    n, unlabelled = len(theirs["labels"]), len(theirs["unlabelled"])
    scores = [*theirs["scores"], *theirs["unlabelled"]]
    labels = [*theirs["labels"], *[NAN] * unlabelled]
    found = corrected_mean(scores, labels, [n / len(scores)] * len(scores))
    assert found.value == pytest.approx(theirs["value"], abs=1e-9)
    assert found.error == pytest.approx(theirs["error"], abs=1e-9)


def test_a_judge_that_says_one_thing_leaves_the_labels_alone() -> None:
    labels = [1.0, 0.0, 1.0, 1.0, *[NAN] * 20]
    found = corrected_mean([1.0] * 24, labels, [4 / 24] * 24)
    assert (found.value, found.weight, found.n_labels, found.judge_error) == (0.75, 0.0, 4, 0.25)


def test_labels_are_weighted_by_how_unlikely_they_were() -> None:
    """Of 10 rare ones all are labelled, of 90 others 9: each of these stands for ten."""
    labels = np.full(100, NAN)
    labels[:10], labels[10:19] = 0.0, 1.0
    found = corrected_mean(np.full(100, 0.5), labels, np.where(np.arange(100) < 10, 1.0, 0.1))
    assert found.value == pytest.approx(0.9)


def test_a_good_judge_narrows_the_interval_and_a_bad_one_does_not_widen_it() -> None:
    generator = np.random.default_rng(3)
    truth = (generator.random(2_000) < 0.7).astype(float)
    labels = np.where(np.arange(2_000) < 100, truth, NAN)
    widths = {}
    for name, scores in (
        ("good", np.where(generator.random(2_000) < 0.95, truth, 1 - truth)),
        ("random", generator.random(2_000)),
        ("none", np.full(2_000, 0.5)),
    ):
        found = corrected_mean(scores, labels, np.full(2_000, 0.05))
        assert found.low <= found.value <= found.high
        widths[name] = found.high - found.low
    assert widths["good"] < 0.65 * widths["none"]
    assert widths["random"] < 1.05 * widths["none"]


def test_questions_of_one_user_tell_less() -> None:
    generator = np.random.default_rng(5)
    users = np.repeat(np.arange(20), 20)
    truth = (generator.random(400) < generator.beta(2, 2, 20)[users]).astype(float)
    labels = np.where(generator.random(400) < 0.5, truth, NAN)
    alone, grouped = (
        corrected_mean(np.full(400, 0.5), labels, [0.5] * 400, groups=of) for of in (None, users.tolist())
    )
    assert grouped.value == alone.value
    assert grouped.high - grouped.low > 1.5 * (alone.high - alone.low)


@pytest.mark.parametrize("labels", [[], [1.0]])
def test_below_two_labels_there_is_nothing(labels: list[float]) -> None:
    found = corrected_mean([0.5] * 9, [*labels, *[NAN] * (9 - len(labels))], [0.1] * 9)
    assert np.isnan([found.value, found.low, found.high]).all() and found.n_labels == len(labels)


def test_labels_that_are_all_equal_leave_room_for_others() -> None:
    found = corrected_mean([1.0] * 50, [1.0] * 20 + [NAN] * 30, [0.4] * 50)
    assert found.value == 1 and 0.7 < found.low < 0.95 and found.high == 1


def test_one_user_has_no_interval_but_all_of_it() -> None:
    found = corrected_mean([0.5, 1.0, 0.5], [1.0, 0.0, 1.0], [1.0] * 3, groups=["anna"] * 3)
    assert 0 <= found.low <= found.value <= found.high <= 1


def test_cases_without_a_score_are_left_out() -> None:
    found = corrected_mean([0.5, NAN, 0.7, 0.9], [1.0, 1.0, 0.0, NAN], [0.75] * 4)
    assert found.n_labels == 2


@pytest.mark.parametrize(
    ("scores", "labels", "probabilities", "says"),
    [
        ([0.5, 1.5], [1, NAN], [1, 1], "a score lies between 0 and 1"),
        ([0.5, 0.5], [5, 1], [1, 1], "a label lies between 0 and 1"),
        ([0.5, 0.5], [1, 1], [0, 1], "has the probability 0: above 0"),
        ([0.5, 0.5], [1, 1], [NAN, 1], "has the probability nan"),
        ([0.5, 0.5], [1, 1], [1.5, 1], "has the probability 1.5"),
        ([0.5], [1, 1], [1, 1], "one of each a case"),
    ],
)
def test_what_cannot_be_is_refused(
    scores: list[float], labels: list[float], probabilities: list[float], says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        corrected_mean(scores, labels, probabilities)


CASE = st.tuples(st.floats(0, 1), st.one_of(st.just(NAN), st.floats(0, 1)), st.sampled_from([0.1, 0.5, 1.0]))


@given(st.lists(st.tuples(CASE, st.integers(0, 3)), min_size=1, max_size=30))
def test_it_stays_within_the_scale_and_does_not_depend_on_order(
    cases: list[tuple[tuple[float, float, float], int]],
) -> None:
    columns = [[case[0][column] for case in cases] for column in range(3)]
    groups = [case[1] for case in cases]
    found = corrected_mean(*columns, groups=groups)
    again = corrected_mean(*(column[::-1] for column in columns), groups=groups[::-1])
    assert found == pytest.approx(again, abs=1e-9, nan_ok=True)
    if found.n_labels >= 2:
        assert 0 <= found.low <= found.value <= found.high <= 1


def test_rogan_and_gladens_example() -> None:
    """Half of the verdicts are yes; sensitivity 0.9, specificity 0.8: (0.5 + 0.8 - 1) / 0.7."""
    verdicts = [1.0] * 500 + [0.0] * 500
    labels = np.full(1_000, NAN)
    labels[:110], labels[500:590] = [1.0] * 90 + [0.0] * 20, [1.0] * 10 + [0.0] * 80
    found = rogan_gladen(verdicts, labels, [0.2] * 1_000)
    assert (found.sensitivity, found.specificity) == (pytest.approx(0.9), pytest.approx(0.8))
    assert found.value == pytest.approx(0.3 / 0.7)
    assert found.low < found.value < found.high


def test_a_judge_no_better_than_chance_has_no_share() -> None:
    found = rogan_gladen([1.0, 0.0] * 10, [1.0, 1.0, 0.0, 0.0] * 5, [1.0] * 20)
    assert np.isnan(found.value) and found.sensitivity == 0.5
    assert np.isnan(rogan_gladen([1.0, 0.0], [1.0, 1.0], [1.0, 1.0]).value)
    with pytest.raises(ValueError, match="yes and no"):
        rogan_gladen([0.5, 0.0], [1.0, 1.0], [1.0, 1.0])


def test_a_plan_keeps_its_promise() -> None:
    known = {"label_variance": 0.2, "correlation": 0.6, "cases": 2_000}
    needed = labels_needed(0.06, **known)
    assert expected_width(needed, **known) <= 0.06 < expected_width(needed - 1, **known)
    assert labels_needed(1e-6, **known) == 2_000
    with pytest.raises(ValueError, match="above 0"):
        labels_needed(0, **known)


def test_labels_of_other_answers_correct_these() -> None:
    """The judge forgives: it is off by .2 there, and so it is taken to be here."""
    there = np.array([1.0, 1.0, 1.0, 1.0, 0.0] * 20)
    people = np.array([1.0, 1.0, 1.0, 0.0, 0.0] * 20)
    here = np.array([1.0] * 450 + [0.0] * 50)
    counted = np.arange(600) < 500
    labels = np.append(np.full(500, NAN), people)
    chances = np.append(np.full(500, NAN), np.full(100, 0.1))
    found = corrected_mean(np.append(here, there), labels, chances, counted=counted)
    assert found.value == pytest.approx(found.weight * 0.9 + 0.6 - found.weight * 0.8)
    assert found.judge_error == pytest.approx(0.2)
    assert found.low < 0.7 < found.high


def test_other_answers_are_no_part_of_the_mean() -> None:
    """All of these are labelled, so others' scores without a label change nothing."""
    generator = np.random.default_rng(2)
    scores, labels = generator.random(60), (generator.random(60) < 0.6).astype(float)
    alone = corrected_mean(scores, labels, np.full(60, 0.5))
    more = np.append(scores, generator.random(40))
    beside = corrected_mean(more, np.append(labels, np.full(40, NAN)), np.full(100, 0.5), counted=np.arange(100) < 60)
    assert beside == pytest.approx(alone)


def test_nothing_counts() -> None:
    found = corrected_mean([0.5, 1.0], [1.0, 0.0], [1.0, 1.0], counted=[False, False])
    assert np.isnan(found.value)
    with pytest.raises(ValueError, match="said whether they count"):
        corrected_mean([0.5, 1.0], [1.0, 0.0], [1.0, 1.0], counted=[True])


def test_few_verdicts_of_a_kind_leave_room_for_errors() -> None:
    verdicts = [1.0] * 80 + [0.0] * 20
    labels = np.full(100, NAN)
    labels[:8], labels[80:84] = 1.0, 0.0
    found = rogan_gladen(verdicts, labels, [0.12] * 100)
    assert (found.sensitivity, found.specificity, found.value) == (1, 1, 0.8)
    assert found.high - found.low > 0.2
