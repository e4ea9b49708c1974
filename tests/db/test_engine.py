"""Connections: sharing, read-only sources, and messages for refusals."""

from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine, text

from yarus.db.engine import open_own_database, read_only_engine, reporting_unreachable
from yarus.db.errors import DatabaseUnavailable


def test_own_database_has_one_engine_per_home(home: Path, engine: Engine) -> None:
    assert open_own_database(home, None) is engine


def test_own_database_migrates_another_server(engine: Engine) -> None:
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("CREATE DATABASE given"))
    url = engine.url.set(database="given").render_as_string(hide_password=False)
    given_engine = open_own_database(Path("/nowhere"), url)
    with given_engine.connect() as connection:
        assert connection.scalar(text("SELECT count(*) FROM yarus.evaluation")) == 0
    given_engine.dispose()


def test_own_database_uses_utc_and_a_source_its_own_zone(engine: Engine) -> None:
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("CREATE DATABASE far_east"))
        connection.execute(text("ALTER DATABASE far_east SET timezone TO 'Asia/Vladivostok'"))
    url = engine.url.set(database="far_east").update_query_dict({"options": "-c statement_timeout=54321"})
    own_engine = open_own_database(Path("/nowhere"), url.render_as_string(hide_password=False))
    source = read_only_engine(url.set(query={**engine.url.query}).render_as_string(hide_password=False), timeout_s=9)
    time_query = text("SELECT TIMESTAMPTZ '2026-03-05T23:30:00Z'")
    with own_engine.connect() as connection:
        connection.rollback()
        assert connection.scalar(time_query).isoformat() == "2026-03-05T23:30:00+00:00"
        assert connection.scalar(text("SHOW statement_timeout")) == "54321ms"  # the address's options apply
    with source.connect() as connection:
        assert connection.scalar(time_query).isoformat() == "2026-03-06T09:30:00+10:00"
    own_engine.dispose(), source.dispose()


def test_own_database_reports_missing_rights_without_password(engine: Engine) -> None:
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("CREATE ROLE reader LOGIN"))
        connection.execute(text("CREATE DATABASE not_ours"))
    url = engine.url.set(username="reader", password="s3cret", database="not_ours")
    with pytest.raises(DatabaseUnavailable, match=r"permission denied for database not_ours.*role's rights") as refused:
        open_own_database(Path("/nowhere"), url.render_as_string(hide_password=False))
    assert "reader:***" in str(refused.value)
    assert "s3cret" not in str(refused.value)


def test_read_only_engine_is_read_only_in_one_snapshot(engine: Engine) -> None:
    source = read_only_engine(engine.url.render_as_string(hide_password=False), timeout_s=2)
    with source.connect() as connection:
        assert connection.scalar(text("SHOW transaction_read_only")) == "on"
        assert connection.scalar(text("SHOW transaction_isolation")) == "repeatable read"
        assert connection.scalar(text("SHOW statement_timeout")) == "2s"
    source.dispose()


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("SELECT pg_terminate_backend(pg_backend_pid())", "terminating connection"),
        ("SET LOCAL ROLE nobody_at_all; SELECT * FROM yarus.evaluation", "permission denied"),
        (
            "DO $$ BEGIN RAISE disk_full USING MESSAGE = 'could not extend';END $$",
            "could not extend.* The disk .* full",
        ),
        ("SET LOCAL statement_timeout = 10; SELECT pg_sleep(1)", "statement timeout"),
    ],
)
def test_reporting_turns_refusals_into_database_unavailable(engine: Engine, statement: str, reason: str) -> None:
    with engine.begin() as connection:
        connection.execute(text("DO $$ BEGIN CREATE ROLE nobody_at_all; EXCEPTION WHEN duplicate_object THEN END $$"))
    with (
        pytest.raises(DatabaseUnavailable, match=reason),
        reporting_unreachable(engine),
        engine.connect() as connection,
    ):
        for part in statement.split("; "):
            connection.execute(text(part))


def test_reporting_passes_syntax_errors_through(engine: Engine) -> None:
    with (
        pytest.raises(Exception, match="syntax error") as error,
        reporting_unreachable(engine),
        engine.connect() as connection,
    ):
        connection.execute(text("SELEC 1"))
    assert not isinstance(error.value, DatabaseUnavailable)


def test_reporting_names_an_unknown_option_without_its_value() -> None:
    wrong_engine = create_engine("postgresql+psycopg://someone@127.0.0.1:1/x?passwd=s3cret")
    refusal = pytest.raises(DatabaseUnavailable, match=r'invalid connection option "passwd".*address')
    with refusal as refused, reporting_unreachable(wrong_engine), wrong_engine.connect():
        pytest.fail("it was taken")
    assert "s3cret" not in str(refused.value)


def test_reporting_names_an_unreachable_server() -> None:
    unreachable_engine = create_engine("postgresql+psycopg://someone:s3cret@127.0.0.1:1/x")
    refusal = pytest.raises(DatabaseUnavailable, match=r"someone:\*\*\*@127.0.0.1:1.*YARUS_SOURCE_URL")
    with refusal as refused, reporting_unreachable(unreachable_engine), unreachable_engine.connect():
        pytest.fail("somebody is there")
    assert "s3cret" not in str(refused.value)
