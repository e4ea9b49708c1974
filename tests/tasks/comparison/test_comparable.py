"""Comparisons of evaluations with different labels or units."""

import numpy as np
import pytest
from sqlalchemy import Engine

from tests.tasks.comparison.conftest import N, Plant
from tests.tasks.comparison.test_compare import RANKS
from yarus.db.errors import InputError
from yarus.tasks.comparison.compare import compare


def test_compare_skips_cases_with_changed_labels(engine: Engine, plant: Plant) -> None:
    """Compare after 20 questions got other labels and 5 were added: the statement has the numbers."""
    before = [[f"p{i}"] for i in range(N)]
    after = [[f"q{i}"] if i < 20 else [f"p{i}"] for i in range(N)]
    a = plant(mrr=RANKS, relevant=before)
    b = plant(
        n=N + 5,
        mrr=np.concatenate([np.zeros(20), RANKS[20:], np.ones(5)]),
        relevant=[*after, *([["x"]] * 5)],
        comparability={"cases": {"sha256": "d"}},
    )
    result = compare(engine, a, b)
    assert (result["comparable"], result["paired"], result["key_differences"], result["n_common"]) == (
        True,
        True,
        [],
        N - 20,
    )
    assert result["labels_changed"] == {"n": 20, "n_common": N, "only_a": 0, "only_b": 5}
    assert (result["metrics"]["mrr"]["n"], result["metrics"]["mrr"]["difference"]) == (N - 20, 0)
    line = next(candidate for candidate in result["statements"] if candidate["kind"] == "labels changed")
    assert (line["label"]["en"], line["text"]["en"][: len(f"for 20 of {N}")]) == ("Labels changed", f"for 20 of {N}")
    with pytest.raises(InputError, match="no case in common"):  # no case has the same labels
        compare(engine, a, plant(mrr=RANKS, relevant=[["z"]] * N, comparability={"cases": {"sha256": "e"}}))


def test_statement_counts_questions_of_one_side_only(engine: Engine, plant: Plant) -> None:
    relevant = [[f"p{i}"] for i in range(N)]
    a = plant(mrr=RANKS, relevant=relevant)
    b = plant(n=N - 5, mrr=RANKS[5:], relevant=relevant[:-5], comparability={"cases": {"sha256": "d"}})
    lines = {line["kind"]: line["text"]["en"] for line in compare(engine, a, b)["statements"]}
    assert lines["labels changed"] == "none of 55 common questions; questions only in A: 5, only in B: 0"
    same = plant(mrr=RANKS, relevant=relevant, comparability={"cases": {"sha256": "e"}})
    assert "labels changed" not in {line["kind"] for line in compare(engine, a, same)["statements"]}


def test_compare_explains_different_units(engine: Engine, plant: Plant) -> None:
    a = plant(mrr=RANKS, comparability={"unit": "page", "k": 7})
    b = plant(mrr=RANKS, comparability={"unit": "chunk", "k": 7, "cases": {"sha256": "d"}})
    with pytest.raises(InputError, match=r"one counts a page as found, the other a chunk.*--unit page") as error:
        compare(engine, a, b)
    assert "sha256" not in str(error.value)
