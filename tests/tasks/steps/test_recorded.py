"""Answers that are scored again are those to the same question, asked as it stands."""

from pathlib import Path

import pytest

from tests.support.evaluations import evaluate, load, question, rows_of
from yarus.db.errors import InputError


def test_an_answer_to_another_question_is_not_scored_for_the_one_of_now(at_home: Path, tmp_path: Path) -> None:
    source = load(tmp_path, "changed_since", [question(i) for i in range(4)])
    first = evaluate("tier2", source=source)
    load(tmp_path, source, [question(1, question="Кто ректор?", ground_truth_answer="Иванов."), question(4)])
    again = evaluate("tier2", source=source, reuse_answers=first["evaluation_id"])
    rows = {row["question_id"]: row for row in rows_of(again)}
    assert {key: row["status"] for key, row in rows.items()} == {
        "0": "ok", "1": "not_applicable", "2": "ok", "3": "ok", "4": "not_applicable"
    }  # fmt: skip
    assert rows["1"]["reason"] == f"the question has changed since evaluation {first['evaluation_id']} asked it"
    assert rows["4"]["reason"] == f"evaluation {first['evaluation_id']} did not ask this question"
    assert (rows["1"]["question"], rows["1"]["answer"], rows["1"]["answer_correctness"]) == ("Кто ректор?", None, None)
    assert again["metrics"]["avg_answer_correctness"]["n_scored"] == 3


def test_answers_to_changed_questions_are_not_reused(at_home: Path, tmp_path: Path) -> None:
    source = load(tmp_path, "asked_in_latin", [question(i) for i in range(2)])
    probe = evaluate("tier3", source=source, perturbation="layout")["evaluation_id"]
    for option in ("reuse_answers", "anchor"):
        place = f"--{option.replace('_', '-')} {probe}: .*--perturbation layout.*name an evaluation"
        with pytest.raises(InputError, match=place):
            evaluate("tier3", **({"source": source} if option == "reuse_answers" else {}), **{option: probe})
