"""Check invented facts in answers, tier by tier: counted, reported, compared, also with older evaluations."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from sqlalchemy import Engine

from tests.support.command_line import CommandLine
from tests.support.evaluations import evaluate, get_value, load, question, read_cases, read_rows
from yarus.tasks.comparison.compare import compare

Document = dict[str, Any]
COLUMNS = ("unsupported_facts", "unsupported_fact_rate", "fact_precision", "fact_recall")
INVENTED = {3, 4}
"""Questions that the system answers with a year that no page contains."""
BOT = """
def answer(question):
    i = question.split()[3].strip(",")
    told = "Правило " + i + " велит сдать книгу до мая" + (" 2031 года." if int(i) in (3, 4) else ".")
    page = "https://wiki.example/pages/viewpage.action?pageId=" + i
    contexts = None if i == "5" else ["Правило " + i + " велит сдать книгу до мая."]
    return {"answer": told, "urls": [page], "contexts": contexts}
"""


@pytest.fixture
def inventive(at_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Document:
    """Evaluate tier 3 of a bot that invents years, and returns no contexts for question 5."""
    (tmp_path / "inventive.py").write_text(BOT, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    source = load(tmp_path, "inventive", [question(i) for i in range(10)])
    return evaluate("tier3", source=source, sut="inventive:answer")


def test_invented_year_is_a_generation_failure(inventive: Document) -> None:
    rows = {int(row["question_id"]): row for row in read_rows(inventive)}
    assert {i for i, row in rows.items() if row["unsupported_facts"]} == INVENTED
    assert {fact["text"] for i in INVENTED for fact in rows[i]["unsupported_facts"]} == {"мая 2031 года"}
    assert [rows[i]["unsupported_facts"] for i in (0, 5)] == [[], None]
    assert [rows[i]["fact_precision"] for i in (0, 3, 5)] == [1, 0.5, None]
    assert {rows[i]["failure"] for i in INVENTED} == {"generation"}
    assert get_value(inventive, "unsupported_fact_rate") == pytest.approx(2 / 9)
    assert inventive["metrics"]["unsupported_fact_rate"]["n_scored"] == 9


def test_named_page_address_is_not_invented(at_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inventive = BOT.replace('"answer": told', '"answer": told + " Подробнее: " + page + " и https://made.example/" + i')
    (tmp_path / "linking.py").write_text(inventive, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    rows = read_rows(evaluate("tier3", source=load(tmp_path, "linking", [question(0)]), sut="linking:answer"))
    assert [fact["text"] for fact in rows[0]["unsupported_facts"]] == ["https://made.example/0"]


def test_unsupported_facts_are_reported_and_selectable(inventive: Document, yarus: CommandLine) -> None:
    name = inventive["evaluation_id"]
    output = yarus("show", name, env={"YARUS_LANGUAGE": "en"}).out
    assert "of 9 answers with facts (numbers, dates, phones and so on) contain a fact" in output
    selected = yarus("cases", name, "--where", "unsupported_fact_rate=1", "--where", "unsupported_facts~2031", "--json")
    assert {row["question_id"] for row in selected.json} == {str(i) for i in INVENTED}


@pytest.mark.slow("breadth: an evaluation of an older version")
def test_evaluation_without_facts_is_readable(
    inventive: Document, engine: Engine, yarus: CommandLine, tmp_path: Path
) -> None:
    again = evaluate("tier3", source=inventive["source"], reuse_answers=inventive["evaluation_id"])
    assert read_rows(again)[3]["unsupported_facts"] == read_rows(inventive)[3]["unsupported_facts"]
    comparison = compare(engine, inventive["evaluation_id"], again["evaluation_id"])
    assert (comparison["key_differences"], comparison["metrics"]["unsupported_fact_rate"]["n"]) == ([], 9)
    file = Path(inventive["parquet"])
    pq.write_table(read_cases(inventive).drop_columns(list(COLUMNS)), file)  # as older versions wrote it
    comparison = compare(engine, inventive["evaluation_id"], again["evaluation_id"])
    assert comparison["metrics"]["unsupported_fact_rate"]["reason"] == "it was not measured in a"
    assert comparison["metrics"]["avg_e2e_score"]["reason"] is None
    page = yarus("report", inventive["evaluation_id"], again["evaluation_id"], "--out", str(tmp_path / "page.html"))
    assert page.out
    assert yarus("cases", inventive["evaluation_id"], "--where", "failure=generation").out


def test_gate_counts_facts_of_shown_answers(at_home: Path, tmp_path: Path, yarus: CommandLine) -> None:
    """Let the gate's stand-in show answers that repeat their page."""
    rows = [
        question(i, answer=f"Правило {i} велит сдать книгу {i} до мая года {i}, окно 77.", ground_truth_show=True)
        for i in range(10)
    ]
    rows += [question(10, answer="Вовсе другое, 99.", ground_truth_show=False)]
    summary = evaluate("judge_pipeline", source=load(tmp_path, "gate_facts", rows))
    rows_by_id = {int(row["question_id"]): row for row in read_rows(summary)}
    assert [rows_by_id[i]["decision"] for i in (0, 10)] == [True, False]
    assert [rows_by_id[i]["unsupported_fact_rate"] for i in (0, 10)] == [1, None]
    assert [fact["text"] for fact in rows_by_id[10]["unsupported_facts"]] == ["99"]
    assert (get_value(summary, "unsupported_fact_rate"), summary["metrics"]["unsupported_fact_rate"]["n_scored"]) == (
        1,
        10,
    )
    output = yarus("show", summary["evaluation_id"], env={"YARUS_LANGUAGE": "en"}).out
    assert "10 of 10 shown answers with facts (numbers, dates, phones and so on) contain a fact" in output
