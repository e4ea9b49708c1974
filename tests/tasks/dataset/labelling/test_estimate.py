"""Corrected means from labels of this and other evaluations, and their weights."""

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from yarus.db.stores.labels import Label
from yarus.metrics.table import get_metric
from yarus.tasks.dataset.labelling.answers import JudgedAnswers
from yarus.tasks.dataset.labelling.estimate import align_labels, estimate_corrected_mean


def make_answers(scores: list[float], groups: list[str | None] | None = None) -> JudgedAnswers:
    n = len(scores)
    cases = {"case_id": [f"s:{i}" for i in range(n)], "status": ["ok"] * n, "group": groups or [None] * n}
    table = pa.table(
        cases | {"faithfulness": scores}, schema=pa.schema(
            [("case_id", pa.string()), ("status", pa.string()), ("group", pa.string()), ("faithfulness", pa.float64())]
        )
    )  # fmt: skip
    return JudgedAnswers("here", "s", "tier2", "key", table, get_metric("avg_faithfulness"))


def make_label(case: int, value: float | None, **more: Any) -> Label:
    values: dict[str, Any] = {
        "evaluation_id": "here", "case_id": f"s:{case}", "metric": "avg_faithfulness", "annotator": "anna",
        "value": value, "score": 1.0, "stratum": "high ok", "stratum_size": 8, "probability": 0.5, "case_group": None,
        "shown_sha256": "x", "judge_key": "key", "source": "s", "tier": "tier2", "note": None, "at": datetime.now(UTC),
    }  # fmt: skip
    return Label(**(values | more))


def test_align_labels_weights_labels_by_stratum() -> None:
    """Two of eight high scores and one of two low scores are labelled: they represent four, four and two answers."""
    answers = make_answers([1.0] * 8 + [0.0] * 2)
    labels = [make_label(0, 1.0), make_label(1, 0.0), make_label(8, 0.0, stratum="low ok")]
    labelled = align_labels(answers, labels)
    weights = 1 / labelled.probabilities[~np.isnan(labelled.labels)]
    assert (weights / weights.sum() * 10).tolist() == pytest.approx([4, 4, 2])
    corrected = estimate_corrected_mean(answers, labels)
    assert (corrected["n_labels"], corrected["n_own"], corrected["judge_value"]) == (3, 3, 0.8)
    assert corrected["judge_error"] == pytest.approx(0.4)  # 0.8 by the judge, 0.4 by people


def test_estimate_ignores_skipped_labels() -> None:
    answers = make_answers([1.0] * 10)
    labels = [make_label(0, 1.0), make_label(1, 0.0), make_label(2, 0.0)]
    assert estimate_corrected_mean(answers, [*labels, make_label(3, None)]) == estimate_corrected_mean(answers, labels)


def test_align_labels_averages_annotators() -> None:
    labelled = align_labels(
        make_answers([1.0] * 10), [make_label(0, 1.0), make_label(0, 0.5, annotator="boris"), make_label(1, 0.0)]
    )
    assert labelled.labels[:2].tolist() == [0.75, 0.0]


def test_estimate_uses_judge_error_of_other_evaluations() -> None:
    """There the judge scores 1 and people 0.5; here the judge scores 0.9 on average, without these labels."""
    answers = make_answers([1.0] * 9 + [0.0])
    other_labels = [make_label(i, float(i % 2), evaluation_id="there") for i in range(8)]
    corrected = estimate_corrected_mean(answers, other_labels)
    assert (corrected["n_labels"], corrected["n_own"]) == (8, 0)
    assert corrected["judge_error"] == pytest.approx(0.5)
    labelled = align_labels(answers, other_labels)
    assert labelled.counted.tolist() == [True] * 10 + [False] * 8


def test_align_labels_weights_evaluations_by_their_labels() -> None:
    """Four labels of 8 answers and two of 800: each label has the same weight."""
    first_labels = [make_label(i, 1.0, evaluation_id="there") for i in range(4)]
    second_labels = [make_label(i, 0.0, evaluation_id="elsewhere", stratum_size=800) for i in range(2)]
    labelled = align_labels(make_answers([1.0] * 10), [*first_labels, *second_labels])
    probabilities = labelled.probabilities[~np.isnan(labelled.labels)]
    assert np.ptp(probabilities) < 1e-12


def test_estimate_ignores_labels_of_missing_cases() -> None:
    answers = make_answers([1.0] * 10)
    assert (
        estimate_corrected_mean(answers, [make_label(0, 1.0), make_label(1, 0.0), make_label(99, 0.0)])["n_labels"] == 2
    )


@pytest.mark.parametrize("labels", [[], [make_label(0, 1.0)]])
def test_estimate_is_missing_below_two_labels(labels: list[Label]) -> None:
    mean = estimate_corrected_mean(make_answers([1.0, 0.5]), labels)
    assert (mean["value"], mean["width"], mean["width_after_ten"], mean["enough"]) == (None, None, None, False)
    assert mean["n_labels"] == len(labels)


def test_estimate_has_judge_accuracy_for_binary_labels() -> None:
    answers = make_answers([1.0] * 6 + [0.0] * 4)
    high = [make_label(0, 1.0), make_label(1, 1.0), make_label(2, 0.0)]
    low = [make_label(6, 0.0, stratum="low ok"), make_label(7, 0.0, stratum="low ok")]
    shares = estimate_corrected_mean(answers, [*high, *low])["shares"]
    assert shares is not None
    assert shares["sensitivity"] == pytest.approx(1.0)
    assert shares["specificity"] == pytest.approx(4 / 6)  # no: two of six high scores, all four low ones
    assert estimate_corrected_mean(answers, [*high, *low, make_label(8, 0.5, stratum="low ok")])["shares"] is None
    assert estimate_corrected_mean(make_answers([0.5] * 10), high)["shares"] is None


def test_estimate_reports_when_more_labels_gain_little() -> None:
    def estimate_after(n: int) -> Any:
        answers = make_answers([1.0] * 2_000)
        return estimate_corrected_mean(answers, [make_label(i, float(i % 5 > 0), stratum_size=2_000) for i in range(n)])

    few, many = estimate_after(40), estimate_after(1_000)
    assert few["width_after_ten"] < few["width"]
    assert (few["enough"], many["enough"]) == (False, True)
    assert few["width_after_ten"] == pytest.approx(estimate_after(50)["width"], rel=0.05)  # as predicted
