"""The annotation round trip: what goes out, what comes back, and what follows."""

import csv
import io
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from openpyxl import load_workbook
from sqlalchemy import Engine, text

from tests.support.evaluations import evaluate, load, question, questions_of, rows_of
from yarus.tasks.dataset.annotation import spreadsheets
from yarus.tasks.dataset.annotation.columns import COLUMNS, headings
from yarus.tasks.dataset.annotation.reviews import agreement
from yarus.tasks.dataset.annotation.round_trip import export, import_

Make = Callable[..., Path]


@pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
def test_the_round_trip(engine: Engine, source: str, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"out{suffix}"
    assert export(path, source)["questions"] == 10
    header, lines = spreadsheets.read(path)
    assert header == headings("ru") and len(lines) == 10
    empty = import_(path, "анна")
    assert (empty["labelled"], empty["empty"]) == (0, 10)
    at = {name: place for place, name in enumerate(COLUMNS)}
    cells = [[cell.text for cell in row] + [""] * (len(headings("ru")) - len(row)) for _, row in lines]
    cells[0][at["question_ok"]] = "нет"
    cells[1][at["relevant"]], cells[1][at["show"]] = "c3; c4", "Да"
    spreadsheets.write(path, header, cells)
    document = import_(path, "анна")
    assert (document["labelled"], document["rejected"], document["half_filled"]) == (2, 1, 2)
    rows = questions_of(engine, source)
    first, second = cells[0][at["question_id"]], cells[1][at["question_id"]]
    assert rows[second]["relevant_chunk_ids"] == ["c3", "c4"] and rows[second]["ground_truth_show"] is True
    assert rows[first]["review"]["rejected"] is True
    assert set(questions_of(engine, source, all_rows=False)) == set(rows) - {first}  # it left every evaluation


def test_half_filled_rows_count_as_what_is_filled(engine: Engine, source: str, filled: Make) -> None:
    """A verdict on one thing leaves the log's word on the others as it was."""
    before = questions_of(engine, source)["7"]
    assert import_(filled({"question_id": "7", "show": "нет"}), "a")["half_filled"] == 1
    after = questions_of(engine, source)["7"]
    assert after["ground_truth_show"] is False
    assert after["relevant_urls"] == [before["confluence_url"]]  # what had been the fallback
    assert after["ground_truth_answer"] == before["answer"] and after["origin"] == "manual"
    import_(filled({"question_id": "7", "notes": "дубль", "question_ok": "да"}), "a")
    said = questions_of(engine, source)["7"]["review"]["annotators"]["a"]
    assert (said["show"], said["notes"], said["question_ok"]) == (False, "дубль", True)


def test_an_answer_that_is_found_wrong_is_no_reference(engine: Engine, source: str, filled: Make) -> None:
    rows = [{"question_id": n, "answer_of": "log", "answer_ok": said} for n, said in (("6", "нет"), ("8", "да"))]
    import_(filled(*rows), "a")
    after = questions_of(engine, source)
    assert after["6"]["ground_truth_answer"] is None
    assert after["8"]["ground_truth_answer"] == after["8"]["answer"]


@pytest.mark.slow("breadth: two evaluations")
@pytest.mark.parametrize("later", [{"notes": "проверено"}, {"relevant": "c6"}])
def test_a_verdict_stays_with_the_answer_it_is_about(
    engine: Engine, source: str, filled: Make, later: dict[str, str]
) -> None:
    """Who finds an evaluation's answer wrong has said nothing of the log's, whichever file a later word comes in."""
    logged = questions_of(engine, source)["6"]["answer"]
    import_(filled({"question_id": "6", "answer_of": "log", "answer_ok": "да"}), "олег")
    import_(filled({"question_id": "7", "answer_of": "tier3-x", "answer_ok": "нет"}), "анна")
    import_(filled({"question_id": "6", "answer_of": "tier3-x", "answer_ok": "нет"}), "анна")
    import_(filled(*({"question_id": n, "answer_of": "log", **later} for n in "67")), "анна")
    after = questions_of(engine, source)
    assert after["6"]["ground_truth_answer"] == logged
    assert after["7"]["ground_truth_answer"] == after["7"]["answer"]
    assert after["6"]["review"]["annotators"]["анна"]["answer_of"] == "tier3-x"
    import_(filled({"question_id": "6", "answer_of": "log", "answer_ok": "нет"}), "анна")  # now it is about the log's
    assert questions_of(engine, source)["6"]["ground_truth_answer"] is None


def test_no_chunk_is_relevant(engine: Engine, source: str, filled: Make) -> None:
    import_(filled({"question_id": "1", "relevant": "Нет"}), "a")
    after = questions_of(engine, source)["1"]
    assert (after["relevant_chunk_ids"], after["answerable"]) == ([], False)
    import_(filled({"question_id": "1", "relevant": "[c2] https://wiki.example/pages/viewpage.action?pageId=3"}), "a")
    after = questions_of(engine, source)["1"]
    assert after["relevant_chunk_ids"] == ["c2"] and after["answerable"] is True
    assert after["relevant_urls"] == ["https://wiki.example/pages/viewpage.action?pageId=3"]


def test_nothing_is_a_formula(at_home: Path, tmp_path: Path) -> None:
    """Neither in CSV nor in a workbook; ids come back as they were."""
    evil = '=HYPERLINK("http://x.example";"нажми")'
    rows = [question(1, id="=1+1", question=evil), question(2, id="-2", question="@SUM(A1)", answer="+79271234567")]
    name = load(tmp_path, "formulas", rows)
    for suffix in (".csv", ".xlsx"):
        path = tmp_path / f"out{suffix}"
        export(path, name)
        if suffix == ".xlsx":
            cells = [cell for row in load_workbook(path).active.iter_rows() for cell in row if cell.value]
            assert {cell.data_type for cell in cells} == {"s"}
            texts = [cell.value for cell in cells]
        else:
            texts = [
                cell for row in csv.reader(io.StringIO(path.read_text("utf-8-sig")), delimiter=";") for cell in row
            ]
        assert not [one for one in texts if one.startswith(("=", "+", "-", "@"))]
        assert import_(path, "a")["rows"] == 2
        _, lines = spreadsheets.read(path)
        assert {cells[0].text for _, cells in lines} == {"=1+1", "-2"}


def test_exports_have_pseudonyms(at_home: Path, tmp_path: Path) -> None:
    asked = "я Иванов Иван Иванович, тел. +7 927 123-45-67, почта ivan@mail.ru"
    name = load(tmp_path, "private", [question(1, question=asked, answer=f"Записали: {asked}")])
    export(tmp_path / "out.csv", name)
    text = (tmp_path / "out.csv").read_text("utf-8-sig")
    assert not re.search(r"Иванов|927|@", text)
    found = re.findall(r"\[(имя|телефон|почта) ([0-9a-f]{6})\]", text)
    assert len(found) >= 6 and len(set(found)) == 3  # the same person has the same pseudonym in every text
    assert (at_home / "pseudonyms.key").stat().st_mode & 0o777 == 0o600


def test_that_nothing_is_relevant_is_a_label(engine: Engine, source: str, filled: Make, tmp_path: Path) -> None:
    """It is counted and compared as any, the case says so, and nobody is asked again for want of a label."""
    out, both = tmp_path / "out.csv", [{"question_id": n, "relevant": said} for n, said in (("8", "нет"), ("9", "c9"))]
    for annotator in ("анна", "олег"):
        document = import_(filled(*both), annotator)
        assert (document["labelled"], document["relevant"], document["empty"]) == (2, 2, 0)
    (relevant,) = (pair for pair in agreement(source)["pairs"] if pair["field"] == "relevant")
    assert (relevant["n"], relevant["agreement"]) == (2, 1.0)
    ran = evaluate("tier1", source=source, unit="chunk")
    reasons = {case["question_id"]: case["reason"] for case in rows_of(ran) if case["status"] == "unlabelled"}
    none = "no chunk is labelled relevant"
    assert reasons == dict.fromkeys("567", none) | {"8": f"{none}: it is annotated that the corpus has no answer"}
    export(out, source, [ran["evaluation_id"]])
    asked = {cells[0].text: cells[list(COLUMNS).index("why")].text for _, cells in spreadsheets.read(out)[1]}
    assert {name for name, why in asked.items() if "нет разметки" in why} == {"5", "6", "7"}


def test_the_source_keeps_its_origin(engine: Engine, source: str, filled: Make) -> None:
    statement = text("SELECT origin FROM yarus.source WHERE name = :name")
    with engine.connect() as connection:
        before = connection.scalar(statement, {"name": source})
    import_(filled({"question_id": "1", "show": "да"}), "a")
    with engine.connect() as connection:
        assert connection.scalar(statement, {"name": source}) == before
