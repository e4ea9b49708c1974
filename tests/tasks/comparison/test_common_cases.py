"""What comparisons say of the cases: judged unequally far, asked again."""

import numpy as np
import pytest
from sqlalchemy import Engine

from tests.tasks.comparison.conftest import N, Plant
from yarus.tasks.comparison.compare import compare


def test_sides_whose_results_are_judged_unequally_far_are_compared_with_bounds(engine: Engine, plant: Plant) -> None:
    """B finds other pages, which nobody has judged: its loss may be none."""
    hits = np.tile([1.0, 1.0, 1.0, 0.0], N // 4)
    right = [{"hit_rate@1": 1.0}] * N
    a = plant(**{"hit_rate@1": hits, "judged@10": np.full(N, 0.9), "if_right": right})
    b = plant(**{"hit_rate@1": np.where(np.arange(N) % 2, hits, 0), "judged@10": hits / 2, "if_right": right})
    found = compare(engine, a, b)
    unequal = found["unequally_judged"]
    assert unequal is not None and unequal["p"] < 0.001
    assert (unequal["a"], unequal["b"]) == pytest.approx((0.9, 0.375))
    assert unequal["bounds"] == {"hit_rate@1": pytest.approx({"low": -0.75, "high": 0.25})}
    assert found["metrics"]["hit_rate@1"]["verdict"] == "regressed"
    assert compare(engine, a, a)["unequally_judged"] is None
    answers = {"e2e_score": hits, "if_right": right}  # whose headlines rest on no label of a ranking
    sides = [plant("tier3", **answers, **{"judged@10": share}) for share in (np.full(N, 0.9), hits / 2)]
    assert compare(engine, *sides)["unequally_judged"] is None
    old = plant(**{"hit_rate@1": hits})  # measured when nobody counted what was judged
    assert compare(engine, old, b)["unequally_judged"] is None


def test_a_question_asked_again_is_listed_once_with_its_count(engine: Engine, plant: Plant) -> None:
    questions = ["Где столовая?", "где  столовая", *(f"Когда сдают книгу {i}?" for i in range(N - 2))]
    before, after = np.ones(N), np.ones(N)
    after[:3] = 0
    a, b = (plant(**{"hit_rate@1": values, "question": questions}) for values in (before, after))
    found = compare(engine, a, b)
    assert [(one["case_id"], one["n"]) for one in found["cases"]["broke"]] == [("planted:0", 2), ("planted:2", 1)]
    assert found["metrics"]["hit_rate@1"]["difference"] == pytest.approx(-3 / N)
