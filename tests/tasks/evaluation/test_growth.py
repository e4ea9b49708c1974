"""The rows that commands read and the size of index pages must not grow with the history."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, delete, event, insert, text

from tests.support.evaluation_history import START, make_source_name, write_evaluations
from yarus.db import journal
from yarus.db.tables import evaluation, nightly_verdict
from yarus.deployments.alarms import incidents
from yarus.deployments.prefect.artifacts import read_changes
from yarus.tasks.comparison.noise_floor import estimate_noise_floors
from yarus.tasks.comparison.trend import trend
from yarus.tasks.evaluation.listing import fail_orphaned
from yarus.tasks.evaluation.summary import read_summary
from yarus.tasks.report.entries import find_newest
from yarus.tasks.report.index import MAX_EVALUATIONS, PAGE_SIZE
from yarus.tasks.report.write import write_index

QUERIES: dict[str, Callable[[Engine, str, str], Any]] = {
    "runs": lambda engine, source, name: journal.list_evaluations(engine, limit=20),
    "show": lambda engine, source, name: read_summary(engine, name),
    "show an end": lambda engine, source, name: read_summary(engine, name[-12:]),
    "show the last": lambda engine, source, name: read_summary(engine, "last"),
    "the one before": lambda engine, source, name: journal.find_previous(engine, name),
    "what changed": lambda engine, source, name: read_changes(engine, read_summary(engine, name)),
    "a retry": lambda engine, source, name: journal.find_by_flow_run(engine, "none"),
    "the orphaned": lambda engine, source, name: fail_orphaned(engine),
    "noise": lambda engine, source, name: estimate_noise_floors(engine, f"key of {source}"),
    "trend": lambda engine, source, name: trend(engine, "hit_rate@1", tier="tier1", source=source, last=20),
    "report": lambda engine, source, name: find_newest(engine),
    "incidents": lambda engine, source, name: incidents.list_incidents(engine),
    "a night": lambda engine, source, name: incidents.read_bad_verdicts(engine, "tier1", source, None),
}
"""Queries of commands to the journal, for the newest evaluation of a source."""


@pytest.fixture(scope="module", autouse=True)
def remove_evaluations(engine: Engine) -> Iterator[None]:
    """Delete the evaluations of this module afterwards, since they are newer than those of other tests."""
    yield
    with engine.begin() as connection:
        connection.execute(delete(evaluation).where(evaluation.c.started_at > START + timedelta(days=19_000)))


@contextmanager
def record_statements(engine: Engine) -> Iterator[list[tuple[str, Any, int]]]:
    """Record the statements sent within the context, with their parameters and row counts."""
    statements: list[tuple[str, Any, int]] = []

    def note(connection: Any, cursor: Any, statement: str, parameters: Any, *more: object) -> None:
        statements.append((statement, parameters, max(cursor.rowcount, 0)))

    event.listen(engine, "after_cursor_execute", note)
    try:
        yield statements
    finally:
        event.remove(engine, "after_cursor_execute", note)


def store_nights(engine: Engine, source: str, n: int, first_night: int) -> list[str]:
    """Store n evaluations of a source, newer than all others, which a night has called good."""
    written = write_evaluations(engine, source, [0.8] * n, first_night=first_night)
    with engine.begin() as connection:
        connection.execute(
            insert(nightly_verdict), [{"evaluation_id": name, "verdict": "good", "changes": []} for name in written]
        )
        connection.execute(text("ANALYZE yarus.evaluation, yarus.evaluation_metric, yarus.nightly_verdict"))
    return written


@pytest.fixture(scope="module")
def history(engine: Engine) -> tuple[str, dict[str, int], str]:
    """Return a source, the rows that each query read at 500 nights, and the newest of 1,000 nights."""
    source, before = make_source_name(), {}
    name = store_nights(engine, source, 500, 20_000)[-1]
    for command, query in QUERIES.items():
        with record_statements(engine) as statements:
            query(engine, source, name)
        before[command] = sum(rows for _, _, rows in statements)
    return source, before, store_nights(engine, source, 500, 20_500)[-1]


@pytest.mark.parametrize("command", QUERIES)
def test_queries_read_constant_rows_as_history_doubles(
    engine: Engine, at_home: Path, history: tuple[str, dict[str, int], str], command: str
) -> None:
    source, before, name = history
    with record_statements(engine) as statements:
        QUERIES[command](engine, source, name)
    assert sum(rows for _, _, rows in statements) <= before[command] + 5


@pytest.mark.parametrize("command", QUERIES)
def test_queries_read_growing_tables_by_index(
    engine: Engine, at_home: Path, history: tuple[str, dict[str, int], str], command: str
) -> None:
    source, _, name = history
    with record_statements(engine) as statements:
        QUERIES[command](engine, source, name)
    with engine.connect() as connection:
        connection.execute(text("SET LOCAL enable_seqscan = off"))  # forces the use of an index if there is one
        for statement, parameters, _ in statements:
            if statement.startswith("SELECT") and "yarus." in statement:
                plan = connection.exec_driver_sql(f"EXPLAIN {statement}", parameters).scalars().all()
                assert not re.findall(r"Seq Scan on (?:evaluation|nightly_verdict)\b", "\n".join(plan)), statement


def test_index_pages_are_linked_and_small(engine: Engine, at_home: Path, tmp_path: Path) -> None:
    names = store_nights(engine, make_source_name(), MAX_EVALUATIONS + 10, 30_000)
    for stale in ("index-1.html", "index-99.html", "index-of-mine.html"):
        (tmp_path / stale).write_text("of another day")
    page: Path | None = write_index(engine, tmp_path, language="en")
    seen: list[str] = []
    while page is not None:
        html = page.read_text(encoding="utf-8")
        assert len(html.encode()) < 100_000
        listed = re.findall(r'title="(tier1-[^"]+)"', html)
        assert 0 < len(listed) <= PAGE_SIZE
        seen += listed
        following = re.search(r'href="(index-\d+\.html)" rel="next"', html)
        page = tmp_path / following[1] if following else None
    assert seen == list(reversed(names))[:MAX_EVALUATIONS]
    assert len(list(tmp_path.glob("index*.html"))) == MAX_EVALUATIONS // PAGE_SIZE + 1  # with the one that is not ours
    assert (tmp_path / "index-of-mine.html").exists()
