"""The report of two nights of 10,000 cases: seconds to make, bytes on disk, seconds until Chromium shows it."""

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
from yarus.metrics.table import metrics_of
from yarus.tasks.cases.table import table
from yarus.tasks.evaluation.aggregate import summarise
from yarus.tasks.report.write import report

N = 10_000
SECONDS, MEGABYTES, OPENED_SECONDS = 5.0, 15.0, 2.0
TEXT = "приказ ректор студент справка деканат сессия зачёт стипендия общежитие корпус кабинет заявление срок"
START = datetime(2026, 1, 1, 3, tzinfo=UTC)


def run() -> list[Row]:
    """Rows against the limits of the specification."""
    with temporary_home() as (home, engine), mock.patch.dict(os.environ, YARUS_HOME=str(home)):
        ids = [_evaluated(engine, home, night) for night in (0, 1)]
        page = home / "page.html"
        start = time.perf_counter()
        report(engine, ids[1:], page, "ru")
        made = time.perf_counter() - start
        size = page.stat().st_size / 1e6
        opened, listed = _opened(page)
    return [
        Row(f"report of {N} cases, made", "limit, s", made, SECONDS),
        Row(f"report of {N} cases, size in MB", "limit, MB", size, MEGABYTES),
        Row(f"report of {N} cases, first screen", "limit, s", opened, OPENED_SECONDS),
        Row(f"report of {N} cases, its list of cases", "limit, s", listed, OPENED_SECONDS),
    ]


def _evaluated(engine: Engine, folder: Path, night: int) -> str:
    """A finished evaluation of tier 3; the texts as long as those of a help desk."""
    chance = random.Random(night)  # the questions are those of the first night
    texts = random.Random(7)
    contexts = [_text(texts, 220) for _ in range(1_000)]
    numbers = {
        metric.column: [chance.random() for _ in range(N)]
        for metric in metrics_of("tier3")
        if metric.column and metric.aggregate == "mean"
    }
    reply = '{"reason": "%s", "score": 0.5}'
    raw = [
        [
            {"metric": m, "repeat": 0, "reply": reply % _text(chance, 25), "status": "ok"}
            for m in ("e2e_score", "faithfulness")
        ]
        for _ in range(N)
    ]
    cases = table(
        case_id=[f"bench:{i}" for i in range(N)],
        question=[_text(texts, 9) for _ in range(N)],
        status=["ok"] * N,
        reason=[None] * N,
        group=[f"user {i % 900}" for i in range(N)],
        answerable=[True] * N,
        relevant=[[str(i % 1_000)] for i in range(N)],
        retrieved=[[str(chance.randrange(1_000))] for _ in range(N)],
        reference=[_text(texts, 25) for _ in range(N)],
        context=[contexts[chance.randrange(1_000)] for _ in range(N)],
        answer=[_text(chance, 40) for _ in range(N)],
        judge_raw=raw,
        failure=[chance.choice([None, None, "retrieval", "generation"]) for _ in range(N)],
        latency_ms=[chance.expovariate(1 / 400) for _ in range(N)],
        **numbers,
    )
    return _kept(engine, folder, night, cases)


def _kept(engine: Engine, folder: Path, night: int, cases: pa.Table) -> str:
    """Its file, its row and its metrics; their intervals are of no matter here, so they come from a part."""
    name, started = f"tier3-bench-{night}", START + timedelta(days=night)
    file = folder / f"{name}.parquet"
    pq.write_table(cases, file, compression="zstd")
    row: dict[str, Any] = {"id": name, "tier": "tier3", "state": "completed", "source": "bench", "n_cases": N}
    row |= {"started_at": started, "finished_at": started + timedelta(minutes=9), "parquet": str(file)}
    row |= {"parameters": {}, "settings": {}, "versions": {}, "resolved": {}, "comparability": {}}
    row |= {"comparability_key": "bench", "statuses": {"ok": N}, "coverage": 1.0}
    values = summarise(metrics_of("tier3"), cases.slice(0, 500), seed=0, options={}, whole={})
    with engine.begin() as connection:
        connection.execute(insert(evaluation).values(row))
        for value in values:
            connection.execute(insert(evaluation_metric).values(value.row("") | {"evaluation_id": name}))
    return name


def _text(chance: random.Random, words: int) -> str:
    return " ".join(chance.choices(TEXT.split(), k=words)).capitalize() + f" {chance.randrange(10**6)}."


def _opened(path: Path) -> tuple[float, float]:
    """Seconds until the first screen is there, and from the click on a tier until its cases are."""
    from tests.support.browser import executable

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable(), args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        page.goto("about:blank")
        start = time.perf_counter()
        page.goto(path.as_uri(), wait_until="commit")
        page.locator("#overview h1").wait_for()
        opened = time.perf_counter() - start
        page.wait_for_load_state()
        start = time.perf_counter()
        page.evaluate("location.hash = '#tier3'")
        page.locator("#tier3 .list table").wait_for()
        listed = time.perf_counter() - start
        browser.close()
    return opened, listed
