"""Test YAML numbers, merged cells of workbooks, assertions and conversations, as people write them."""

import json
from pathlib import Path
from typing import Any

import pytest
from openpyxl import Workbook

from yarus.db.errors import InputError
from yarus.db.importers import containers, table
from yarus.db.importers.table import ImportedTable
from yarus.db.importers.traces.extraction import extract_question

USER, BOT = {"role": "user", "content": "Where?"}, {"role": "assistant", "content": "Here."}


def table_rows(inspected: ImportedTable, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(values.get(name) for name in names) for _, values in inspected.values() if isinstance(values, dict)]


def inspect_rows(folder: Path, items: list[dict[str, Any]]) -> ImportedTable:
    (path := folder / "a.json").write_text(json.dumps(items))
    return table.inspect_table(path)


def workbook(folder: Path, lines: list[list[Any]], *merged: str) -> Path:
    book = Workbook()
    for line in lines:
        book.active.append(line)
    for cells in merged:
        book.active.merge_cells(cells)
    book.save(path := folder / "a.xlsx")
    return path


@pytest.mark.parametrize("scalar", ["10:30", "0112", "1.10", "1_000", "0x1F", "1.0", "0.00001", "1e3", "2026-03-05",
                                    "yes", "No", "=", "12345678901234567890", "-0", "5", "0.25", "-7"])  # fmt: skip
def test_yaml_keeps_scalars_as_written(tmp_path: Path, scalar: str) -> None:
    (path := tmp_path / "a.yaml").write_text(f"- question: {scalar}\n  expected_answer: {scalar}\n")
    assert table_rows(table.inspect_table(path), "question", "ground_truth_answer") == [(scalar, scalar)]


def test_yaml_keeps_booleans_gaps_and_grades(tmp_path: Path) -> None:
    (path := tmp_path / "a.yaml").write_text(
        "- &a {question: Q, answerable: false, reference: ~, relevant_chunk_ids: {c1: 3, c2: 0.5}}\n"
        "- {<<: *a, question: P, answerable: true, reference: }\n"
    )
    rows = table_rows(table.inspect_table(path), "question", "answerable", "ground_truth_answer", "relevant_chunk_ids")
    assert rows == [("Q", False, None, {"c1": 3, "c2": 0.5}), ("P", True, None, {"c1": 3, "c2": 0.5})]


def test_conversation_without_user_has_no_question(tmp_path: Path) -> None:
    assert extract_question([BOT]) == (None, [])
    inspected = inspect_rows(tmp_path, [{"messages": [BOT]}, {"messages": [USER, BOT]}])
    assert table_rows(inspected, "question", "answer")[1:] == [("Where?", "Here.")] and table_rows(
        inspected, "question"
    )[0] == (None,)


def test_conversation_of_ragas_has_its_last_answer(tmp_path: Path) -> None:
    human, ai = ({"content": message["content"], "type": kind} for message, kind in ((USER, "human"), (BOT, "ai")))
    inspected = inspect_rows(
        tmp_path,
        [{"user_input": conversation, "reference": "There."} for conversation in ([human, ai], "When?", [human])],
    )
    assert table_rows(inspected, "question", "answer") == [("Where?", "Here."), ("When?", None), ("Where?", None)]
    inspected = inspect_rows(tmp_path, [{"user_input": [human, ai, human], "reference": "There.", "response": "Now."}])
    assert table_rows(inspected, "answer") == [("Now.",)] and inspected.unused == {}


@pytest.mark.parametrize("name", ["messages", "turns"])
def test_conversations_without_last_answer_are_reported(tmp_path: Path, name: str) -> None:
    tool = {"role": "tool", "content": "Hall B"}
    inspected = inspect_rows(
        tmp_path,
        [{"id": n, name: conversation} for n, conversation in enumerate([[USER, BOT], [BOT, USER, tool], [USER]])],
    )
    assert table_rows(inspected, "answer") == [("Here.",), (None,), (None,)]
    assert "conversations that end with the user: 2 (1, 2); they have no answer" in inspected.problems()


def test_promptfoo_references_are_numbers_lists_or_sets(tmp_path: Path) -> None:
    assertion_lists = [
        [{"type": "equals", "value": 8}],
        [{"type": "similar", "value": ["Bob", "Bobby"]}],
        [{"type": "assert-set", "assert": [{"type": "latency"}, {"type": "factuality", "value": "By bus"}]}],
        [{"type": "assert-set", "assert": [{"type": "contains", "value": "8"}]}],
    ]
    inspected = inspect_rows(
        tmp_path,
        [{"vars": {"question": f"Q{n}"}, "assert": assertions} for n, assertions in enumerate(assertion_lists)],
    )
    assert table_rows(inspected, "ground_truth_answer") == [("8",), ("Bob",), ("By bus",), (None,)]
    assert inspected.problems() == [
        "rows with several references: 1 (a.json: item 2); the first is used",
        "rows with an assertion that is no reference answer: 1 (contains)",
    ]


def test_names_of_two_header_rows_are_joined(tmp_path: Path) -> None:
    lines = [
        ["Отчёт"],
        ["№", "Диалог", None, "Оценка", None],
        [None, "Вопрос", "Ответ", "Пользователь", "Эксперт"],
        *([n, f"Где {n}?", f"Там {n}.", 5 - n, "да"] for n in range(3)),
    ]
    inspected = table.inspect_table(workbook(tmp_path, lines, "A2:A3", "B2:C2", "D2:E2"))
    assert inspected.container.names == ["№", "Вопрос", "Ответ", "Оценка: Пользователь", "Оценка: Эксперт"]
    assert inspected.mapping["question"] == "Вопрос" and "user_id" not in inspected.mapping
    assert inspected.unused == {"Оценка: Пользователь": "5", "Оценка: Эксперт": "да"}


def test_sheet_with_too_many_merged_cells_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(containers, "MAX_MERGED", 1)
    path = workbook(tmp_path, [["question"], ["a"], ["b"], ["c"]], "A2:B2", "A3:B3")
    with pytest.raises(InputError, match=r"a\.xlsx: more than 1 merged cells; unmerge them; nothing was loaded"):
        table.inspect_table(path)


def test_answers_of_two_bots_below_one_header_are_ambiguous(tmp_path: Path) -> None:
    lines = [["Вопрос", "Бот А", None, "Бот Б", None], [None, "Ответ", "Балл", "Ответ", "Балл"]]
    lines += [[f"Где {n}?", "Там.", 5, "Тут.", 4] for n in range(3)]
    inspected = table.inspect_table(workbook(tmp_path, lines, "B1:C1", "D1:E1"))
    assert inspected.doubtful["answer"] == ["Бот А.Ответ", "Бот Б.Ответ"]


def test_cells_merged_over_rows_are_read_in_each(tmp_path: Path) -> None:
    lines = [["Тема", "Вопрос", "Ответ бота", "Пользователь"], ["Доступ", "Где?", "Там.", "а"],
             [None, None, "Тут.", "б"], ["Спорт", "Когда?", "В 8.", "в"], [None] * 4,
             [None, "Кто?", "Он.", "г"]]  # fmt: skip
    path = workbook(tmp_path, lines, "A2:A3", "B2:B3", "A4:A5", "C4:D4")
    inspected = table.inspect_table(path)
    assert table_rows(inspected, "cluster", "question", "answer") == [
        ("Доступ", "Где?", "Там."), ("Доступ", "Где?", "Тут."), ("Спорт", "Когда?", "В 8."), (None, "Кто?", "Он."),
    ]  # fmt: skip
    assert (
        "a.xlsx: cells merged over several rows: 3 (A2:A3, B2:B3); each of these rows has their value"
        in inspected.notes
    )
