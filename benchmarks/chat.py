"""Judged calls against the network's own limit: a server in its own process that answers after 50 ms.

The limit is calls x 50 ms / concurrency. Bare aiohttp, without store, limits or retries, runs in turn, and our CPU is
compared with its. Bare httpx with one client, as most would write it, shows only its wall time.

If two cores are shared with the server and PostgreSQL, the bounds are missed: CPU at 2.1 of bare aiohttp, and wall time
if bare aiohttp itself is beyond the limit. Of that 2.1, 1.0 is the bare request, 0.8 the path of every call (limits,
breaker, budget, asyncio's tasks, parsing of the reply; none of them above 0.1), 0.3 the store: 80 look-ups of 25 keys,
and 250 transactions of eight replies, because at most a quarter of the concurrent calls may be received and not stored.
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
from yarus.tasks.config.settings import ModelRole, Settings
from yarus.tasks.models.calls import Call, build_request
from yarus.tasks.models.chat import open_chat
from yarus.tasks.models.prompts import read_prompts

CALLS = 2_000
DELAY_S = 0.05
TARGETS = {32: 1.04, 128: 1.12}
CPU = 2.0  # times that of bare aiohttp, call store included
ROUNDS = 5
T = TypeVar("T")


def response(content: bytes) -> bytes:
    """Return an HTTP response with JSON."""
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(content) + content


def completion(text: str, **usage: int) -> bytes:
    """Return the response of a model with this text."""
    choice = {"finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    return response(json.dumps({"model": "bench", "choices": [choice], "usage": usage}).encode())


class Server(asyncio.Protocol):
    """The least of HTTP that a client needs, so that the server does not take the measured time."""

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
        """Answer a request that has been received completely."""
        asyncio.get_running_loop().call_later(DELAY_S, self.transport.write, self.answer)


async def serve(protocol: type[asyncio.Protocol] = Server) -> None:
    server = await asyncio.get_running_loop().create_server(protocol, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@contextmanager
def start_server(area: str = "chat") -> Iterator[str]:
    """Yield the address of the `Server` of a benchmark, which runs in its own process."""
    code = f"import asyncio; from benchmarks import {area}, chat; asyncio.run(chat.serve({area}.Server))"
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        finally:
            process.terminate()  # otherwise an error would wait for it forever


def build_settings(url: str, concurrency: int) -> Settings:
    return Settings(_env_file=None, judge=ModelRole(base_url=url, model="bench", concurrency=concurrency))


def calls(settings: Settings) -> list[Call]:
    """Return calls that are all new to the call store."""
    prompt, mark = read_prompts(settings)["faithfulness"], uuid.uuid4().hex
    context, answer = "Документы принимают до 25 июля. " * 30, "До 25 июля. " * 5
    texts = ({"question": f"{mark} {n}?", "context": context, "answer": answer} for n in range(CALLS))
    return [Call(prompt, variables) for variables in texts]


async def complete_calls(settings: Settings, engine: Engine) -> None:
    async with open_chat("judge", settings, engine) as judge:
        replies = await judge.complete(calls(settings))
    assert all(reply.status == "ok" and not reply.from_store for reply in replies)


async def bare_httpx(settings: Settings) -> None:
    """Send the calls with one httpx client, as most would write it."""
    role = settings.judge
    async with httpx.AsyncClient(limits=httpx.Limits(max_connections=role.concurrency), timeout=60) as client:

        async def post(content: bytes) -> None:
            response = await client.post(f"{role.base_url}/chat/completions", content=content)
            response.json()["choices"][0]["message"]["content"]

        await run_concurrently(bodies(settings), role.concurrency, post)


async def bare_aiohttp(settings: Settings) -> None:
    """Send the calls with one aiohttp session."""
    role = settings.judge
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=role.concurrency)) as session:

        async def post(content: bytes) -> None:
            async with session.post(f"{role.base_url}/chat/completions", data=content) as response:
                (await response.json())["choices"][0]["message"]["content"]

        await run_concurrently(bodies(settings), role.concurrency, post)


def bodies(settings: Settings) -> Iterator[bytes]:
    """Yield the bodies of the calls, built when they are sent."""
    return (build_request(call, settings.judge).body for call in calls(settings))


async def run_concurrently(bodies: Iterator[T], limit: int, post: Callable[[T], Coroutine[None, None, None]]) -> None:
    """Post all bodies, at most `limit` at once."""

    async def work() -> None:
        for body in bodies:
            await post(body)

    await asyncio.gather(*(work() for _ in range(limit)))


def medians(functions: Sequence[Callable[[], Coroutine[None, None, None]]]) -> list[tuple[float, float]]:
    """Return median wall and CPU seconds of each function, run in turn."""
    times: list[list[tuple[float, float]]] = [[] for _ in functions]
    for _ in range(ROUNDS):
        for function, row in zip(functions, times, strict=True):
            wall, cpu = time.perf_counter(), time.process_time()
            asyncio.run(function())
            row.append((time.perf_counter() - wall, time.process_time() - cpu))
    return [
        (statistics.median(walls), statistics.median(cpus)) for walls, cpus in (zip(*row, strict=True) for row in times)
    ]


def run() -> Iterator[Row]:
    """Yield our wall time by the limit and our CPU by bare aiohttp's; bare clients show how near the limit can be."""
    with start_server() as url, temporary_home() as (_, engine):
        for concurrency, target in TARGETS.items():
            settings = build_settings(url, concurrency)
            limit_s = CALLS * DELAY_S / concurrency
            functions = [lambda: complete_calls(settings, engine), lambda: bare_aiohttp(settings)]  # noqa: B023
            if concurrency == min(TARGETS):  # above, one httpx client takes minutes
                functions.append(lambda: bare_httpx(settings))  # noqa: B023
            (wall_s, cpu_s), *bare = medians(functions)
            what = f"{CALLS:,} judged calls, {concurrency} at once, call store"
            yield Row(what, "the network's limit", wall_s, limit_s, target)
            yield Row(f"… client CPU, {cpu_s / CALLS * 1000:.2f} ms a call", "bare aiohttp", cpu_s, bare[0][1], CPU)
            for name, (bare_s, _) in zip(("aiohttp", "httpx"), bare, strict=False):
                what = f"… bare {name}, no store"
                yield Row(what, "the network's limit", bare_s, limit_s, float("inf"))
