"""Tier 3 of a system that streams in OpenAI's protocol: what is stored of it, and what of one that does not stream."""

import json
from pathlib import Path

import pytest

from tests.support.command_line import Document
from tests.support.evaluations import PAGE, evaluate, load, question, rows_of, use, value
from tests.support.llm_server import DONE, Do, FakeLLMServer, delta, says, streamed

PRICES = '{"bot": {"input": 10, "output": 20, "as_of": "2026-11-01"}}'
FIRST = ("first_token_ms_p50", "first_token_ms_p95")


def number_of(request: Document) -> int:
    """Of a question of `tests.support.evaluations.question`."""
    return int(request["messages"][-1]["content"].split()[3].strip(","))


def streaming(number: int, request: Document) -> Do:
    """The right page and answer; of question 3 no more than the beginning."""
    which = number_of(request)
    parts = (delta("Сдать "), delta(f"книгу {which}."))
    if which == 3:
        return streamed(*parts, whole=False, then="close")
    text = f"Правило {which} велит сдать книгу."
    last = delta(finish="stop", citations=[{"url": PAGE.format(which), "content": text}])
    usage = delta(choices=[], usage={"prompt_tokens": 1_000, "completion_tokens": 100})
    return streamed(*parts, last, usage, DONE, pause_s=0.4)


@pytest.fixture
def bot(service: FakeLLMServer, monkeypatch: pytest.MonkeyPatch) -> FakeLLMServer:
    """A system under test on sockets, with a model that has a price."""
    use(monkeypatch, {"YARUS_SUT_SERVICE__MODEL": "bot", "YARUS_PRICES": PRICES})
    return service


def test_a_stream_is_timed_priced_and_scored(bot: FakeLLMServer, tmp_path: Path) -> None:
    bot.script = streaming
    source = load(tmp_path, "streamed_tier3", [question(i) for i in range(8)])
    summary = evaluate("tier3", source=source, sut=f"openai:{bot.url}")
    rows = {int(row["question_id"]): row for row in rows_of(summary)}
    assert summary["system"]["sut"] == f"openai:{bot.url}"
    assert (rows[2]["answer"], rows[2]["retrieved"]) == ("Сдать книгу 2.", [PAGE.format(2)])
    assert rows[2]["context"] == "Правило 2 велит сдать книгу."
    assert 0 < rows[2]["first_token_ms"] <= rows[2]["latency_ms"] - 300  # a pause, less what a busy client may be late
    assert (rows[3]["status"], rows[3]["answer"], rows[3]["first_token_ms"]) == ("sut_error", None, None)
    assert "'Сдать книгу 3.'" in rows[3]["reason"]
    for name in FIRST:
        assert 0 < value(summary, name) < value(summary, name.replace("first_token", "latency"))
        assert summary["metrics"][name]["n_scored"] == 7
    assert (value(summary, "hit_rate@1"), value(summary, "sut_error_rate")) == (1, 1 / 8)
    assert (rows[2]["tokens_in"], rows[2]["tokens_out"]) == (1_000, 100)
    assert rows[2]["cost_usd"] == pytest.approx(0.012)  # 1,000 tokens for 10 USD a million, 100 for 20 USD
    again = evaluate("tier3", source=source, reuse_answers=summary["evaluation_id"])
    assert value(again, FIRST[0]) == value(summary, FIRST[0])
    assert again["comparability_key"] == summary["comparability_key"]


def test_a_system_that_does_not_stream_has_no_first_words(bot: FakeLLMServer, tmp_path: Path) -> None:
    bot.script = lambda number, request: says(f"Сдать книгу {number_of(request)}.")
    source = load(tmp_path, "not_streamed_tier3", [question(i) for i in range(3)])
    summary = evaluate("tier3", source=source, sut=f"openai:{bot.url}")
    assert summary["metrics"].keys().isdisjoint(FIRST)
    assert value(summary, "latency_ms_p50") > 0
    assert [row["first_token_ms"] for row in rows_of(summary)] == [None] * 3
    assert "streams" not in json.dumps(summary["system"])
