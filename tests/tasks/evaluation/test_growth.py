"""What grows with the history and must not: the rows that commands read, and the pages of the index."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, delete, event, insert, text

from tests.support.evaluation_history import START, source_name, write
from yarus.db import journal
from yarus.db.tables import evaluation, nightly_verdict
from yarus.deployments.alarms import incidents
from yarus.deployments.prefect.artifacts import changes_since
from yarus.tasks.comparison.noise_floor import floors
from yarus.tasks.comparison.trend import trend
from yarus.tasks.evaluation.listing import fail_orphaned
from yarus.tasks.evaluation.summary import summary
from yarus.tasks.report.entries import newest
from yarus.tasks.report.index import MOST, PAGE
from yarus.tasks.report.write import index

READ: dict[str, Callable[[Engine, str, str], Any]] = {
    "runs": lambda engine, source, name: journal.listing(engine, limit=20),
    "show": lambda engine, source, name: summary(engine, name),
    "show an end": lambda engine, source, name: summary(engine, name[-12:]),
    "show the last": lambda engine, source, name: summary(engine, "last"),
    "the one before": lambda engine, source, name: journal.previous(engine, name),
    "what changed": lambda engine, source, name: changes_since(engine, summary(engine, name)),
    "a retry": lambda engine, source, name: journal.of_flow_run(engine, "none"),
    "the orphaned": lambda engine, source, name: fail_orphaned(engine),
    "noise": lambda engine, source, name: floors(engine, f"key of {source}"),
    "trend": lambda engine, source, name: trend(engine, "hit_rate@1", tier="tier1", source=source, last=20),
    "report": lambda engine, source, name: newest(engine),
    "incidents": lambda engine, source, name: incidents.incidents(engine),
    "a night": lambda engine, source, name: incidents.bad_since(engine, "tier1", source, None),
}
"""What commands ask of the journal: of an evaluation of a source, the newest of all."""


@pytest.fixture(scope="module", autouse=True)
def forgotten(engine: Engine) -> Iterator[None]:
    """What is newer here than everything of other tests goes afterwards."""
    yield
    with engine.begin() as connection:
        connection.execute(delete(evaluation).where(evaluation.c.started_at > START + timedelta(days=19_000)))


@contextmanager
def watched(engine: Engine) -> Iterator[list[tuple[str, Any, int]]]:
    """The statements that are sent meanwhile, each with its parameters and the rows that came."""
    sent: list[tuple[str, Any, int]] = []

    def note(connection: Any, cursor: Any, statement: str, parameters: Any, *more: object) -> None:
        sent.append((statement, parameters, max(cursor.rowcount, 0)))

    event.listen(engine, "after_cursor_execute", note)
    try:
        yield sent
    finally:
        event.remove(engine, "after_cursor_execute", note)


def nights(engine: Engine, source: str, n: int, first_night: int) -> list[str]:
    """So many evaluations of a source, newer than what was; a night has called them good."""
    written = write(engine, source, [0.8] * n, first_night=first_night)
    with engine.begin() as connection:
        connection.execute(
            insert(nightly_verdict), [{"evaluation_id": name, "verdict": "good", "changes": []} for name in written]
        )
        connection.execute(text("ANALYZE yarus.evaluation, yarus.evaluation_metric, yarus.nightly_verdict"))
    return written


@pytest.fixture(scope="module")
def history(engine: Engine) -> tuple[str, dict[str, int], str]:
    """A source; the rows that each command read when it had 500 nights; the newest of 1,000 nights."""
    source, before = source_name(), {}
    name = nights(engine, source, 500, 20_000)[-1]
    for what, asked in READ.items():
        with watched(engine) as sent:
            asked(engine, source, name)
        before[what] = sum(rows for _, _, rows in sent)
    return source, before, nights(engine, source, 500, 20_500)[-1]


@pytest.mark.parametrize("what", READ)
def test_twice_the_history_is_read_in_as_many_rows(
    engine: Engine, at_home: Path, history: tuple[str, dict[str, int], str], what: str
) -> None:
    source, before, name = history
    with watched(engine) as sent:
        READ[what](engine, source, name)
    assert sum(rows for _, _, rows in sent) <= before[what] + 5


@pytest.mark.parametrize("what", READ)
def test_every_table_that_grows_is_read_by_an_index(
    engine: Engine, at_home: Path, history: tuple[str, dict[str, int], str], what: str
) -> None:
    source, _, name = history
    with watched(engine) as sent:
        READ[what](engine, source, name)
    with engine.connect() as connection:
        connection.execute(text("SET LOCAL enable_seqscan = off"))  # where there is an index, it is taken then
        for statement, parameters, _ in sent:
            if statement.startswith("SELECT") and "yarus." in statement:
                plan = connection.exec_driver_sql(f"EXPLAIN {statement}", parameters).scalars().all()
                assert not re.findall(r"Seq Scan on (?:evaluation|nightly_verdict)\b", "\n".join(plan)), statement


def test_the_index_is_pages_that_are_linked_and_stay_small(engine: Engine, at_home: Path, tmp_path: Path) -> None:
    names = nights(engine, source_name(), MOST + 10, 30_000)
    for stale in ("index-1.html", "index-99.html", "index-of-mine.html"):
        (tmp_path / stale).write_text("of another day")
    page: Path | None = index(engine, tmp_path, language="en")
    seen: list[str] = []
    while page is not None:
        shown = page.read_text(encoding="utf-8")
        assert len(shown.encode()) < 100_000
        listed = re.findall(r'title="(tier1-[^"]+)"', shown)
        assert 0 < len(listed) <= PAGE
        seen += listed
        following = re.search(r'href="(index-\d+\.html)" rel="next"', shown)
        page = tmp_path / following[1] if following else None
    assert seen == list(reversed(names))[:MOST]
    assert len(list(tmp_path.glob("index*.html"))) == MOST // PAGE + 1  # with the one that is not ours
    assert (tmp_path / "index-of-mine.html").exists()
