"""Tier 2 with 100,000 cases and the offline stand-ins: memory at its peak, and time beside that of a quarter."""

from collections.abc import Iterator
from pathlib import Path

from benchmarks import Row
from benchmarks.home import measured, temporary_home
from yarus.db.loading.fill import Row as Loaded
from yarus.db.loading.fill import Rows, fill

CASES, CHUNKS = 100_000, 1_000
LIMIT_MB = 600
SENTENCE = "Документы принимают до 25 июля, кроме выходных дней, по адресу из правила {number}. "


def rows() -> Rows:
    """Chunks of about a hundred words, and for each a hundred questions with a reference."""
    made = Rows()
    for number in range(CHUNKS):
        text = f"Правило {number}. " + SENTENCE.format(number=number) * 10
        made.chunks.append(
            Loaded(f"c{number}", {"id": f"c{number}", "confluence_url": f"page:{number // 10}", "text": text})
        )
    for number in range(CASES):
        name, chunk = f"q{number}", number % CHUNKS
        made.questions.append(
            Loaded(name, {"id": name, "question": f"Когда принимают по правилу {chunk}, раз {name}?"})
        )
        reference = f"По правилу {chunk} документы принимают до 25 июля."
        label = {"question_id": name, "ground_truth_answer": reference, "relevant_chunk_ids": [f"c{chunk}"]}
        made.annotations.append(Loaded(name, label))
    return made


def evaluated(home: Path, cases: int) -> tuple[float, float]:
    """Wall seconds of an evaluation of so many cases, and megabytes that its process held at most."""
    return measured(home, "run", "tier2", "--source", "many", "--limit", str(cases), "--json")[:2]


def run() -> Iterator[Row]:
    """Megabytes by the limit, then seconds by four times those of a quarter."""
    with temporary_home() as (home, engine):
        fill(engine, "many", rows(), language="ru", origin="benchmark")
        evaluated(home, 1)  # makes Prefect's database
        start_s, _ = evaluated(home, 1)
        quarter_s, _ = evaluated(home, CASES // 4)
        whole_s, whole_mb = evaluated(home, CASES)
    yield Row(f"tier 2, {CASES:,} cases offline: memory in MB, not seconds", "limit", whole_mb, LIMIT_MB)
    linear_s = 4 * (quarter_s - start_s)
    yield Row(f"tier 2, {CASES:,} cases offline, less its start", "4 x a quarter", whole_s - start_s, linear_s, 1.2)
