"""Comparisons of cases with different shares of judged results, and of repeated questions."""

import numpy as np
import pytest
from sqlalchemy import Engine

from tests.tasks.comparison.conftest import N, Plant
from yarus.tasks.comparison.compare import compare


def test_compare_bounds_differences_of_unjudged_results(engine: Engine, plant: Plant) -> None:
    """Compare with b, which finds other, unjudged pages: its loss may not exist."""
    hits = np.tile([1.0, 1.0, 1.0, 0.0], N // 4)
    right = [{"hit_rate@1": 1.0}] * N
    a = plant(**{"hit_rate@1": hits, "judged@10": np.full(N, 0.9), "if_right": right})
    b = plant(**{"hit_rate@1": np.where(np.arange(N) % 2, hits, 0), "judged@10": hits / 2, "if_right": right})
    comparison = compare(engine, a, b)
    unequal = comparison["judged_share_difference"]
    assert unequal is not None and unequal["p"] < 0.001
    assert (unequal["a"], unequal["b"]) == pytest.approx((0.9, 0.375))
    assert unequal["bounds"] == {"hit_rate@1": pytest.approx({"low": -0.75, "high": 0.25})}
    assert comparison["metrics"]["hit_rate@1"]["verdict"] == "regressed"
    assert compare(engine, a, a)["judged_share_difference"] is None
    answers = {"e2e_score": hits, "if_right": right}  # their headline metrics do not use labels of rankings
    sides = [plant("tier3", **answers, **{"judged@10": share}) for share in (np.full(N, 0.9), hits / 2)]
    assert compare(engine, *sides)["judged_share_difference"] is None
    old = plant(**{"hit_rate@1": hits})  # stored before judged results were counted
    assert compare(engine, old, b)["judged_share_difference"] is None


def test_repeated_question_is_listed_once_with_its_count(engine: Engine, plant: Plant) -> None:
    questions = ["Где столовая?", "где  столовая", *(f"Когда сдают книгу {i}?" for i in range(N - 2))]
    before, after = np.ones(N), np.ones(N)
    after[:3] = 0
    a, b = (plant(**{"hit_rate@1": values, "question": questions}) for values in (before, after))
    result = compare(engine, a, b)
    assert [(case["case_id"], case["n"]) for case in result["cases"]["regressed_cases"]] == [
        ("planted:0", 2),
        ("planted:2", 1),
    ]
    assert result["metrics"]["hit_rate@1"]["difference"] == pytest.approx(-3 / N)
