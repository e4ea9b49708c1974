"""Lists as numpy and pandas write them, passages with a semicolon, and cells that say that there is nothing."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from yarus.db.importers import table
from yarus.db.importers.cells import parse_list
from yarus.db.importers.table import Table

Q = "When does the last boat leave for the island?"


def look(folder: Path, rows: list[dict[str, str]]) -> Table:
    path = folder / "log.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return table.look(path)


def values_of(found: Table, name: str) -> list[Any]:
    return [values[name] for _, values in found.values() if isinstance(values, dict)]


@pytest.mark.parametrize(
    ("text", "read"),
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
def test_lists_of_numpy_are_read_without_joining_texts(text: str, read: Any) -> None:
    assert parse_list(text) == read


def test_groups_of_autorag_in_csv_are_labels_with_their_remarks(tmp_path: Path) -> None:
    groups = "[array(['d1'], dtype=object) array(['d2', 'd3'], dtype=object)]"
    found = look(tmp_path, [{"qid": "q1", "query": Q, "retrieval_gt": groups, "generation_gt": "['At ten.' '22:00']"}])
    assert values_of(found, "relevant_chunk_ids") == [["d1", "d2", "d3"]]
    assert values_of(found, "ground_truth_answer") == ["At ten."]
    assert len(found.problems()) == 3


def test_labels_that_are_no_whole_list_are_not_read(tmp_path: Path) -> None:
    rows = [{"question": f"{Q} {n}", "relevant_chunk_ids": "['d1', 'd2']"} for n in range(9)]
    found = look(tmp_path, [*rows, {"question": Q, "relevant_chunk_ids": "['d1', d2]"}])
    assert values_of(found, "relevant_chunk_ids")[-1] is None
    assert "\"['d1', d2]\" at log.csv:11" in found.problems()[0]


@pytest.mark.parametrize(
    ("cell", "n"),
    [
        ("At ten; at nine on Sundays.", 1),
        ("At ten.;At nine on Sundays.", 2),
        ("At ten.|At nine on Sundays.", 2),
        ("Boats: | day | hour |\n|---|---|\n| Sunday | nine |", 1),
    ],
)
def test_signs_divide_passages_if_no_space_follows(cell: str, n: int, tmp_path: Path) -> None:
    rows = [{"question": f"{Q} {number}", "answer": "At ten.", "contexts": "One boat."} for number in range(9)]
    found = look(tmp_path, [*rows, {"question": Q, "answer": "At ten.", "contexts": cell}])
    assert len(values_of(found, "contexts")[-1]) == n


@pytest.mark.parametrize("reference", ["[5 - 10]", "[5 10] days", "[5 10]", "[5, 10]", "[5]"])
def test_a_reference_in_brackets_stays_as_it_is(reference: str, tmp_path: Path) -> None:
    found = look(tmp_path, [{"question": Q, "answer": "Five.", "reference": reference, "user_id": "u1"}])
    assert values_of(found, "ground_truth_answer") == [reference]


def test_labels_are_read_from_an_array_of_numbers(tmp_path: Path) -> None:
    row = {"question": Q, "answer": "Five.", "relevant_chunk_ids": "[12 15]", "user_id": "u1"}
    assert values_of(look(tmp_path, [row]), "relevant_chunk_ids") == [["12", "15"]]


def test_cells_that_say_that_there_is_nothing_are_empty(tmp_path: Path) -> None:
    row = {"question": Q, "answer": "At ten.", "user_id": "u1", "page_url": "https://x.example/a"}
    gaps = {"question": f"{Q} 2", "answer": "null", "user_id": "None", "page_url": "https://x.example/b, None, -"}
    found = look(tmp_path, [row, gaps, {"question": f"{Q} 3", "answer": "None", "user_id": "-", "page_url": "N/A"}])
    assert values_of(found, "answer") == ["At ten.", None, "None"]
    assert values_of(found, "user_id") == ["u1", None, None]
    assert values_of(found, "confluence_url") == [["https://x.example/a"], ["https://x.example/b"], None]


def test_a_total_costs_no_column(tmp_path: Path) -> None:
    rows = [{"Вопрос": f"{Q} {n}", "Ответ": "В десять.", "Оценка": str(n % 5 + 1)} for n in range(8)]
    found = look(tmp_path, [*rows, {"Вопрос": "Итого", "Ответ": "", "Оценка": "90"}])
    assert values_of(found, "score") == [1, 2, 3, 4, 5, 1, 2, 3]
    assert found.problems() == []


def test_conversations_that_end_alike_are_several(tmp_path: Path) -> None:
    path = tmp_path / "talks.json"
    talks = [[{"role": "user", "content": topic}, {"role": "assistant", "content": "At ten."},
              {"role": "user", "content": "thanks"}] for topic in ("The boat?", "The kiosk?")]  # fmt: skip
    path.write_text(json.dumps([{"messages": talk} for talk in talks]), encoding="utf-8")
    assert len({row.values["id"] for row in table.look(path).stream().questions}) == 2  # type: ignore[union-attr]
