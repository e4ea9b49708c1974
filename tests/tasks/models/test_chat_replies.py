"""What a chat server may reply and be understood, and what is asked for once more."""

import gzip

import pytest

from tests.support.llm_clients import QUICK, call, settings, verdict
from tests.support.llm_server import JSON, Do, FakeLLMServer, http, says, scores
from yarus.tasks.models.chat import chat
from yarus.tasks.models.verdicts import ask_for_score, ask_for_yes_no, value_of


@pytest.mark.parametrize(
    ("content", "value"),
    [
        ('<think>0.9?</think>{"reason": "", "score": 0.5}', 0.5),
        ('```json\n{"reason": "", "score": 0.5}\n```', 0.5),
        ([{"type": "thinking", "thinking": []}, {"type": "text", "text": '{"score": 0.5}'}], 0.5),
        ('{"reason": "с нулём \\u0000", "score": 0.5}', 0.5),
        ('{"reason": "\0", "score": 0.5}', 0.5),  # which no database stores
    ],
)
async def test_replies_in_awkward_clothes(llm_server: FakeLLMServer, content, value):
    llm_server.script = lambda number, request: says(content)
    found = await verdict(llm_server.url)
    assert found.value == value
    assert "\0" not in found.replies[-1].raw


async def test_a_nul_in_what_a_server_says_for_itself_is_not_stored(llm_server: FakeLLMServer):
    llm_server.script = lambda number, request: http(413, '{"error": {"message": "too \\u0000 long"}}', JSON)
    found = await verdict(llm_server.url)
    assert (found.status, found.reason) == ("judge_error", "HTTP 413: too \ufffd long")


@pytest.mark.parametrize(
    "beside",
    [
        {"finish_reason": 7},
        {"logprobs": "x"},
        {"logprobs": {"content": [{"logprob": True}, None]}},
        {"logprobs": {"content": [{"logprob": int("9" * 4_000)}]}},
        {"logprobs": {"content": [{"logprob": -1}] * 100_000}},  # more than it may have written
    ],
)
async def test_what_is_wrong_beside_a_reply_costs_no_more_than_itself(llm_server: FakeLLMServer, beside):
    llm_server.script = lambda number, request: scores(0.5, **beside)
    found = await verdict(llm_server.url)
    assert (found.value, found.replies[0].logprobs, len(llm_server.requests)) == (0.5, None, 1)


async def test_half_an_emoji_in_a_reply_is_a_question_mark(llm_server: FakeLLMServer):
    body = rb'{"choices": [{"message": {"content": "{\"reason\": \"\ud83d\", \"score\": 0.5}"}}]}'
    llm_server.script = lambda number, request: http(200, body, JSON)
    found = await verdict(llm_server.url)
    assert (found.value, found.reason, len(llm_server.requests)) == (0.5, "?", 1)


@pytest.mark.usefixtures("english")
async def test_a_models_name_is_short_and_on_one_line(llm_server: FakeLLMServer, caplog):
    llm_server.script = lambda number, request: scores(0.5, model="\x1b[31m\n" + "x" * 1_000_000)
    name = (await verdict(llm_server.url)).replies[0].served_model
    assert name == "\ufffd[31m\ufffd" + "x" * 194
    assert caplog.messages == [f"judge: asked for the model asked, served by {name}"]


async def test_a_slow_server_within_the_time_out_is_waited_for(llm_server: FakeLLMServer):
    llm_server.script = lambda number, request: Do(scores(1), after_s=0.3)
    found = await verdict(llm_server.url)
    assert found.value == 1
    assert found.replies[0].latency_ms >= 300


async def test_gzip_is_understood(llm_server: FakeLLMServer):
    body = gzip.compress(scores(0.5).split(b"\r\n\r\n", 1)[1])
    llm_server.script = lambda number, request: http(200, body, JSON, "content-encoding: gzip")
    assert (await verdict(llm_server.url)).value == 0.5


async def test_an_unreadable_reply_is_asked_for_once_more(llm_server: FakeLLMServer):
    llm_server.script = lambda number, request: says("Оценка 0.9") if number == 1 else scores(0.25)
    found = await verdict(llm_server.url)
    assert (found.value, len(found.replies)) == (0.25, 2)
    roles = [message["role"] for message in llm_server.requests[1]["messages"]]
    assert roles == ["user", "assistant", "user"]
    assert llm_server.requests[1]["messages"][1]["content"] == "Оценка 0.9"


async def test_a_reply_that_was_cut_off_gets_twice_the_tokens_once(llm_server: FakeLLMServer):
    llm_server.script = lambda number, request: scores(0.9, finish="length") if number == 1 else scores(0.25)
    found = await verdict(llm_server.url, max_tokens=64)
    assert found.value == 0.25
    assert [request["max_tokens"] for request in llm_server.requests] == [64, 128]


async def test_the_response_format_falls_back(llm_server: FakeLLMServer):
    def script(number, request):
        kind = request.get("response_format", {}).get("type")
        return scores(0.5) if kind is None else http(400, f'{{"error": "no {kind} here"}}')

    llm_server.script = script
    async with chat("judge", settings(llm_server.url, concurrency=1), retries=QUICK) as judge:
        found = [await ask_for_score(judge, call(number)) for number in range(3)]
    assert [one.value for one in found] == [0.5] * 3
    kinds = [request.get("response_format", {}).get("type") for request in llm_server.requests]
    assert kinds == ["json_schema", "json_object", None, None, None]  # learned once


async def test_gate_and_generator_are_taken_as_they_are(llm_server: FakeLLMServer):
    llm_server.script = lambda number, request: says("Возможно", finish="length")
    async with chat("gate", settings(llm_server.url), retries=QUICK) as gate:
        found = await ask_for_yes_no(gate, call(name="gate"))
    assert (found.status, value_of(found), len(llm_server.requests)) == ("parse_error", None, 1)
    assert found.replies[-1].raw == "Возможно"
    async with chat("generator", settings(llm_server.url), retries=QUICK) as generator:
        reply = await generator.ask(call(name="generation"))
    assert (reply.status, reply.raw, reply.truncated, len(llm_server.requests)) == ("ok", "Возможно", True, 2)
    assert all("response_format" not in request for request in llm_server.requests)
