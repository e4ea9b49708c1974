"""Facts that answers make up, tier by tier: counted, told in words, compared, also with older evaluations."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from sqlalchemy import Engine

from tests.support.command_line import CommandLine
from tests.support.evaluations import cases_of, evaluate, load, question, rows_of, value
from yarus.tasks.comparison.compare import compare

Document = dict[str, Any]
COLUMNS = ("unsupported_facts", "unsupported_fact_rate", "fact_precision", "fact_recall")
INVENTED = {3, 4}
"""Questions that the system answers with a year that stands nowhere."""
BOT = """
def answer(question):
    i = question.split()[3].strip(",")
    told = "Правило " + i + " велит сдать книгу до мая" + (" 2031 года." if int(i) in (3, 4) else ".")
    page = "https://wiki.example/pages/viewpage.action?pageId=" + i
    contexts = None if i == "5" else ["Правило " + i + " велит сдать книгу до мая."]
    return {"answer": told, "urls": [page], "contexts": contexts}
"""


@pytest.fixture
def told(at_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Document:
    """Tier 3 of a bot that makes up years, and does not tell what it answers question 5 from."""
    (tmp_path / "inventive.py").write_text(BOT, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    source = load(tmp_path, "inventive", [question(i) for i in range(10)])
    return evaluate("tier3", source=source, sut="inventive:answer")


def test_a_made_up_year_is_a_failure_of_generation_whatever_the_judge_says(told: Document) -> None:
    rows = {int(row["question_id"]): row for row in rows_of(told)}
    assert {i for i, row in rows.items() if row["unsupported_facts"]} == INVENTED
    assert {fact["text"] for i in INVENTED for fact in rows[i]["unsupported_facts"]} == {"мая 2031 года"}
    assert [rows[i]["unsupported_facts"] for i in (0, 5)] == [[], None]
    assert [rows[i]["fact_precision"] for i in (0, 3, 5)] == [1, 0.5, None]
    assert {rows[i]["failure"] for i in INVENTED} == {"generation"}
    assert value(told, "unsupported_fact_rate") == pytest.approx(2 / 9)
    assert told["metrics"]["unsupported_fact_rate"]["n_scored"] == 9


def test_the_address_of_a_page_that_it_names_is_not_made_up(
    at_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = BOT.replace('"answer": told', '"answer": told + " Подробнее: " + page + " и https://made.example/" + i')
    (tmp_path / "linking.py").write_text(told, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    rows = rows_of(evaluate("tier3", source=load(tmp_path, "linking", [question(0)]), sut="linking:answer"))
    assert [fact["text"] for fact in rows[0]["unsupported_facts"]] == ["https://made.example/0"]


def test_it_is_told_in_words_and_the_cases_are_found(told: Document, yarus: CommandLine) -> None:
    name = told["evaluation_id"]
    assert "Of 9 answers with facts" in yarus("show", name, env={"YARUS_LANGUAGE": "en"}).out
    found = yarus("cases", name, "--where", "unsupported_fact_rate=1", "--where", "unsupported_facts~2031", "--json")
    assert {row["question_id"] for row in found.json} == {str(i) for i in INVENTED}


@pytest.mark.slow("breadth: an evaluation of an older version")
def test_an_evaluation_from_before_is_read_and_compared(
    told: Document, engine: Engine, yarus: CommandLine, tmp_path: Path
) -> None:
    again = evaluate("tier3", source=told["source"], reuse_answers=told["evaluation_id"])
    assert rows_of(again)[3]["unsupported_facts"] == rows_of(told)[3]["unsupported_facts"]
    compared = compare(engine, told["evaluation_id"], again["evaluation_id"])
    assert (compared["differs"], compared["metrics"]["unsupported_fact_rate"]["n"]) == ([], 9)
    file = Path(told["parquet"])
    pq.write_table(cases_of(told).drop_columns(list(COLUMNS)), file)  # as it was written before there were facts
    compared = compare(engine, told["evaluation_id"], again["evaluation_id"])
    assert compared["metrics"]["unsupported_fact_rate"]["reason"] == "it was not measured in a"
    assert compared["metrics"]["avg_e2e_score"]["reason"] is None
    page = yarus("report", told["evaluation_id"], again["evaluation_id"], "--out", str(tmp_path / "page.html"))
    assert page.out
    assert yarus("cases", told["evaluation_id"], "--where", "failure=generation").out


def test_the_gate_answers_for_what_it_showed(at_home: Path, tmp_path: Path, yarus: CommandLine) -> None:
    """The stand-in of the gate shows an answer that says what its page says."""
    rows = [
        question(i, answer=f"Правило {i} велит сдать книгу {i} до мая года {i}, окно 77.", ground_truth_show=True)
        for i in range(10)
    ]
    rows += [question(10, answer="Вовсе другое, 99.", ground_truth_show=False)]
    summary = evaluate("judge_pipeline", source=load(tmp_path, "gate_facts", rows))
    found = {int(row["question_id"]): row for row in rows_of(summary)}
    assert [found[i]["decision"] for i in (0, 10)] == [True, False]
    assert [found[i]["unsupported_fact_rate"] for i in (0, 10)] == [1, None]
    assert [fact["text"] for fact in found[10]["unsupported_facts"]] == ["99"]
    assert (value(summary, "unsupported_fact_rate"), summary["metrics"]["unsupported_fact_rate"]["n_scored"]) == (1, 10)
    said = yarus("show", summary["evaluation_id"], env={"YARUS_LANGUAGE": "en"}).out
    assert "Of 10 shown answers with facts (numbers, dates, phones and so on) 10 state one" in said
