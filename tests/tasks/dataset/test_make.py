"""Making nuggets: once a question, kept with the labels, made good by people, frozen with a case set."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from openpyxl import load_workbook
from sqlalchemy import Engine

from tests.support.command_line import CommandLine
from tests.support.evaluation_history import source_name
from tests.support.evaluations import evaluate, load, question, questions_of, roles, texts, use, value
from tests.support.llm_server import FakeLLMServer, says
from tests.support.nuggets import Judge, asks_for, made_of
from yarus.db.errors import InputError
from yarus.tasks.cases.frozen_sets import difference, freeze
from yarus.tasks.dataset.annotation.round_trip import export, import_

Document = dict[str, Any]


@pytest.fixture
def judge(at_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLLMServer]:
    server = FakeLLMServer(script=Judge())
    server.start()
    use(monkeypatch, roles(server.url, "judge"))
    yield server
    server.stop()


@pytest.fixture
def source(judge: FakeLLMServer, tmp_path: Path) -> str:
    """Question 6 has no answer, question 7 only what a user rated good."""
    rows = [question(i, ground_truth_answer=f"Сдать книгу {i} до мая. Можно и почтой.") for i in range(6)]
    rows += [question(6, answerable=False, ground_truth_answer=None, relevant_chunk_ids=None)]
    bare = {"ground_truth_answer": None, "relevant_chunk_ids": None, "answerable": None, "origin": None}
    return load(tmp_path, source_name(), [*rows, question(7, **bare)])


def asked(server: FakeLLMServer, kind: str) -> list[Document]:
    return [request for request in server.requests if asks_for(request) == kind]


def test_made_once_of_reference_and_relevant_chunks(judge: FakeLLMServer, source: str, engine: Engine) -> None:
    made = made_of(source)
    assert (made["state"], made["asked"], made["made"], made["without_reference"]) == ("completed", 7, 7, 1)
    assert (made["nuggets"], made["vital"], made["bought"]) == (13, 7, 7)
    rows = questions_of(engine, source)
    assert rows["3"]["nuggets"] == [
        {"nugget": "Сдать книгу 3 до мая.", "vital": True},
        {"nugget": "Можно и почтой.", "vital": False},
    ]
    assert rows["7"]["nuggets"] == [{"nugget": "Правило 7 велит сдать книгу.", "vital": True}]
    assert rows["7"]["origin"] is None and rows["7"]["answerable"] is None  # other labels are not made up by that
    assert rows["6"]["nuggets"] is None
    told = texts(next(one for one in judge.requests if "книгу 3" in str(one)))
    assert told["passage_1"] == "Правило 3 велит сдать книгу 3 до мая года 3." and told["question"].startswith("Что")
    assert made_of(source)["asked"] == 0 and len(asked(judge, "nuggets")) == 7


def test_limit_goes_on_and_remake_asks_the_store(judge: FakeLLMServer, source: str) -> None:
    assert made_of(source, limit=3)["made"] == 3
    assert made_of(source, limit=3)["made"] == 3
    again = made_of(source, remake=True)
    assert (again["asked"], again["bought"]) == (7, 1)


def test_a_reply_that_cannot_be_read_makes_none_and_is_told(judge: FakeLLMServer, source: str, engine: Engine) -> None:
    judge.script.spoil = lambda asked, given, reply: says("Не знаю.") if "книгу 3" in given["reference"] else reply
    made = made_of(source)
    assert (made["state"], made["made"], made["failed"]) == ("invalid", 6, {"parse_error": 1})
    assert questions_of(engine, source)["3"]["nuggets"] is None


def test_people_edit_them(judge: FakeLLMServer, source: str, engine: Engine, tmp_path: Path) -> None:
    made_of(source)
    export(tmp_path / "out.xlsx", source)
    book = load_workbook(tmp_path / "out.xlsx")
    sheet = book.active
    header = [cell.value.partition(":")[0] for cell in sheet[1]]
    at, of = header.index("опорные факты") + 1, header.index("id вопроса") + 1
    cells = {str(sheet.cell(row, of).value): sheet.cell(row, at) for row in range(2, sheet.max_row + 1)}
    assert cells["3"].value == "! Сдать книгу 3 до мая.\nМожно и почтой."
    assert import_(tmp_path / "out.xlsx", "анна")["labelled"] == 0  # as it was shown: nobody has said anything
    cells["3"].value = "! Сдать книгу 3.\n! До мая.\n\n"
    cells["4"].value = "нет"
    cells["5"].value = None
    book.save(tmp_path / "out.xlsx")
    assert import_(tmp_path / "out.xlsx", "анна")["nuggets"] == 2
    rows = questions_of(engine, source)
    assert [one["nugget"] for one in rows["3"]["nuggets"]] == ["Сдать книгу 3.", "До мая."]
    assert rows["4"]["nuggets"] == [] and len(rows["5"]["nuggets"]) == 2
    assert rows["3"]["ground_truth_answer"] == "Сдать книгу 3 до мая. Можно и почтой."
    made_of(source, remake=True)  # what people have edited stays
    assert questions_of(engine, source)["3"]["nuggets"] == rows["3"]["nuggets"]
    assert questions_of(engine, source)["4"]["nuggets"] == []


def test_pseudonyms_that_a_file_shows_are_not_what_is_meant(
    judge: FakeLLMServer, tmp_path: Path, engine: Engine
) -> None:
    """A nugget with a phone is shown without it; who edits the other line has not changed the phone."""
    some = [{"nugget": "Звонить 8 (927) 123-45-67", "vital": True}, {"nugget": "до мая", "vital": False}]
    name = load(tmp_path, source_name(), [question(0, nuggets=some)])
    export(tmp_path / "out.xlsx", name)
    book = load_workbook(tmp_path / "out.xlsx")
    header = [cell.value.partition(":")[0] for cell in book.active[1]]
    cell = book.active.cell(2, header.index("опорные факты") + 1)
    assert "[телефон " in cell.value and "927" not in cell.value
    assert import_(tmp_path / "out.xlsx", "анна")["nuggets"] == 0
    cell.value = cell.value.replace("до мая", "до июня")
    book.save(tmp_path / "out.xlsx")
    assert import_(tmp_path / "out.xlsx", "анна")["nuggets"] == 1
    kept = questions_of(engine, name)["0"]["nuggets"]
    assert [one["nugget"] for one in kept] == ["Звонить 8 (927) 123-45-67", "до июня"]


def test_a_file_without_the_column_says_nothing_of_them(judge: FakeLLMServer, source: str, tmp_path: Path) -> None:
    made_of(source)
    export(tmp_path / "old.xlsx", source)
    book = load_workbook(tmp_path / "old.xlsx")
    header = [cell.value.partition(":")[0] for cell in book.active[1]]
    book.active.delete_cols(header.index("опорные факты") + 1)
    book.save(tmp_path / "old.xlsx")
    assert import_(tmp_path / "old.xlsx", "анна")["labelled"] == 0


def test_frozen_with_the_case_set(judge: FakeLLMServer, source: str) -> None:
    before = freeze(f"{source}_before", source)
    assert freeze(f"{source}_before", source) == before
    made_of(source)
    after = freeze(f"{source}_after", source)
    assert before["sha256"] != after["sha256"]
    changed = difference(before["name"], after["name"])["relabelled"]
    assert len(changed) == 7 and set(changed[0]["labels"]) == {"nuggets"}
    frozen = evaluate("tier2", source=source, nuggets=True, cases=after["name"])
    assert value(frozen, "avg_nugget_recall_all") is not None
    with pytest.raises(InputError, match="no question has nuggets; make some: yarus dataset nuggets --source"):
        evaluate("tier2", source=source, nuggets=True, cases=before["name"])


def test_what_cannot_work_is_said_at_once(at_home: Path, tmp_path: Path) -> None:
    name = load(tmp_path, source_name(), [question(0, answerable=False, ground_truth_answer=None)])
    with pytest.raises(InputError, match="no question has a reference answer to make nuggets from"):
        made_of(name)
    with pytest.raises(InputError, match="no_such"):
        made_of("no_such")


def test_by_the_command_line(yarus_alone: CommandLine, at_home: Path, tmp_path: Path) -> None:
    """With the offline stand-in: every sentence of the reference is vital."""
    name = load(tmp_path, source_name(), [question(i) for i in range(3)])
    made = yarus_alone("dataset", "nuggets", "--source", name, "--json")
    document = json.loads(made.out)
    assert (made.code, document["made"], document["vital"], document["bought"]) == (0, 3, 3, 0)
    told = yarus_alone("dataset", "nuggets", "--source", name, env={"YARUS_LANGUAGE": "en"})
    assert "nuggets made for 0 of 0 questions that had none" in told.out


def test_nuggets_are_loaded_from_a_table(at_home: Path, tmp_path: Path, engine: Engine) -> None:
    some = [{"nugget": "до мая", "vital": True}]
    name = load(tmp_path, source_name(), [question(0, nuggets=some), question(1, nuggets=json.dumps(some))])
    assert [row["nuggets"] for row in questions_of(engine, name).values()] == [some, some]
