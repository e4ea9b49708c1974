"""Label analysis: expected values by hand, and omitted parts."""

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from sqlalchemy import Engine

from yarus.db.stores import labels as store
from yarus.db.stores.labels import Label
from yarus.tasks.report.label_lessons import label_analysis

CASES = pa.table(
    {
        "case_id": [f"s:{i}" for i in range(40)],
        "question": [
            f"Когда правило {i}?" if i % 2 else f"Где лежит то, о чём сказано в правиле номер {i}?" for i in range(40)
        ],
        "answer": [f"Ответ {'длинный ' * (i % 3)}{i} <b>жирный</b>" for i in range(40)],
        "topic": ["визы" if i < 20 else "общежитие" for i in range(40)],
    }
)


@pytest.fixture
def evaluation(engine: Engine, request: pytest.FixtureRequest) -> Any:
    name = f"tier2-{request.node.name[:60]}"
    yield name
    with engine.begin() as connection:
        connection.execute(store.label.delete().where(store.label.c.evaluation_id == name))


def make_label(evaluation: str, case: int, value: float | None, **more: Any) -> Label:
    values: dict[str, Any] = {
        "evaluation_id": evaluation, "case_id": f"s:{case}", "metric": "avg_faithfulness", "annotator": "anna",
        "value": value, "score": 1.0, "stratum": "high ok", "stratum_size": 40, "probability": 0.5, "case_group": None,
        "shown_sha256": "x", "judge_key": "key", "source": "s", "tier": "tier2", "note": None, "at": datetime.now(UTC),
    }  # fmt: skip
    return Label(**(values | more))


def test_label_analysis_is_empty_without_labels(engine: Engine, evaluation: str) -> None:
    assert label_analysis(engine, evaluation, "s", CASES) == []
    store.save_labels(engine, [make_label(evaluation, 0, None)])  # skipped
    assert label_analysis(engine, evaluation, "s", CASES) == []


def test_label_analysis_has_confusion_and_calibration(engine: Engine, evaluation: str) -> None:
    labels = [make_label(evaluation, i, float(i < 15)) for i in range(20)]
    labels += [make_label(evaluation, i, 0.5, score=0.1, stratum="low ok", stratum_size=10) for i in range(20, 25)]
    store.save_labels(engine, labels)
    (analysis,) = label_analysis(engine, evaluation, "s", CASES)
    assert (analysis["metric"], analysis["n"], analysis["gone"]) == ("avg_faithfulness", 25, 0)
    assert analysis["confusion"] == [{"bin": "0–0.2", "counts": [0, 5, 0]}, {"bin": "0.8–1", "counts": [5, 0, 15]}]
    low, high = analysis["calibration"]
    assert (low["n"], low["score"], low["value"]) == (5, 10, 50)
    assert (high["n"], high["score"], high["value"]) == (20, 100, 75)
    assert high["low"] < 75 < high["high"]
    assert analysis["agreement"] is None and analysis["annotators"] == [{"name": "anna", "n": 25}]


def test_label_analysis_starts_with_largest_differences(engine: Engine, evaluation: str) -> None:
    labels = [make_label(evaluation, i, 1.0) for i in range(10)]
    labels += [make_label(evaluation, 10, 0.5), make_label(evaluation, 11, 0.0, note="<i>не о том</i>")]
    store.save_labels(engine, labels)
    (analysis,) = label_analysis(engine, evaluation, "s", CASES)
    assert [(row["case_id"], row["score"], row["value"]) for row in analysis["worst"]] == [
        ("s:11", "1.00", "0.00"), ("s:10", "1.00", "0.50"),
    ]  # fmt: skip
    assert analysis["worst"][0]["notes"] == ["anna: <i>не о том</i>"]
    assert analysis["worst"][0]["answer"] == "Ответ длинный длинный 11 <b>жирный</b>"


def test_label_analysis_omits_small_slices(engine: Engine, evaluation: str) -> None:
    labels = [make_label(evaluation, i, 0.0 if i < 20 else 1.0) for i in range(36)]
    store.save_labels(engine, labels)
    (analysis,) = label_analysis(engine, evaluation, "s", CASES)
    slices_by_kind = {kind["kind"]: kind for kind in analysis["slices"]}
    topics = {row["value"]["ru"]: row for row in slices_by_kind["topic"]["values"]}
    assert (topics["визы"]["n"], topics["визы"]["error"], topics["визы"]["off"]) == (20, "+1.000", True)
    assert (topics["общежитие"]["n"], topics["общежитие"]["error"], topics["общежитие"]["off"]) == (16, "+0.000", False)
    assert slices_by_kind["topic"]["small"] == 0
    assert {row["value"]["en"] for row in slices_by_kind["answer length"]["values"]} <= {"short", "medium", "long"}
    store.save_labels(engine, [make_label(evaluation, i, None) for i in range(25, 36)])
    (analysis,) = label_analysis(engine, evaluation, "s", CASES)
    (topic,) = (kind for kind in analysis["slices"] if kind["kind"] == "topic")
    assert [row["value"]["ru"] for row in topic["values"]] == ["визы"]
    assert (topic["small"], topic["small_labels"]) == (1, 5)


def test_slice_means_are_weighted_by_probability(engine: Engine, evaluation: str) -> None:
    """Ten of ten low scores are all bad, and ten of thirty high scores all good: three quarters."""
    labels = [make_label(evaluation, i, 0.0, stratum="low ok", stratum_size=10, score=0.0) for i in range(10)]
    labels += [make_label(evaluation, i, 1.0, stratum_size=30) for i in range(10, 20)]
    store.save_labels(engine, labels)
    cases = CASES.set_column(3, "topic", pa.array(["визы"] * 20 + ["общежитие"] * 20))
    cases = cases.append_column("answerable", pa.array([True] * 20 + [False] * 20))
    store.save_labels(engine, [make_label(evaluation, 20, 1.0, stratum_size=30)])
    (analysis,) = label_analysis(engine, evaluation, "s", cases)
    (topic,) = (kind for kind in analysis["slices"] if kind["kind"] == "topic")
    assert (topic["values"][0]["n"], topic["values"][0]["people"]) == (20, "0.73")  # 10 * 30 / 11 of 10 + that


def test_agreement_of_opposite_annotators(engine: Engine, evaluation: str) -> None:
    labels = [make_label(evaluation, i, float(i % 2), annotator=name) for i in range(12) for name in ("anna",)]
    labels += [make_label(evaluation, i, 1 - float(i % 2), annotator="boris") for i in range(12)]
    store.save_labels(engine, labels)
    agreement = label_analysis(engine, evaluation, "s", CASES)[0]["agreement"]
    assert agreement["n"] == 12 and agreement["alpha"].startswith("−0.9")
    assert agreement["kappas"] == [{"names": "anna / boris", "kappa": "−1.00"}]


def test_label_analysis_handles_equal_labels_and_missing_cases(engine: Engine, evaluation: str) -> None:
    labels = [make_label(evaluation, i, 1.0, annotator=name) for i in (0, 1, 99) for name in ("anna", "boris")]
    store.save_labels(engine, labels)
    (analysis,) = label_analysis(engine, evaluation, "s", CASES)
    assert (analysis["n"], analysis["gone"], analysis["worst"]) == (2, 1, [])
    assert analysis["confusion"] == [{"bin": "0.8–1", "counts": [0, 0, 2]}]
    assert analysis["agreement"]["alpha"] == "—"
    (analysis_without_cases,) = label_analysis(engine, evaluation, "s", None)  # the file is missing
    assert (analysis_without_cases["n"], analysis_without_cases["slices"], analysis_without_cases["gone"]) == (3, [], 0)


def test_rounded_zero_difference_has_no_minus(engine: Engine, evaluation: str) -> None:
    """Labels are a millionth above the judge's scores, so that the difference rounds to minus zero."""
    store.save_labels(engine, [make_label(evaluation, i, 0.5 + 1e-6, score=0.5) for i in range(24)])
    (topic,) = (kind for kind in label_analysis(engine, evaluation, "s", CASES)[0]["slices"] if kind["kind"] == "topic")
    assert [row["error"] for row in topic["values"]] == ["+0.000"]
