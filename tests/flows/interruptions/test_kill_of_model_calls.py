"""Tier 2 killed at random moments and resumed: the calls of an undisturbed run, the figures to the last digit."""

import random
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import CommandLine, here
from tests.support.evaluations import cases_of, load, question, roles, steady
from tests.support.forked import Forked
from tests.support.llm_server import Do, FakeLLMServer
from yarus.db import journal

KILLS = 3
CASES = 300
CONCURRENCY = 16
ROLES = 2  # generator and judge, at work at the same time
SLOW_S = 0.04  # a reply: long enough for a kill to fall among the calls
MONEY = ["tokens_in", "tokens_out", "cost_usd"]


def started(yarus: CommandLine, *words: str, env: dict[str, str]) -> Forked:
    return yarus.fork("run", "tier2", *words, "--json", env=env)


@pytest.mark.slow("process: three kills at random moments")
def test_killed_and_resumed(
    yarus: CommandLine, at_home: Path, engine: Any, tmp_path: Path, prefect_server: dict[str, str]
) -> None:
    source = load(tmp_path, "often_killed", [question(i) for i in range(CASES)])
    with FakeLLMServer(script=lambda number, request: Do(steady(number, request), after_s=SLOW_S)) as server:

        def variables(model: str) -> dict[str, str]:
            return roles(server.url, "generator", "judge", MODEL=model, CONCURRENCY=str(CONCURRENCY)) | prefect_server

        env = variables("killed")
        dice = random.Random()
        process = started(yarus, "--source", source, env=env)
        evaluation_id, killed = None, []
        for kill in range(KILLS):
            wanted = len(server.requests) + dice.randint(1, 2 * CASES * 4 // (2 * KILLS + 2))
            deadline = time.monotonic() + 60
            while len(server.requests) < wanted and process.is_running() and time.monotonic() < deadline:
                time.sleep(0.002)
            process.signal(signal.SIGKILL)
            ran = process.ran()
            assert ran.code == -signal.SIGKILL, f"kill {kill} came too late: {ran}"
            killed.append(len(server.requests))
            evaluation_id = evaluation_id or journal.find(engine, "last")["id"]
            process = started(yarus, "--resume", evaluation_id, env=env)
        ran = process.ran()
        assert ran.code == 0, ran.err
        calls = Counter(request["messages"][0]["content"] for request in server.requests)
        resent = sum(calls.values()) - len(calls)

        undisturbed = yarus("run", "tier2", "--source", source, "--json", env=variables("undisturbed")).json
        whole = sum(request["model"] == "undisturbed" for request in server.requests)
    resumed = here("show", evaluation_id or "", "--json").json
    assert whole == len({*calls})
    # All that a kill may cost is what each role has in flight, and the few replies received and not yet committed.
    assert resent <= ROLES * (CONCURRENCY + CONCURRENCY // 4) * KILLS, (resent, killed)
    assert resumed["metrics"] == undisturbed["metrics"]
    assert resumed["comparability_key"] != undisturbed["comparability_key"]  # the judges bear different names
    same = [name for name in cases_of(resumed).column_names if name not in (*MONEY, "latency_ms", "calls")]
    assert cases_of(resumed).select(same).equals(cases_of(undisturbed).select(same))
    assert said_in(resumed) == said_in(undisturbed)  # of a call only who, when and at what cost may differ


def said_in(summary: dict[str, Any]) -> list[list[tuple[Any, ...]]]:
    """What was asked and replied in the calls of each case."""
    kept = ("role", "prompt", "repeat", "finish_reason", "reply")
    return [
        [tuple(call[name] for name in kept) for call in calls or []] for calls in cases_of(summary)["calls"].to_pylist()
    ]
