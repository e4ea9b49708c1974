"""Check tier 3 without searchable pages: a bot without pages, and recorded answers."""

import ast
import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from tests.support.evaluations import evaluate, get_value, set_variables
from tests.support.llm_server import JSON_HEADER, FakeLLMServer, make_response
from tests.support.promises import check_promises
from tests.support.sources import store_source
from yarus.db.errors import InputError
from yarus.flows.preflight.checks import check_rows
from yarus.flows.preflight.dry_run import plan_calls
from yarus.flows.preflight.night_plan import plan_night
from yarus.metrics.table import metrics_for_tier
from yarus.tasks.config.flow_parameters import NightlyParameters
from yarus.tasks.config.parameters import JudgeQuality, Tier0, Tier1, Tier2, Tier3

CASES = Path(__file__).parents[4] / "shared" / "cases"
NOT_MEASURABLE = "retrieval is not measurable: the source has no pages"


def read_case(name: str) -> str:
    if not (CASES / name).exists():
        pytest.skip(f"needs {CASES / name}")
    return (CASES / name).read_text(encoding="utf-8")


def read_case_rows(name: str) -> list[dict[str, Any]]:
    return list(csv.DictReader(read_case(name).splitlines(keepends=True)))


@pytest.fixture
def bot(service: FakeLLMServer, monkeypatch: pytest.MonkeyPatch) -> FakeLLMServer:
    """Serve the bot of shared/cases as the system under test: it answers, and names no page."""
    answers_match = re.search(r"^A = (\{.*\})$", read_case("stub_bot.py"), re.MULTILINE)
    assert answers_match
    answers = ast.literal_eval(answers_match[1])
    service.script = lambda number, request: make_response(
        200, json.dumps({"answer": answers[request["question"]]}), JSON_HEADER
    )
    set_variables(monkeypatch, {"YARUS_SUT": f"{service.url}/ask"})
    return service


@pytest.fixture
def blackbox(engine: Engine) -> str:
    """Store questions with references only, and return the name of the source."""
    rows = read_case_rows("35_blackbox.csv")
    questions = [{"question": row["question"], "ground_truth_answer": row["expected_answer"]} for row in rows]
    return store_source(engine, "blackbox", questions)


def test_tier3_measures_bot_without_pages(blackbox: str, bot: FakeLLMServer) -> None:
    check_rows(Tier3(source=blackbox))
    summary = evaluate("tier3", source=blackbox)
    assert (summary["state"], summary["coverage"], summary["statuses"]) == ("completed", 1.0, {"ok": 6})
    assert get_value(summary, "avg_rouge1_f") == pytest.approx(0.4923, abs=5e-5)
    assert summary["metrics"]["avg_rouge1_f"]["n_scored"] == 6
    assert [note["note"] for note in summary["notes"]] == ["no pages"]
    ranked = {row.name for row in metrics_for_tier("tier3") if row.needs == "relevant"} & summary["metrics"].keys()
    assert {summary["metrics"][name]["reason"] for name in ranked} == {NOT_MEASURABLE}
    assert "production" not in summary  # a source without answers has no production summary
    assert check_promises(blackbox).keys() == {"tier3"}
    plan = plan_night(NightlyParameters(source=blackbox))
    assert (plan.begun, plan.has_corpus) == (["tier3"], False)


def test_tier3_notes_missing_pages_once(engine: Engine, bot: FakeLLMServer) -> None:
    rows = [
        {"question": row["question"], "ground_truth_answer": row["expected_answer"], "relevant_urls": ["https://a/b"]}
        for row in read_case_rows("35_blackbox.csv")
    ]
    summary = evaluate("tier3", source=store_source(engine, "blackbox_labelled", rows))
    assert [note["note"] for note in summary["notes"]] == ["no pages"]
    assert summary["metrics"]["hit_rate@1"]["reason"] == NOT_MEASURABLE
    assert summary["metrics"]["avg_rouge1_f"]["n_scored"] == 6


@pytest.mark.parametrize("parameters", [Tier0, Tier1, Tier2, JudgeQuality])
def test_tiers_that_need_pages_refuse_source_without(blackbox: str, bot: FakeLLMServer, parameters: Any) -> None:
    with pytest.raises(InputError, match="has no chunks; load some"):
        check_rows(parameters(source=blackbox))
    tier = {"Tier0": "tier0", "Tier1": "tier1", "Tier2": "tier2", "JudgeQuality": "judge"}[parameters.__name__]
    with pytest.raises(InputError, match="has no chunks; load some"):
        evaluate(tier, source=blackbox)


async def test_tier3_with_local_retriever_names_options(blackbox: str, at_home: object) -> None:
    with pytest.raises(InputError, match=r"no pages to search.*--kind chunks --into blackbox.*--sut URL"):
        check_rows(Tier3(source=blackbox))
    with pytest.raises(InputError, match="no pages to search"):
        await plan_calls("tier3", Tier3(source=blackbox))


def test_recorded_answers_use_given_references(engine: Engine, at_home: object) -> None:
    rows = read_case_rows("34_reference_no_label.csv")
    scored_rows = [{**row, "score": int(row["score"])} for row in rows]
    for origin in (None, "imported"):
        name = store_source(
            engine, f"wrong_{origin}".lower(), [row | ({"origin": origin} if origin else {}) for row in scored_rows]
        )
        summary = evaluate("tier3", source=name, sut="recorded")
        assert get_value(summary, "avg_rouge1_f") == pytest.approx(0.5164, abs=5e-5)
        assert summary["metrics"]["avg_rouge1_f"]["n_scored"] == 8
        assert "reference from the log" not in {note["note"] for note in summary["notes"]}
        assert check_promises(name).keys() == {"tier3"}


def test_nuggets_are_measured_without_references(engine: Engine, bot: FakeLLMServer) -> None:
    rows = [
        {"question": row["question"], "nuggets": [{"nugget": row["expected_answer"], "vital": True}]}
        for row in read_case_rows("35_blackbox.csv")
    ]
    summary = evaluate("tier3", source=store_source(engine, "nuggets_alone", rows), nuggets=True)
    assert (summary["state"], summary["statuses"]) == ("completed", {"ok": 6})
    assert summary["metrics"]["avg_nugget_recall"]["n_scored"] == 6
    assert summary["metrics"]["avg_rouge1_f"]["n_scored"] == 0
    assert summary["system"]["unreferenced"] == "judged"
