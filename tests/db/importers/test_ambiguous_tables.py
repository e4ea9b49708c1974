"""Tables whose columns could be read in two ways: what the rest of the table decides, and what is said of it."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from yarus.db.errors import InputError
from yarus.db.importers import table
from yarus.db.importers.table import Table
from yarus.deployments.upkeep.setup.files import recognise_all

Q, A, R = "Where is the office?", "On the second floor.", "Second floor, room 12."


def look(folder: Path, rows: list[dict[str, Any]], **options: Any) -> Table:
    path = folder / "rows.json"
    path.write_text(json.dumps(rows, ensure_ascii=False), encoding="utf-8")
    return table.look(path, **options)


def repeated(row: dict[str, Any], n: int = 6) -> list[dict[str, Any]]:
    """The row with other questions."""
    return [{name: f"{value} {i}" if value == Q else value for name, value in row.items()} for i in range(n)]


@pytest.mark.parametrize(
    ("row", "mapping"),
    [
        ({"question": Q, "answer": R}, {"ground_truth_answer": "answer"}),
        ({"question": Q, "answer": R, "last_reviewed": "2026-01-01"}, {"ground_truth_answer": "answer"}),
        ({"question": Q, "answer": R, "contexts": None, "error": None}, {"ground_truth_answer": "answer"}),
        ({"question": Q, "answer": A, "user_id": "7"}, {"answer": "answer"}),
        ({"question": Q, "answer": A, "session_id": "7", "turn": 1}, {"answer": "answer"}),
        ({"question": Q, "answer": A, "model": "m", "latency": 0.8}, {"answer": "answer"}),
        ({"question": Q, "answer": A, "feedback": 0}, {"answer": "answer"}),
        ({"question": Q, "answer": R, "response": A}, {"ground_truth_answer": "answer", "answer": "response"}),
        ({"question": Q, "answer": R, "model_answer": A}, {"ground_truth_answer": "answer", "answer": "model_answer"}),
        ({"вопрос": Q, "ответ": R, "ответ_бота": A}, {"ground_truth_answer": "ответ", "answer": "ответ_бота"}),
        ({"row": {"question": Q, "answer": R}}, {"ground_truth_answer": "row.answer"}),
        ({"input": Q, "expected": {"answer": R, "sources": ["a.md"]}},
         {"ground_truth_answer": "expected.answer", "relevant_urls": "expected.sources"}),
        ({"inputs.question": Q, "outputs.answer": R, "metadata.split": "x"}, {"ground_truth_answer": "outputs.answer"}),
        ({"inputs": {"question": Q}, "outputs": {"answer": A}, "reference_outputs": {"answer": R}},
         {"answer": "outputs.answer", "ground_truth_answer": "reference_outputs.answer"}),
        ({"example_id": "1", "input": {"question": Q}, "output": {"answer": R}},
         {"ground_truth_answer": "output.answer"}),
        ({"question": Q, "answer": A, "contexts": ["a passage of five words"]},
         {"answer": "answer", "contexts": "contexts"}),
        ({"question": Q, "answer": R, "contexts": ["a passage of five words"], "relevant_urls": ["a.md"]},
         {"ground_truth_answer": "answer"}),
    ],
)  # fmt: skip
def test_which_answer_is_whose(tmp_path: Path, row: dict[str, Any], mapping: dict[str, str]) -> None:
    found = look(tmp_path, repeated(row)).mapping
    assert {name: found.get(name) for name in ("answer", "ground_truth_answer")} == {
        name: mapping.get(name) for name in ("answer", "ground_truth_answer")
    }
    assert mapping.items() <= found.items()


def test_one_column_of_assertions_is_read_by_its_kinds(tmp_path: Path) -> None:
    path = tmp_path / "tests.csv"
    cells = ["similar(0.8): Sundays till noon.", "contains: noon", "llm-rubric: says when", "At noon: by the door."]
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["question", "__expected"], *([f"{Q} {n}", cell] for n, cell in enumerate(cells))])
    found = table.look(path)
    references = [values["ground_truth_answer"] for _, values in found.values()]  # type: ignore[index]
    assert references == ["Sundays till noon.", None, None, "At noon: by the door."]
    assert "rows with an assertion that is no reference answer: 2 (contains, llm-rubric)" in found.problems()
    assert found.unused == {}


@pytest.mark.parametrize(
    ("marks", "others", "is_used"),
    [
        ([5, 1, 5, 4], {}, True),
        ([5, 4, 3, 9], {}, False),
        ([1, 0, 1, 0], {}, False),
        ([5, 1, 5, 1], {"reason": "it is supported"}, False),
        ([5, 1, 5, 1], {"reason": "it is supported", "user_id": "7"}, True),
    ],
)
def test_marks_of_another_scale_and_of_judges_are_no_votes(
    tmp_path: Path, marks: list[int], others: dict[str, Any], is_used: bool
) -> None:
    rows = [
        {"question": f"{Q} {n}", "answer": A, "reference": R, "score": mark, **others} for n, mark in enumerate(marks)
    ]
    found = look(tmp_path, rows)
    assert ("score" in found.mapping) == is_used
    told = " ".join([*found.left_aside(), *found.notes])
    assert is_used or "5 is good and 1 is bad" in told or "no mark from 1 (bad) to 5 (good)" in told


def test_a_mark_beyond_ours_in_the_last_row_takes_the_column_out(tmp_path: Path) -> None:
    rows = [{"question": f"{Q} {n}", "answer": A, "user_id": "7", "rating": 5 if n else 4} for n in range(400)]
    assert look(tmp_path, rows).mapping["score"] == "rating"
    assert "score" not in look(tmp_path, [*rows, {**rows[0], "question": "last", "rating": 8}]).mapping


def test_grades_of_relevant_chunks_are_no_passages(tmp_path: Path) -> None:
    rows = [{"question": f"{Q} {n}", "relevant_chunk_ids": {"12": 3, "13": 0, "14": -1}} for n in range(3)]
    stream = look(tmp_path, rows).stream()
    list(stream.questions)
    assert [row.values["relevant_chunk_ids"] for row in stream.annotations] == [{"12": 3, "13": 0}] * 3  # type: ignore[union-attr]


def test_a_log_with_texts_is_no_knowledge_base(tmp_path: Path) -> None:
    rows = [{"id": n, "text": f"{Q} {n}", "answer": A, "user_id": "7", "created_at": "2026-01-01"} for n in range(4)]
    with pytest.raises(InputError, match=r"'question'.*--map question=NAME"):
        look(tmp_path, rows)
    assert look(tmp_path, rows, mapping={"question": "text"}).survey.usable == 4


def test_questions_within_objects_are_rows(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    pairs = [{"question": f"{Q} {n}", "expected_answer": R} for n in range(3)]
    topics = [{"category": "a", "questions": pairs[:2]}, {"category": "b", "questions": pairs[2:]}]
    named = {"name": "x", "text": "Collected in March", "questions": pairs}
    for document in (named, {"prompt": "Answer briefly", "cases": pairs}, {"topics": topics}):
        path.write_text(json.dumps(document), encoding="utf-8")
        found = table.look(path)
        assert (found.survey.usable, found.survey.filled["ground_truth_answer"]) == (3, 3)


def test_a_condition_holds_beside_other_files_and_a_column_can_be_left_out(tmp_path: Path) -> None:
    rows = [{"question": f"{Q} {n}", "answer": A, "reference": R, "variant": who} for n in range(4) for who in "ab"]
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


def test_a_cell_that_postgresql_cannot_store_costs_no_row(tmp_path: Path) -> None:
    rows = [{"question": f"{Q} {n}", "answer": "a\0b" if n == 1 else A, "user_id": "7"} for n in range(6)]
    found = look(tmp_path, rows)
    assert found.survey.faults["answer"].places == ["rows.json: item 2"]
    assert len(list(found.stream().questions)) == 6


def test_alternatives_of_passages_are_said_to_count_as_needed(tmp_path: Path) -> None:
    path = tmp_path / "qa.json"
    row = {"query": Q, "generation_gt": ["Until noon."]}
    path.write_text(json.dumps([{**row, "qid": "a", "retrieval_gt": [["p1", "p2"]]},
                                {**row, "qid": "b", "retrieval_gt": [["p1"], ["p2"]]},
                                {**row, "qid": "c", "retrieval_gt": [["p1"]]}]))  # fmt: skip
    problems = table.look(path).problems()
    assert problems == [
        "questions for which one of several passages is enough: 1 (a); recall counts each of them as needed",
        "questions that need several passages together: 1 (b); each passage counts as relevant by itself",
    ]
