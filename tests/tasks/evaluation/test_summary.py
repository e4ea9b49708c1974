"""What an evaluation is said to have come to: grades by its intervals, bounds by its failed cases."""

from typing import Any

import pytest
from sqlalchemy import Engine, insert

from tests.support.evaluation_history import source_name, write
from yarus.db.tables import evaluation_metric
from yarus.tasks.evaluation.numbers import grade_text
from yarus.tasks.evaluation.summary import summary


def shown(engine: Engine, statuses: dict[str, int] | None = None, **more: Any) -> Any:
    """A stored metric as `yarus show --json` has it."""
    row = {
        "metric": "hit_rate@1",
        "value": 0.8,
        "ci_low": 0.74,
        "ci_high": 0.85,
        "n_scored": 180,
        "n_total": 200,
    } | more
    (name,) = write(engine, source_name(), [None], metric="mrr", statuses=statuses or {"ok": 200})
    row |= {"evaluation_id": name, "stratum": "", "signature": "s", "direction": "higher", "grade": "excellent"}
    with engine.begin() as connection:
        connection.execute(insert(evaluation_metric), [row])
    return summary(engine, name)["metrics"][row["metric"]]


@pytest.mark.parametrize(
    ("ci_low", "ci_high", "grades", "said"),
    [
        (0.74, 0.85, ("good", "excellent"), "Good – Excellent"),
        (0.4, 0.95, (None, None), "Too few cases"),  # every grade is possible
        (0.4, 0.75, ("attention", "good"), "Needs attention – Good"),
        (0.79, 0.8, ("good", "good"), "Good"),
        (0.6, None, ("good", "excellent"), "Good – Excellent"),  # open above
        (None, None, (None, None), "Too few cases"),  # too few for an interval
    ],
)
def test_a_grade_follows_the_interval_also_of_what_was_stored_with_another(
    engine: Engine, ci_low: float | None, ci_high: float | None, grades: tuple[str | None, str | None], said: str
) -> None:
    found = shown(engine, ci_low=ci_low, ci_high=ci_high)
    assert (found["grade"], found["grade_high"]) == grades
    assert (grade_text(found) or {})["en"] == said


def test_one_question_has_no_grade(engine: Engine) -> None:
    found = shown(engine, metric="hit_rate@1", value=0.0, ci_low=0.0, ci_high=0.793, n_scored=1, n_total=20)
    assert (found["grade"], found["grade_high"], found["ungraded"]) == (None, None, "too few")


def test_what_has_no_thresholds_or_no_value_has_no_grade(engine: Engine) -> None:
    for more in ({"metric": "hit_rate@5"}, {"value": None, "reason": "no case"}):
        found = shown(engine, **more)
        assert (found["grade"], found["grade_high"], grade_text(found)) == (None, None, None)


def test_failed_cases_leave_bounds(engine: Engine) -> None:
    """0.8 of 180 and 20 more: 144 of 200 if all of these miss, 164 if all hit."""
    found = shown(engine, {"ok": 170, "sut_refusal": 10, "sut_error": 15, "judge_error": 5})
    assert (found["bound_low"], found["bound_high"]) == (pytest.approx(144 / 200), pytest.approx(164 / 200))


@pytest.mark.parametrize(
    ("statuses", "more"),
    [
        ({"ok": 180, "unlabelled": 20}, {}),  # no evaluation could have measured these
        ({"ok": 195, "sut_error": 5}, {"n_scored": 200}),  # this metric misses none
        ({"ok": 180, "sut_error": 20}, {"metric": "retrieval_latency_ms_p95"}),  # no mean
        ({"ok": 180, "sut_error": 20}, {"value": None, "reason": "no case"}),
    ],
)
def test_there_are_no_bounds_where_nothing_failed_or_there_is_no_worst(
    engine: Engine, statuses: dict[str, int], more: dict[str, Any]
) -> None:
    found = shown(engine, statuses, **more)
    assert (found["bound_low"], found["bound_high"]) == (None, None)
