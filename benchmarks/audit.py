"""The label audit of 100,000 log questions from the command line, with near-duplicates, against limits."""

import json
import random
from typing import Any

from benchmarks import Row
from benchmarks.home import measure_command, temporary_home
from yarus.db.importers import sample
from yarus.db.loading.load_rows import ImportedRows, load_rows
from yarus.db.loading.load_rows import IncomingRow as Loaded

QUESTIONS = 100_000
LIMIT_S, LIMIT_MB = 120, 2_000


def build_log() -> ImportedRows:
    """Return the sample's log many times over: a tenth are repeats, a tenth has a typo, the rest has other words."""
    generator = random.Random(0)
    sample_rows = sample.read_sample()
    rows = [row.values for row in sample_rows.questions]
    words = sorted({word for row in rows for word in row["question"].lower().split()})
    log_rows: list[dict[str, Any]] = []
    for number in range(QUESTIONS):
        row = generator.choice(rows)
        question = generator.choice(log_rows)["question"] if log_rows and generator.random() < 0.2 else row["question"]
        if number % 10 < 8:
            question = " ".join(
                generator.choice(words) if generator.random() < 0.5 else word for word in f"{question} уже".split()
            )
        elif number % 10 == 8:
            position = generator.randrange(len(question))
            question = question[:position] + generator.choice("абвгд") + question[position:]
        log_rows.append(row | {"id": str(number), "question": question})
    return ImportedRows([Loaded(row["id"], row) for row in log_rows], sample_rows.chunks)


def run() -> list[Row]:
    """Measure time and memory of `yarus dataset audit` in a process of its own."""
    with temporary_home() as (home, engine):
        load_rows(engine, "log", build_log(), language="ru", origin="benchmark")
        seconds, memory_mb, printed = measure_command(home, "dataset", "audit", "--source", "log", "--json")
    report = json.loads(printed)
    assert report["n_questions"] == QUESTIONS and report["near_duplicates"]["count"] > 1000
    return [
        Row(f"audit {QUESTIONS:,} questions", "limit", seconds, LIMIT_S),
        Row("… memory in MB, not seconds", "limit", memory_mb, LIMIT_MB),
    ]
