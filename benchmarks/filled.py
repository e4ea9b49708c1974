"""Labels filled up by a judge against the limit of its calls: 1,000 questions, the first 10 of three retrievers.

The limit is the calls that are not in the store x 50 ms / concurrency. What starting, loading, one retriever and scores
cost is measured by the same command without filling, and taken off: what is left is pooling and asking.
"""

from collections.abc import Iterator

import pyarrow.parquet as pq

from benchmarks import Row
from benchmarks.chat import DELAY_S
from benchmarks.exam import newest
from benchmarks.home import yarus
from benchmarks.judged import CONCURRENCY, prepared
from yarus.tasks.cases.rankings import to_judge

CASES = 1_000
TARGET = 1.15
RETRIEVERS = ("dense", "fulltext", "hybrid")


def questions() -> Iterator[dict[str, object]]:
    """Every second one without a label."""
    for number in range(CASES):
        labels = [str(number)] if number % 2 else []
        asked = f"До какого дня принимают документы по правилу {number} в кабинете {number * 7 % 500}?"
        yield {"id": str(number), "question": asked, "relevant_chunk_ids": labels, "origin": "manual"}


def chunks() -> Iterator[dict[str, object]]:
    for number in range(CASES):
        text = f"Правило {number}. Документы принимают до {number % 27 + 1} июля, потом в кабинете {number * 7 % 500}. "
        yield {"id": str(number), "confluence_url": f"https://wiki.example/{number}", "text": text * 3}


def run() -> Iterator[Row]:
    """The evaluation by the limit of its calls."""
    own, *others = RETRIEVERS
    words = ["run", "tier1", "--source", "bench", "--retriever", own, "--json"]
    with prepared(chunks(), questions()) as variables:
        yarus(variables, *words)  # embeds the corpus
        given_s = yarus(variables, *words)
        whole_s = yarus(variables, *words, "--labels", "filled", "--pool", ",".join(others))
        pools = pq.read_table(newest(variables)["parquet"], columns=["pooled"])["pooled"].to_pylist()
    calls = sum(to_judge(one) for pool in pools for one in pool)
    limit_s = calls * DELAY_S / CONCURRENCY
    what = f"filled labels, {CASES:,} questions x 10 x {len(RETRIEVERS)} retrievers, {calls:,} calls"
    what += f" (all else {given_s:.1f} s off)"
    yield Row(what, "the network's limit", whole_s - given_s, limit_s, TARGET)
