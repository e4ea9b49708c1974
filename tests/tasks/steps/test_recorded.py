"""Reused answers are scored only for the same, unchanged question."""

from pathlib import Path

import pytest

from tests.support.evaluations import evaluate, load, question, read_rows
from yarus.db.errors import InputError


def test_reuse_skips_answers_to_changed_questions(at_home: Path, tmp_path: Path) -> None:
    source = load(tmp_path, "changed_since", [question(i) for i in range(4)])
    first = evaluate("tier2", source=source)
    load(tmp_path, source, [question(1, question="Кто ректор?", ground_truth_answer="Иванов."), question(4)])
    again = evaluate("tier2", source=source, reuse_answers=first["evaluation_id"])
    rows = {row["question_id"]: row for row in read_rows(again)}
    assert {key: row["status"] for key, row in rows.items()} == {
        "0": "ok", "1": "not_applicable", "2": "ok", "3": "ok", "4": "not_applicable"
    }  # fmt: skip
    assert rows["1"]["reason"] == f"the question has changed since evaluation {first['evaluation_id']} asked it"
    assert rows["4"]["reason"] == f"evaluation {first['evaluation_id']} did not ask this question"
    assert (rows["1"]["question"], rows["1"]["answer"], rows["1"]["answer_correctness"]) == ("Кто ректор?", None, None)
    assert again["metrics"]["avg_answer_correctness"]["n_scored"] == 3


def test_reuse_refuses_answers_to_perturbed_questions(at_home: Path, tmp_path: Path) -> None:
    source = load(tmp_path, "asked_in_latin", [question(i) for i in range(2)])
    probe = evaluate("tier3", source=source, perturbation="layout")["evaluation_id"]
    for option in ("reuse_answers", "anchor"):
        message = f"--{option.replace('_', '-')} {probe}: .*--perturbation layout.*name an evaluation"
        with pytest.raises(InputError, match=message):
            evaluate("tier3", **({"source": source} if option == "reuse_answers" else {}), **{option: probe})
