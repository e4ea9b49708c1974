"""Test lists printed by numpy and pandas, passages with semicolons, and cells that mean "nothing"."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from yarus.db.importers import table
from yarus.db.importers.cells import parse_list
from yarus.db.importers.table import ImportedTable

QUESTION = "When does the last boat leave for the island?"


def inspect_rows(folder: Path, rows: list[dict[str, str]]) -> ImportedTable:
    path = folder / "log.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return table.inspect_table(path)


def column_values(inspected: ImportedTable, name: str) -> list[Any]:
    return [values[name] for _, values in inspected.values() if isinstance(values, dict)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("['a' 'b']", ["a", "b"]),
        ("['a b' \"it's\"\n None nan]", ["a b", "it's", None, None]),
        ("[['a' 'b']\n ['c']]", [["a", "b"], ["c"]]),
        ("[array(['a'], dtype=object) array(['b', 'c'], dtype=object)]", [["a"], ["b", "c"]]),
        ("[{'text': 'a'}\n {'text': 'b'}]", [{"text": "a"}, {"text": "b"}]),
        ("[1 2 -3]", [1, 2, -3]),
        ("[5 - 10]", None),
        ("[b'a' b'b']", ["a", "b"]),
        ("['a' 'b", None),
    ],
)
def test_parse_list_reads_numpy_lists(text: str, expected: Any) -> None:
    assert parse_list(text) == expected


def test_autorag_groups_become_labels_with_remarks(tmp_path: Path) -> None:
    groups = "[array(['d1'], dtype=object) array(['d2', 'd3'], dtype=object)]"
    inspected = inspect_rows(
        tmp_path, [{"qid": "q1", "query": QUESTION, "retrieval_gt": groups, "generation_gt": "['At ten.' '22:00']"}]
    )
    assert column_values(inspected, "relevant_chunk_ids") == [["d1", "d2", "d3"]]
    assert column_values(inspected, "ground_truth_answer") == ["At ten."]
    assert len(inspected.problems()) == 3


def test_incomplete_label_list_is_not_read(tmp_path: Path) -> None:
    rows = [{"question": f"{QUESTION} {n}", "relevant_chunk_ids": "['d1', 'd2']"} for n in range(9)]
    inspected = inspect_rows(tmp_path, [*rows, {"question": QUESTION, "relevant_chunk_ids": "['d1', d2]"}])
    assert column_values(inspected, "relevant_chunk_ids")[-1] is None
    assert "\"['d1', d2]\" at log.csv:11" in inspected.problems()[0]


@pytest.mark.parametrize(
    ("cell", "n_passages"),
    [
        ("At ten; at nine on Sundays.", 1),
        ("At ten.;At nine on Sundays.", 2),
        ("At ten.|At nine on Sundays.", 2),
        ("Boats: | day | hour |\n|---|---|\n| Sunday | nine |", 1),
    ],
)
def test_separator_divides_passages_if_no_space_follows(cell: str, n_passages: int, tmp_path: Path) -> None:
    rows = [{"question": f"{QUESTION} {number}", "answer": "At ten.", "contexts": "One boat."} for number in range(9)]
    inspected = inspect_rows(tmp_path, [*rows, {"question": QUESTION, "answer": "At ten.", "contexts": cell}])
    assert len(column_values(inspected, "contexts")[-1]) == n_passages


@pytest.mark.parametrize("reference", ["[5 - 10]", "[5 10] days", "[5 10]", "[5, 10]", "[5]"])
def test_reference_in_brackets_stays_unchanged(reference: str, tmp_path: Path) -> None:
    inspected = inspect_rows(
        tmp_path, [{"question": QUESTION, "answer": "Five.", "reference": reference, "user_id": "u1"}]
    )
    assert column_values(inspected, "ground_truth_answer") == [reference]


def test_labels_are_read_from_a_number_array(tmp_path: Path) -> None:
    row = {"question": QUESTION, "answer": "Five.", "relevant_chunk_ids": "[12 15]", "user_id": "u1"}
    assert column_values(inspect_rows(tmp_path, [row]), "relevant_chunk_ids") == [["12", "15"]]


def test_cells_that_mean_nothing_are_empty(tmp_path: Path) -> None:
    row = {"question": QUESTION, "answer": "At ten.", "user_id": "u1", "page_url": "https://x.example/a"}
    gaps = {
        "question": f"{QUESTION} 2",
        "answer": "null",
        "user_id": "None",
        "page_url": "https://x.example/b, None, -",
    }
    inspected = inspect_rows(
        tmp_path, [row, gaps, {"question": f"{QUESTION} 3", "answer": "None", "user_id": "-", "page_url": "N/A"}]
    )
    assert column_values(inspected, "answer") == ["At ten.", None, "None"]
    assert column_values(inspected, "user_id") == ["u1", None, None]
    assert column_values(inspected, "confluence_url") == [["https://x.example/a"], ["https://x.example/b"], None]


def test_total_row_does_not_drop_a_column(tmp_path: Path) -> None:
    rows = [{"Вопрос": f"{QUESTION} {n}", "Ответ": "В десять.", "Оценка": str(n % 5 + 1)} for n in range(8)]
    inspected = inspect_rows(tmp_path, [*rows, {"Вопрос": "Итого", "Ответ": "", "Оценка": "90"}])
    assert column_values(inspected, "score") == [1, 2, 3, 4, 5, 1, 2, 3]
    assert inspected.problems() == []


def test_conversations_with_same_ending_stay_separate(tmp_path: Path) -> None:
    path = tmp_path / "talks.json"
    conversations = [[{"role": "user", "content": topic}, {"role": "assistant", "content": "At ten."},
              {"role": "user", "content": "thanks"}] for topic in ("The boat?", "The kiosk?")]  # fmt: skip
    path.write_text(json.dumps([{"messages": conversation} for conversation in conversations]), encoding="utf-8")
    assert len({row.values["id"] for row in table.inspect_table(path).stream().questions}) == 2  # type: ignore[union-attr]
