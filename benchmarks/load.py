"""Times to load a source, show the help and evaluate XQuAD-ru, against limits."""

import time
from pathlib import Path

import pandas as pd
from sqlalchemy import Engine

from benchmarks import Row
from benchmarks.home import build_environment, run_python, temporary_home
from yarus.db.loading.load_rows import ImportedRows, load_rows
from yarus.db.loading.load_rows import IncomingRow as Loaded

CHUNKS = QUESTIONS = 50_000
ROWS = 100_000
XQUAD = Path(__file__).parents[2] / "shared" / "data" / "xquad" / "xquad.ru.json"
WORDS = ("студент", "заявление", "стипендия", "приказ", "корпус", "экзамен", "справка", "общежитие", "перевод")

# The fixed cost of every flow: the imports of an evaluation, and Prefect's server, database and start.
EMPTY = """
import asyncio, yarus.flows
from yarus.deployments.prefect.local_server import prepare_prefect, start_server
prepare_prefect()
start_server()
import yarus.flows.tier1
from prefect import flow

@flow
async def empty() -> None: ...

asyncio.run(empty())
"""


def rows() -> ImportedRows:
    """Return chunks of about 100 words, and a labelled question for each."""
    loaded = ImportedRows()
    for number in range(CHUNKS):
        text = f"Пункт {number}. " + " ".join(WORDS[(number + n * n) % len(WORDS)] for n in range(100))
        loaded.chunks.append(
            Loaded(f"c{number}", {"id": f"c{number}", "confluence_url": f"page:{number // 10}", "text": text})
        )
    for number in range(QUESTIONS):
        name = f"q{number}"
        loaded.questions.append(Loaded(name, {"id": name, "question": f"Что сказано в пункте {number}?"}))
        label = {"question_id": name, "ground_truth_answer": str(number), "relevant_chunk_ids": [f"c{number}"]}
        loaded.annotations.append(Loaded(name, label))
    return loaded


def seconds(home: Path, *command: str) -> float:
    """Return the seconds of a process of this Python in that home."""
    return run_python(build_environment(home), *command)[0]


def fastest(home: Path, *command: str, rounds: int = 2) -> float:
    """Return the fastest of some rounds, which excludes other load of the machine."""
    return min(seconds(home, *command) for _ in range(rounds))


def time_load(engine: Engine) -> Row:
    source_rows = rows()
    start = time.perf_counter()
    report = load_rows(engine, "many", source_rows, language="ru", origin="benchmark")
    ours_s = time.perf_counter() - start
    assert (report.chunks.added, report.questions.added) == (CHUNKS, QUESTIONS)
    return Row(f"load {CHUNKS:,} chunks + {QUESTIONS:,} questions with labels", "limit", ours_s, 30)


def time_evaluation(home: Path) -> Row:
    """Measure XQuAD-ru loaded and run, beyond an empty flow in the same conditions and with Prefect's database made."""
    load = ("-m", "yarus", "load", "squad", str(XQUAD), "--into", "xquad_ru")
    run = ("-m", "yarus", "run", "tier1", "--source", "xquad_ru", "--retriever", "fulltext")
    seconds(home, "-c", EMPTY)  # creates Prefect's database
    empty = fastest(home, "-c", EMPTY)
    ours_s = seconds(home, *load) + fastest(home, *run)
    return Row("XQuAD-ru loaded and run, beyond an empty flow", "limit", ours_s - empty, 3)


def time_init(home: Path) -> list[Row]:
    """Measure `yarus init` of a table of 100,000 rows, against 1.5 times pandas' reading time plus 3 s."""
    table = pd.DataFrame(
        {
            "id": range(ROWS),
            "question": [f"Где взять справку номер {n}?" for n in range(ROWS)],
            "answer": [f"Справку {n} выдают в деканате с понедельника по пятницу." for n in range(ROWS)],
            "page_url": [f"https://wiki.example/{n % 1_000}" for n in range(ROWS)],
            "user_id": [f"u{n % 500}" for n in range(ROWS)],
            "created_at": [f"2026-03-{n % 28 + 1:02} 10:{n % 60:02}:00" for n in range(ROWS)],
            "reference": [f"В деканате, справка {n}." for n in range(ROWS)],
        }
    )
    table.to_csv(home / "log.csv", index=False)
    table.to_json(home / "log.json", orient="records", force_ascii=False)
    table.to_parquet(home / "log.parquet")
    rows = []
    for suffix, read_table in (("csv", pd.read_csv), ("json", pd.read_json), ("parquet", pd.read_parquet)):
        start = time.perf_counter()
        read_table(home / f"log.{suffix}")
        limit_s = 1.5 * (time.perf_counter() - start) + 3
        words = ("-m", "yarus", "init", f"log.{suffix}", "--into", f"begun_{suffix}", "--yes")
        plan_s = fastest(home, *words, "--dry-run")
        rows.append(Row(f"init --dry-run of {ROWS:,} rows ({suffix})", "1.5 x pandas + 3 s", plan_s, limit_s))
        rows.append(Row(f"init of {ROWS:,} rows ({suffix})", "1.5 x pandas + 3 s", seconds(home, *words), limit_s))
    return rows


def run() -> list[Row]:
    """Yield loading, `init` of files, the start; the evaluation only if XQuAD is there."""
    with temporary_home() as (home, engine):
        measured = [time_load(engine), *time_init(home)]
        measured.append(Row("yarus --help", "limit", fastest(home, "-m", "yarus", "--help"), 0.5))
        if XQUAD.exists():
            measured.append(time_evaluation(home))
    return measured
