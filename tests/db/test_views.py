"""The SQL views: joins, breaks of trends, and comments on every column."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, inspect, text

from yarus.db.tables import evaluation, evaluation_metric
from yarus.db.views import VIEWS

FIRST = datetime(2026, 1, 1, 3, tzinfo=UTC)
NIGHTLY_RUNS = [  # id, state, key, value
    ("n1", "completed", "a", 0.50),
    ("n2", "completed", "a", 0.60),
    ("n3", "invalid", "a", 0.10),
    ("n4", "completed", "b", 0.70),
    ("n5", "completed", "a", 0.55),
    ("n6", "failed", None, None),
]


def evaluation_row(number: int, name: str, state: str, key: str | None) -> dict[str, Any]:
    started_at = FIRST + timedelta(days=number)
    return {
        "id": f"views-{name}",
        "tier": "tier1",
        "state": state,
        "started_at": started_at,
        "finished_at": started_at + timedelta(minutes=1),
        "source": "of_views",
        "n_cases": 10,
        "comparability_key": key,
        "parameters": {},
        "settings": {},
        "versions": {},
        "statuses": None if key is None else {"ok": 7, "sut_error": 2, "unlabelled": 1},
        "coverage": 7 / 9,
    }


@pytest.fixture
def nightly_rows(engine: Engine) -> Iterator[Connection]:
    """Insert six nightly evaluations of one tier and source, and remove them after the test."""
    with engine.connect() as connection:
        for number, (name, state, key, value) in enumerate(NIGHTLY_RUNS):
            connection.execute(evaluation.insert().values(**evaluation_row(number, name, state, key)))
            for stratum in ("", "all") if key else ():
                values = {"evaluation_id": f"views-{name}", "metric": "mrr", "stratum": stratum, "value": value}
                values |= {"n_scored": 7, "n_total": 10, "direction": "higher", "signature": "mrr|v:1"}
                connection.execute(evaluation_metric.insert().values(**values))
        yield connection
        connection.rollback()


def query(connection: Connection, statement: str) -> list[Any]:
    return [tuple(row) for row in connection.execute(text(statement))]


def test_latest_is_the_newest_finished_evaluation(nightly_rows: Connection) -> None:
    rows = query(
        nightly_rows, "SELECT evaluation_id, stratum, value FROM yarus.latest WHERE source = 'of_views' ORDER BY 2"
    )
    assert rows == [("views-n5", "", 0.55), ("views-n5", "all", 0.55)]


def test_latest_includes_an_invalid_evaluation(nightly_rows: Connection) -> None:
    nightly_rows.execute(text("UPDATE yarus.evaluation SET state = 'invalid' WHERE id = 'views-n5'"))
    rows = query(nightly_rows, "SELECT DISTINCT evaluation_id, state FROM yarus.latest WHERE source = 'of_views'")
    assert rows == [("views-n5", "invalid")]


def test_trend_joins_equal_keys_and_marks_breaks(nightly_rows: Connection) -> None:
    rows = query(
        nightly_rows,
        "SELECT evaluation_id, previous_id, round(difference::numeric, 2)::float, is_break FROM yarus.trend "
        "WHERE source = 'of_views' AND stratum = '' ORDER BY started_at",
    )
    assert rows == [
        ("views-n1", None, None, False),
        ("views-n2", "views-n1", 0.10, False),
        ("views-n4", None, None, True),
        ("views-n5", "views-n2", -0.05, True),
    ]


def test_failures_counts_cases_by_status(nightly_rows: Connection) -> None:
    rows = query(
        nightly_rows,
        "SELECT status, measurable, cases, share FROM yarus.failures WHERE evaluation_id = 'views-n3' ORDER BY 1",
    )
    assert rows == [("sut_error", True, 2, 0.2), ("unlabelled", False, 1, 0.1)]
    assert not query(nightly_rows, "SELECT 1 FROM yarus.failures WHERE evaluation_id = 'views-n6'")


@pytest.mark.parametrize("name", list(VIEWS))
def test_view_columns_have_database_comments(engine: Engine, name: str) -> None:
    columns = inspect(engine).get_columns(name, schema="yarus")
    assert [column["name"] for column in columns] == list(VIEWS[name].columns)
    assert {column["name"]: column["comment"] for column in columns} == VIEWS[name].columns
    with engine.connect() as connection:
        assert connection.scalar(text(f"SELECT obj_description('yarus.{name}'::regclass)")) == VIEWS[name].meaning
