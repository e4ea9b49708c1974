"""Check a clock that jumps: durations do not depend on it, and dates stay in order."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import run_here
from tests.support.evaluations import evaluate, load, question, read_rows
from yarus.db import analyses, journal
from yarus.tasks.config.connections import database
from yarus.tasks.models.server_errors import parse_retry_after_s


@pytest.fixture
def jumping_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the clock an hour back each time it is read."""
    hours = count()

    class JumpingDatetime:
        @staticmethod
        def now(zone: Any = None) -> datetime:
            return datetime.now(zone) - timedelta(hours=next(hours))

    for module in (journal, analyses):
        monkeypatch.setattr(module, "datetime", JumpingDatetime)


def test_evaluation_ends_after_start_when_clock_jumps(at_home: Path, tmp_path: Path, jumping_clock: None) -> None:
    source = load(tmp_path, "jumping", [question(i) for i in range(10)])
    for _ in range(3):
        summary = evaluate("tier1", source=source)
        assert summary["state"] == "completed"
        assert summary["started_at"] <= summary["finished_at"]
        assert all(row["latency_ms"] is None or 0 <= row["latency_ms"] < 60_000 for row in read_rows(summary))
    for words in (
        ("report", "--out", str(tmp_path / "report.html")),
        ("trend", "mrr", "--source", source),
        ("runs",),
        ("show", summary["evaluation_id"]),
        ("admin", "prune", "--older-than", "1h", "--dry-run"),
    ):
        assert run_here(*words).code == 0


def test_analysis_ends_after_start_when_clock_jumps(at_home: Path, jumping_clock: None) -> None:
    with analyses.open_analysis(database(), "sweep", "s", {}) as analysis_id:
        analyses.save_analysis(database(), analysis_id, {}, "completed")
    row = analyses.find_analysis(database(), "sweep", analysis_id)
    assert row["started_at"] <= row["finished_at"]


@pytest.mark.parametrize("hours", [-30, 0, 30])
def test_retry_after_uses_server_clock(hours: int) -> None:
    server_time = (datetime.now(UTC) + timedelta(hours=hours)).replace(microsecond=0)
    date, later = (format_datetime(moment, usegmt=True) for moment in (server_time, server_time + timedelta(seconds=7)))
    assert parse_retry_after_s(later, date) == 7
    assert parse_retry_after_s(date, later) == 0
