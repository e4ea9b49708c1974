"""Claims against the limit of their calls: 1,000 cases of tier 2, two calls a case and one for every new reference.

The limit is calls x 50 ms / concurrency. What all else costs (start, load, answers, scores and their calls) is measured
by the same evaluation without claims, and taken off. Both buy every call: were the scores in the store, looking them up
would go on beside the calls of claims, and more would be taken off than there is. Bare aiohttp, without store, limits
or retries, runs in turn and shows how near the limit can be.
"""

import asyncio
import json
import statistics
import time
from collections.abc import Iterator

import pyarrow.parquet as pq

from benchmarks import Row, chat
from benchmarks.exam import newest
from benchmarks.home import yarus
from benchmarks.judged import CONCURRENCY, prepared
from yarus.tasks.steps.claims.claims import names

CASES = 1_000
CALLS_A_CASE = 3  # its answer, its reference, and what supports their claims
TARGET = 1.25
ROUNDS = 3
CLAIMS = ["Документы принимают до 25 июля.", "Принимают их в кабинете 104.", "Нужен паспорт.", "Вход свободный."]
SAID = {
    "reason": "ok",
    "score": 1,
    "claims": [{"sentence": 1, "claim": claim} for claim in CLAIMS],
    "verdicts": [{"id": name, "supported_by": ["passage_1"]} for name in names(CLAIMS)],
}
"""One reply to all that is asked: every text says the same, by whose words its claims are named."""


class Server(chat.Server):
    """Says that."""

    answer = chat.completion(json.dumps(SAID, ensure_ascii=False), prompt_tokens=400, completion_tokens=120)


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
    """Each with its number in every sentence, so that no two answers are the same."""
    for number in range(CASES):
        told = f"По правилу {number} документы принимают до {number % 27 + 1} июля, кроме выходных дней. "
        yield {"id": str(number), "confluence_url": f"https://wiki.example/{number}", "text": told * 10}


def bare_aiohttp(url: str) -> float:
    """Seconds that as many calls take with nothing but aiohttp."""
    start = time.perf_counter()
    asyncio.run(chat.bare_aiohttp(chat.configured(url, CONCURRENCY)))
    return (time.perf_counter() - start) * CASES * CALLS_A_CASE / chat.CALLS


def run() -> Iterator[Row]:
    """The evaluation by the limit of its calls."""
    words = ("run", "tier2", "--source", "bench", "--json")
    times: list[tuple[float, float, float]] = []
    with chat.serving("claims") as url, prepared(chunks(), questions()) as variables:
        variables |= {"YARUS_JUDGE__BASE_URL": url}
        for number in range(ROUNDS):
            models = [variables | {"YARUS_JUDGE__MODEL": f"bench-{number}-{what}"} for what in ("all else", "claims")]
            given_s, whole_s = yarus(models[0], *words), yarus(models[1], *words, "--claims", "true")
            times.append((whole_s - given_s, given_s, bare_aiohttp(url)))
        replies = pq.read_table(newest(variables)["parquet"], columns=["judge_raw"])["judge_raw"].to_pylist()
    said = [one["status"] for of in replies for one in of if one["metric"].startswith("claim")]
    assert said == ["ok"] * CASES * CALLS_A_CASE
    limit_s = len(said) * chat.DELAY_S / CONCURRENCY
    ours_s, given_s, bare_s = (statistics.median(of) for of in zip(*times, strict=True))
    what = f"claims, {CASES:,} cases, {len(said):,} calls, {CONCURRENCY} at once (all else {given_s:.1f} s off)"
    yield Row(what, "the network's limit", ours_s, limit_s, TARGET)
    yield Row("… bare aiohttp, no store", "the network's limit", bare_s, limit_s, float("inf"))
