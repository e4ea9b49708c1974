"""Check that tier 2, killed at random moments and resumed, makes the same calls and gives the same figures."""

import random
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import CommandLine, run_here
from tests.support.evaluations import answer_steadily, load, make_role_variables, question, read_cases
from tests.support.forked import ForkedCommand
from tests.support.llm_server import Action, FakeLLMServer
from yarus.db import journal

KILLS = 3
CASES = 300
CONCURRENCY = 16
ROLES = 2  # generator and judge work at the same time
SLOW_S = 0.04  # per reply: long enough for a kill to happen during the calls
MONEY = ["tokens_in", "tokens_out", "cost_usd"]


def start_run(yarus: CommandLine, *words: str, env: dict[str, str]) -> ForkedCommand:
    return yarus.fork("run", "tier2", *words, "--json", env=env)


@pytest.mark.slow("process: three kills at random moments")
@pytest.mark.timeout(240)
def test_killed_model_calls_are_resumed(
    yarus: CommandLine, at_home: Path, engine: Any, tmp_path: Path, prefect_server: dict[str, str]
) -> None:
    source = load(tmp_path, "often_killed", [question(i) for i in range(CASES)])
    with FakeLLMServer(script=lambda n, request: Action(answer_steadily(n, request), after_s=SLOW_S)) as server:

        def variables(model: str) -> dict[str, str]:
            return (
                make_role_variables(server.url, "generator", "judge", MODEL=model, CONCURRENCY=str(CONCURRENCY))
                | prefect_server
            )

        env = variables("killed")
        dice = random.Random()
        process = start_run(yarus, "--source", source, env=env)
        evaluation_id, killed = None, []
        for kill in range(KILLS):
            n_wanted = len(server.requests) + dice.randint(1, 2 * CASES * 4 // (2 * KILLS + 2))
            deadline = time.monotonic() + 60
            while len(server.requests) < n_wanted and process.is_running() and time.monotonic() < deadline:
                time.sleep(0.002)
            process.signal(signal.SIGKILL)
            ran = process.ran()
            assert ran.code == -signal.SIGKILL, f"kill {kill} came too late: {ran}"
            killed.append(len(server.requests))
            evaluation_id = evaluation_id or journal.find_evaluation(engine, "last")["id"]
            process = start_run(yarus, "--resume", evaluation_id, env=env)
        ran = process.ran()
        assert ran.code == 0, ran.err
        calls = Counter(request["messages"][0]["content"] for request in server.requests)
        resent = sum(calls.values()) - len(calls)

        undisturbed = yarus("run", "tier2", "--source", source, "--json", env=variables("undisturbed")).json
        n_undisturbed = sum(request["model"] == "undisturbed" for request in server.requests)
    resumed = run_here("show", evaluation_id or "", "--json").json
    assert n_undisturbed == len({*calls})
    # A kill may cost only each role's calls in flight, and the few replies received but not yet committed.
    assert resent <= ROLES * (CONCURRENCY + CONCURRENCY // 4) * KILLS, (resent, killed)
    assert resumed["metrics"] == undisturbed["metrics"]
    assert resumed["comparability_key"] != undisturbed["comparability_key"]  # the judges have different names
    columns = [name for name in read_cases(resumed).column_names if name not in (*MONEY, "latency_ms", "calls")]
    assert read_cases(resumed).select(columns).equals(read_cases(undisturbed).select(columns))
    assert list_call_texts(resumed) == list_call_texts(undisturbed)  # only a call's model, time and cost may differ


def list_call_texts(summary: dict[str, Any]) -> list[list[tuple[Any, ...]]]:
    """Return the prompts and replies in the calls of each case."""
    keys = ("role", "prompt", "repeat", "finish_reason", "reply")
    return [
        [tuple(call[key] for key in keys) for call in calls or []] for calls in read_cases(summary)["calls"].to_pylist()
    ]
