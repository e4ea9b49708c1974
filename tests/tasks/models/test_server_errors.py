"""Errors in the words of many servers, and delays as they name them.

Each line of `server_errors.jsonl` has an error and its meaning: `stop`, every call may be concerned; `case`, the call
may be; `wait`; or the parameter to change, with its highest value.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.llm_clients import make_call, make_chat_settings
from yarus.tasks.models.calls import build_request
from yarus.tasks.models.protocol import CallError, parse_response
from yarus.tasks.models.server_errors import (
    SentRequest,
    extract_error_text,
    extract_message,
    find_delay_s,
    find_reset_s,
)
from yarus.tasks.models.server_profile import ServerProfile
from yarus.tasks.models.transport import Response

LINES = Path(__file__).with_name("server_errors.jsonl").read_text(encoding="utf-8").splitlines()
ERRORS = [json.loads(line) for line in LINES]
KINDS = {
    "stop": ("refused", "unclear"),
    "case": ("call", "unclear", "refused"),  # a harmless question distinguishes the last two
    "wait": ("busy", "fault", "unreachable"),
}
LONGEST_WAIT_S = 120


def read_error(row: dict[str, Any]) -> CallError:
    role = make_chat_settings("http://x/v1", max_tokens=row.get("max_tokens", 512)).judge
    text = row["text"] if "text" in row else json.dumps(row["body"], ensure_ascii=False)
    _, sent = ServerProfile().encode(build_request(replace(make_call(), logprobs=True), role))
    error = parse_response(Response(row["status"], row.get("headers", {}), text.encode()), sent, [])
    assert isinstance(error, CallError)
    return error


@pytest.mark.parametrize("row", [pytest.param(row, id=row["id"]) for row in ERRORS])
def test_error_is_classified(row: dict[str, Any]) -> None:
    error = read_error(row)
    if row["want"] in KINDS:
        waits_too_long = row["want"] == "stop" and (error.pause_s or 0) > LONGEST_WAIT_S
        assert error.kind in KINDS[row["want"]] or waits_too_long
        return
    assert error.cause is not None
    name, _, most = row["want"].partition(" ")
    actual = error.kind, error.cause.parameter or error.cause.kind, str(error.cause.max_tokens or "")
    assert actual == ("parameter", name, most)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Please try again in 20ms.", 0.02),
        ("Please try again in 1m26.4s.", 86.4),
        ("retry after 26 seconds", 26.0),
        ("available in 1 minute and 30 seconds", 90.0),
        ("повторите запрос через 5 секунд", 5.0),
        ("retryDelay: 12.5s", 12.5),
        ("Limit 200, used 200.", None),
    ],
)
def test_delay_is_read_from_words(text: str, seconds: float | None) -> None:
    assert find_delay_s({}, text) == (None if seconds is None else pytest.approx(seconds))


def test_delay_is_read_from_headers_first() -> None:
    assert find_delay_s({"retry-after-ms": "250"}, "try again in 9s") == 0.25
    assert find_delay_s({"retry-after": "3", "retry-after-ms": "250"}, "") == 3.0
    assert find_reset_s({"x-ratelimit-reset-requests": "1m30s", "x-ratelimit-reset-tokens": "20ms"}) == 90.0
    assert find_reset_s({"x-ratelimit-reset": "1795737600"}) is None  # a moment, not a duration


def test_copies_of_the_prompt_are_removed() -> None:
    prompt = "Контекст: если недостаточно средств,\n пополните счёт в личном кабинете."
    body = json.dumps({"error": {"message": f"cannot read «{prompt[10:60]}»", "input": "billing"}}).encode()
    assert extract_error_text(body, SentRequest({}, prompt)) == "error\nmessage: cannot read «…»"


def test_nested_errors_are_read_whole() -> None:
    inner = json.dumps({"error": {"message": "нет такой модели", "code": 7}})
    body = json.dumps({"error": {"message": f"[400] upstream: {inner} (end)"}}).encode()
    assert "нет такой модели" in extract_error_text(body, SentRequest({}, []))
    assert "нет такой модели" in extract_message(body, [])
