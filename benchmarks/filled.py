"""Labels filled up by a judge against the limit of its calls: 1,000 questions, the first 10 of three retrievers.

The limit is the calls that are not in the store x 50 ms / concurrency. What starting, loading, one retriever and scores
cost is measured by the same command without filling, and taken off: what is left is pooling and asking.
"""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq

from benchmarks import Row
from benchmarks.chat import DELAY_S, serving
from benchmarks.exam import newest
from benchmarks.judged import yarus
from db.embedded import server as embedded
from tasks.cases.pools import to_judge

CASES, CONCURRENCY = 1_000, 32
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
    with serving() as url, tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        variables = {
            "YARUS_HOME": folder,
            "PREFECT_HOME": str(home / "prefect-home"),
            "YARUS_JUDGE__BASE_URL": url,
            "YARUS_JUDGE__MODEL": "bench",
            "YARUS_JUDGE__CONCURRENCY": str(CONCURRENCY),
        }
        for kind, rows in (("chunks", chunks()), ("questions", questions())):
            file = home / f"{kind}.jsonl"
            file.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows), encoding="utf-8")
            yarus(variables, "load", "table", str(file), "--into", "bench", "--kind", kind)
        embedded.running(home)
        own, *others = RETRIEVERS
        words = ["run", "tier1", "--source", "bench", "--retriever", own, "--json"]
        filled = ["--labels", "filled", "--pool", ",".join(others)]
        try:
            yarus(variables, "run", "tier1", "--source", "bench", "--limit", "1", "--json")  # makes Prefect's database
            yarus(variables, *words)  # embeds the corpus
            given_s, whole_s = yarus(variables, *words), yarus(variables, *words, *filled)
            pools = pq.read_table(newest(variables)["parquet"], columns=["pooled"])["pooled"].to_pylist()
        finally:
            embedded.release(home)
        calls = sum(to_judge(one) for pool in pools for one in pool)
        what = f"filled labels, {CASES:,} questions x 10 x {len(RETRIEVERS)} retrievers, {calls:,} calls"
        yield Row(
            f"{what} (all else {given_s:.1f} s off)",
            "the network's limit",
            whole_s - given_s,
            calls * DELAY_S / CONCURRENCY,
            TARGET,
            "at most",
        )
