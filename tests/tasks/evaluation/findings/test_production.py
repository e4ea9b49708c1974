"""What production did with the same question, beside what the evaluated system does."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.evaluations import PAGE, evaluate, load, passages, roles, rows_of, use
from tests.support.llm_server import FakeLLMServer, says
from tests.tasks.dataset.labelling.labelled import named

pytestmark = pytest.mark.usefixtures("at_home")


def asked(i: int, **more: Any) -> dict[str, Any]:
    """A question of the log that is found on page i."""
    return {
        "id": str(i),
        "question": f"Что велит правило {i}, книгу {i} года {i}?",
        "answer": f"Правило {i} велит сдать книгу.",
        "confluence_url": PAGE.format(i),
        "score": 5,
    } | more


def test_pages_and_decisions_are_compared_where_the_log_has_them(tmp_path: Path) -> None:
    log = [asked(i) for i in range(6)]
    log[1]["confluence_url"] = PAGE.format(9)  # production showed another page
    log[2] |= {
        "answer": None,
        "score": None,
        "ground_truth_answer": "Сдать.",
        "origin": "manual",
        "user_id": "7",
    }  # it answered nothing
    log[3] |= {"answer": "К сожалению, ответа нет в базе знаний.", "ground_truth_answer": "Сдать.", "origin": "manual"}
    log[4] |= {"answer": None, "origin": "synthetic", "ground_truth_answer": "Сдать.", "answerable": True}
    source = load(tmp_path, "beside_production", log, passages(10))
    with named("beside_production"):
        summary = evaluate("tier3", source=source, unit="page")
    rows = {row["question_id"]: row for row in rows_of(summary)}
    shown = [rows[str(i)]["production_shown"] for i in range(6)]
    assert shown[:3] == [True, True, False] and shown[4:] == [None, True]
    assert [rows[str(i)]["same_page"] for i in (0, 1, 2, 4, 5)] == [1, 0, None, None, 1]
    assert [rows[str(i)]["same_decision"] for i in (0, 1, 2, 4, 5)] == [1, 1, 0, None, 1]
    found = summary["production"]
    assert (found["page"]["n"], found["decision"]["n"]) == (4 if shown[3] else 3, 5)
    assert found["page"]["ci_low"] < found["page"]["value"] < found["page"]["ci_high"] <= 1
    assert "beside_production:1" in found["differ"] and "beside_production:2" in found["differ"]


def test_a_gate_that_hides_what_production_showed_is_unlike_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = FakeLLMServer(script=lambda number, request: says("нет"))
    server.start()
    use(monkeypatch, roles(server.url, "gate"))
    source = load(tmp_path, "hides_all", [asked(i) for i in range(10)], passages(10))
    summary = evaluate("judge_pipeline", source=source)
    server.stop()
    found = summary["production"]
    assert found["page"] is None and found["decision"]["value"] == 0 and found["unlike"] is True


def test_a_source_without_a_log_says_nothing_of_production(tmp_path: Path) -> None:
    rows = [asked(i, answer=None, score=None, origin="manual", ground_truth_answer="Сдать.") for i in range(5)]
    summary = evaluate("tier3", source=load(tmp_path, "no_production", rows, passages(10)), unit="page")
    assert "production" not in summary


@pytest.mark.parametrize("tier", ["tier3", "judge_pipeline"])
def test_questions_without_logged_answers_say_nothing_of_production(tmp_path: Path, tier: str) -> None:
    """An empty column of answers does not say that production declined."""
    rows = [asked(i, answer=None, score=None, user_id=str(i), ground_truth_answer="Сдать.") for i in range(5)]
    summary = evaluate(tier, source=load(tmp_path, "logs_no_answers", rows, passages(10)))
    assert "production" not in summary
    assert {row["production_shown"] for row in rows_of(summary)} == {None}
    assert all(row.get("same_decision") is None for row in rows_of(summary))
