"""Corrected means: equal to ppi-python where it applies, right with weights and groups, and refused input."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yarus.metrics.statistics.corrected import ppi_mean
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
def test_corrected_mean_equals_ppi_python(number: int) -> None:
    expected = THEIRS[number]
    n, unlabelled = len(expected["labels"]), len(expected["unlabelled"])
    scores = [*expected["scores"], *expected["unlabelled"]]
    labels = [*expected["labels"], *[NAN] * unlabelled]
    estimate = ppi_mean(scores, labels, [n / len(scores)] * len(scores))
    assert estimate.value == pytest.approx(expected["value"], abs=1e-9)
    assert estimate.error == pytest.approx(expected["error"], abs=1e-9)


def test_corrected_mean_ignores_constant_judge() -> None:
    labels = [1.0, 0.0, 1.0, 1.0, *[NAN] * 20]
    estimate = ppi_mean([1.0] * 24, labels, [4 / 24] * 24)
    assert (estimate.value, estimate.weight, estimate.n_labels, estimate.judge_error) == (0.75, 0.0, 4, 0.25)


def test_corrected_mean_weights_labels_by_probability() -> None:
    """Of 10 rare cases all are labelled, of 90 others 9: each of these stands for ten."""
    labels = np.full(100, NAN)
    labels[:10], labels[10:19] = 0.0, 1.0
    estimate = ppi_mean(np.full(100, 0.5), labels, np.where(np.arange(100) < 10, 1.0, 0.1))
    assert estimate.value == pytest.approx(0.9)


def test_corrected_mean_width_by_quality_of_judge() -> None:
    generator = np.random.default_rng(3)
    truth = (generator.random(2_000) < 0.7).astype(float)
    labels = np.where(np.arange(2_000) < 100, truth, NAN)
    widths = {}
    for name, scores in (
        ("good", np.where(generator.random(2_000) < 0.95, truth, 1 - truth)),
        ("random", generator.random(2_000)),
        ("none", np.full(2_000, 0.5)),
    ):
        estimate = ppi_mean(scores, labels, np.full(2_000, 0.05))
        assert estimate.low <= estimate.value <= estimate.high
        widths[name] = estimate.high - estimate.low
    assert widths["good"] < 0.65 * widths["none"]
    assert widths["random"] < 1.05 * widths["none"]


def test_corrected_mean_by_user_is_wider() -> None:
    generator = np.random.default_rng(5)
    users = np.repeat(np.arange(20), 20)
    truth = (generator.random(400) < generator.beta(2, 2, 20)[users]).astype(float)
    labels = np.where(generator.random(400) < 0.5, truth, NAN)
    ungrouped, grouped = (
        ppi_mean(np.full(400, 0.5), labels, [0.5] * 400, groups=names) for names in (None, users.tolist())
    )
    assert grouped.value == ungrouped.value
    assert grouped.high - grouped.low > 1.5 * (ungrouped.high - ungrouped.low)


@pytest.mark.parametrize("labels", [[], [1.0]])
def test_corrected_mean_undefined_below_two_labels(labels: list[float]) -> None:
    estimate = ppi_mean([0.5] * 9, [*labels, *[NAN] * (9 - len(labels))], [0.1] * 9)
    assert np.isnan([estimate.value, estimate.low, estimate.high]).all() and estimate.n_labels == len(labels)


def test_corrected_mean_of_equal_labels_has_width() -> None:
    estimate = ppi_mean([1.0] * 50, [1.0] * 20 + [NAN] * 30, [0.4] * 50)
    assert estimate.value == 1 and 0.7 < estimate.low < 0.95 and estimate.high == 1


def test_corrected_mean_of_one_user_spans_scale() -> None:
    estimate = ppi_mean([0.5, 1.0, 0.5], [1.0, 0.0, 1.0], [1.0] * 3, groups=["anna"] * 3)
    assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1


def test_corrected_mean_leaves_out_missing_scores() -> None:
    estimate = ppi_mean([0.5, NAN, 0.7, 0.9], [1.0, 1.0, 0.0, NAN], [0.75] * 4)
    assert estimate.n_labels == 2


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
def test_corrected_mean_refuses(
    scores: list[float], labels: list[float], probabilities: list[float], says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        ppi_mean(scores, labels, probabilities)


CASE = st.tuples(st.floats(0, 1), st.one_of(st.just(NAN), st.floats(0, 1)), st.sampled_from([0.1, 0.5, 1.0]))


@given(st.lists(st.tuples(CASE, st.integers(0, 3)), min_size=1, max_size=30))
def test_corrected_mean_range_and_order(
    cases: list[tuple[tuple[float, float, float], int]],
) -> None:
    columns = [[case[0][column] for case in cases] for column in range(3)]
    groups = [case[1] for case in cases]
    estimate = ppi_mean(*columns, groups=groups)
    again = ppi_mean(*(column[::-1] for column in columns), groups=groups[::-1])
    assert estimate == pytest.approx(again, abs=1e-9, nan_ok=True)
    if estimate.n_labels >= 2:
        assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1


def test_rogan_gladen_example() -> None:
    """Half of the verdicts are yes; sensitivity 0.9, specificity 0.8: (0.5 + 0.8 - 1) / 0.7."""
    verdicts = [1.0] * 500 + [0.0] * 500
    labels = np.full(1_000, NAN)
    labels[:110], labels[500:590] = [1.0] * 90 + [0.0] * 20, [1.0] * 10 + [0.0] * 80
    estimate = rogan_gladen(verdicts, labels, [0.2] * 1_000)
    assert (estimate.sensitivity, estimate.specificity) == (pytest.approx(0.9), pytest.approx(0.8))
    assert estimate.value == pytest.approx(0.3 / 0.7)
    assert estimate.low < estimate.value < estimate.high


def test_rogan_gladen_undefined_for_chance_judge() -> None:
    estimate = rogan_gladen([1.0, 0.0] * 10, [1.0, 1.0, 0.0, 0.0] * 5, [1.0] * 20)
    assert np.isnan(estimate.value) and estimate.sensitivity == 0.5
    assert np.isnan(rogan_gladen([1.0, 0.0], [1.0, 1.0], [1.0, 1.0]).value)
    with pytest.raises(ValueError, match="yes and no"):
        rogan_gladen([0.5, 0.0], [1.0, 1.0], [1.0, 1.0])


def test_labels_needed_gives_expected_width() -> None:
    options = {"label_variance": 0.2, "correlation": 0.6, "cases": 2_000}
    needed = labels_needed(0.06, **options)
    assert expected_width(needed, **options) <= 0.06 < expected_width(needed - 1, **options)
    assert labels_needed(1e-6, **options) == 2_000
    with pytest.raises(ValueError, match="above 0"):
        labels_needed(0, **options)


def test_corrected_mean_by_labels_of_other_answers() -> None:
    """The judge is too lenient by .2 there, and so the same is assumed here."""
    labelled_scores = np.array([1.0, 1.0, 1.0, 1.0, 0.0] * 20)
    people = np.array([1.0, 1.0, 1.0, 0.0, 0.0] * 20)
    own_scores = np.array([1.0] * 450 + [0.0] * 50)
    counted = np.arange(600) < 500
    labels = np.append(np.full(500, NAN), people)
    chances = np.append(np.full(500, NAN), np.full(100, 0.1))
    estimate = ppi_mean(np.append(own_scores, labelled_scores), labels, chances, counted=counted)
    assert estimate.value == pytest.approx(estimate.weight * 0.9 + 0.6 - estimate.weight * 0.8)
    assert estimate.judge_error == pytest.approx(0.2)
    assert estimate.low < 0.7 < estimate.high


def test_corrected_mean_excludes_other_answers() -> None:
    """All of these are labelled, so others' scores without a label change nothing."""
    generator = np.random.default_rng(2)
    scores, labels = generator.random(60), (generator.random(60) < 0.6).astype(float)
    own_mean = ppi_mean(scores, labels, np.full(60, 0.5))
    more = np.append(scores, generator.random(40))
    beside = ppi_mean(more, np.append(labels, np.full(40, NAN)), np.full(100, 0.5), counted=np.arange(100) < 60)
    assert beside == pytest.approx(own_mean)


def test_corrected_mean_undefined_if_nothing_counts() -> None:
    estimate = ppi_mean([0.5, 1.0], [1.0, 0.0], [1.0, 1.0], counted=[False, False])
    assert np.isnan(estimate.value)
    with pytest.raises(ValueError, match="said whether they count"):
        ppi_mean([0.5, 1.0], [1.0, 0.0], [1.0, 1.0], counted=[True])


def test_rogan_gladen_width_for_few_verdicts() -> None:
    verdicts = [1.0] * 80 + [0.0] * 20
    labels = np.full(100, NAN)
    labels[:8], labels[80:84] = 1.0, 0.0
    estimate = rogan_gladen(verdicts, labels, [0.12] * 100)
    assert (estimate.sensitivity, estimate.specificity, estimate.value) == (1, 1, 0.8)
    assert estimate.high - estimate.low > 0.2
