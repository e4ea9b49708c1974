"""Test tables with ambiguous columns: the decision by other columns, and its report."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from yarus.db.errors import InputError
from yarus.db.importers import table
from yarus.db.importers.table import ImportedTable
from yarus.deployments.upkeep.setup.files import recognise_all

QUESTION, ANSWER, REFERENCE = "Where is the office?", "On the second floor.", "Second floor, room 12."


def inspect_rows(folder: Path, rows: list[dict[str, Any]], **options: Any) -> ImportedTable:
    path = folder / "rows.json"
    path.write_text(json.dumps(rows, ensure_ascii=False), encoding="utf-8")
    return table.inspect_table(path, **options)


def repeat_row(row: dict[str, Any], n: int = 6) -> list[dict[str, Any]]:
    """Return copies of the row with different questions."""
    return [
        {name: f"{value} {number}" if value == QUESTION else value for name, value in row.items()}
        for number in range(n)
    ]


@pytest.mark.parametrize(
    ("row", "mapping"),
    [
        ({"question": QUESTION, "answer": REFERENCE}, {"ground_truth_answer": "answer"}),
        ({"question": QUESTION, "answer": REFERENCE, "last_reviewed": "2026-01-01"}, {"ground_truth_answer": "answer"}),
        (
            {"question": QUESTION, "answer": REFERENCE, "contexts": None, "error": None},
            {"ground_truth_answer": "answer"},
        ),
        ({"question": QUESTION, "answer": ANSWER, "user_id": "7"}, {"answer": "answer"}),
        ({"question": QUESTION, "answer": ANSWER, "session_id": "7", "turn": 1}, {"answer": "answer"}),
        ({"question": QUESTION, "answer": ANSWER, "model": "m", "latency": 0.8}, {"answer": "answer"}),
        ({"question": QUESTION, "answer": ANSWER, "feedback": 0}, {"answer": "answer"}),
        (
            {"question": QUESTION, "answer": REFERENCE, "response": ANSWER},
            {"ground_truth_answer": "answer", "answer": "response"},
        ),
        (
            {"question": QUESTION, "answer": REFERENCE, "model_answer": ANSWER},
            {"ground_truth_answer": "answer", "answer": "model_answer"},
        ),
        (
            {"вопрос": QUESTION, "ответ": REFERENCE, "ответ_бота": ANSWER},
            {"ground_truth_answer": "ответ", "answer": "ответ_бота"},
        ),
        ({"row": {"question": QUESTION, "answer": REFERENCE}}, {"ground_truth_answer": "row.answer"}),
        (
            {"input": QUESTION, "expected": {"answer": REFERENCE, "sources": ["a.md"]}},
            {"ground_truth_answer": "expected.answer", "relevant_urls": "expected.sources"},
        ),
        (
            {"inputs.question": QUESTION, "outputs.answer": REFERENCE, "metadata.split": "x"},
            {"ground_truth_answer": "outputs.answer"},
        ),
        (
            {
                "inputs": {"question": QUESTION},
                "outputs": {"answer": ANSWER},
                "reference_outputs": {"answer": REFERENCE},
            },
            {"answer": "outputs.answer", "ground_truth_answer": "reference_outputs.answer"},
        ),
        (
            {"example_id": "1", "input": {"question": QUESTION}, "output": {"answer": REFERENCE}},
            {"ground_truth_answer": "output.answer"},
        ),
        (
            {"question": QUESTION, "answer": ANSWER, "contexts": ["a passage of five words"]},
            {"answer": "answer", "contexts": "contexts"},
        ),
        (
            {
                "question": QUESTION,
                "answer": REFERENCE,
                "contexts": ["a passage of five words"],
                "relevant_urls": ["a.md"],
            },
            {"ground_truth_answer": "answer"},
        ),
    ],
)
def test_answer_column_is_reference_or_bot_answer(tmp_path: Path, row: dict[str, Any], mapping: dict[str, str]) -> None:
    detected = inspect_rows(tmp_path, repeat_row(row)).mapping
    assert {name: detected.get(name) for name in ("answer", "ground_truth_answer")} == {
        name: mapping.get(name) for name in ("answer", "ground_truth_answer")
    }
    assert mapping.items() <= detected.items()


def test_assertion_column_is_read_by_kind(tmp_path: Path) -> None:
    path = tmp_path / "tests.csv"
    cells = ["similar(0.8): Sundays till noon.", "contains: noon", "llm-rubric: says when", "At noon: by the door."]
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(
            [["question", "__expected"], *([f"{QUESTION} {n}", cell] for n, cell in enumerate(cells))]
        )
    inspected = table.inspect_table(path)
    references = [values["ground_truth_answer"] for _, values in inspected.values()]  # type: ignore[index]
    assert references == ["Sundays till noon.", None, None, "At noon: by the door."]
    assert "rows with an assertion that is no reference answer: 2 (contains, llm-rubric)" in inspected.problems()
    assert inspected.unused == {}


@pytest.mark.parametrize(
    ("marks", "other_columns", "is_used"),
    [
        ([5, 1, 5, 4], {}, True),
        ([5, 4, 3, 9], {}, False),
        ([1, 0, 1, 0], {}, False),
        ([5, 1, 5, 1], {"reason": "it is supported"}, False),
        ([5, 1, 5, 1], {"reason": "it is supported", "user_id": "7"}, True),
    ],
)
def test_marks_of_judges_or_other_scales_are_not_scores(
    tmp_path: Path, marks: list[int], other_columns: dict[str, Any], is_used: bool
) -> None:
    rows = [
        {"question": f"{QUESTION} {n}", "answer": ANSWER, "reference": REFERENCE, "score": mark, **other_columns}
        for n, mark in enumerate(marks)
    ]
    inspected = inspect_rows(tmp_path, rows)
    assert ("score" in inspected.mapping) == is_used
    notes = " ".join([*inspected.left_aside(), *inspected.notes])
    assert is_used or "5 is good and 1 is bad" in notes or "no mark from 1 (bad) to 5 (good)" in notes


def test_mark_off_scale_in_last_row_drops_the_column(tmp_path: Path) -> None:
    rows = [
        {"question": f"{QUESTION} {n}", "answer": ANSWER, "user_id": "7", "rating": 5 if n else 4} for n in range(400)
    ]
    assert inspect_rows(tmp_path, rows).mapping["score"] == "rating"
    assert "score" not in inspect_rows(tmp_path, [*rows, {**rows[0], "question": "last", "rating": 8}]).mapping


def test_grades_of_relevant_chunks_are_not_passages(tmp_path: Path) -> None:
    rows = [{"question": f"{QUESTION} {n}", "relevant_chunk_ids": {"12": 3, "13": 0, "14": -1}} for n in range(3)]
    stream = inspect_rows(tmp_path, rows).stream()
    list(stream.questions)
    assert [row.values["relevant_chunk_ids"] for row in stream.annotations] == [{"12": 3, "13": 0}] * 3  # type: ignore[union-attr]


def test_log_with_texts_is_not_a_knowledge_base(tmp_path: Path) -> None:
    rows = [
        {"id": n, "text": f"{QUESTION} {n}", "answer": ANSWER, "user_id": "7", "created_at": "2026-01-01"}
        for n in range(4)
    ]
    with pytest.raises(InputError, match=r"'question'.*--map question=NAME"):
        inspect_rows(tmp_path, rows)
    assert inspect_rows(tmp_path, rows, mapping={"question": "text"}).survey.usable == 4


def test_nested_questions_become_rows(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    pairs = [{"question": f"{QUESTION} {n}", "expected_answer": REFERENCE} for n in range(3)]
    topics = [{"category": "a", "questions": pairs[:2]}, {"category": "b", "questions": pairs[2:]}]
    named_document = {"name": "x", "text": "Collected in March", "questions": pairs}
    for document in (named_document, {"prompt": "Answer briefly", "cases": pairs}, {"topics": topics}):
        path.write_text(json.dumps(document), encoding="utf-8")
        inspected = table.inspect_table(path)
        assert (inspected.survey.usable, inspected.survey.filled["ground_truth_answer"]) == (3, 3)


def test_condition_applies_and_column_can_be_unmapped(tmp_path: Path) -> None:
    rows = [
        {"question": f"{QUESTION} {n}", "answer": ANSWER, "reference": REFERENCE, "variant": variant}
        for n in range(4)
        for variant in "ab"
    ]
    questions, pages = tmp_path / "log.json", tmp_path / "pages.csv"
    questions.write_text(json.dumps(rows), encoding="utf-8")
    pages.write_text("url,content,title\nhttps://kb/1,A text.,Office\n", encoding="utf-8")
    with pytest.raises(InputError, match="--where variant=a"):
        recognise_all([questions, pages], {})
    first, _ = recognise_all([questions, pages], {"ground_truth_answer": ""}, where={"variant": "a"})
    assert first.table is not None
    assert (first.table.survey.rows, "ground_truth_answer" in first.table.mapping) == (4, False)
    with pytest.raises(InputError, match=r"no column in .*: 'wariant'; did you mean 'variant'"):
        recognise_all([questions, pages], {}, where={"wariant": "a"})


def test_cell_with_nul_character_costs_no_row(tmp_path: Path) -> None:
    rows = [{"question": f"{QUESTION} {n}", "answer": "a\0b" if n == 1 else ANSWER, "user_id": "7"} for n in range(6)]
    inspected = inspect_rows(tmp_path, rows)
    assert inspected.survey.faults["answer"].places == ["rows.json: item 2"]
    assert len(list(inspected.stream().questions)) == 6


def test_passage_groups_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "qa.json"
    row = {"query": QUESTION, "generation_gt": ["Until noon."]}
    path.write_text(json.dumps([{**row, "qid": "a", "retrieval_gt": [["p1", "p2"]]},
                                {**row, "qid": "b", "retrieval_gt": [["p1"], ["p2"]]},
                                {**row, "qid": "c", "retrieval_gt": [["p1"]]}]))  # fmt: skip
    problems = table.inspect_table(path).problems()
    assert problems == [
        "questions for which one of several passages is enough: 1 (a); recall counts each of them as needed",
        "questions that need several passages together: 1 (b); each passage counts as relevant by itself",
    ]
