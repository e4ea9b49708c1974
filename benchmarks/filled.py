"""Labels filled by a judge against the limit of its calls: 1,000 questions, the first 10 of three retrievers.

The limit is the calls that are not in the store x 50 ms / concurrency. The cost of starting, loading, one retriever and
scores is measured by the same command without filling, and subtracted: the rest is pooling and judging.
"""

from collections.abc import Iterator

import pyarrow.parquet as pq

from benchmarks import Row
from benchmarks.chat import DELAY_S
from benchmarks.exam import read_newest_summary
from benchmarks.home import time_command
from benchmarks.judged import CONCURRENCY, prepare_source
from yarus.tasks.cases.rankings import needs_judgement

CASES = 1_000
TARGET = 1.15
RETRIEVERS = ("dense", "fulltext", "hybrid")


def questions() -> Iterator[dict[str, object]]:
    """Yield questions, every second one without a label."""
    for number in range(CASES):
        labels = [str(number)] if number % 2 else []
        question = f"До какого дня принимают документы по правилу {number} в кабинете {number * 7 % 500}?"
        yield {"id": str(number), "question": question, "relevant_chunk_ids": labels, "origin": "manual"}


def chunks() -> Iterator[dict[str, object]]:
    for number in range(CASES):
        text = f"Правило {number}. Документы принимают до {number % 27 + 1} июля, потом в кабинете {number * 7 % 500}. "
        yield {"id": str(number), "confluence_url": f"https://wiki.example/{number}", "text": text * 3}


def run() -> Iterator[Row]:
    """Compare the evaluation with the limit of its calls."""
    retriever, *pool_retrievers = RETRIEVERS
    words = ["run", "tier1", "--source", "bench", "--retriever", retriever, "--json"]
    with prepare_source(chunks(), questions()) as variables:
        time_command(variables, *words)  # embeds the corpus
        base_s = time_command(variables, *words)
        total_s = time_command(variables, *words, "--labels", "llm", "--pool", ",".join(pool_retrievers))
        pools = pq.read_table(read_newest_summary(variables)["parquet"], columns=["pooled"])["pooled"].to_pylist()
    calls = sum(needs_judgement(result) for pool in pools for result in pool)
    limit_s = calls * DELAY_S / CONCURRENCY
    what = f"filled labels, {CASES:,} questions x 10 x {len(RETRIEVERS)} retrievers, {calls:,} calls"
    what += f" (all else {base_s:.1f} s off)"
    yield Row(what, "the network's limit", total_s - base_s, limit_s, TARGET)
