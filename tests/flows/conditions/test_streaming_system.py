"""Check tier 3 of a system that streams in OpenAI's protocol, and of one that does not stream."""

import json
from pathlib import Path

import pytest

from tests.support.command_line import Document
from tests.support.evaluations import PAGE_URL, evaluate, get_value, load, question, read_rows, set_variables
from tests.support.llm_server import DONE_EVENT, Action, FakeLLMServer, make_completion, make_delta_event, make_stream

PRICES = '{"bot": {"input": 10, "output": 20, "as_of": "2026-11-01"}}'
FIRST = ("first_token_ms_p50", "first_token_ms_p95")


def number_of(request: Document) -> int:
    """Return the number of a question of `tests.support.evaluations.question`."""
    return int(request["messages"][-1]["content"].split()[3].strip(","))


def streaming(_: int, request: Document) -> Action:
    """Stream the right page and answer; for question 3 only the beginning."""
    number = number_of(request)
    parts = (make_delta_event("Сдать "), make_delta_event(f"книгу {number}."))
    if number == 3:
        return make_stream(*parts, whole=False, then="close")
    text = f"Правило {number} велит сдать книгу."
    final_event = make_delta_event(finish="stop", citations=[{"url": PAGE_URL.format(number), "content": text}])
    usage = make_delta_event(choices=[], usage={"prompt_tokens": 1_000, "completion_tokens": 100})
    return make_stream(*parts, final_event, usage, DONE_EVENT, pause_s=0.4)


@pytest.fixture
def bot(service: FakeLLMServer, monkeypatch: pytest.MonkeyPatch) -> FakeLLMServer:
    """Configure a system under test on sockets, with a model that has a price."""
    set_variables(monkeypatch, {"YARUS_SUT_SERVICE__MODEL": "bot", "YARUS_PRICES": PRICES})
    return service


def test_stream_is_timed_priced_and_scored(bot: FakeLLMServer, tmp_path: Path) -> None:
    bot.script = streaming
    source = load(tmp_path, "streamed_tier3", [question(i) for i in range(8)])
    summary = evaluate("tier3", source=source, sut=f"openai:{bot.url}")
    rows = {int(row["question_id"]): row for row in read_rows(summary)}
    assert summary["system"]["sut"] == f"openai:{bot.url}"
    assert (rows[2]["answer"], rows[2]["retrieved"]) == ("Сдать книгу 2.", [PAGE_URL.format(2)])
    assert rows[2]["context"] == "Правило 2 велит сдать книгу."
    assert 0 < rows[2]["first_token_ms"] <= rows[2]["latency_ms"] - 300  # a pause, minus the delay of a busy client
    assert (rows[3]["status"], rows[3]["answer"], rows[3]["first_token_ms"]) == ("sut_error", None, None)
    assert "'Сдать книгу 3.'" in rows[3]["reason"]
    for name in FIRST:
        assert 0 < get_value(summary, name) < get_value(summary, name.replace("first_token", "latency"))
        assert summary["metrics"][name]["n_scored"] == 7
    assert (get_value(summary, "hit_rate@1"), get_value(summary, "sut_error_rate")) == (1, 1 / 8)
    assert (rows[2]["tokens_in"], rows[2]["tokens_out"]) == (1_000, 100)
    assert rows[2]["cost_usd"] == pytest.approx(0.012)  # 1,000 tokens at 10 USD per million, 100 at 20 USD
    again = evaluate("tier3", source=source, reuse_answers=summary["evaluation_id"])
    assert get_value(again, FIRST[0]) == get_value(summary, FIRST[0])
    assert again["comparability_key"] == summary["comparability_key"]


def test_system_without_stream_has_no_first_token(bot: FakeLLMServer, tmp_path: Path) -> None:
    bot.script = lambda number, request: make_completion(f"Сдать книгу {number_of(request)}.")
    source = load(tmp_path, "not_streamed_tier3", [question(i) for i in range(3)])
    summary = evaluate("tier3", source=source, sut=f"openai:{bot.url}")
    assert summary["metrics"].keys().isdisjoint(FIRST)
    assert get_value(summary, "latency_ms_p50") > 0
    assert [row["first_token_ms"] for row in read_rows(summary)] == [None] * 3
    assert "streams" not in json.dumps(summary["system"])
