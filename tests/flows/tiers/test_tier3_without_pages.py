"""Tier 3 where nothing can be searched: a bot without its pages, and answers that a log has recorded."""

import ast
import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from tests.support.evaluations import evaluate, use, value
from tests.support.llm_server import JSON, FakeLLMServer, http
from tests.support.promises import check_promises
from tests.support.sources import store
from yarus.db.errors import InputError
from yarus.flows.before.dry_run import plan as plan_calls
from yarus.flows.before.night_plan import plan_night
from yarus.flows.before.preflight import check_rows
from yarus.metrics.table import metrics_of
from yarus.tasks.config.flow_parameters import Nightly
from yarus.tasks.config.parameters import JudgeQuality, Tier0, Tier1, Tier2, Tier3

CASES = Path(__file__).parents[4] / "shared" / "cases"
NOT_MEASURABLE = "retrieval is not measurable: the source has no pages"


def text_of_case(name: str) -> str:
    if not (CASES / name).exists():
        pytest.skip(f"needs {CASES / name}")
    return (CASES / name).read_text(encoding="utf-8")


def rows_of_file(name: str) -> list[dict[str, Any]]:
    return list(csv.DictReader(text_of_case(name).splitlines(keepends=True)))


@pytest.fixture
def bot(service: FakeLLMServer, monkeypatch: pytest.MonkeyPatch) -> FakeLLMServer:
    """The bot of shared/cases as the system under test: it answers, and names no page."""
    known = re.search(r"^A = (\{.*\})$", text_of_case("stub_bot.py"), re.MULTILINE)
    assert known
    answers = ast.literal_eval(known[1])
    service.script = lambda number, request: http(200, json.dumps({"answer": answers[request["question"]]}), JSON)
    use(monkeypatch, {"YARUS_SUT": f"{service.url}/ask"})
    return service


@pytest.fixture
def blackbox(engine: Engine) -> str:
    """Questions with references and nothing else; the name of the source."""
    rows = rows_of_file("35_blackbox.csv")
    given = [{"question": row["question"], "ground_truth_answer": row["expected_answer"]} for row in rows]
    return store(engine, "blackbox", given)


def test_tier3_measures_a_bot_without_pages(blackbox: str, bot: FakeLLMServer) -> None:
    check_rows(Tier3(source=blackbox))
    summary = evaluate("tier3", source=blackbox)
    assert (summary["state"], summary["coverage"], summary["statuses"]) == ("completed", 1.0, {"ok": 6})
    assert value(summary, "avg_rouge1_f") == pytest.approx(0.4923, abs=5e-5)
    assert summary["metrics"]["avg_rouge1_f"]["n_scored"] == 6
    assert [note["note"] for note in summary["notes"]] == ["no pages"]
    ranked = {metric.name for metric in metrics_of("tier3") if metric.needs == "relevant"} & summary["metrics"].keys()
    assert {summary["metrics"][name]["reason"] for name in ranked} == {NOT_MEASURABLE}
    assert "production" not in summary  # of which a source without answers says nothing
    assert check_promises(blackbox).keys() == {"tier3"}
    plan = plan_night(Nightly(source=blackbox))
    assert (plan.begun, plan.has_corpus) == (["tier3"], False)


def test_tier3_of_a_bot_says_once_that_labels_cannot_be_found(engine: Engine, bot: FakeLLMServer) -> None:
    rows = [
        {"question": row["question"], "ground_truth_answer": row["expected_answer"], "relevant_urls": ["https://a/b"]}
        for row in rows_of_file("35_blackbox.csv")
    ]
    summary = evaluate("tier3", source=store(engine, "blackbox_labelled", rows))
    assert [note["note"] for note in summary["notes"]] == ["no pages"]
    assert summary["metrics"]["hit_rate@1"]["reason"] == NOT_MEASURABLE
    assert summary["metrics"]["avg_rouge1_f"]["n_scored"] == 6


@pytest.mark.parametrize("parameters", [Tier0, Tier1, Tier2, JudgeQuality])
def test_tiers_that_need_pages_refuse_a_source_without(blackbox: str, bot: FakeLLMServer, parameters: Any) -> None:
    with pytest.raises(InputError, match="has no chunks; load some"):
        check_rows(parameters(source=blackbox))
    tier = {"Tier0": "tier0", "Tier1": "tier1", "Tier2": "tier2", "JudgeQuality": "judge"}[parameters.__name__]
    with pytest.raises(InputError, match="has no chunks; load some"):
        evaluate(tier, source=blackbox)


async def test_tier3_of_our_own_retriever_says_what_to_do(blackbox: str, at_home: object) -> None:
    with pytest.raises(InputError, match=r"no pages to search.*--kind chunks --into blackbox.*--sut URL"):
        check_rows(Tier3(source=blackbox))
    with pytest.raises(InputError, match="no pages to search"):
        await plan_calls("tier3", Tier3(source=blackbox))


def test_recorded_answers_are_compared_with_given_references(engine: Engine, at_home: object) -> None:
    rows = rows_of_file("34_reference_no_label.csv")
    given = [{**row, "score": int(row["score"])} for row in rows]
    for origin in (None, "imported"):
        name = store(engine, f"wrong_{origin}".lower(), [row | ({"origin": origin} if origin else {}) for row in given])
        summary = evaluate("tier3", source=name, sut="recorded")
        assert value(summary, "avg_rouge1_f") == pytest.approx(0.5164, abs=5e-5)
        assert summary["metrics"]["avg_rouge1_f"]["n_scored"] == 8
        assert "reference from the log" not in {note["note"] for note in summary["notes"]}
        assert check_promises(name).keys() == {"tier3"}


def test_nuggets_alone_are_measured(engine: Engine, bot: FakeLLMServer) -> None:
    rows = [
        {"question": row["question"], "nuggets": [{"nugget": row["expected_answer"], "vital": True}]}
        for row in rows_of_file("35_blackbox.csv")
    ]
    summary = evaluate("tier3", source=store(engine, "nuggets_alone", rows), nuggets=True)
    assert (summary["state"], summary["statuses"]) == ("completed", {"ok": 6})
    assert summary["metrics"]["avg_nugget_recall"]["n_scored"] == 6
    assert summary["metrics"]["avg_rouge1_f"]["n_scored"] == 0
    assert summary["system"]["unreferenced"] == "judged"
