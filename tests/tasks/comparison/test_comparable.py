"""Evaluations whose labels or units differ."""

import numpy as np
import pytest
from sqlalchemy import Engine

from tests.tasks.comparison.conftest import N, Plant
from tests.tasks.comparison.test_compare import RANKS
from yarus.db.errors import InputError
from yarus.tasks.comparison.compare import compare


def test_labels_that_changed_leave_the_others_compared(engine: Engine, plant: Plant) -> None:
    """Twenty questions got other labels, five were added: the rest is compared, and said how many are left out."""
    before = [[f"p{i}"] for i in range(N)]
    after = [[f"q{i}"] if i < 20 else [f"p{i}"] for i in range(N)]
    a = plant(mrr=RANKS, relevant=before)
    b = plant(
        n=N + 5,
        mrr=np.concatenate([np.zeros(20), RANKS[20:], np.ones(5)]),
        relevant=[*after, *([["x"]] * 5)],
        comparability={"cases": {"sha256": "d"}},
    )
    found = compare(engine, a, b)
    assert (found["comparable"], found["paired"], found["differs"], found["n_common"]) == (True, True, [], N - 20)
    assert found["labels_changed"] == {"n": 20, "n_common": N, "only_a": 0, "only_b": 5}
    assert (found["metrics"]["mrr"]["n"], found["metrics"]["mrr"]["difference"]) == (N - 20, 0)
    said = next(one for one in found["statements"] if one["kind"] == "labels changed")
    assert (said["label"]["en"], said["text"]["en"][: len(f"for 20 of {N}")]) == ("Labels changed", f"for 20 of {N}")
    with pytest.raises(InputError, match="no case in common"):  # none is labelled alike
        compare(engine, a, plant(mrr=RANKS, relevant=[["z"]] * N, comparability={"cases": {"sha256": "e"}}))


def test_another_unit_is_refused_in_words(engine: Engine, plant: Plant) -> None:
    a = plant(mrr=RANKS, comparability={"unit": "page", "k": 7})
    b = plant(mrr=RANKS, comparability={"unit": "chunk", "k": 7, "cases": {"sha256": "d"}})
    with pytest.raises(InputError, match=r"one counts a page as found, the other a chunk.*--unit page") as error:
        compare(engine, a, b)
    assert "sha256" not in str(error.value)
