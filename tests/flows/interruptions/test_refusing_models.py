"""Models that refuse, through the command line: parameters are learnt, one prompt costs one case, a key stops."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import CommandLine
from tests.support.evaluations import cases_of, load, question, roles, steady
from tests.support.llm_server import JSON, FakeLLMServer, http, says

CASES = 24


def refuse(message: str, status: int = 400, **fields: Any) -> bytes:
    return http(status, json.dumps({"error": {"message": message, **fields}}), JSON)


def answer_like_a_thinking_model(number: int, request: dict[str, Any]) -> Any:
    """Refuse as GPT-5 does, filter one question, and need 1,000 tokens for thinking."""
    for name in ("max_tokens", "temperature"):
        if name in request:
            return refuse(f"Unsupported parameter: '{name}' is not supported with this model.", param=name)
    if question(3)["question"] in json.dumps(request["messages"], ensure_ascii=False):
        return refuse("The response was filtered.", code="content_filter")
    if request["max_completion_tokens"] < 1_000:
        return says("", finish="length", tokens=(100, request["max_completion_tokens"]))
    return steady(number, request)


@pytest.mark.slow("breadth: in a whole evaluation")
def test_evaluation_learns_what_the_model_takes(yarus: CommandLine, at_home: Path, tmp_path: Path) -> None:
    with FakeLLMServer(script=answer_like_a_thinking_model) as server:
        source = load(tmp_path, "thinking", [question(i) for i in range(CASES)])
        env = roles(server.url, "judge", MODEL="thinker", CONCURRENCY="4")
        first = yarus("run", "tier2", "--source", source, "--json", env=env).json
        assert Counter(cases_of(first)["status"].to_pylist()) == {"ok": CASES - 1, "judge_error": 1}
        assert first["system"]["sent"] == {"judge": {"temperature": None}}

        n_requests = len(server.requests)
        second = yarus("run", "tier2", "--source", source, "--limit", "5", "--seed", "1", "--json", env=env).json
    assert all("temperature" not in request for request in server.requests[n_requests:])
    assert second["system"]["sent"] == first["system"]["sent"]


@pytest.mark.slow("process: stopped and resumed")
def test_refused_key_stops_and_resume_buys_nothing_again(yarus: CommandLine, at_home: Path, tmp_path: Path) -> None:
    with FakeLLMServer(
        script=lambda number, request: steady(number, request) if number <= 20 else refuse("Invalid API key", 401)
    ) as server:
        source = load(tmp_path, "revoked", [question(i) for i in range(CASES)])
        env = roles(server.url, "judge", MODEL="revoked", CONCURRENCY="4")
        stopped = yarus("run", "tier2", "--source", source, "--json", env=env, ok=False)
        assert stopped.code == 3
        assert "YARUS_JUDGE__API_KEY" in stopped.err

        n_answered, server.script = 20, steady
        assert len(server.requests) <= n_answered + 4 + 1  # those in flight, and a harmless question
        before = [json.dumps(request["messages"]) for request in server.requests[:n_answered]]
        del server.requests[:]
        resumed = yarus("run", "tier2", "--resume", "last", "--json", env=env).json
    assert set(cases_of(resumed)["status"].to_pylist()) == {"ok"}
    assert not set(before) & {json.dumps(request["messages"]) for request in server.requests}
