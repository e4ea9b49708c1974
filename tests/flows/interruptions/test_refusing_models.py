"""Check models that refuse, from the command line: parameters are learned, a prompt fails one case, a key stops all."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import CommandLine
from tests.support.evaluations import answer_steadily, load, make_role_variables, question, read_cases
from tests.support.llm_server import JSON_HEADER, FakeLLMServer, make_completion, make_response

CASES = 24


def refuse(message: str, status: int = 400, **fields: Any) -> bytes:
    return make_response(status, json.dumps({"error": {"message": message, **fields}}), JSON_HEADER)


def answer_like_a_thinking_model(number: int, request: dict[str, Any]) -> Any:
    """Refuse as GPT-5 does, filter one question, and need 1,000 tokens for thinking."""
    for name in ("max_tokens", "temperature"):
        if name in request:
            return refuse(f"Unsupported parameter: '{name}' is not supported with this model.", param=name)
    if question(3)["question"] in json.dumps(request["messages"], ensure_ascii=False):
        return refuse("The response was filtered.", code="content_filter")
    if request["max_completion_tokens"] < 1_000:
        return make_completion("", finish="length", tokens=(100, request["max_completion_tokens"]))
    return answer_steadily(number, request)


@pytest.mark.slow("breadth: in a whole evaluation")
def test_evaluation_learns_what_the_model_takes(yarus: CommandLine, at_home: Path, tmp_path: Path) -> None:
    with FakeLLMServer(script=answer_like_a_thinking_model) as server:
        source = load(tmp_path, "thinking", [question(i) for i in range(CASES)])
        env = make_role_variables(server.url, "judge", MODEL="thinker", CONCURRENCY="4")
        first = yarus("run", "tier2", "--source", source, "--json", env=env).json
        assert Counter(read_cases(first)["status"].to_pylist()) == {"ok": CASES - 1, "judge_error": 1}
        assert first["system"]["sent"] == {"judge": {"temperature": None}}

        n_requests = len(server.requests)
        second = yarus("run", "tier2", "--source", source, "--limit", "5", "--seed", "1", "--json", env=env).json
    assert all("temperature" not in request for request in server.requests[n_requests:])
    assert second["system"]["sent"] == first["system"]["sent"]


@pytest.mark.slow("process: stopped and resumed")
def test_refused_key_stops_and_resume_repeats_no_call(yarus: CommandLine, at_home: Path, tmp_path: Path) -> None:
    with FakeLLMServer(
        script=lambda n, request: answer_steadily(n, request) if n <= 20 else refuse("Invalid API key", 401)
    ) as server:
        source = load(tmp_path, "revoked", [question(i) for i in range(CASES)])
        env = make_role_variables(server.url, "judge", MODEL="revoked", CONCURRENCY="4")
        stopped = yarus("run", "tier2", "--source", source, "--json", env=env, ok=False)
        assert stopped.code == 3
        assert "YARUS_JUDGE__API_KEY" in stopped.err

        n_answered, server.script = 20, answer_steadily
        assert len(server.requests) <= n_answered + 4 + 1  # those in flight, and a harmless question
        before = [json.dumps(request["messages"]) for request in server.requests[:n_answered]]
        del server.requests[:]
        resumed = yarus("run", "tier2", "--resume", "last", "--json", env=env).json
    assert set(read_cases(resumed)["status"].to_pylist()) == {"ok"}
    assert not set(before) & {json.dumps(request["messages"]) for request in server.requests}
