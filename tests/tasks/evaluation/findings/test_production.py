"""Agreement of the evaluated system with production on the same questions."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.evaluations import (
    PAGE_URL,
    evaluate,
    load,
    make_passages,
    make_role_variables,
    read_rows,
    set_variables,
)
from tests.support.llm_server import FakeLLMServer, make_completion
from tests.tasks.dataset.labelling.labelled import fix_evaluation_ids

pytestmark = pytest.mark.usefixtures("at_home")


def make_question(i: int, **more: Any) -> dict[str, Any]:
    """Return a logged question that page i answers."""
    return {
        "id": str(i),
        "question": f"Что велит правило {i}, книгу {i} года {i}?",
        "answer": f"Правило {i} велит сдать книгу.",
        "confluence_url": PAGE_URL.format(i),
        "score": 5,
    } | more


def test_production_compares_logged_pages_and_decisions(tmp_path: Path) -> None:
    log = [make_question(i) for i in range(6)]
    log[1]["confluence_url"] = PAGE_URL.format(9)  # production showed another page
    log[2] |= {
        "answer": None,
        "score": None,
        "ground_truth_answer": "Сдать.",
        "origin": "manual",
        "user_id": "7",
    }  # it answered nothing
    log[3] |= {"answer": "К сожалению, ответа нет в базе знаний.", "ground_truth_answer": "Сдать.", "origin": "manual"}
    log[4] |= {"answer": None, "origin": "synthetic", "ground_truth_answer": "Сдать.", "answerable": True}
    source = load(tmp_path, "beside_production", log, make_passages(10))
    with fix_evaluation_ids("beside_production"):
        summary = evaluate("tier3", source=source, unit="page")
    rows = {row["question_id"]: row for row in read_rows(summary)}
    production_shown = [rows[str(i)]["production_shown"] for i in range(6)]
    assert production_shown[:3] == [True, True, False] and production_shown[4:] == [None, True]
    assert [rows[str(i)]["same_page"] for i in (0, 1, 2, 4, 5)] == [1, 0, None, None, 1]
    assert [rows[str(i)]["same_decision"] for i in (0, 1, 2, 4, 5)] == [1, 1, 0, None, 1]
    production = summary["production"]
    assert (production["page"]["n"], production["decision"]["n"]) == (4 if production_shown[3] else 3, 5)
    assert production["page"]["ci_low"] < production["page"]["value"] < production["page"]["ci_high"] <= 1
    assert "beside_production:1" in production["differ"] and "beside_production:2" in production["differ"]


def test_production_is_unlike_when_gate_hides_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = FakeLLMServer(script=lambda number, request: make_completion("нет"))
    server.start()
    set_variables(monkeypatch, make_role_variables(server.url, "gate"))
    source = load(tmp_path, "hides_all", [make_question(i) for i in range(10)], make_passages(10))
    summary = evaluate("judge_pipeline", source=source)
    server.stop()
    production = summary["production"]
    assert production["page"] is None and production["decision"]["value"] == 0 and production["unlike"] is True


def test_production_is_missing_without_a_log(tmp_path: Path) -> None:
    rows = [make_question(i, answer=None, score=None, origin="manual", ground_truth_answer="Сдать.") for i in range(5)]
    summary = evaluate("tier3", source=load(tmp_path, "no_production", rows, make_passages(10)), unit="page")
    assert "production" not in summary


@pytest.mark.parametrize("tier", ["tier3", "judge_pipeline"])
def test_production_is_missing_without_logged_answers(tmp_path: Path, tier: str) -> None:
    """An empty column of answers does not mean that production declined."""
    rows = [make_question(i, answer=None, score=None, user_id=str(i), ground_truth_answer="Сдать.") for i in range(5)]
    summary = evaluate(tier, source=load(tmp_path, "logs_no_answers", rows, make_passages(10)))
    assert "production" not in summary
    assert {row["production_shown"] for row in read_rows(summary)} == {None}
    assert all(row.get("same_decision") is None for row in read_rows(summary))
