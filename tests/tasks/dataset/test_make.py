"""Nugget generation: once per question, stored with the labels, edited by people, frozen with a case set."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from openpyxl import load_workbook
from sqlalchemy import Engine

from tests.support.command_line import CommandLine
from tests.support.evaluation_history import make_source_name
from tests.support.evaluations import (
    evaluate,
    get_value,
    load,
    make_role_variables,
    question,
    read_questions_by_id,
    set_variables,
    texts,
)
from tests.support.json_schemas import check_json
from tests.support.llm_server import FakeLLMServer, make_completion
from tests.support.nuggets import NuggetJudge, get_request_kind, make_nuggets
from yarus.db.errors import InputError
from yarus.tasks.cases.frozen_sets import diff_frozen_sets, freeze
from yarus.tasks.dataset.annotation_tables.round_trip import export_annotation_file, import_annotation_file

Document = dict[str, Any]


@pytest.fixture
def judge(at_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLLMServer]:
    server = FakeLLMServer(script=NuggetJudge())
    server.start()
    set_variables(monkeypatch, make_role_variables(server.url, "judge"))
    yield server
    server.stop()


@pytest.fixture
def source(judge: FakeLLMServer, tmp_path: Path) -> str:
    """Question 6 has no answer; question 7 has only a chunk that a user rated good."""
    rows = [question(i, ground_truth_answer=f"Сдать книгу {i} до мая. Можно и почтой.") for i in range(6)]
    rows += [question(6, answerable=False, ground_truth_answer=None, relevant_chunk_ids=None)]
    bare = {"ground_truth_answer": None, "relevant_chunk_ids": None, "answerable": None, "origin": None}
    return load(tmp_path, make_source_name(), [*rows, question(7, **bare)])


def requests_of_kind(server: FakeLLMServer, kind: str) -> list[Document]:
    return [request for request in server.requests if get_request_kind(request) == kind]


def test_generation_uses_reference_and_relevant_chunks_once(judge: FakeLLMServer, source: str, engine: Engine) -> None:
    result = make_nuggets(source)
    assert (result["state"], result["n_selected_questions"], result["n_made"], result["without_reference"]) == (
        "completed",
        7,
        7,
        1,
    )
    assert (result["nuggets"], result["vital"], result["n_new_calls"]) == (13, 7, 7)
    rows = read_questions_by_id(engine, source)
    assert rows["3"]["nuggets"] == [
        {"nugget": "Сдать книгу 3 до мая.", "vital": True},
        {"nugget": "Можно и почтой.", "vital": False},
    ]
    assert rows["7"]["nuggets"] == [{"nugget": "Правило 7 велит сдать книгу.", "vital": True}]
    assert rows["7"]["origin"] is None and rows["7"]["answerable"] is None  # other labels stay empty
    assert rows["6"]["nuggets"] is None
    parts = texts(next(request for request in judge.requests if "книгу 3" in str(request)))
    assert parts["passage_1"] == "Правило 3 велит сдать книгу 3 до мая года 3." and parts["question"].startswith("Что")
    assert make_nuggets(source)["n_selected_questions"] == 0 and len(requests_of_kind(judge, "nuggets")) == 7


def test_generation_continues_after_limit_and_remake_is_cached(judge: FakeLLMServer, source: str) -> None:
    assert make_nuggets(source, limit=3)["n_made"] == 3
    assert make_nuggets(source, limit=3)["n_made"] == 3
    remade = make_nuggets(source, remake=True)
    assert (remade["n_selected_questions"], remade["n_new_calls"]) == (7, 1)


def test_generation_reports_unreadable_replies(judge: FakeLLMServer, source: str, engine: Engine) -> None:
    judge.script.spoil = lambda request, prompt_texts, reply: (
        make_completion("Не знаю.") if "книгу 3" in prompt_texts["reference"] else reply
    )
    generated = make_nuggets(source)
    assert (generated["state"], generated["n_made"], generated["failed"]) == ("invalid", 6, {"parse_error": 1})
    assert read_questions_by_id(engine, source)["3"]["nuggets"] is None


def test_edited_nuggets_are_imported_and_kept(
    judge: FakeLLMServer, source: str, engine: Engine, tmp_path: Path
) -> None:
    make_nuggets(source)
    export_annotation_file(tmp_path / "out.xlsx", source)
    book = load_workbook(tmp_path / "out.xlsx")
    sheet = book.active
    header = [cell.value.partition(":")[0] for cell in sheet[1]]
    column, id_column = header.index("опорные факты") + 1, header.index("id вопроса") + 1
    cells = {str(sheet.cell(row, id_column).value): sheet.cell(row, column) for row in range(2, sheet.max_row + 1)}
    assert cells["3"].value == "! Сдать книгу 3 до мая.\nМожно и почтой."
    assert import_annotation_file(tmp_path / "out.xlsx", "анна")["labelled"] == 0  # unchanged: not a label
    cells["3"].value = "! Сдать книгу 3.\n! До мая.\n\n"
    cells["4"].value = "нет"
    cells["5"].value = None
    book.save(tmp_path / "out.xlsx")
    assert import_annotation_file(tmp_path / "out.xlsx", "анна")["nuggets"] == 2
    rows = read_questions_by_id(engine, source)
    assert [nugget["nugget"] for nugget in rows["3"]["nuggets"]] == ["Сдать книгу 3.", "До мая."]
    assert rows["4"]["nuggets"] == [] and len(rows["5"]["nuggets"]) == 2
    assert rows["3"]["ground_truth_answer"] == "Сдать книгу 3 до мая. Можно и почтой."
    make_nuggets(source, remake=True)  # edited nuggets stay
    assert read_questions_by_id(engine, source)["3"]["nuggets"] == rows["3"]["nuggets"]
    assert read_questions_by_id(engine, source)["4"]["nuggets"] == []


def test_import_keeps_personal_data_behind_pseudonyms(judge: FakeLLMServer, tmp_path: Path, engine: Engine) -> None:
    """The file masks a phone in one nugget; an edit of another nugget keeps the original phone."""
    nuggets = [{"nugget": "Звонить 8 (927) 123-45-67", "vital": True}, {"nugget": "до мая", "vital": False}]
    name = load(tmp_path, make_source_name(), [question(0, nuggets=nuggets)])
    export_annotation_file(tmp_path / "out.xlsx", name)
    book = load_workbook(tmp_path / "out.xlsx")
    header = [cell.value.partition(":")[0] for cell in book.active[1]]
    cell = book.active.cell(2, header.index("опорные факты") + 1)
    assert "[телефон " in cell.value and "927" not in cell.value
    assert import_annotation_file(tmp_path / "out.xlsx", "анна")["nuggets"] == 0
    cell.value = cell.value.replace("до мая", "до июня")
    book.save(tmp_path / "out.xlsx")
    assert import_annotation_file(tmp_path / "out.xlsx", "анна")["nuggets"] == 1
    stored = read_questions_by_id(engine, name)["0"]["nuggets"]
    assert [nugget["nugget"] for nugget in stored] == ["Звонить 8 (927) 123-45-67", "до июня"]


def test_import_without_nuggets_column_keeps_nuggets(judge: FakeLLMServer, source: str, tmp_path: Path) -> None:
    make_nuggets(source)
    export_annotation_file(tmp_path / "old.xlsx", source)
    book = load_workbook(tmp_path / "old.xlsx")
    header = [cell.value.partition(":")[0] for cell in book.active[1]]
    book.active.delete_cols(header.index("опорные факты") + 1)
    book.save(tmp_path / "old.xlsx")
    assert import_annotation_file(tmp_path / "old.xlsx", "анна")["labelled"] == 0


def test_freeze_includes_nuggets(judge: FakeLLMServer, source: str) -> None:
    before = freeze(f"{source}_before", source)
    assert freeze(f"{source}_before", source) == before
    make_nuggets(source)
    after = freeze(f"{source}_after", source)
    assert before["sha256"] != after["sha256"]
    changed = diff_frozen_sets(before["name"], after["name"])["relabelled"]
    assert len(changed) == 7 and set(changed[0]["labels"]) == {"nuggets"}
    frozen = evaluate("tier2", source=source, nuggets=True, cases=after["name"])
    assert get_value(frozen, "avg_nugget_recall_all") is not None
    with pytest.raises(InputError, match="no question has nuggets; make some: yarus dataset nuggets --source"):
        evaluate("tier2", source=source, nuggets=True, cases=before["name"])


def test_generation_rejects_sources_without_references(at_home: Path, tmp_path: Path) -> None:
    name = load(tmp_path, make_source_name(), [question(0, answerable=False, ground_truth_answer=None)])
    with pytest.raises(InputError, match="no question has a reference answer to make nuggets from"):
        make_nuggets(name)
    with pytest.raises(InputError, match="no_such"):
        make_nuggets("no_such")


def test_nuggets_command_generates_with_stand_in(yarus_alone: CommandLine, at_home: Path, tmp_path: Path) -> None:
    """The offline stand-in marks every sentence of the reference as vital."""
    name = load(tmp_path, make_source_name(), [question(i) for i in range(3)])
    generated = yarus_alone("dataset", "nuggets", "--source", name, "--json")
    document = check_json("dataset nuggets", generated.out)
    assert (generated.code, document["n_made"], document["vital"], document["n_new_calls"]) == (0, 3, 3, 0)
    repeated = yarus_alone("dataset", "nuggets", "--source", name, env={"YARUS_LANGUAGE": "en"})
    assert "nuggets made for 0 of 0 questions;" in repeated.out


def test_load_reads_nuggets_from_table(at_home: Path, tmp_path: Path, engine: Engine) -> None:
    nuggets = [{"nugget": "до мая", "vital": True}]
    name = load(tmp_path, make_source_name(), [question(0, nuggets=nuggets), question(1, nuggets=json.dumps(nuggets))])
    assert [row["nuggets"] for row in read_questions_by_id(engine, name).values()] == [nuggets, nuggets]
