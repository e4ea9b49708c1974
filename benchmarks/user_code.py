"""Functions of users in their own processes, compared with their time without a process in between.

A coroutine that takes a second is limited by questions x 1 s / concurrency; the overhead of a call through a process
for a function that does nothing has a limit of 0.3 ms.
"""

import asyncio
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from benchmarks import Row
from yarus.tasks.config.settings import get_settings
from yarus.tasks.systems.sut import create_system
from yarus.tasks.systems.user_code import UserFunctions

CONCURRENCY, QUESTIONS, TAKES_S = 32, 1_000, 1.0
CALLS, ADDED_S = 2_000, 0.000_3
BOT = f"""
import asyncio

async def slow(question):
    await asyncio.sleep({TAKES_S})
    return question

def plain(question):
    return question

async def quick(question):
    return question
"""


def run() -> Iterator[Row]:
    with _bot() as codes:
        start = time.perf_counter()
        tested_system = create_system("bench_bot:slow", get_settings(), codes)
        started_s = time.perf_counter() - start
        start = time.perf_counter()
        answers = asyncio.run(tested_system.answers([f"question {number}" for number in range(QUESTIONS)]))
        took_s = time.perf_counter() - start
        assert all(answer.text for answer in answers)
        limit_s = QUESTIONS * TAKES_S / CONCURRENCY
        yield Row(f"{QUESTIONS:,} questions, {CONCURRENCY} at once, 1 s each", "the limit and the start",
                  took_s + started_s, limit_s + started_s, 1.1)  # fmt: skip
        for function in ("plain", "quick"):
            yield Row(f"a call of a {function} function", "0.3 ms", _call_s(codes, f"bench_bot:{function}"), ADDED_S)


def _call_s(codes: UserFunctions, name: str) -> float:
    """Return the median of single calls, which excludes other load of the processor."""
    code = codes.get(name, "YARUS_SUT", "answer")
    times = []
    for number in range(CALLS):
        start = time.perf_counter()
        code.call(f"question {number}")
        times.append(time.perf_counter() - start)
    return median(times)


@contextmanager
def _bot() -> Iterator[UserFunctions]:
    before, codes = Path.cwd(), UserFunctions()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "bench_bot.py").write_text(BOT, encoding="utf-8")
        os.chdir(folder)
        os.environ["YARUS_SUT_CONCURRENCY"] = str(CONCURRENCY)
        try:
            yield codes
        finally:
            codes.close()
            del os.environ["YARUS_SUT_CONCURRENCY"]
            os.chdir(before)
