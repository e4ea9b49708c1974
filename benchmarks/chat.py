"""Judged calls against the network's own limit: a server in a process of its own that answers after 50 ms.

The limit is calls x 50 ms / concurrency. Bare httpx with one client runs beside, without store, limits or parsing.
"""

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from sqlalchemy import Engine

from benchmarks import Row
from db.embedded import server as embedded
from db.engine import own
from tasks.config.settings import Role, Settings
from tasks.models.calls import Call, body
from tasks.models.chat import chat
from tasks.prompts import prompts

CALLS = 2_000
DELAY_S = 0.05
TARGETS = {32: 1.15, 128: 1.4}
CPU_S = 0.0012  # of the client, a call, call store included
ROUNDS = 5
REPLY = json.dumps(
    {
        "model": "bench",
        "choices": [
            {"finish_reason": "stop", "message": {"role": "assistant", "content": '{"reason": "ok", "score": 0.5}'}}
        ],
        "usage": {"prompt_tokens": 100, "completion_tokens": 20},
    }
).encode()


class Server(asyncio.Protocol):
    """As little of HTTP as a client can do with, so that the server does not take the time that is measured."""

    answer = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(REPLY) + REPLY

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: asyncio.WriteTransport = transport  # type: ignore[assignment]
        self.received = b""

    def data_received(self, data: bytes) -> None:
        self.received += data
        head, end, content = self.received.partition(b"\r\n\r\n")
        if end and len(content) >= int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0]):
            self.received = b""
            asyncio.get_running_loop().call_later(DELAY_S, self.transport.write, self.answer)


async def serve() -> None:
    server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@contextmanager
def serving() -> Iterator[str]:
    command = [sys.executable, "-c", "import asyncio; from benchmarks.chat import serve; asyncio.run(serve())"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        process.terminate()


def configured(url: str, concurrency: int) -> Settings:
    return Settings(_env_file=None, judge=Role(base_url=url, model="bench", concurrency=concurrency))


def calls(settings: Settings) -> list[Call]:
    """Each asked for the first time ever."""
    prompt, mark = prompts(settings)["faithfulness"], uuid.uuid4().hex
    context, answer = "Документы принимают до 25 июля. " * 30, "До 25 июля. " * 5
    texts = ({"question": f"{mark} {n}?", "context": context, "answer": answer} for n in range(CALLS))
    return [Call(prompt, one) for one in texts]


async def ours(settings: Settings, engine: Engine) -> None:
    async with chat("judge", settings, engine) as judge:
        replies = await judge.complete(calls(settings))
    assert all(reply.status == "ok" and not reply.from_store for reply in replies)


async def bare(settings: Settings) -> None:
    """One httpx client, as most would write it."""
    role = settings.judge
    waiting = iter(calls(settings))
    async with httpx.AsyncClient(limits=httpx.Limits(max_connections=role.concurrency), timeout=60) as client:

        async def work() -> None:
            for call in waiting:
                response = await client.post(f"{role.base_url}/chat/completions", content=body(call, role))
                response.json()["choices"][0]["message"]["content"]

        await asyncio.gather(*(work() for _ in range(role.concurrency)))


def median(work: Callable[[], Coroutine[None, None, None]]) -> tuple[float, float]:
    """Median wall and CPU seconds; the limit is a figure, so that there is nothing to run in turn with."""
    walls, cpus = [], []
    for _ in range(ROUNDS):
        wall, cpu = time.perf_counter(), time.process_time()
        asyncio.run(work())
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return statistics.median(walls), statistics.median(cpus)


def run() -> Iterator[Row]:
    """Ours and bare httpx by the limit, then our CPU; bare httpx has no target, its row shows the ratio."""
    with serving() as url, tempfile.TemporaryDirectory() as folder:
        engine = own(Path(folder), None)
        try:
            for concurrency, target in TARGETS.items():
                settings = configured(url, concurrency)
                limit_s = CALLS * DELAY_S / concurrency
                wall_s, cpu_s = median(lambda: ours(settings, engine))  # noqa: B023
                what = f"{CALLS:,} judged calls, {concurrency} at once, call store"
                yield Row(what, "the network's limit", wall_s, limit_s, target, "at most")
                yield Row("… client CPU", f"{CPU_S * 1000} ms a call", cpu_s, CALLS * CPU_S, 1.0, "at most")
                if concurrency == min(TARGETS):  # above, one client takes minutes
                    bare_s, _ = median(lambda: bare(settings))  # noqa: B023
                    yield Row("… bare httpx, no store", "the network's limit", bare_s, limit_s, float("inf"), "at most")
        finally:
            engine.dispose()
            embedded.release(Path(folder))
