"""Known model servers: the client reacts to each case of `servers.json` as required, on real sockets."""

import asyncio
import importlib.util
import json
import time
import warnings
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.support.llm_clients import PROMPTS, make_chat_settings
from yarus.db.errors import ModelUnavailable
from yarus.tasks.models.calls import Call
from yarus.tasks.models.chat import open_chat
from yarus.tasks.models.verdicts import Score, ask_for_score

SERVERS = Path(__file__).parents[4] / "shared" / "servers"
MARKER = "marker-4117"
QUESTIONS = 6
Case = dict[str, Any]


def load_cases() -> dict[str, Case]:
    """Return the cases by id that are played over HTTP at the address of the completions."""
    file = SERVERS / "servers.json"
    servers = json.loads(file.read_text(encoding="utf-8"))["servers"] if file.is_file() else []
    cases = {case["id"]: case for server in servers for case in server["cases"]}
    other_keys = {"at", "token_older_s", "transport"}  # see test_credentials.py and test_chat_faults.py
    return {name: case for name, case in cases.items() if not other_keys & set(case["when"])}


CASES = load_cases()
pytestmark = pytest.mark.skipif(not CASES, reason=f"needs the cases in {SERVERS}")


WAITING_CASES = {"groq-rate", "llama-loading", "azure-rate", "gemini-rate", "or-402-wait"}


def is_everyday(name: str) -> bool:
    """Return whether a case is the first with its condition and its required behaviour."""
    kinds = {key: (case["behaviour"], *sorted(case["when"])) for key, case in CASES.items() if key not in WAITING_CASES}
    return name in kinds and next(key for key, kind in kinds.items() if kind == kinds[name]) == name


def parametrise_cases() -> Iterator[Any]:
    """Yield each case with one bad question of two; repetitions of a behaviour are marked as slow."""
    for name in CASES:
        for bad, description in ((0, "the first is bad"), (2, "the third is bad")):
            reason = "wait: as long as the server says" if name in WAITING_CASES else "breadth: more servers"
            marks = () if bad == 0 and is_everyday(name) else pytest.mark.slow(reason)
            yield pytest.param(name, bad, marks=marks, id=f"{name}-{description}")


@cache
def load_player() -> tuple[Any, dict[str, Case]]:
    """Return the player's module and its cases; it leaves bodies that are not JSON to this test."""
    module = importlib.util.spec_from_file_location("play", SERVERS / "play.py")
    assert module and module.loader
    play = importlib.util.module_from_spec(module)
    module.loader.exec_module(play)
    cases = load_cases()
    for case in cases.values():
        if "body_text" in case:
            case["body"] = case["body_text"]
            case["headers"] = {name: value for name, value in case["headers"].items() if name != "content-type"}
    return play, cases


@asynccontextmanager
async def play_case(tmp_path: Path, name: str) -> AsyncIterator[str]:
    """Serve a case, and yield the address of the server."""
    play, cases = load_player()
    file = tmp_path / "servers.json"
    file.write_text(json.dumps({"servers": [{"cases": [cases[name]]}]}), encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the player's
        runner = web.AppRunner(play.app(str(file), MARKER, 0.0))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


async def ask_judge(url: str, case: Case, *, bad: int) -> list[Score]:
    """Return scores of the questions; the server refuses one of them."""
    wants_logprobs = "logprobs" in json.dumps(case["when"])
    role = {"max_tokens": 20_000} if "limit_above" in case["when"] else {}

    def call(number: int) -> Call:
        texts = {"question": f"Вопрос {number}?", "context": "Контекст.", "answer": "Ответ."}
        if "prompt" in case["when"] and number == bad:
            texts["answer"] += f" {MARKER}"
        return Call(PROMPTS["faithfulness"], texts, logprobs=wants_logprobs)

    async with open_chat("judge", make_chat_settings(url, model=case["id"], **role)) as judge:
        return await asyncio.gather(*(ask_for_score(judge, call(number)) for number in range(QUESTIONS)))


@pytest.mark.parametrize(("name", "bad"), [*parametrise_cases()])
async def test_client_behaves_as_each_server_case_requires(tmp_path: Path, name: str, bad: int) -> None:
    case = CASES[name]
    started_at = time.monotonic()
    async with play_case(tmp_path, name) as url, asyncio.timeout(60):
        if case["behaviour"] == "stop with message":
            with pytest.raises(ModelUnavailable) as raised:
                await ask_judge(url, case, bad=bad)
            assert time.monotonic() - started_at < 20
            for word in (case.get("then") or {}).get("message_names", []):
                assert word.lower() in str(raised.value).lower()
            return
        results = await ask_judge(url, case, bad=bad)
    failed = [score for score in results if score.status != "ok"]
    if case["behaviour"].startswith("this case fails"):
        assert [results[bad]] == failed
        assert results[bad].status == "judge_error"
    elif case["behaviour"].startswith("ask once more"):
        assert {score.status for score in failed} <= {"parse_error", "judge_error"}
        assert len(failed) < QUESTIONS
    else:
        assert failed == []
