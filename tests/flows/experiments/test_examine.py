"""Check a judge against people who compared pairs of answers: RAGChecker's own, and invalid files."""

import json
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import pearsonr

from tests.support.command_line import ENGLISH, run_here
from tests.support.json_schemas import check_json
from yarus.metrics.preferences import accuracy, pearson

FOLDER = Path(__file__).parents[4] / "shared" / "data" / "ragchecker"
LABELLED, SCORED = FOLDER / "human_labeled_data.json", FOLDER / "baseline_ragchecker.json"


@pytest.mark.slow("breadth: published figures, by 280 pairs")
def test_agreement_matches_published_figures(at_home: Path) -> None:
    if not LABELLED.exists():
        pytest.skip(f"needs RAGChecker's files in {FOLDER}")
    printed = run_here("judge", "agreement", str(LABELLED), "--other-scores", str(SCORED), "--json").out
    document = check_json("judge agreement", printed)
    assert (document["pairs"], document["is_stand_in"]) == (280, True)
    people = {aspect: agreement["pearson"] for aspect, agreement in document["agreement_among_people"].items()}
    assert people == pytest.approx({"correctness": 0.637, "completeness": 0.719, "overall": 0.701}, abs=5e-4)
    ragchecker = {aspect: agreement["pearson"] for aspect, agreement in document["other_scores"]["ragchecker"].items()}
    assert ragchecker == pytest.approx({"correctness": 0.497, "completeness": 0.607, "overall": 0.619}, abs=5e-4)
    for agreement in (*document["prompts"]["e2e_score"].values(), *document["agreement_among_people"].values()):
        assert agreement["pearson_low"] < agreement["pearson"] < agreement["pearson_high"]
        assert 0.5 < agreement["accuracy_low"] < agreement["accuracy"] < agreement["accuracy_high"] < 1


def row(number: int = 0, **more: Any) -> dict[str, Any]:
    labels = {f"{aspect}_label": 1 for aspect in ("correctness", "completeness", "overall")}
    answers = {"model1": {"response": "one"}, "model2": {"response": "two of them"}}
    return {"instance_id": number, "query": "how many?", "gt_answer": "two of them", **answers, **labels} | more


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("[]", "expected a list of pairs"),
        ("{", "not a JSON file"),
        (json.dumps([row(), {"instance_id": 1}]), "row 1 is not a labelled pair"),
        (json.dumps([row(overall_label=3)]), "overall_label 3 is outside -2..2"),
        (json.dumps([row(overall_label="much")]), "row 0 is not a labelled pair"),
        (json.dumps([row(), row(gt_answer="another")]), "has other texts than before"),
        (json.dumps([row(query=None)]), "has other texts than before, or none"),
        (json.dumps([row(), row(), row(1)]), "not every pair was labelled by as many people"),
    ],
)
def test_invalid_file_is_refused(at_home: Path, tmp_path: Path, content: str, says: str) -> None:
    file = tmp_path / "pairs.json"
    file.write_text(content, encoding="utf-8")
    result = run_here("judge", "agreement", str(file), env=ENGLISH)
    assert result.code == 2
    assert says in result.err and str(file) in result.err


def test_single_pair_and_person_have_no_correlation(at_home: Path, tmp_path: Path) -> None:
    file = tmp_path / "pairs.json"
    file.write_text(json.dumps([row()]), encoding="utf-8")
    document = run_here("judge", "agreement", str(file), "--json").json
    assert document["agreement_among_people"] == {"correctness": None, "completeness": None, "overall": None}
    assert document["prompts"]["e2e_score"]["overall"]["pearson"] is None
    assert document["prompts"]["e2e_score"]["overall"]["accuracy"] == 1
    output = run_here("judge", "agreement", str(file))
    assert output.code == 0
    assert "не языковая модель" in output.out or "No language model judged" in output.out


def test_pearson_matches_scipy_over_two_people() -> None:
    differences, labels = [0.5, -0.25, 0.0, 0.75], [[2, 1], [-1, 0], [1, -1], [2, 2]]
    stacked = ([value for value in differences for _ in range(2)], [label for pair in labels for label in pair])
    assert pearson(differences, labels) == pytest.approx(pearsonr(*stacked).statistic, abs=1e-12)
    assert accuracy(differences, labels) == 1
    with pytest.raises(ValueError, match="one row of labels"):
        pearson([1, 2], [[1]])
