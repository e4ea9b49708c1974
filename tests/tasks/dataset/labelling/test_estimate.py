"""Labels beside the answers of an evaluation: whose they are, what each weighs, what is known by them."""

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from yarus.db.stores.labels import Label
from yarus.metrics.table import metric
from yarus.tasks.dataset.labelling.answers import Answers
from yarus.tasks.dataset.labelling.estimate import estimate, together


def answers(scores: list[float], groups: list[str | None] | None = None) -> Answers:
    n = len(scores)
    cases = {"case_id": [f"s:{i}" for i in range(n)], "status": ["ok"] * n, "group": groups or [None] * n}
    table = pa.table(
        cases | {"faithfulness": scores}, schema=pa.schema(
            [("case_id", pa.string()), ("status", pa.string()), ("group", pa.string()), ("faithfulness", pa.float64())]
        )
    )  # fmt: skip
    return Answers("here", "s", "tier2", "key", table, metric("avg_faithfulness"))


def label(case: int, value: float | None, **more: Any) -> Label:
    given: dict[str, Any] = {
        "evaluation_id": "here", "case_id": f"s:{case}", "metric": "avg_faithfulness", "annotator": "anna",
        "value": value, "score": 1.0, "stratum": "high ok", "stratum_size": 8, "probability": 0.5, "case_group": None,
        "shown_sha256": "x", "judge_key": "key", "source": "s", "tier": "tier2", "note": None, "at": datetime.now(UTC),
    }  # fmt: skip
    return Label(**(given | more))


def test_a_label_weighs_what_its_stratum_has_for_each_label() -> None:
    """Of eight high scores two have a label, of two low ones one: they stand for four, four and two answers."""
    of = answers([1.0] * 8 + [0.0] * 2)
    said = [label(0, 1.0), label(1, 0.0), label(8, 0.0, stratum="low ok")]
    known = together(of, said)
    weights = 1 / known.probabilities[~np.isnan(known.labels)]
    assert (weights / weights.sum() * 10).tolist() == pytest.approx([4, 4, 2])
    found = estimate(of, said)
    assert (found["n_labels"], found["n_own"], found["judge_value"]) == (3, 3, 0.8)
    assert found["judge_error"] == pytest.approx(0.4)  # 0.8 by the judge where people have 0.4


def test_passed_over_is_not_labelled() -> None:
    of = answers([1.0] * 10)
    said = [label(0, 1.0), label(1, 0.0), label(2, 0.0)]
    assert estimate(of, [*said, label(3, None)]) == estimate(of, said)


def test_what_several_say_of_one_answer_is_its_mean() -> None:
    known = together(answers([1.0] * 10), [label(0, 1.0), label(0, 0.5, annotator="boris"), label(1, 0.0)])
    assert known.labels[:2].tolist() == [0.75, 0.0]


def test_labels_of_other_evaluations_tell_how_far_the_judge_is_off() -> None:
    """There the judge says 1 and people .5; here it says 0.9 on average, of which the labels are no part."""
    of = answers([1.0] * 9 + [0.0])
    there = [label(i, float(i % 2), evaluation_id="there") for i in range(8)]
    found = estimate(of, there)
    assert (found["n_labels"], found["n_own"]) == (8, 0)
    assert found["judge_error"] == pytest.approx(0.5)
    known = together(of, there)
    assert known.counted.tolist() == [True] * 10 + [False] * 8


def test_evaluations_weigh_as_many_labels_as_they_have() -> None:
    """Four of 8 there, two of 800 elsewhere: each label weighs the same, whatever it was drawn from."""
    there = [label(i, 1.0, evaluation_id="there") for i in range(4)]
    elsewhere = [label(i, 0.0, evaluation_id="elsewhere", stratum_size=800) for i in range(2)]
    known = together(answers([1.0] * 10), [*there, *elsewhere])
    chances = known.probabilities[~np.isnan(known.labels)]
    assert np.ptp(chances) < 1e-12


def test_labels_of_cases_that_are_gone_count_as_nothing_here() -> None:
    of = answers([1.0] * 10)
    assert estimate(of, [label(0, 1.0), label(1, 0.0), label(99, 0.0)])["n_labels"] == 2


@pytest.mark.parametrize("said", [[], [label(0, 1.0)]])
def test_below_two_labels_there_is_no_estimate(said: list[Label]) -> None:
    found = estimate(answers([1.0, 0.5]), said)
    assert (found["value"], found["width"], found["width_after_ten"], found["enough"]) == (None, None, None, False)
    assert found["n_labels"] == len(said)


def test_sensitivity_and_specificity_where_all_say_yes_or_no() -> None:
    of = answers([1.0] * 6 + [0.0] * 4)
    high = [label(0, 1.0), label(1, 1.0), label(2, 0.0)]
    low = [label(6, 0.0, stratum="low ok"), label(7, 0.0, stratum="low ok")]
    shares = estimate(of, [*high, *low])["shares"]
    assert shares is not None
    assert shares["sensitivity"] == pytest.approx(1.0)
    assert shares["specificity"] == pytest.approx(4 / 6)  # no: two of six high scores, all four low ones
    assert estimate(of, [*high, *low, label(8, 0.5, stratum="low ok")])["shares"] is None
    assert estimate(answers([0.5] * 10), high)["shares"] is None


def test_more_labels_are_told_to_gain_little_when_they_do() -> None:
    def after(n: int) -> Any:
        of = answers([1.0] * 2_000)
        return estimate(of, [label(i, float(i % 5 > 0), stratum_size=2_000) for i in range(n)])

    few, many = after(40), after(1_000)
    assert few["width_after_ten"] < few["width"]
    assert (few["enough"], many["enough"]) == (False, True)
    assert few["width_after_ten"] == pytest.approx(after(50)["width"], rel=0.05)  # as told
