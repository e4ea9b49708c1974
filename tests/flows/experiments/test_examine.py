"""A judge beside people who compared pairs of answers: RAGChecker's own, and files that are none."""

import json
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import pearsonr

from tests.support.command_line import ENGLISH, here
from yarus.metrics.preferences import accuracy, pearson

FOLDER = Path(__file__).parents[4] / "shared" / "data" / "ragchecker"
LABELLED, SCORED = FOLDER / "human_labeled_data.json", FOLDER / "baseline_ragchecker.json"


@pytest.mark.slow("breadth: published figures, by 280 pairs")
def test_people_and_ragchecker_are_where_they_were_published(at_home: Path) -> None:
    if not LABELLED.exists():
        pytest.skip(f"needs RAGChecker's files in {FOLDER}")
    found = here("examine", str(LABELLED), "--scored", str(SCORED), "--json").json
    assert (found["pairs"], found["stand_in"]) == (280, True)
    people = {aspect: of["pearson"] for aspect, of in found["people"].items()}
    assert people == pytest.approx({"correctness": 0.637, "completeness": 0.719, "overall": 0.701}, abs=5e-4)
    theirs = {aspect: of["pearson"] for aspect, of in found["others"]["ragchecker"].items()}
    assert theirs == pytest.approx({"correctness": 0.497, "completeness": 0.607, "overall": 0.619}, abs=5e-4)
    for of in (*found["prompts"]["e2e_score"].values(), *found["people"].values()):
        assert of["pearson_low"] < of["pearson"] < of["pearson_high"]
        assert 0.5 < of["accuracy_low"] < of["accuracy"] < of["accuracy_high"] < 1


def row(number: int = 0, **more: Any) -> dict[str, Any]:
    labels = {f"{aspect}_label": 1 for aspect in ("correctness", "completeness", "overall")}
    answers = {"model1": {"response": "one"}, "model2": {"response": "two of them"}}
    return {"instance_id": number, "query": "how many?", "gt_answer": "two of them", **answers, **labels} | more


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("[]", "expected a list of pairs"),
        ("{", "not a JSON file"),
        (json.dumps([row(), {"instance_id": 1}]), "row 1 is no labelled pair"),
        (json.dumps([row(overall_label=3)]), "overall_label 3 is outside -2..2"),
        (json.dumps([row(overall_label="much")]), "row 0 is no labelled pair"),
        (json.dumps([row(), row(gt_answer="another")]), "has other texts than before"),
        (json.dumps([row(query=None)]), "has other texts than before, or none"),
        (json.dumps([row(), row(), row(1)]), "not every pair was labelled by as many people"),
    ],
)
def test_a_file_that_is_none_is_refused(at_home: Path, tmp_path: Path, content: str, says: str) -> None:
    file = tmp_path / "pairs.json"
    file.write_text(content, encoding="utf-8")
    done = here("examine", str(file), env=ENGLISH)
    assert done.code == 2
    assert says in done.err and str(file) in done.err


def test_one_person_and_one_pair(at_home: Path, tmp_path: Path) -> None:
    file = tmp_path / "pairs.json"
    file.write_text(json.dumps([row()]), encoding="utf-8")
    found = here("examine", str(file), "--json").json
    assert found["people"] == {"correctness": None, "completeness": None, "overall": None}
    assert found["prompts"]["e2e_score"]["overall"]["pearson"] is None
    assert found["prompts"]["e2e_score"]["overall"]["accuracy"] == 1
    shown = here("examine", str(file))
    assert shown.code == 0
    assert "не языковая модель" in shown.out or "No language model judged" in shown.out


def test_the_correlation_is_scipys_over_both_people() -> None:
    apart, labels = [0.5, -0.25, 0.0, 0.75], [[2, 1], [-1, 0], [1, -1], [2, 2]]
    stacked = [value for value in apart for _ in range(2)], [label for of in labels for label in of]
    assert pearson(apart, labels) == pytest.approx(pearsonr(*stacked).statistic, abs=1e-12)
    assert accuracy(apart, labels) == 1
    with pytest.raises(ValueError, match="one row of labels"):
        pearson([1, 2], [[1]])
