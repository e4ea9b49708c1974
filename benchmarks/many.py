"""Tier 2 with 100,000 cases and the offline stand-ins: peak memory, and time compared with that of a quarter."""

from collections.abc import Iterator
from pathlib import Path

from benchmarks import Row
from benchmarks.home import measure_command, temporary_home
from yarus.db.loading.load_rows import ImportedRows, load_rows
from yarus.db.loading.load_rows import IncomingRow as Loaded

CASES, CHUNKS = 100_000, 1_000
LIMIT_MB = 600
SENTENCE = "Документы принимают до 25 июля, кроме выходных дней, по адресу из правила {number}. "


def rows() -> ImportedRows:
    """Return chunks of about a hundred words, and a hundred questions with a reference for each."""
    loaded = ImportedRows()
    for number in range(CHUNKS):
        text = f"Правило {number}. " + SENTENCE.format(number=number) * 10
        loaded.chunks.append(
            Loaded(f"c{number}", {"id": f"c{number}", "confluence_url": f"page:{number // 10}", "text": text})
        )
    for number in range(CASES):
        name, chunk = f"q{number}", number % CHUNKS
        loaded.questions.append(
            Loaded(name, {"id": name, "question": f"Когда принимают по правилу {chunk}, раз {name}?"})
        )
        reference = f"По правилу {chunk} документы принимают до 25 июля."
        label = {"question_id": name, "ground_truth_answer": reference, "relevant_chunk_ids": [f"c{chunk}"]}
        loaded.annotations.append(Loaded(name, label))
    return loaded


def measure_evaluation(home: Path, cases: int) -> tuple[float, float]:
    """Return wall seconds and peak megabytes of an evaluation of so many cases."""
    return measure_command(home, "run", "tier2", "--source", "many", "--limit", str(cases), "--json")[:2]


def run() -> Iterator[Row]:
    """Yield megabytes by the limit, then seconds by four times those of a quarter."""
    with temporary_home() as (home, engine):
        load_rows(engine, "many", rows(), language="ru", origin="benchmark")
        measure_evaluation(home, 1)  # creates Prefect's database
        start_s, _ = measure_evaluation(home, 1)
        quarter_s, _ = measure_evaluation(home, CASES // 4)
        total_s, total_mb = measure_evaluation(home, CASES)
    yield Row(f"tier 2, {CASES:,} cases offline: memory in MB, not seconds", "limit", total_mb, LIMIT_MB)
    linear_s = 4 * (quarter_s - start_s)
    yield Row(f"tier 2, {CASES:,} cases offline, less its start", "4 x a quarter", total_s - start_s, linear_s, 1.2)
