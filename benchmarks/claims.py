"""Claims against the limit of their calls: 1,000 cases of tier 2, two calls per case and one per new reference.

The limit is calls x 50 ms / concurrency. The cost of everything else (start, load, answers, scores and their calls) is
measured by the same evaluation without claims, and subtracted. Both make every call: if the scores were in the store,
their look-ups would run during the calls of claims, and too much would be subtracted. Bare aiohttp, without store,
limits or retries, runs in turn and shows how near the limit can be.
"""

import asyncio
import json
import statistics
import time
from collections.abc import Iterator

import pyarrow.parquet as pq

from benchmarks import Row, chat
from benchmarks.exam import read_newest_summary
from benchmarks.home import time_command
from benchmarks.judged import CONCURRENCY, prepare_source
from yarus.tasks.steps.claims.claims import name_claims

CASES = 1_000
CALLS_A_CASE = 3  # its answer, its reference, and what supports their claims
TARGET = 1.25
ROUNDS = 3
CLAIMS = ["Документы принимают до 25 июля.", "Принимают их в кабинете 104.", "Нужен паспорт.", "Вход свободный."]
REPLY = {
    "reason": "ok",
    "score": 1,
    "claims": [{"sentence": 1, "claim": claim} for claim in CLAIMS],
    "verdicts": [{"id": name, "supported_by": ["passage_1"]} for name in name_claims(CLAIMS)],
}
"""One reply to all calls: every text has the same claims, whose names follow from their words."""


class Server(chat.Server):
    """Answer with the reply."""

    answer = chat.completion(json.dumps(REPLY, ensure_ascii=False), prompt_tokens=400, completion_tokens=120)


def questions() -> Iterator[dict[str, object]]:
    for number in range(CASES):
        yield {
            "id": str(number),
            "question": f"До какого дня принимают документы по правилу {number}?",
            "ground_truth_answer": f"По правилу {number} документы принимают до {number % 27 + 1} июля. Нужен паспорт.",
            "relevant_chunk_ids": [str(number)],
            "origin": "manual",
        }


def chunks() -> Iterator[dict[str, object]]:
    """Yield chunks with their number in every sentence, so that no two answers are equal."""
    for number in range(CASES):
        sentence = f"По правилу {number} документы принимают до {number % 27 + 1} июля, кроме выходных дней. "
        yield {"id": str(number), "confluence_url": f"https://wiki.example/{number}", "text": sentence * 10}


def bare_aiohttp(url: str) -> float:
    """Return the seconds of as many calls with nothing but aiohttp."""
    start = time.perf_counter()
    asyncio.run(chat.bare_aiohttp(chat.build_settings(url, CONCURRENCY)))
    return (time.perf_counter() - start) * CASES * CALLS_A_CASE / chat.CALLS


def run() -> Iterator[Row]:
    """Compare the evaluation with the limit of its calls."""
    words = ("run", "tier2", "--source", "bench", "--json")
    times: list[tuple[float, float, float]] = []
    with chat.start_server("claims") as url, prepare_source(chunks(), questions()) as variables:
        variables |= {"YARUS_JUDGE__BASE_URL": url}
        for number in range(ROUNDS):
            models = [variables | {"YARUS_JUDGE__MODEL": f"bench-{number}-{what}"} for what in ("all else", "claims")]
            base_s, total_s = time_command(models[0], *words), time_command(models[1], *words, "--claims", "true")
            times.append((total_s - base_s, base_s, bare_aiohttp(url)))
        rows = pq.read_table(read_newest_summary(variables)["parquet"], columns=["judge_raw"])["judge_raw"].to_pylist()
    statuses = [reply["status"] for row in rows for reply in row if reply["metric"].startswith("claim")]
    assert statuses == ["ok"] * CASES * CALLS_A_CASE
    limit_s = len(statuses) * chat.DELAY_S / CONCURRENCY
    ours_s, base_s, bare_s = (statistics.median(series) for series in zip(*times, strict=True))
    what = f"claims, {CASES:,} cases, {len(statuses):,} calls, {CONCURRENCY} at once (all else {base_s:.1f} s off)"
    yield Row(what, "the network's limit", ours_s, limit_s, TARGET)
    yield Row("… bare aiohttp, no store", "the network's limit", bare_s, limit_s, float("inf"))
