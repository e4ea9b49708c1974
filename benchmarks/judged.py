"""Tier 2 with three judged metrics against the network's limit: the whole of `yarus run`, less its start.

The limit is calls x 50 ms / concurrency. What starting costs (imports, Prefect's server, the database) is measured by
the same command on one case, and taken off.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from benchmarks import Row
from benchmarks.chat import DELAY_S, serving
from benchmarks.home import load, temporary_home, variables_of, yarus

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
def prepared(chunks: Iterable[object], questions: Iterable[object]) -> Iterator[dict[str, str]]:
    """A home of its own with these as the source `bench`, and a judge over HTTP; the variables to run commands with."""
    with serving() as url, temporary_home() as (home, _):
        variables = variables_of(home) | {
            "YARUS_JUDGE__BASE_URL": url,
            "YARUS_JUDGE__MODEL": "bench",
            "YARUS_JUDGE__CONCURRENCY": str(CONCURRENCY),
        }
        load(variables, chunks, questions)
        yarus(variables, "run", "tier1", "--source", "bench", "--limit", "1", "--json")  # makes Prefect's database
        yield variables


def run() -> Iterator[Row]:
    """The evaluation by the limit of its calls."""
    with prepared(chunks(), questions()) as variables:
        start_s = yarus(variables, "run", "tier2", "--source", "bench", "--limit", "1", "--seed", "1", "--json")
        variables |= {"YARUS_JUDGE__MODEL": "bench-whole"}  # nothing of it is in the call store
        whole_s = yarus(variables, "run", "tier2", "--source", "bench", "--json")
    limit_s = CASES * METRICS * DELAY_S / CONCURRENCY
    what = f"tier 2, {CASES:,} cases, {METRICS} judged metrics, {CONCURRENCY} at once (start {start_s:.1f} s off)"
    yield Row(what, "the network's limit", whole_s - start_s, limit_s, TARGET)
