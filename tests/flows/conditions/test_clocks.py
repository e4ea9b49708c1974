"""A clock that jumps: durations are not its business, and dates stay in order."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import here
from tests.support.evaluations import evaluate, load, question, rows_of
from yarus.db import analyses, journal
from yarus.tasks.config.connections import database
from yarus.tasks.models.server_errors import parse_retry_after_s


@pytest.fixture
def jumping(monkeypatch: pytest.MonkeyPatch) -> None:
    """Our dates are an hour earlier each time the clock is looked at."""
    hours = count()

    class Jumping:
        @staticmethod
        def now(zone: Any = None) -> datetime:
            return datetime.now(zone) - timedelta(hours=next(hours))

    for module in (journal, analyses):
        monkeypatch.setattr(module, "datetime", Jumping)


def test_an_evaluation_ends_after_it_has_started(at_home: Path, tmp_path: Path, jumping: None) -> None:
    source = load(tmp_path, "jumping", [question(i) for i in range(10)])
    for _ in range(3):
        summary = evaluate("tier1", source=source)
        assert summary["state"] == "completed"
        assert summary["started_at"] <= summary["finished_at"]
        assert all(row["latency_ms"] is None or 0 <= row["latency_ms"] < 60_000 for row in rows_of(summary))
    for words in (
        ("report", "--out", str(tmp_path / "report.html")),
        ("trend", "mrr", "--source", source),
        ("runs",),
        ("show", summary["evaluation_id"]),
        ("prune", "--older-than", "1h", "--dry-run"),
    ):
        assert here(*words).code == 0


def test_an_analysis_ends_after_it_has_started(at_home: Path, jumping: None) -> None:
    with analyses.analysing(database(), "sweep", "s", {}) as analysis_id:
        analyses.keep(database(), analysis_id, {}, "completed")
    row = analyses.find(database(), "sweep", analysis_id)
    assert row["started_at"] <= row["finished_at"]


@pytest.mark.parametrize("hours", [-30, 0, 30])
def test_a_server_whose_clock_differs_says_how_long_to_wait(hours: int) -> None:
    theirs = (datetime.now(UTC) + timedelta(hours=hours)).replace(microsecond=0)
    date, later = (format_datetime(at, usegmt=True) for at in (theirs, theirs + timedelta(seconds=7)))
    assert parse_retry_after_s(later, date) == 7
    assert parse_retry_after_s(date, later) == 0
