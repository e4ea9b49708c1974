"""Replies of a chat server in unusual forms, and replies that are requested again."""

import gzip

import pytest

from tests.support.llm_clients import QUICK_RETRIES, ask_for_verdict, make_call, make_chat_settings
from tests.support.llm_server import (
    JSON_HEADER,
    Action,
    FakeLLMServer,
    make_completion,
    make_response,
    make_score_completion,
)
from yarus.tasks.models.chat import open_chat
from yarus.tasks.models.verdicts import ask_for_score, ask_for_yes_no, get_value


@pytest.mark.parametrize(
    ("content", "value"),
    [
        ('<think>0.9?</think>{"reason": "", "score": 0.5}', 0.5),
        ('```json\n{"reason": "", "score": 0.5}\n```', 0.5),
        ([{"type": "thinking", "thinking": []}, {"type": "text", "text": '{"score": 0.5}'}], 0.5),
        ('{"reason": "с нулём \\u0000", "score": 0.5}', 0.5),
        ('{"reason": "\0", "score": 0.5}', 0.5),  # databases cannot store it
    ],
)
async def test_reply_in_unusual_form_is_read(llm_server: FakeLLMServer, content, value):
    llm_server.script = lambda number, request: make_completion(content)
    score = await ask_for_verdict(llm_server.url)
    assert score.value == value
    assert "\0" not in score.replies[-1].raw


async def test_nul_in_an_error_message_is_replaced(llm_server: FakeLLMServer):
    llm_server.script = lambda _, __: make_response(413, '{"error": {"message": "too \\u0000 long"}}', JSON_HEADER)
    score = await ask_for_verdict(llm_server.url)
    assert (score.status, score.reason) == ("judge_error", "HTTP 413: too \ufffd long")


@pytest.mark.parametrize(
    "beside",
    [
        {"finish_reason": 7},
        {"logprobs": "x"},
        {"logprobs": {"content": [{"logprob": True}, None]}},
        {"logprobs": {"content": [{"logprob": int("9" * 4_000)}]}},
        {"logprobs": {"content": [{"logprob": -1}] * 100_000}},  # more than its token limit
    ],
)
async def test_invalid_field_beside_a_reply_is_dropped(llm_server: FakeLLMServer, beside):
    llm_server.script = lambda number, request: make_score_completion(0.5, **beside)
    score = await ask_for_verdict(llm_server.url)
    assert (score.value, score.replies[0].logprobs, len(llm_server.requests)) == (0.5, None, 1)


async def test_half_an_emoji_becomes_a_question_mark(llm_server: FakeLLMServer):
    body = rb'{"choices": [{"message": {"content": "{\"reason\": \"\ud83d\", \"score\": 0.5}"}}]}'
    llm_server.script = lambda number, request: make_response(200, body, JSON_HEADER)
    score = await ask_for_verdict(llm_server.url)
    assert (score.value, score.reason, len(llm_server.requests)) == (0.5, "?", 1)


@pytest.mark.usefixtures("english")
async def test_model_name_is_short_and_printable(llm_server: FakeLLMServer, caplog):
    llm_server.script = lambda number, request: make_score_completion(0.5, model="\x1b[31m\n" + "x" * 1_000_000)
    name = (await ask_for_verdict(llm_server.url)).replies[0].served_model
    assert name == "\ufffd[31m\ufffd" + "x" * 194
    assert caplog.messages == [f"judge: asked for the model asked, served by {name}"]


async def test_slow_reply_within_the_timeout_is_awaited(llm_server: FakeLLMServer):
    llm_server.script = lambda number, request: Action(make_score_completion(1), after_s=0.3)
    score = await ask_for_verdict(llm_server.url)
    assert score.value == 1
    assert score.replies[0].latency_ms >= 300


async def test_gzip_reply_is_read(llm_server: FakeLLMServer):
    body = gzip.compress(make_score_completion(0.5).split(b"\r\n\r\n", 1)[1])
    llm_server.script = lambda number, request: make_response(200, body, JSON_HEADER, "content-encoding: gzip")
    assert (await ask_for_verdict(llm_server.url)).value == 0.5


async def test_unreadable_reply_is_requested_again(llm_server: FakeLLMServer):
    llm_server.script = lambda n, _: make_completion("Оценка 0.9") if n == 1 else make_score_completion(0.25)
    score = await ask_for_verdict(llm_server.url)
    assert (score.value, len(score.replies)) == (0.25, 2)
    roles = [message["role"] for message in llm_server.requests[1]["messages"]]
    assert roles == ["user", "assistant", "user"]
    assert llm_server.requests[1]["messages"][1]["content"] == "Оценка 0.9"


async def test_cut_off_reply_gets_twice_the_tokens_once(llm_server: FakeLLMServer):
    llm_server.script = lambda number, request: (
        make_score_completion(0.9, finish="length") if number == 1 else make_score_completion(0.25)
    )
    score = await ask_for_verdict(llm_server.url, max_tokens=64)
    assert score.value == 0.25
    assert [request["max_tokens"] for request in llm_server.requests] == [64, 128]


async def test_response_format_falls_back(llm_server: FakeLLMServer):
    def script(number, request):
        kind = request.get("response_format", {}).get("type")
        return make_score_completion(0.5) if kind is None else make_response(400, f'{{"error": "no {kind} here"}}')

    llm_server.script = script
    async with open_chat("judge", make_chat_settings(llm_server.url, concurrency=1), retries=QUICK_RETRIES) as judge:
        results = [await ask_for_score(judge, make_call(number)) for number in range(3)]
    assert [score.value for score in results] == [0.5] * 3
    kinds = [request.get("response_format", {}).get("type") for request in llm_server.requests]
    assert kinds == ["json_schema", "json_object", None, None, None]  # learned once


async def test_gate_and_generator_replies_are_not_requested_again(llm_server: FakeLLMServer):
    llm_server.script = lambda number, request: make_completion("Возможно", finish="length")
    async with open_chat("gate", make_chat_settings(llm_server.url), retries=QUICK_RETRIES) as gate:
        decision = await ask_for_yes_no(gate, make_call(name="gate"))
    assert (decision.status, get_value(decision), len(llm_server.requests)) == ("parse_error", None, 1)
    assert decision.replies[-1].raw == "Возможно"
    async with open_chat("generator", make_chat_settings(llm_server.url), retries=QUICK_RETRIES) as generator:
        reply = await generator.ask(make_call(name="generation"))
    assert (reply.status, reply.raw, reply.truncated, len(llm_server.requests)) == ("ok", "Возможно", True, 2)
    assert all("response_format" not in request for request in llm_server.requests)
