"""Tier 2 with three judged metrics against the network's limit: the time of `yarus run`, less its start.

The limit is calls x 50 ms / concurrency. The cost of starting (imports, Prefect's server, the database) is measured by
the same command on one case, and subtracted.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from benchmarks import Row
from benchmarks.chat import DELAY_S, start_server
from benchmarks.home import build_environment, load_source, temporary_home, time_command

CASES, METRICS, CONCURRENCY = 1_000, 3, 32
TARGET = 1.25


def questions() -> Iterator[dict[str, object]]:
    for number in range(CASES):
        yield {
            "id": str(number),
            "question": f"До какого дня принимают документы по правилу {number}?",
            "ground_truth_answer": f"По правилу {number} документы принимают до {number % 30 + 1} июля.",
            "relevant_chunk_ids": [str(number % 100)],
            "origin": "manual",
        }


def chunks() -> Iterator[dict[str, object]]:
    for number in range(100):
        text = f"Правило {number}. " + "Документы принимают до 25 июля, кроме выходных дней. " * 20
        yield {"id": str(number), "confluence_url": f"https://wiki.example/{number}", "text": text}


@contextmanager
def prepare_source(chunks: Iterable[object], questions: Iterable[object]) -> Iterator[dict[str, str]]:
    """Yield the environment of a temporary home with these as the source `bench`, and a judge over HTTP."""
    with start_server() as url, temporary_home() as (home, _):
        variables = build_environment(home) | {
            "YARUS_JUDGE__BASE_URL": url,
            "YARUS_JUDGE__MODEL": "bench",
            "YARUS_JUDGE__CONCURRENCY": str(CONCURRENCY),
        }
        load_source(variables, chunks, questions)
        # Creates Prefect's database.
        time_command(variables, "run", "tier1", "--source", "bench", "--limit", "1", "--json")
        yield variables


def run() -> Iterator[Row]:
    """Compare the evaluation with the limit of its calls."""
    with prepare_source(chunks(), questions()) as variables:
        start_s = time_command(variables, "run", "tier2", "--source", "bench", "--limit", "1", "--seed", "1", "--json")
        variables |= {"YARUS_JUDGE__MODEL": "bench-whole"}  # a model that the call store does not have
        total_s = time_command(variables, "run", "tier2", "--source", "bench", "--json")
    limit_s = CASES * METRICS * DELAY_S / CONCURRENCY
    what = f"tier 2, {CASES:,} cases, {METRICS} judged metrics, {CONCURRENCY} at once (start {start_s:.1f} s off)"
    yield Row(what, "the network's limit", total_s - start_s, limit_s, TARGET)
