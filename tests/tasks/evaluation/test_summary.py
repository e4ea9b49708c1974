"""Summaries of evaluations: grades by intervals, bounds by failed cases."""

from typing import Any

import pytest
from sqlalchemy import Engine, insert

from tests.support.evaluation_history import make_source_name, write_evaluations
from yarus.db.tables import evaluation_metric
from yarus.tasks.evaluation.number_format import format_grade
from yarus.tasks.evaluation.summary import read_summary


def summarise_metric(engine: Engine, statuses: dict[str, int] | None = None, **more: Any) -> Any:
    """Return a stored metric as `yarus show --json` prints it."""
    row = {
        "metric": "hit_rate@1",
        "value": 0.8,
        "ci_low": 0.74,
        "ci_high": 0.85,
        "n_scored": 180,
        "n_total": 200,
    } | more
    (name,) = write_evaluations(engine, make_source_name(), [None], metric="mrr", statuses=statuses or {"ok": 200})
    row |= {"evaluation_id": name, "stratum": "", "signature": "s", "direction": "higher", "grade": "excellent"}
    with engine.begin() as connection:
        connection.execute(insert(evaluation_metric), [row])
    return read_summary(engine, name)["metrics"][row["metric"]]


@pytest.mark.parametrize(
    ("ci_low", "ci_high", "grades", "text"),
    [
        (0.74, 0.85, ("good", "excellent"), "Good – Excellent"),
        (0.4, 0.95, (None, None), "Too few cases"),  # every grade is possible
        (0.4, 0.75, ("attention", "good"), "Needs attention – Good"),
        (0.79, 0.8, ("good", "good"), "Good"),
        (0.6, None, ("good", "excellent"), "Good – Excellent"),  # open above
        (None, None, (None, None), "Too few cases"),  # too few for an interval
    ],
)
def test_grade_follows_interval_not_stored_grade(
    engine: Engine, ci_low: float | None, ci_high: float | None, grades: tuple[str | None, str | None], text: str
) -> None:
    result = summarise_metric(engine, ci_low=ci_low, ci_high=ci_high)
    assert (result["grade"], result["grade_high"]) == grades
    assert (format_grade(result) or {})["en"] == text


def test_single_question_has_no_grade(engine: Engine) -> None:
    result = summarise_metric(engine, metric="hit_rate@1", value=0.0, ci_low=0.0, ci_high=0.793, n_scored=1, n_total=20)
    assert (result["grade"], result["grade_high"], result["ungraded"]) == (None, None, "too few")


def test_metric_without_thresholds_or_value_has_no_grade(engine: Engine) -> None:
    for more in ({"metric": "hit_rate@5"}, {"value": None, "reason": "no case"}):
        result = summarise_metric(engine, **more)
        assert (result["grade"], result["grade_high"], format_grade(result)) == (None, None, None)


def test_bounds_cover_failed_cases(engine: Engine) -> None:
    """0.8 of 180, and 20 failed: 144 of 200 if all of these miss, 164 if all hit."""
    result = summarise_metric(engine, {"ok": 170, "sut_refusal": 10, "sut_error": 15, "judge_error": 5})
    assert (result["bound_low"], result["bound_high"]) == (pytest.approx(144 / 200), pytest.approx(164 / 200))


@pytest.mark.parametrize(
    ("statuses", "more"),
    [
        ({"ok": 180, "unlabelled": 20}, {}),  # no evaluation could have measured these
        ({"ok": 195, "sut_error": 5}, {"n_scored": 200}),  # this metric misses none
        ({"ok": 180, "sut_error": 20}, {"metric": "retrieval_latency_ms_p95"}),  # no mean
        ({"ok": 180, "sut_error": 20}, {"value": None, "reason": "no case"}),
    ],
)
def test_bounds_are_missing_without_failures_or_range(
    engine: Engine, statuses: dict[str, int], more: dict[str, Any]
) -> None:
    result = summarise_metric(engine, statuses, **more)
    assert (result["bound_low"], result["bound_high"]) == (None, None)
