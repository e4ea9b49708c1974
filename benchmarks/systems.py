"""Systems under test that take a second per answer: 32 questions at once, against the limit of calls x 1 s / 32.

`systems` lists them by name: add a line for another kind. The server runs in its own process. Bare aiohttp shows how
near the limit can be.
"""

import asyncio
import json
import statistics
import time
from collections.abc import Callable, Iterator

import aiohttp

from benchmarks import Row, chat
from benchmarks.chat import start_server
from yarus.tasks.config.settings import Settings, SystemService
from yarus.tasks.systems.sut import System, create_system
from yarus.tasks.systems.user_code import UserFunctions

CALLS = 320
CONCURRENCY = 32
ANSWER_S = 1.0
TOKENS = 50
TARGET = 1.1  # times the limit
LIMIT_S = CALLS * ANSWER_S / CONCURRENCY
ANSWER = {"answer": "слово " * TOKENS, "urls": ["https://w/1"], "contexts": ["Текст. " * 100]}


def chunk(event: object) -> bytes:
    data = f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n".encode()
    return b"%x\r\n%b\r\n" % (len(data), data)


class Server(chat.Server):
    """A server that answers after a second, as JSON, or during that second in events of OpenAI's form."""

    response = chat.response(json.dumps(ANSWER).encode())
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    token = chunk({"id": "1", "model": "bench", "choices": [{"index": 0, "delta": {"content": "слово "}}]})
    last = chunk({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}) + chunk("[DONE]") + b"0\r\n\r\n"

    def reply(self, head: bytes, content: bytes) -> None:
        loop = asyncio.get_running_loop()
        if b"/chat/completions " not in head:
            loop.call_later(ANSWER_S, self.transport.write, self.response)
            return
        self.transport.write(self.head)
        for number in range(1, TOKENS):
            loop.call_later(ANSWER_S * number / TOKENS, self.transport.write, self.token)
        loop.call_later(ANSWER_S, self.transport.write, self.token + self.last)


def systems(url: str) -> dict[str, tuple[str, SystemService]]:
    """Return the systems under test by description: name and settings."""
    return {
        "JSON over HTTP": (f"{url}/ask", SystemService()),
        f"a stream of {TOKENS} tokens": (f"openai:{url}", SystemService(model="bench")),
    }


async def ask_system(tested_system: System) -> None:
    answers = await tested_system.answers([f"{number}?" for number in range(CALLS)])
    assert all(answer.text == "слово " * TOKENS for answer in answers)


async def ask_with_aiohttp(url: str) -> None:
    """Ask with one aiohttp session."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=CONCURRENCY)) as session:

        async def post(number: int) -> None:
            async with session.post(url, json={"question": f"{number}?"}) as response:
                await response.read()

        await chat.run_concurrently(iter(range(CALLS)), CONCURRENCY, post)


def measure_times(work: Callable[[], None]) -> tuple[float, float]:
    """Return wall and CPU seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


def run() -> Iterator[Row]:
    """Yield our time by the limit, the client's CPU per call, and bare aiohttp's; then a token's delay."""
    with start_server("systems") as url:
        for what, (name, service) in systems(url).items():
            settings = Settings(_env_file=None, sut_service=service, sut_concurrency=CONCURRENCY)
            wall_s, cpu_s = measure_times(
                lambda: asyncio.run(ask_system(create_system(name, settings, UserFunctions())))  # noqa: B023
            )
            path = "chat/completions" if name.startswith("openai:") else "ask"
            bare_s, bare_cpu_s = measure_times(lambda: asyncio.run(ask_with_aiohttp(f"{url}/{path}")))  # noqa: B023
            yield Row(f"{CALLS} questions, {CONCURRENCY} at once: {what}", "calls x 1 s / 32", wall_s, LIMIT_S, TARGET)
            yield Row(
                f"… client CPU, {cpu_s / CALLS * 1_000:.2f} ms a call", "bare aiohttp", cpu_s, bare_cpu_s, float("inf")
            )
            yield Row("… bare aiohttp", "calls x 1 s / 32", bare_s, LIMIT_S, float("inf"))
        streaming = create_system(name, settings, UserFunctions())  # the last of the loop
        answers = asyncio.run(streaming.answers(["?"] * CONCURRENCY))
        first_s = statistics.median(answer.first_token_ms or 0 for answer in answers) / 1_000
        yield Row("… its first token as it is measured", "as it was sent", first_s, ANSWER_S / TOKENS, float("inf"))
