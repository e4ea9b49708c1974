"""The report of two nights of 10,000 cases: seconds to write, bytes on disk, seconds until Chromium shows it."""

import os
import random
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
from playwright.sync_api import sync_playwright
from sqlalchemy import Engine, insert

from benchmarks import Row
from benchmarks.home import temporary_home
from yarus.db.tables import evaluation, evaluation_metric
from yarus.metrics.table import metrics_for_tier
from yarus.tasks.cases.table import make_cases
from yarus.tasks.evaluation.aggregate import aggregate_metrics
from yarus.tasks.report.write import write_report

N = 10_000
SECONDS, MEGABYTES, OPENED_SECONDS = 5.0, 15.0, 2.0
TEXT = "приказ ректор студент справка деканат сессия зачёт стипендия общежитие корпус кабинет заявление срок"
START = datetime(2026, 1, 1, 3, tzinfo=UTC)


def run() -> list[Row]:
    """Return rows against the limits of the specification."""
    with temporary_home() as (home, engine), mock.patch.dict(os.environ, YARUS_HOME=str(home)):
        ids = [_create_evaluation(engine, home, night) for night in (0, 1)]
        page = home / "page.html"
        start = time.perf_counter()
        write_report(engine, ids[1:], page, "ru")
        written_s = time.perf_counter() - start
        size = page.stat().st_size / 1e6
        opened_s, listed_s = _time_page(page)
    return [
        Row(f"report of {N} cases, made", "limit, s", written_s, SECONDS),
        Row(f"report of {N} cases, size in MB", "limit, MB", size, MEGABYTES),
        Row(f"report of {N} cases, first screen", "limit, s", opened_s, OPENED_SECONDS),
        Row(f"report of {N} cases, its list of cases", "limit, s", listed_s, OPENED_SECONDS),
    ]


def _create_evaluation(engine: Engine, folder: Path, night: int) -> str:
    """Create a finished evaluation of tier 3, with texts as long as those of a help desk."""
    generator = random.Random(night)  # the questions are those of the first night
    texts = random.Random(7)
    contexts = [_text(texts, 220) for _ in range(1_000)]
    numbers = {
        metric.column: [generator.random() for _ in range(N)]
        for metric in metrics_for_tier("tier3")
        if metric.column and metric.aggregate == "mean"
    }
    reply = '{"reason": "%s", "score": 0.5}'
    raw = [
        [
            {"metric": m, "repeat": 0, "reply": reply % _text(generator, 25), "status": "ok"}
            for m in ("e2e_score", "faithfulness")
        ]
        for _ in range(N)
    ]
    cases = make_cases(
        case_id=[f"bench:{i}" for i in range(N)],
        question=[_text(texts, 9) for _ in range(N)],
        status=["ok"] * N,
        reason=[None] * N,
        group=[f"user {i % 900}" for i in range(N)],
        answerable=[True] * N,
        relevant=[[str(i % 1_000)] for i in range(N)],
        retrieved=[[str(generator.randrange(1_000))] for _ in range(N)],
        reference=[_text(texts, 25) for _ in range(N)],
        context=[contexts[generator.randrange(1_000)] for _ in range(N)],
        answer=[_text(generator, 40) for _ in range(N)],
        judge_raw=raw,
        failure=[generator.choice([None, None, "retrieval", "generation"]) for _ in range(N)],
        latency_ms=[generator.expovariate(1 / 400) for _ in range(N)],
        **numbers,
    )
    return _store_evaluation(engine, folder, night, cases)


def _store_evaluation(engine: Engine, folder: Path, night: int, cases: pa.Table) -> str:
    """Store its file, its row and its metrics; the intervals do not matter here, so a part of the cases is enough."""
    name, started = f"tier3-bench-{night}", START + timedelta(days=night)
    file = folder / f"{name}.parquet"
    pq.write_table(cases, file, compression="zstd")
    row: dict[str, Any] = {"id": name, "tier": "tier3", "state": "completed", "source": "bench", "n_cases": N}
    row |= {"started_at": started, "finished_at": started + timedelta(minutes=9), "parquet": str(file)}
    row |= {"parameters": {}, "settings": {}, "versions": {}, "resolved": {}, "comparability": {}}
    row |= {"comparability_key": "bench", "statuses": {"ok": N}, "coverage": 1.0}
    values = aggregate_metrics(metrics_for_tier("tier3"), cases.slice(0, 500), seed=0, options={}, whole={})
    with engine.begin() as connection:
        connection.execute(insert(evaluation).values(row))
        for value in values:
            connection.execute(insert(evaluation_metric).values(value.row("") | {"evaluation_id": name}))
    return name


def _text(generator: random.Random, words: int) -> str:
    return " ".join(generator.choices(TEXT.split(), k=words)).capitalize() + f" {generator.randrange(10**6)}."


def _time_page(path: Path) -> tuple[float, float]:
    """Return seconds until the first screen is shown, and from the click on a tier until its cases are."""
    from tests.support.browser import find_chromium

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        page.goto("about:blank")
        start = time.perf_counter()
        page.goto(path.as_uri(), wait_until="commit")
        page.locator("#overview h1").wait_for()
        opened_s = time.perf_counter() - start
        page.wait_for_load_state()
        start = time.perf_counter()
        page.evaluate("location.hash = '#tier3'")
        page.locator("#tier3 .list table").wait_for()
        listed_s = time.perf_counter() - start
        browser.close()
    return opened_s, listed_s
