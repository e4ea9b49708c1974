"""Servers as people have them: each case of `servers.json` behaves as it says, through the real client on sockets."""

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

from tests.support.llm_clients import PROMPTS, settings
from yarus.db.errors import ModelUnavailable
from yarus.tasks.models.calls import Call
from yarus.tasks.models.chat import chat
from yarus.tasks.models.verdicts import Score, ask_for_score

SERVERS = Path(__file__).parents[4] / "shared" / "servers"
MARKER = "marker-4117"
QUESTIONS = 6
Case = dict[str, Any]


def cases() -> dict[str, Case]:
    """By their ids those that are played over HTTP at the address of the completions."""
    file = SERVERS / "servers.json"
    servers = json.loads(file.read_text(encoding="utf-8"))["servers"] if file.is_file() else []
    found = {case["id"]: case for server in servers for case in server["cases"]}
    elsewhere = {"at", "token_older_s", "transport"}  # see test_credentials.py and test_chat_faults.py
    return {name: case for name, case in found.items() if not elsewhere & set(case["when"])}


CASES = cases()
pytestmark = pytest.mark.skipif(not CASES, reason=f"needs the cases in {SERVERS}")


WAITING = {"groq-rate", "llama-loading", "azure-rate", "gemini-rate", "or-402-wait"}


def is_everyday(name: str) -> bool:
    """Whether it is the first of what happens at the same condition and is to be met by the same behaviour."""
    kinds = {key: (case["behaviour"], *sorted(case["when"])) for key, case in CASES.items() if key not in WAITING}
    return name in kinds and next(key for key, kind in kinds.items() if kind == kinds[name]) == name


def marked() -> Iterator[Any]:
    """Each case with one bad question of two; what tells the same once more is not played every day."""
    for name in CASES:
        for bad, said in ((0, "the first is bad"), (2, "the third is bad")):
            why = "wait: as long as the server says" if name in WAITING else "breadth: more servers"
            marks = () if bad == 0 and is_everyday(name) else pytest.mark.slow(why)
            yield pytest.param(name, bad, marks=marks, id=f"{name}-{said}")


@cache
def player() -> tuple[Any, dict[str, Case]]:
    """The player's module, and what it plays; texts that are no JSON are given as they are, which it leaves to us."""
    module = importlib.util.spec_from_file_location("play", SERVERS / "play.py")
    assert module and module.loader
    play = importlib.util.module_from_spec(module)
    module.loader.exec_module(play)
    played = cases()
    for case in played.values():
        if "body_text" in case:
            case["body"] = case["body_text"]
            case["headers"] = {name: value for name, value in case["headers"].items() if name != "content-type"}
    return play, played


@asynccontextmanager
async def playing(tmp_path: Path, name: str) -> AsyncIterator[str]:
    """Where a case is played."""
    play, played = player()
    file = tmp_path / "servers.json"
    file.write_text(json.dumps({"servers": [{"cases": [played[name]]}]}), encoding="utf-8")
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


async def judged(url: str, case: Case, *, bad: int) -> list[Score]:
    """Verdicts on the questions; one of them is what the server takes offence at."""
    wants_logprobs = "logprobs" in json.dumps(case["when"])
    role = {"max_tokens": 20_000} if "limit_above" in case["when"] else {}

    def call(number: int) -> Call:
        texts = {"question": f"Вопрос {number}?", "context": "Контекст.", "answer": "Ответ."}
        if "prompt" in case["when"] and number == bad:
            texts["answer"] += f" {MARKER}"
        return Call(PROMPTS["faithfulness"], texts, logprobs=wants_logprobs)

    async with chat("judge", settings(url, model=case["id"], **role)) as judge:
        return await asyncio.gather(*(ask_for_score(judge, call(number)) for number in range(QUESTIONS)))


@pytest.mark.parametrize(("name", "bad"), [*marked()])
async def test_client_behaves_as_each_server_case_requires(tmp_path: Path, name: str, bad: int) -> None:
    case = CASES[name]
    began = time.monotonic()
    async with playing(tmp_path, name) as url, asyncio.timeout(60):
        if case["behaviour"] == "stop with message":
            with pytest.raises(ModelUnavailable) as raised:
                await judged(url, case, bad=bad)
            assert time.monotonic() - began < 20
            for word in (case.get("then") or {}).get("message_names", []):
                assert word.lower() in str(raised.value).lower()
            return
        found = await judged(url, case, bad=bad)
    failed = [one for one in found if one.status != "ok"]
    if case["behaviour"].startswith("this case fails"):
        assert [found[bad]] == failed
        assert found[bad].status == "judge_error"
    elif case["behaviour"].startswith("ask once more"):
        assert {one.status for one in failed} <= {"parse_error", "judge_error"}
        assert len(failed) < QUESTIONS
    else:
        assert failed == []
