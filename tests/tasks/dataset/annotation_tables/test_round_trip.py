"""Annotation round trip: export, import, and the resulting labels."""

import csv
import io
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from openpyxl import load_workbook
from sqlalchemy import Engine, text

from tests.support.evaluations import evaluate, load, question, read_questions_by_id, read_rows
from yarus.tasks.dataset.annotation_tables import spreadsheets
from yarus.tasks.dataset.annotation_tables.columns import COLUMNS, column_headings
from yarus.tasks.dataset.annotation_tables.reviews import annotator_agreement
from yarus.tasks.dataset.annotation_tables.round_trip import export_annotation_file, import_annotation_file

WriteFile = Callable[..., Path]


@pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
def test_annotation_round_trip(engine: Engine, source: str, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"out{suffix}"
    assert export_annotation_file(path, source)["questions"] == 10
    header, lines = spreadsheets.read_table(path)
    assert header == column_headings("ru") and len(lines) == 10
    unchanged = import_annotation_file(path, "анна")
    assert (unchanged["labelled"], unchanged["empty"]) == (0, 10)
    positions = {name: position for position, name in enumerate(COLUMNS)}
    cells = [[cell.text for cell in row] + [""] * (len(column_headings("ru")) - len(row)) for _, row in lines]
    cells[0][positions["question_ok"]] = "нет"
    cells[1][positions["relevant"]], cells[1][positions["show"]] = "c3; c4", "Да"
    spreadsheets.write_table(path, header, cells)
    document = import_annotation_file(path, "анна")
    assert (document["labelled"], document["rejected"], document["n_partially_filled"]) == (2, 1, 2)
    rows = read_questions_by_id(engine, source)
    first, second = cells[0][positions["question_id"]], cells[1][positions["question_id"]]
    assert rows[second]["relevant_chunk_ids"] == ["c3", "c4"] and rows[second]["ground_truth_show"] is True
    assert rows[first]["review"]["rejected"] is True
    assert set(read_questions_by_id(engine, source, all_rows=False)) == set(rows) - {first}  # evaluations skip it


def test_partially_filled_rows_keep_other_labels(engine: Engine, source: str, write_file: WriteFile) -> None:
    """A verdict in one column leaves the log's labels in the others."""
    before = read_questions_by_id(engine, source)["7"]
    assert import_annotation_file(write_file({"question_id": "7", "show": "нет"}), "a")["n_partially_filled"] == 1
    after = read_questions_by_id(engine, source)["7"]
    assert after["ground_truth_show"] is False
    assert after["relevant_urls"] == [before["confluence_url"]]  # the earlier fallback
    assert after["ground_truth_answer"] == before["answer"] and after["origin"] == "manual"
    import_annotation_file(write_file({"question_id": "7", "notes": "дубль", "question_ok": "да"}), "a")
    verdict = read_questions_by_id(engine, source)["7"]["review"]["annotators"]["a"]
    assert (verdict["show"], verdict["notes"], verdict["question_ok"]) == (False, "дубль", True)


def test_wrong_answer_is_not_a_reference(engine: Engine, source: str, write_file: WriteFile) -> None:
    rows = [{"question_id": name, "answer_of": "log", "answer_ok": word} for name, word in (("6", "нет"), ("8", "да"))]
    import_annotation_file(write_file(*rows), "a")
    after = read_questions_by_id(engine, source)
    assert after["6"]["ground_truth_answer"] is None
    assert after["8"]["ground_truth_answer"] == after["8"]["answer"]


@pytest.mark.slow("breadth: two evaluations")
@pytest.mark.parametrize("later", [{"notes": "проверено"}, {"relevant": "c6"}])
def test_verdict_applies_to_its_answer_only(
    engine: Engine, source: str, write_file: WriteFile, later: dict[str, str]
) -> None:
    """A verdict on an evaluation's answer does not apply to the log's answer, whatever file a later verdict is in."""
    logged = read_questions_by_id(engine, source)["6"]["answer"]
    import_annotation_file(write_file({"question_id": "6", "answer_of": "log", "answer_ok": "да"}), "олег")
    import_annotation_file(write_file({"question_id": "7", "answer_of": "tier3-x", "answer_ok": "нет"}), "анна")
    import_annotation_file(write_file({"question_id": "6", "answer_of": "tier3-x", "answer_ok": "нет"}), "анна")
    import_annotation_file(write_file(*({"question_id": n, "answer_of": "log", **later} for n in "67")), "анна")
    after = read_questions_by_id(engine, source)
    assert after["6"]["ground_truth_answer"] == logged
    assert after["7"]["ground_truth_answer"] == after["7"]["answer"]
    assert after["6"]["review"]["annotators"]["анна"]["answer_of"] == "tier3-x"
    # Now the verdict is on the log's answer.
    import_annotation_file(write_file({"question_id": "6", "answer_of": "log", "answer_ok": "нет"}), "анна")
    assert read_questions_by_id(engine, source)["6"]["ground_truth_answer"] is None


def test_none_marks_question_as_unanswerable(engine: Engine, source: str, write_file: WriteFile) -> None:
    import_annotation_file(write_file({"question_id": "1", "relevant": "Нет"}), "a")
    after = read_questions_by_id(engine, source)["1"]
    assert (after["relevant_chunk_ids"], after["answerable"]) == ([], False)
    import_annotation_file(
        write_file({"question_id": "1", "relevant": "[c2] https://wiki.example/pages/viewpage.action?pageId=3"}), "a"
    )
    after = read_questions_by_id(engine, source)["1"]
    assert after["relevant_chunk_ids"] == ["c2"] and after["answerable"] is True
    assert after["relevant_urls"] == ["https://wiki.example/pages/viewpage.action?pageId=3"]


def test_export_contains_no_formulas(at_home: Path, tmp_path: Path) -> None:
    """CSV and workbooks contain no formulas, and ids are imported unchanged."""
    evil = '=HYPERLINK("http://x.example";"нажми")'
    rows = [question(1, id="=1+1", question=evil), question(2, id="-2", question="@SUM(A1)", answer="+79271234567")]
    name = load(tmp_path, "formulas", rows)
    for suffix in (".csv", ".xlsx"):
        path = tmp_path / f"out{suffix}"
        export_annotation_file(path, name)
        if suffix == ".xlsx":
            cells = [cell for row in load_workbook(path).active.iter_rows() for cell in row if cell.value]
            assert {cell.data_type for cell in cells} == {"s"}
            texts = [cell.value for cell in cells]
        else:
            texts = [
                cell for row in csv.reader(io.StringIO(path.read_text("utf-8-sig")), delimiter=";") for cell in row
            ]
        assert not [cell_text for cell_text in texts if cell_text.startswith(("=", "+", "-", "@"))]
        assert import_annotation_file(path, "a")["rows"] == 2
        _, lines = spreadsheets.read_table(path)
        assert {cells[0].text for _, cells in lines} == {"=1+1", "-2"}


def test_export_replaces_personal_data(at_home: Path, tmp_path: Path) -> None:
    question_text = "я Иванов Иван Иванович, тел. +7 927 123-45-67, почта ivan@mail.ru"
    name = load(tmp_path, "private", [question(1, question=question_text, answer=f"Записали: {question_text}")])
    export_annotation_file(tmp_path / "out.csv", name)
    text = (tmp_path / "out.csv").read_text("utf-8-sig")
    assert not re.search(r"Иванов|927|@", text)
    pseudonyms = re.findall(r"\[(имя|телефон|почта) ([0-9a-f]{6})\]", text)
    assert len(pseudonyms) >= 6 and len(set(pseudonyms)) == 3  # the same person has the same pseudonym in every text
    assert (at_home / "pseudonyms.key").stat().st_mode & 0o777 == 0o600


def test_irrelevance_is_a_label(engine: Engine, source: str, write_file: WriteFile, tmp_path: Path) -> None:
    """Irrelevance is counted and compared like other labels; the question is not exported as unlabelled."""
    out, rows = (
        tmp_path / "out.csv",
        [{"question_id": question_id, "relevant": word} for question_id, word in (("8", "нет"), ("9", "c9"))],
    )
    for annotator in ("анна", "олег"):
        document = import_annotation_file(write_file(*rows), annotator)
        assert (document["labelled"], document["relevant"], document["empty"]) == (2, 2, 0)
    (relevant,) = (pair for pair in annotator_agreement(source)["pairs"] if pair["field"] == "relevant")
    assert (relevant["n"], relevant["agreement"]) == (2, 1.0)
    evaluated = evaluate("tier1", source=source, unit="chunk")
    reasons = {case["question_id"]: case["reason"] for case in read_rows(evaluated) if case["status"] == "unlabelled"}
    reason = "no chunk is labelled relevant"
    assert reasons == dict.fromkeys("567", reason) | {"8": f"{reason}: it is annotated that the corpus has no answer"}
    export_annotation_file(out, source, [evaluated["evaluation_id"]])
    exported = {cells[0].text: cells[list(COLUMNS).index("why")].text for _, cells in spreadsheets.read_table(out)[1]}
    assert {name for name, weights in exported.items() if "нет разметки" in weights} == {"5", "6", "7"}


def test_import_keeps_origin_of_source(engine: Engine, source: str, write_file: WriteFile) -> None:
    statement = text("SELECT origin FROM yarus.source WHERE name = :name")
    with engine.connect() as connection:
        before = connection.scalar(statement, {"name": source})
    import_annotation_file(write_file({"question_id": "1", "show": "да"}), "a")
    with engine.connect() as connection:
        assert connection.scalar(statement, {"name": source}) == before
