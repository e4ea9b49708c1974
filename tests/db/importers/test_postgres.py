"""Test copies from another PostgreSQL database; nothing may be written to it."""

import tracemalloc
from collections.abc import Iterator
from datetime import UTC, datetime

import numpy as np
import pytest
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.pool import NullPool

from yarus.db.engine import read_only_engine
from yarus.db.errors import DatabaseUnavailable, InputError
from yarus.db.importers.postgres import newest_created_at, open_source_snapshot, validate_url
from yarus.db.loading.load_rows import LoadCounts, LoadReport, load_rows
from yarus.db.source_rows import read_corpus
from yarus.db.sources import Source, find_loaded_source, open_snapshot
from yarus.db.tables import source_tables

PRODUCTION = """
    CREATE EXTENSION vector;
    CREATE TABLE question_answer (
        id bigint PRIMARY KEY, question text, embedding vector(3), answer text, confluence_url varchar(200),
        score smallint, user_id bigint, created_at timestamp DEFAULT '2026-01-01');
    CREATE TABLE chunk (id int PRIMARY KEY, confluence_url text, text text, embedding vector(3));
    INSERT INTO chunk VALUES (1, 'https://wiki/a', 'Билет выдают в деканате', '[0.1,0.2,0.3]'), (2, 'None', 'б', NULL);
    INSERT INTO question_answer VALUES
        (1, 'где билет?', '[1,2,3]', 'в деканате', 'https://wiki/a', 5, 118, '2026-01-01 10:00'),
        (2, '', NULL, NULL, NULL, 1, 118, '2026-01-02 10:00'),
        (3, 'когда стипендия 🎓?', NULL, NULL, '', NULL, NULL, '2026-01-03 10:00'),
        (4, 'без времени', NULL, NULL, NULL, NULL, NULL, NULL);
"""
ANNOTATION = """
    CREATE TABLE annotation (
        question_id bigint PRIMARY KEY, ground_truth_answer text, relevant_chunk_ids int[], relevant_urls json,
        ground_truth_show boolean, answerable boolean, cluster text, dialog_id text, turn int, origin text);
    INSERT INTO annotation VALUES
        (1, 'В деканате', '{1}', '["https://wiki/a"]', true, true, 'Деканат', 'd', 1, 'manual'),
        (9, NULL, '{2}', NULL, NULL, NULL, NULL, NULL, NULL, 'manual');
"""


def run_statements(url: object, *statements: str) -> list[tuple]:
    """Run statements in their own transactions, and return the rows of the last."""
    engine = create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        for statement in statements:
            result = connection.execute(text(statement))
        return [tuple(row) for row in result] if result.returns_rows else []


@pytest.fixture(scope="module")
def reader(engine: Engine) -> Iterator[str]:
    """Create another database on the embedded server, and yield its address for a read-only role."""
    run_statements(engine.url, "CREATE DATABASE production", "CREATE ROLE copier LOGIN")
    # The counters would count it.
    run_statements(engine.url, "ALTER SYSTEM SET autovacuum = off", "SELECT pg_reload_conf()")
    url = engine.url.set(database="production", username="copier")
    yield url.render_as_string(hide_password=False)
    run_statements(engine.url, "ALTER SYSTEM RESET autovacuum", "SELECT pg_reload_conf()")
    run_statements(engine.url, "DROP DATABASE production WITH (FORCE)", "DROP ROLE copier")


@pytest.fixture
def production(reader: str) -> str:
    """Recreate the tables of the database, and return its address."""
    run_as_owner(reader, "DROP SCHEMA IF EXISTS app CASCADE", "DROP SCHEMA public CASCADE", "CREATE SCHEMA public")
    run_as_owner(reader, PRODUCTION, "GRANT USAGE ON SCHEMA public TO copier")
    run_as_owner(reader, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO copier")
    return reader


def run_as_owner(url: str, *statements: str) -> list[tuple]:
    return run_statements(url.replace("copier@", "yarus@"), *statements)


open_source_engine = read_only_engine.__wrapped__  # not the shared engine: each test closes its own


def copy_source(engine: Engine, name: str, url: str, since: datetime | None = None, **mapping: dict) -> LoadReport:
    source_engine = open_source_engine(url, timeout_s=30)
    try:
        with open_source_snapshot(
            Source("helpdesk", "production", "ru", source_engine, source_tables(None, **mapping)), since
        ) as rows:
            return load_rows(engine, name, rows, language="ru", origin="test")
    finally:
        source_engine.dispose()


def stored_rows(engine: Engine, statement: str) -> list[tuple]:
    return run_statements(engine.url, statement)


def test_copy_stores_all_tables(engine: Engine, production: str) -> None:
    run_as_owner(production, ANNOTATION, "GRANT SELECT ON annotation TO copier")
    report = copy_source(engine, "pg_all", production)
    assert report.chunks == LoadCounts(2, 2)
    assert report.questions == LoadCounts(read=4, added=3, skipped=1)
    assert report.labels == LoadCounts(read=2, added=1, skipped=1)
    assert report.problems == [
        "question_answer id=2: skipped, no question",
        "annotation question_id=9: skipped, there is no question '9'",
    ]
    assert stored_rows(
        engine, "SELECT id, confluence_url, text, embedding::text FROM source_pg_all.chunk ORDER BY id"
    ) == [("1", "https://wiki/a", "Билет выдают в деканате", "[0.1,0.2,0.3]"), ("2", "None", "б", None)]
    columns = "id, question, embedding::text, answer, confluence_url, score, user_id, created_at"
    assert stored_rows(engine, f"SELECT {columns} FROM source_pg_all.question_answer ORDER BY id") == [
        ("1", "где билет?", "[1,2,3]", "в деканате", "https://wiki/a", 5, "118", datetime(2026, 1, 1, 10, tzinfo=UTC)),
        ("3", "когда стипендия 🎓?", None, None, "", None, None, datetime(2026, 1, 3, 10, tzinfo=UTC)),
        ("4", "без времени", None, None, None, None, None, None),
    ]
    columns = "question_id, relevant_chunk_ids, relevant_urls, ground_truth_show, turn, origin, review"
    assert stored_rows(engine, f"SELECT {columns} FROM source_pg_all.annotation") == [
        ("1", [1], ["https://wiki/a"], True, 1, "manual", None)
    ]


def test_second_copy_updates_only_changed_rows(engine: Engine, production: str) -> None:
    copy_source(engine, "pg_again", production)
    second = copy_source(engine, "pg_again", production)
    assert (second.chunks, second.questions) == (LoadCounts(2), LoadCounts(4, skipped=1))
    run_as_owner(
        production, "UPDATE question_answer SET score = 1 WHERE id = 1", "UPDATE chunk SET embedding = '[1,1,1]'"
    )
    third = copy_source(engine, "pg_again", production)
    assert (third.chunks, third.questions) == (LoadCounts(2, updated=2), LoadCounts(4, updated=1, skipped=1))


def test_copy_writes_nothing_to_the_source(engine: Engine, production: str) -> None:
    """Check the server's own counters, with a role that has no other right than SELECT."""
    counter_statements = (
        "SELECT pg_stat_force_next_flush()",
        "SELECT relname, n_tup_ins, n_tup_upd, n_tup_del, n_live_tup FROM pg_stat_user_tables ORDER BY 1",
    )
    write_statement = (
        "SELECT tup_inserted, tup_updated, tup_deleted, temp_files FROM pg_stat_database WHERE datname = 'production'"
    )
    count_statement = "SELECT count(*) FROM pg_class"
    before = [
        run_as_owner(production, *counter_statements),
        run_as_owner(production, write_statement),
        run_as_owner(production, count_statement),
    ]
    assert [row[1] for row in before[0]] == [2, 4]  # proves that the counters work
    copy_source(engine, "pg_unwritten", production)
    read_statement = "SELECT seq_tup_read FROM pg_stat_user_tables WHERE relname = 'question_answer'"
    assert run_as_owner(production, counter_statements[0], read_statement)[0][0] >= 4
    assert [
        run_as_owner(production, *counter_statements),
        run_as_owner(production, write_statement),
        run_as_owner(production, count_statement),
    ] == before


def test_source_connection_is_read_only(engine: Engine, production: str) -> None:
    """Expect the error even for a role that could write."""
    owner = production.replace("copier@", "yarus@")
    source_engine = open_source_engine(owner, timeout_s=30)
    with source_engine.connect() as connection, pytest.raises(Exception, match="read-only transaction"):
        connection.execute(text("DELETE FROM chunk"))
    source_engine.dispose()


def test_copy_is_one_snapshot(engine: Engine, production: str) -> None:
    """Insert a row while the chunks are copied; it belongs to the next copy."""
    source_engine = open_source_engine(production, timeout_s=30)
    with open_source_snapshot(Source("helpdesk", "production", "ru", source_engine, source_tables(None))) as rows:
        run_as_owner(production, "INSERT INTO question_answer (id, question) VALUES (5, 'новый')")
        assert load_rows(engine, "pg_moment", rows, language="ru", origin="test").questions.read == 4
    source_engine.dispose()
    assert copy_source(engine, "pg_moment", production).questions.added == 1


def test_copy_since_reads_only_new_rows(engine: Engine, production: str) -> None:
    assert newest_created_at(engine, "pg_since") is None
    report = copy_source(engine, "pg_since", production, datetime(2026, 1, 2, tzinfo=UTC))
    assert report.questions == LoadCounts(read=3, added=2, skipped=1)
    assert newest_created_at(engine, "pg_since") == datetime(2026, 1, 3, 10, tzinfo=UTC)
    run_as_owner(production, "INSERT INTO question_answer (id, question, created_at) VALUES (5, 'новый', '2026-01-04')")
    report = copy_source(engine, "pg_since", production, newest_created_at(engine, "pg_since"))
    assert report.questions == LoadCounts(read=3, added=1)  # 3 and 4 again, which are already stored


def test_copy_maps_names_and_types(engine: Engine, production: str) -> None:
    run_as_owner(
        production,
        "CREATE SCHEMA app",
        'CREATE TABLE app."Log %" (n uuid, "вопрос" text, reply text, page text, mark numeric, who text, at date)',
        """INSERT INTO app."Log %" VALUES (gen_random_uuid(), 'как?', 'так', NULL, 5.0, 'я', '2026-01-01')""",
        "CREATE VIEW app.passages AS SELECT id, confluence_url, text, embedding::real[] AS vec FROM chunk",
        "GRANT USAGE ON SCHEMA app TO copier",
        "GRANT SELECT ON ALL TABLES IN SCHEMA app TO copier",
    )
    names = {"question_answer": "app.Log %", "chunk": "app.passages"}
    log = {"id": "n", "question": "вопрос", "answer": "reply", "confluence_url": "page", "score": "mark"}
    log |= {"user_id": "who", "created_at": "at"}
    report = copy_source(
        engine, "pg_named", production, names=names, columns={"question_answer": log, "chunk": {"embedding": "vec"}}
    )
    assert report.problems == [
        "app.Log %: no column 'embedding', loaded without vectors "
        "(YARUS_SOURCE_COLUMNS__QUESTION_ANSWER__EMBEDDING=NAME)"
    ]
    assert stored_rows(engine, "SELECT question, score, created_at FROM source_pg_named.question_answer") == [
        ("как?", 5, datetime(2026, 1, 1, tzinfo=UTC))
    ]
    assert stored_rows(engine, "SELECT embedding::text FROM source_pg_named.chunk ORDER BY id") == [
        ("[0.1,0.2,0.3]",),
        (None,),
    ]


@pytest.mark.parametrize("kind", ["numeric", "real", "double precision"])
def test_fractional_score_is_null_and_not_rounded(engine: Engine, production: str, kind: str) -> None:
    """Expect NULL: 4.5 would become a 5, 0.6 a 1; a value that is not a number or too large is NULL, too."""
    run_as_owner(
        production,
        f"ALTER TABLE question_answer ALTER score TYPE {kind}",
        """INSERT INTO question_answer (id, question, score, created_at) VALUES (5, 'а', 4.5, '2026-02-01'),
           (6, 'б', 0.6, '2026-02-02'), (7, 'в', 'NaN', NULL), (8, 'г', 'Infinity', NULL), (9, 'д', 2147483648, NULL),
           (10, 'е', 1, '2026-02-01')""",
    )
    name = f"pg_fraction_{kind.split()[0]}"
    report = copy_source(engine, name, production)
    expected = "question_answer: {} values of 'score' are no whole numbers (id {} first), loaded as NULL"
    assert report.problems[0].startswith(expected.format(5, "'5'"))
    assert report.questions.added == 9
    scores = stored_rows(
        engine, f"SELECT id, score FROM source_{name}.question_answer WHERE score IS NOT NULL ORDER BY id"
    )
    assert scores == [("1", 5), ("10", 1)]
    later = copy_source(engine, name, production, datetime(2026, 2, 2, tzinfo=UTC))
    assert later.problems[0].startswith(expected.format(4, "'6'"))


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("DROP TABLE chunk", r"no table in source 'helpdesk': 'chunk'; .*YARUS_SOURCE_TABLES__CHUNK=NAME"),
        ("ALTER TABLE question_answer RENAME question TO questions",
         "'question'; did you mean 'questions'. Map it: YARUS_SOURCE_COLUMNS__QUESTION_ANSWER__QUESTION=NAME"),
        ("ALTER TABLE question_answer ALTER score TYPE boolean USING true",
         "column question_answer.score is boolean, and score is read from: .*smallint.*__SCORE=NAME"),
        ("ALTER TABLE question_answer ALTER score TYPE text USING 'five'",
         "source 'helpdesk': invalid input syntax for type integer: \"five\".*YARUS_SOURCE_COLUMNS"),
        ("ALTER TABLE question_answer ALTER embedding TYPE bytea USING NULL",
         "question_answer.embedding is bytea, and embedding is read from"),
        ("ALTER TABLE chunk ALTER embedding TYPE text USING '[1,a]'", "invalid input syntax for type vector"),
    ],
)  # fmt: skip
def test_unfit_table_is_rejected_with_its_setting(
    engine: Engine, production: str, statement: str, message: str
) -> None:
    run_as_owner(production, statement)
    with pytest.raises(InputError, match=message):
        copy_source(engine, "pg_nothing", production)
    assert stored_rows(engine, "SELECT to_regclass('source_pg_nothing.chunk')") == [(None,)]


def test_copy_reports_missing_rights(engine: Engine, production: str) -> None:
    run_as_owner(production, "REVOKE SELECT ON question_answer FROM copier")
    with pytest.raises(DatabaseUnavailable, match=r"permission denied for table question_answer.*rights"):
        copy_source(engine, "pg_denied", production)
    assert stored_rows(engine, "SELECT to_regclass('source_pg_denied.chunk')") == [(None,)]


def test_slow_copy_names_the_timeout_setting(engine: Engine, production: str) -> None:
    run_as_owner(
        production,
        "ALTER TABLE chunk RENAME TO chunks",
        "CREATE VIEW chunk AS SELECT id, confluence_url, text || pg_sleep(2) AS text, embedding FROM chunks",
        "GRANT SELECT ON chunk TO copier",
    )
    source_engine = open_source_engine(production, timeout_s=0.3)
    source = Source("helpdesk", "production", "ru", source_engine, source_tables(None))
    with (
        pytest.raises(DatabaseUnavailable, match=r"statement timeout.*YARUS_SOURCE_TIMEOUT_S"),
        open_source_snapshot(source) as rows,
    ):
        load_rows(engine, "pg_slow", rows, language="ru", origin="test")
    source_engine.dispose()


@pytest.mark.parametrize("url", ["nowhere.dump", "mysql://a:secret@b/c", "postgresql://a:secret@b:port/c"])
def test_invalid_address_is_rejected_without_password(url: str) -> None:
    with pytest.raises(InputError, match="expected postgresql://") as raised:
        validate_url(url)
    assert "secret" not in str(raised.value)


@pytest.mark.slow("process: its memory is measured")
def test_copy_memory_does_not_grow_with_rows(engine: Engine, production: str) -> None:
    """Copy 10,000 chunks with 40 MB of vectors: copying holds none of them in memory, reading each vector once."""
    run_as_owner(production, "ALTER TABLE chunk ALTER embedding TYPE vector", "TRUNCATE chunk")
    rows = "SELECT n, NULL, 'Билет', array_fill(n::real, '{1000}')::vector FROM generate_series(1, 10000) n"
    run_as_owner(production, f"INSERT INTO chunk {rows}")
    tracemalloc.start()
    try:
        assert copy_source(engine, "pg_large", production).chunks == LoadCounts(10_000, 10_000)
        copy_peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        source = find_loaded_source(engine, "pg_large")
        with open_snapshot(source) as connection:
            corpus = read_corpus(connection, source, vectors=True)
        read_peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    np.testing.assert_array_equal(corpus.vectors[:, 0], [float(chunk) for chunk in corpus.ids])
    assert copy_peak < 10_000_000
    assert read_peak < 70_000_000


def test_recorded_column_is_copied_only_if_it_is_json(engine: Engine, production: str) -> None:
    alter = "ALTER TABLE question_answer"
    for kind, count in (("json", 3), ("text", 0)):
        run_as_owner(production, f"{alter} DROP COLUMN IF EXISTS recorded", f"{alter} ADD recorded {kind} DEFAULT '7'")
        copy_source(engine, f"pg_{kind}", production)
        assert stored_rows(engine, f"SELECT count(recorded) FROM source_pg_{kind}.question_answer") == [(count,)]
