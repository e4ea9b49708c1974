"""A foreign OpenAI-compatible server: LiteLLM's proxy with mock responses.

It pins other versions of packages, so it has its own environment: `make .venv/litellm`.
"""

import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from pydantic import SecretStr

from yarus.db.errors import ModelUnavailable
from yarus.tasks.config.former_names import FORMER_SETTINGS
from yarus.tasks.config.settings import ModelRole, Settings
from yarus.tasks.models.calls import Call
from yarus.tasks.models.chat import open_chat
from yarus.tasks.models.prompts import read_prompts
from yarus.tasks.models.verdicts import ask_for_score, ask_for_yes_no

pytestmark = pytest.mark.slow("process: LiteLLM itself")

PROGRAM = Path(sys.prefix) / "litellm" / "bin" / "litellm"
MOCKS = {"generator": "до 25 июля", "judge": '{"reason": "есть в контексте", "score": 0.75}', "gate": "Да, показывать."}
TEXTS = {"question": "До какого числа?", "context": "Документы принимают до 25 июля.", "answer": "до 25 июля"}
KEY = f"sk-{secrets.token_hex(32)}"
PROMPTS = read_prompts(Settings(_env_file=None))


@pytest.fixture(scope="module")
def litellm(tmp_path_factory) -> Iterator[str]:
    if not PROGRAM.exists():
        pytest.skip(f"needs LiteLLM's proxy in {PROGRAM.parent.parent}: make .venv/litellm")
    folder = tmp_path_factory.mktemp("litellm")
    models = [
        {"model_name": name, "litellm_params": {"model": f"openai/{name}", "api_key": "none", "mock_response": text}}
        for name, text in MOCKS.items()
    ]
    (folder / "config.yaml").write_text(str({"model_list": models}), encoding="utf-8")  # a Python literal is YAML here
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    command = [PROGRAM, "--config", folder / "config.yaml", "--host", "127.0.0.1", "--port", str(port)]
    environment = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            command,
            env=environment | {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MASTER_KEY": KEY},
            cwd=folder,
            stdout=log,
            stderr=log,
        )
    try:
        _wait_for(f"http://127.0.0.1:{port}/health/liveliness", process, folder / "log")
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait(20)


def _wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline:
        try:
            if httpx.get(url, timeout=5).status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.2)
    pytest.fail(f"LiteLLM did not start:\n{log.read_text()[-2000:]}")


def settings(url: str, **models: str) -> Settings:
    roles = {
        FORMER_SETTINGS.get(name, name): ModelRole(
            base_url=url, model=models.get(name, name), api_key=SecretStr(KEY), concurrency=4
        )
        for name in MOCKS
    }
    return Settings(_env_file=None, **roles)


async def test_litellm_serves_all_three_roles(litellm: str):
    configuration = settings(litellm)
    async with (
        open_chat("generator", configuration) as generator,
        open_chat("judge", configuration) as judge,
        open_chat("gate", configuration) as gate,
    ):
        replies = await generator.complete([Call(PROMPTS["generation"], TEXTS, repeat) for repeat in range(20)])
        score = await ask_for_score(judge, Call(PROMPTS["faithfulness"], TEXTS))
        gate_verdict = await ask_for_yes_no(gate, Call(PROMPTS["gate"], TEXTS))
    assert {(reply.status, reply.text, reply.served_model) for reply in replies} == {("ok", "до 25 июля", "generator")}
    assert all(reply.tokens_in and reply.tokens_out for reply in replies)
    assert (score.status, score.value, score.reason) == ("ok", 0.75, "есть в контексте")
    assert (gate_verdict.status, gate_verdict.value) == ("ok", 1.0)


async def test_unknown_model_stops_the_evaluation(litellm: str):
    async with open_chat("judge", settings(litellm, judge="no-such-model")) as judge:
        with pytest.raises(ModelUnavailable, match="no-such-model"):
            await ask_for_score(judge, Call(PROMPTS["faithfulness"], TEXTS))
