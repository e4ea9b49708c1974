"""A production database on PostgreSQL 16 and 18, evaluated by a role that may only SELECT; nothing is written."""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from pgvector.psycopg import register_vector
from sqlalchemy import Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ProgrammingError
from sqlalchemy.pool import NullPool

from tests.support.database.production import PRODUCTION_SCHEMA
from tests.support.evaluations import evaluate, set_variables
from yarus.db.embedded import server as embedded
from yarus.db.engine import read_only_engine
from yarus.db.sources import Source, open_snapshot
from yarus.db.tables import source_tables
from yarus.tasks.config.connections import open_source
from yarus.tasks.models.embedding.embedders import get_embedder
from yarus.tasks.systems.retrievers.database import PgvectorRetriever

DATABASE = "voproshalych"
ROLE = """
CREATE ROLE reader LOGIN;
REVOKE ALL ON SCHEMA public FROM PUBLIC; GRANT USAGE ON SCHEMA public TO reader;
GRANT SELECT ON question_answer, chunk TO reader;
"""
INDEXED_PASSAGES = """
CREATE TABLE passage (id integer PRIMARY KEY, text text, embedding vector(8));
SELECT setseed(0.5);
INSERT INTO passage SELECT n, 'x', ARRAY(SELECT random() - 0.5 FROM generate_series(1, 8) WHERE n > 0)::vector
FROM generate_series(1, 10000) AS n;
CREATE INDEX passage_hnsw ON passage USING hnsw (embedding vector_cosine_ops);
GRANT SELECT ON passage TO reader;
"""
WRITES_QUERY = """
SELECT (SELECT row(tup_inserted, tup_updated, tup_deleted, temp_bytes)::text FROM pg_stat_database
        WHERE datname = current_database()),
       (SELECT array_agg(row(relname, n_tup_ins, n_tup_upd, n_tup_del, n_live_tup)::text ORDER BY relname)
        FROM pg_stat_user_tables),
       (SELECT array_agg(relname ORDER BY relname) FROM pg_class WHERE relnamespace <> 'pg_toast'::regnamespace)
"""
READS_QUERY = """
SELECT sum(seq_scan + coalesce(idx_scan, 0)) FROM pg_stat_user_tables WHERE relname IN ('chunk', 'question_answer')
"""


class Owner:
    """Access to the database as its owner."""

    def __init__(self, url: str) -> None:
        self.engine = create_engine(make_url(url).set(database=DATABASE), poolclass=NullPool)
        event.listen(self.engine, "connect", lambda connection, _: register_vector(connection))

    def query(self, statement: str) -> Any:
        with self.engine.connect() as connection:
            row = connection.execute(text(statement)).one()
            return row[0] if len(row) == 1 else tuple(row)

    @property
    def reader(self) -> str:
        return self.engine.url.set(username="reader").render_as_string(hide_password=False)


@pytest.fixture(
    scope="module", params=[pytest.param("16", marks=pytest.mark.slow("breadth: an older PostgreSQL")), "18"]
)
def owner(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Owner]:
    """Start a server of that version with vectors in `chunk` and an index over many more."""
    home = tmp_path_factory.mktemp(f"production{request.param}")
    url = embedded.acquire_server(home, version=request.param)
    with create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT").connect() as connection:
        connection.execute(text(f"CREATE DATABASE {DATABASE}"))
        connection.execute(text("ALTER SYSTEM SET autovacuum = off"))  # autovacuum would change the counters
        connection.execute(text("SELECT pg_reload_conf()"))
    owner_engine = create_engine(make_url(url).set(database=DATABASE), poolclass=NullPool)
    with owner_engine.begin() as connection:
        for statement in (PRODUCTION_SCHEMA, ROLE, INDEXED_PASSAGES):
            connection.exec_driver_sql(statement)
    owner = Owner(url)
    with owner.engine.begin() as connection:
        rows = connection.execute(text("SELECT id, text FROM chunk")).all()
        for row, vector in zip(rows, get_embedder("lexical").encode([row.text for row in rows]), strict=True):
            connection.execute(text("UPDATE chunk SET embedding = :v WHERE id = :id"), {"v": vector, "id": row.id})
    with owner_engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("VACUUM ANALYZE")
    assert owner.query("SHOW server_version").startswith(request.param)
    yield owner
    embedded.release_server(home)


def read_counters(owner: Owner, *, reads_above: int = -1) -> tuple[Any, int]:
    """Return the counters of writes and reads, which the server updates up to a second late."""
    deadline = time.monotonic() + 20
    while (reads := owner.query(READS_QUERY)) <= reads_above and time.monotonic() < deadline:
        time.sleep(0.1)
    return owner.query(WRITES_QUERY), reads


@pytest.mark.usefixtures("at_home")
def test_evaluation_of_production_writes_nothing(owner: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    time.sleep(1.5)  # until the fixture's writes are counted
    before, reads = read_counters(owner)
    set_variables(monkeypatch, {"YARUS_SOURCE_URL": owner.reader, "YARUS_RETRIEVER": "pgvector"})
    documents = {tier: evaluate(tier, source="production") for tier in ("tier1", "real_users")}
    open_source("production").engine.dispose()  # reads are counted when a connection ends
    after, reads_after = read_counters(owner, reads_above=reads)
    assert reads_after > reads
    assert after == before
    for tier, document in documents.items():
        assert document["state"] == "completed", (tier, document["error"])
        assert document["system"]["vectors"] == "stored"
        assert document["system"]["index_recall"] == 1  # without an index the search is exact
        assert document["statuses"] == {"ok": 3, "unlabelled": 1}
    tier1, real_users = (documents[tier] for tier in ("tier1", "real_users"))
    assert tier1["metrics"]["hit_rate@1"]["value"] == 1
    assert {"note": "page from the log", "n": 3} in tier1["notes"]
    scored = {name: metrics["mrr"]["n_scored"] for name, metrics in real_users["strata"].items()}
    assert scored == {"all": 3, "confirmed": 1, "agreement": 1, "contradicted": 1}


def test_transactions_are_read_only_for_every_role(owner: Owner) -> None:
    for url in (owner.reader, owner.engine.url.render_as_string(hide_password=False)):
        engine = read_only_engine(url, timeout_s=5)
        with open_snapshot(Source("production", "production", "ru", engine, source_tables(None))) as connection:
            options = [connection.scalar(text(f"SHOW {name}")) for name in ("default_transaction_read_only",
                     "transaction_read_only", "transaction_isolation")]  # fmt: skip
            assert options == ["on", "on", "repeatable read"]
        engine.dispose()


def test_reader_role_cannot_write(owner: Owner) -> None:
    engine = create_engine(owner.reader, poolclass=NullPool)
    with pytest.raises(ProgrammingError, match="permission denied"), engine.begin() as connection:
        connection.execute(text("DELETE FROM chunk"))


def test_pgvector_uses_an_existing_index(owner: Owner) -> None:
    engine: Engine = read_only_engine(owner.reader, timeout_s=20)
    passage = source_tables(None, names={"chunk": "passage"})["chunk"].c
    retriever = PgvectorRetriever(
        engine, get_embedder("lexical"), chunk_id=passage.id, vector=passage.embedding, tie=passage.id,
        where=passage.embedding.is_not(None) & passage.text.is_not(None),
    )  # fmt: skip
    scans = "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = 'passage_hnsw'"
    before = owner.query(scans)
    queries = np.random.default_rng(0).normal(size=(5, 8)).astype(np.float32)
    shallow = retriever.retrieve(["?"] * 5, queries, 10, timed=0)
    deep = retriever.retrieve(["?"] * 5, queries, 200, timed=0)
    engine.dispose()
    deadline = time.monotonic() + 20
    while owner.query(scans) < before + 10 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert owner.query(scans) == before + 10
    assert [len(set(ranking.ids)) for ranking in deep] == [200] * 5  # more than the 40 of an index's default search
    assert [ranking.ids[:5] for ranking in deep] == [ranking.ids[:5] for ranking in shallow]
