"""Tiers with an embedder over HTTP: what its failures come to, how it is resumed, and what is shown of it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from sqlalchemy import Engine

from tests.support.embedding.replies import KEY, asked, embeddings, served
from tests.support.evaluations import evaluate, load, question, rows_of, use, value
from tests.support.llm_clients import QUICK
from tests.support.llm_server import Do, FakeLLMServer, http
from yarus.__main__ import cli
from yarus.db.errors import InputError, ModelUnavailable
from yarus.tasks.models.embedding import client
from yarus.tasks.models.embedding.embedders import embedder

TOO_LONG = http(400, '{"error": {"message": "maximum context length is 512 tokens"}}')


def lexical(number: int, request: dict[str, Any]) -> bytes:
    """The lexical embedder over HTTP: its rankings are known to be good."""
    vectors = embedder("lexical").encode(request["input"]).tolist()
    pairs = list(enumerate(vectors))
    return embeddings(
        request | {"encoding_format": "float"}, lambda data: [{"index": i, "embedding": row} for i, row in pairs]
    )


def refusing(*words: str) -> Any:
    return lambda number, request: (
        TOO_LONG if any(word in text for word in words for text in request["input"]) else lexical(number, request)
    )


@pytest.fixture
def server(at_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLLMServer]:
    """It embeds as the lexical embedder does, and is set as the retriever's."""
    monkeypatch.setattr(client, "RETRIES", QUICK)
    with FakeLLMServer(script=lexical) as started:
        use(monkeypatch, served(started))
        yield started


@pytest.fixture
def source(server: FakeLLMServer, tmp_path: Path) -> str:
    return load(
        tmp_path, f"embedded_{server.own}", [question(i, created_at=f"2026-03-{i + 1:02}T12:00:00Z") for i in range(20)]
    )


def test_it_ranks_as_the_same_embedder_in_process(source: str, server: FakeLLMServer) -> None:
    over_http, here = (evaluate("tier1", source=source, **more) for more in ({}, {"embedder": "lexical"}))
    for mine, theirs in zip(rows_of(over_http), rows_of(here), strict=True):
        assert mine["retrieved"] == theirs["retrieved"]
        np.testing.assert_allclose(mine["distances"], theirs["distances"], atol=1e-6)
    assert over_http["system"]["embedder"] == f"{server.url}#asked"
    assert over_http["system"]["embedder_identity"] == f"{server.url}#asked|prefix:|v:1"
    assert over_http["comparability_key"] == here["comparability_key"]  # the system under test is no part of it
    assert all(row["latency_ms"] > 0 for row in rows_of(over_http))
    assert KEY not in json.dumps(over_http)


@pytest.mark.parametrize("retriever", ["dense", "pgvector", "hybrid"])
def test_a_question_that_is_refused_is_an_error_of_that_question(
    source: str, server: FakeLLMServer, retriever: str
) -> None:
    server.script = refusing("правило 7,")
    rows = {row["question_id"]: row for row in rows_of(evaluate("tier1", source=source, retriever=retriever))}
    refused = rows.pop("7")
    assert (refused["status"], refused["retrieved"], refused["hit_rate@1"]) == ("sut_error", None, None)
    assert refused["reason"] == "embedder: HTTP 400: maximum context length is 512 tokens"
    assert {row["status"] for row in rows.values()} == {"ok"}


def test_a_chunk_that_is_refused_ends_it_and_a_resume_buys_only_what_is_missing(
    source: str, server: FakeLLMServer, engine: Engine
) -> None:
    server.script = refusing("Правило 3")
    with pytest.raises(ModelUnavailable, match=r"no vector for 1 of 10 texts, .*'Правило 3 .*--resume"):
        evaluate("tier1", source=source)
    with engine.connect() as connection:
        words = "SELECT id, state, settings::text FROM yarus.evaluation WHERE source = %s"
        [(stopped, state, settings)] = connection.exec_driver_sql(words, (source,)).all()
    assert (state, KEY in settings, "embedder_api_key" in settings) == ("failed", False, True)
    server.script = lexical
    server.requests.clear()
    assert value(evaluate("tier1", resume=stopped), "hit_rate@10") == 1
    chunks = [text for text in asked(server) if text.startswith("Правило")]
    assert [text for text in chunks if text.startswith("Правило 3")] == chunks[-1:]
    assert len(chunks) == 2  # the other is known: is the model still the same?


def test_a_resume_with_another_model_is_refused(
    source: str, server: FakeLLMServer, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.script = refusing("Правило 3")
    with pytest.raises(ModelUnavailable):
        evaluate("tier1", source=source)
    with engine.connect() as connection:
        words = "SELECT id FROM yarus.evaluation WHERE source = %s"
        stopped = connection.exec_driver_sql(words, (source,)).scalar()
    monkeypatch.setenv("YARUS_EMBEDDER_MODEL", "another")
    with pytest.raises(InputError, match="YARUS_EMBEDDER_MODEL"):
        evaluate("tier1", resume=stopped)


@pytest.mark.slow("wait: retries")
def test_a_server_that_dies_leaves_errors_and_no_scores(source: str, server: FakeLLMServer) -> None:
    server.script = lambda number, request: (
        http(503, "gone") if any("Что велит" in text for text in request["input"]) else lexical(number, request)
    )
    summary = evaluate("tier1", source=source)
    assert (summary["state"], value(summary, "hit_rate@1")) == ("invalid", None)
    assert {row["status"] for row in rows_of(summary)} == {"sut_error"}
    assert value(summary, "sut_error_rate") == 1


def test_a_question_asked_again_for_its_latency_may_fail(source: str, server: FakeLLMServer) -> None:
    """Its vector is there; only how long it takes is not known."""
    seen: set[str] = set()

    def script(number: int, request: dict[str, Any]) -> Do | bytes:
        again = seen & set(request["input"]) if len(request["input"]) == 1 else set()
        seen.update(request["input"])
        return http(400, "{}") if any("Что велит" in text for text in again) else lexical(number, request)

    server.script = script
    summary = evaluate("tier1", source=source)
    assert value(summary, "hit_rate@10") == 1
    assert {row["status"] for row in rows_of(summary)} == {"ok"}
    assert {row["latency_ms"] for row in rows_of(summary)} == {None}


def test_clusters_of_texts_one_of_which_is_refused(source: str, server: FakeLLMServer) -> None:
    server.script = refusing("Правило 3")
    rows = {row["text"].split()[1]: row for row in rows_of(evaluate("tier0", source=source))}
    assert (rows["3"]["status"], rows["3"]["nn_distance"]) == ("sut_error", None)
    assert rows["3"]["reason"].startswith("embedder: HTTP 400")
    assert rows["4"]["nn_distance"] is not None


def test_the_measuring_embedder_fails_at_one_reference(source: str, server: FakeLLMServer) -> None:
    """What else was measured of the case stays; its similarity is NULL, and it says why."""
    server.script = refusing("Сдать книгу 3 до мая.")
    summary = evaluate("tier3", source=source)
    rows = {row["question_id"]: row for row in rows_of(summary)}
    for number in ("3", "13"):
        assert (rows[number]["status"], rows[number]["semantic_similarity"]) == ("judge_error", None)
        assert rows[number]["reason"].startswith("semantic_similarity: embedder: HTTP 400")
        assert None not in (rows[number]["rouge1_f"], rows[number]["e2e_score"])
    assert rows["4"]["semantic_similarity"] > 0
    assert summary["system"]["similarity_embedder"] == f"{server.url}#asked"


def test_the_log_of_users_has_a_question_that_is_refused(source: str, server: FakeLLMServer) -> None:
    server.script = refusing("правило 7,")
    rows = {row["question_id"]: row for row in rows_of(evaluate("ux", source=source))}
    assert rows["7"]["status"] == "judge_error"
    assert rows["7"]["reason"].startswith("embedder: HTTP 400")
    assert rows["8"]["status"] == "ok"


def test_the_doctor_asks_it(server: FakeLLMServer, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a database of its own: it looks at every source, and other tests leave many."""
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("CREATE DATABASE of_embedder")
    monkeypatch.setenv(
        "YARUS_DATABASE_URL", engine.url.set(database="of_embedder").render_as_string(hide_password=False)
    )
    monkeypatch.setenv("YARUS_SIMILARITY_EMBEDDER", f"{server.url}#measuring")

    def checks() -> dict[str, dict[str, Any]]:
        found = CliRunner().invoke(cli, ["doctor", "--json"], standalone_mode=False)
        return {one["what"]: one for one in json.loads(found.stdout)}

    found = checks()
    assert found["embedder"]["found"] == f"{server.url}#asked, 2000 dimensions"
    assert found["similarity embedder"]["found"] == f"{server.url}#measuring, 2000 dimensions"
    server.script = lambda number, request: http(401, f"no {KEY}-revoked")
    monkeypatch.setenv("YARUS_EMBEDDER_API_KEY", f"{KEY}-revoked")
    refused = checks()["embedder"]
    assert refused["code"] == 3
    assert "Set YARUS_EMBEDDER_API_KEY to a valid key" in refused["found"]
    assert KEY not in refused["found"]


@pytest.mark.parametrize("words", [("run", "tier1", "--embedder"), ("sweep", "--embedders")])
def test_a_wrong_address_is_told_before_anything_starts(
    server: FakeLLMServer, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.delenv("YARUS_EMBEDDER_MODEL")
    for name, told in ((server.url, "no model is named"), ("http://user:s3cret@127.0.0.1:9/v1#m", "API_KEY")):
        with pytest.raises(InputError, match=told) as error:
            CliRunner().invoke(cli, [*words, name], standalone_mode=False, catch_exceptions=False)
        assert "s3cret" not in str(error.value)
    assert server.requests == []
