"""Judged calls against the network's own limit: a server in a process of its own that answers after 50 ms.

The limit is calls x 50 ms / concurrency. Bare aiohttp, without store, limits or retries, runs in turn, and our CPU is
compared with its. Bare httpx with one client, as most would write it, shows only its wall time.

Where two cores are shared with the server and PostgreSQL, the bounds are missed: CPU at 2.1 of bare aiohttp, and wall
where bare aiohttp itself is beyond the limit. Of that 2.1, 1.0 is the bare request, 0.8 what every call passes (limits,
breaker, budget, asyncio's tasks, the reply's reading; none of them above 0.1), 0.3 the store: 80 look-ups of 25 keys,
and 250 transactions of eight replies, for at most a quarter of what runs at once may be received and not yet stored.
"""

import asyncio
import json
import statistics
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import aiohttp
import httpx
from sqlalchemy import Engine

from benchmarks import Row
from benchmarks.home import temporary_home
from yarus.tasks.config.settings import Role, Settings
from yarus.tasks.models.calls import Call, build_request
from yarus.tasks.models.chat import chat
from yarus.tasks.models.prompts import prompts

CALLS = 2_000
DELAY_S = 0.05
TARGETS = {32: 1.04, 128: 1.12}
CPU = 2.0  # times that of bare aiohttp, call store included
ROUNDS = 5
T = TypeVar("T")


def response(content: bytes) -> bytes:
    """A response of JSON."""
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(content) + content


def completion(said: str, **usage: int) -> bytes:
    """The response of a model that says that."""
    choice = {"finish_reason": "stop", "message": {"role": "assistant", "content": said}}
    return response(json.dumps({"model": "bench", "choices": [choice], "usage": usage}).encode())


class Server(asyncio.Protocol):
    """As little of HTTP as a client can do with, so that the server does not take the time that is measured."""

    answer = completion('{"reason": "ok", "score": 1}', prompt_tokens=100, completion_tokens=20)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: asyncio.WriteTransport = transport  # type: ignore[assignment]
        self.received = b""

    def data_received(self, data: bytes) -> None:
        self.received += data
        head, end, content = self.received.partition(b"\r\n\r\n")
        if end and len(content) >= int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0]):
            self.received = b""
            self.reply(head, content)

    def reply(self, head: bytes, content: bytes) -> None:
        """Answers a request that has come as a whole."""
        asyncio.get_running_loop().call_later(DELAY_S, self.transport.write, self.answer)


async def serve(protocol: type[asyncio.Protocol] = Server) -> None:
    server = await asyncio.get_running_loop().create_server(protocol, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@contextmanager
def serving(area: str = "chat") -> Iterator[str]:
    """The address of the `Server` of a benchmark, which runs in a process of its own."""
    code = f"import asyncio; from benchmarks import {area}, chat; asyncio.run(chat.serve({area}.Server))"
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        finally:
            process.terminate()  # an error would wait for it for ever


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


async def bare_httpx(settings: Settings) -> None:
    """One httpx client, as most would write it."""
    role = settings.judge
    async with httpx.AsyncClient(limits=httpx.Limits(max_connections=role.concurrency), timeout=60) as client:

        async def ask(content: bytes) -> None:
            response = await client.post(f"{role.base_url}/chat/completions", content=content)
            response.json()["choices"][0]["message"]["content"]

        await at_once(bodies(settings), role.concurrency, ask)


async def bare_aiohttp(settings: Settings) -> None:
    """One aiohttp session."""
    role = settings.judge
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=role.concurrency)) as session:

        async def ask(content: bytes) -> None:
            async with session.post(f"{role.base_url}/chat/completions", data=content) as response:
                (await response.json())["choices"][0]["message"]["content"]

        await at_once(bodies(settings), role.concurrency, ask)


def bodies(settings: Settings) -> Iterator[bytes]:
    """What the calls send, made when it is sent."""
    return (build_request(call, settings.judge).body for call in calls(settings))


async def at_once(waiting: Iterator[T], concurrency: int, ask: Callable[[T], Coroutine[None, None, None]]) -> None:
    """Asks all, so many at once."""

    async def work() -> None:
        for one in waiting:
            await ask(one)

    await asyncio.gather(*(work() for _ in range(concurrency)))


def medians(works: Sequence[Callable[[], Coroutine[None, None, None]]]) -> list[tuple[float, float]]:
    """Median wall and CPU seconds of each, run in turn."""
    times: list[list[tuple[float, float]]] = [[] for _ in works]
    for _ in range(ROUNDS):
        for work, into in zip(works, times, strict=True):
            wall, cpu = time.perf_counter(), time.process_time()
            asyncio.run(work())
            into.append((time.perf_counter() - wall, time.process_time() - cpu))
    return [
        (statistics.median(walls), statistics.median(cpus)) for walls, cpus in (zip(*of, strict=True) for of in times)
    ]


def run() -> Iterator[Row]:
    """Ours by the limit, and our CPU by bare aiohttp's; of the bare clients the rows show how near the limit can be."""
    with serving() as url, temporary_home() as (_, engine):
        for concurrency, target in TARGETS.items():
            settings = configured(url, concurrency)
            limit_s = CALLS * DELAY_S / concurrency
            works = [lambda: ours(settings, engine), lambda: bare_aiohttp(settings)]  # noqa: B023
            if concurrency == min(TARGETS):  # above, one httpx client takes minutes
                works.append(lambda: bare_httpx(settings))  # noqa: B023
            (wall_s, cpu_s), *bare = medians(works)
            what = f"{CALLS:,} judged calls, {concurrency} at once, call store"
            yield Row(what, "the network's limit", wall_s, limit_s, target)
            yield Row(f"… client CPU, {cpu_s / CALLS * 1000:.2f} ms a call", "bare aiohttp", cpu_s, bare[0][1], CPU)
            for name, (bare_s, _) in zip(("aiohttp", "httpx"), bare, strict=False):
                what = f"… bare {name}, no store"
                yield Row(what, "the network's limit", bare_s, limit_s, float("inf"))
