"""Check tiers with an embedder over HTTP: its failures, resuming, and what is reported about it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from sqlalchemy import Engine

from tests.support.embedding.replies import KEY, list_embedded_texts, make_reply, served_variables
from tests.support.evaluations import evaluate, get_value, load, question, read_rows, set_variables
from tests.support.llm_clients import QUICK_RETRIES
from tests.support.llm_server import Action, FakeLLMServer, make_response
from yarus.__main__ import cli
from yarus.db.errors import InputError, ModelUnavailable
from yarus.tasks.models.embedding import client
from yarus.tasks.models.embedding.embedders import get_embedder

TOO_LONG = make_response(400, '{"error": {"message": "maximum context length is 512 tokens"}}')


def lexical(number: int, request: dict[str, Any]) -> bytes:
    """Serve the lexical embedder over HTTP, because its rankings are known to be good."""
    vectors = get_embedder("lexical").encode(request["input"]).tolist()
    pairs = list(enumerate(vectors))
    return make_reply(
        request | {"encoding_format": "float"}, lambda data: [{"index": i, "embedding": row} for i, row in pairs]
    )


def refusing(*words: str) -> Any:
    return lambda number, request: (
        TOO_LONG if any(word in text for word in words for text in request["input"]) else lexical(number, request)
    )


@pytest.fixture
def server(at_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLLMServer]:
    """Serve vectors like the lexical embedder, configured as the retriever's embedder."""
    monkeypatch.setattr(client, "RETRIES", QUICK_RETRIES)
    with FakeLLMServer(script=lexical) as started:
        set_variables(monkeypatch, served_variables(started))
        yield started


@pytest.fixture
def source(server: FakeLLMServer, tmp_path: Path) -> str:
    return load(
        tmp_path, f"embedded_{server.own}", [question(i, created_at=f"2026-03-{i + 1:02}T12:00:00Z") for i in range(20)]
    )


def test_http_embedder_ranks_as_in_process(source: str, server: FakeLLMServer) -> None:
    over_http, here = (evaluate("tier1", source=source, **more) for more in ({}, {"embedder": "lexical"}))
    for http_row, local_row in zip(read_rows(over_http), read_rows(here), strict=True):
        assert http_row["retrieved"] == local_row["retrieved"]
        np.testing.assert_allclose(http_row["distances"], local_row["distances"], atol=1e-6)
    assert over_http["system"]["embedder"] == f"{server.url}#asked"
    assert over_http["system"]["embedder_identity"] == f"{server.url}#asked|prefix:|v:1"
    assert over_http["comparability_key"] == here["comparability_key"]  # the system under test is not part of the key
    assert all(row["latency_ms"] > 0 for row in read_rows(over_http))
    assert KEY not in json.dumps(over_http)


@pytest.mark.parametrize("retriever", ["dense", "pgvector", "hybrid"])
def test_refused_question_fails_only_its_case(source: str, server: FakeLLMServer, retriever: str) -> None:
    server.script = refusing("правило 7,")
    rows = {row["question_id"]: row for row in read_rows(evaluate("tier1", source=source, retriever=retriever))}
    refused = rows.pop("7")
    assert (refused["status"], refused["retrieved"], refused["hit_rate@1"]) == ("sut_error", None, None)
    assert refused["reason"] == "embedder: HTTP 400: maximum context length is 512 tokens"
    assert {row["status"] for row in rows.values()} == {"ok"}


def test_resume_embeds_only_missing_chunks(source: str, server: FakeLLMServer, engine: Engine) -> None:
    server.script = refusing("Правило 3")
    with pytest.raises(ModelUnavailable, match=r"no vector for 1 of 10 texts, .*'Правило 3 .*--resume"):
        evaluate("tier1", source=source)
    with engine.connect() as connection:
        words = "SELECT id, state, settings::text FROM yarus.evaluation WHERE source = %s"
        [(stopped, state, settings)] = connection.exec_driver_sql(words, (source,)).all()
    assert (state, KEY in settings, "embedder_api_key" in settings) == ("failed", False, True)
    server.script = lexical
    server.requests.clear()
    assert get_value(evaluate("tier1", resume=stopped), "hit_rate@10") == 1
    chunks = [text for text in list_embedded_texts(server) if text.startswith("Правило")]
    assert [text for text in chunks if text.startswith("Правило 3")] == chunks[-1:]
    assert len(chunks) == 2  # the other is a stored text, which checks whether the model has changed


def test_resume_with_another_model_is_refused(
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
def test_dead_server_leaves_errors_and_no_scores(source: str, server: FakeLLMServer) -> None:
    server.script = lambda n, request: (
        make_response(503, "gone") if any("Что велит" in text for text in request["input"]) else lexical(n, request)
    )
    summary = evaluate("tier1", source=source)
    assert (summary["state"], get_value(summary, "hit_rate@1")) == ("invalid", None)
    assert {row["status"] for row in read_rows(summary)} == {"sut_error"}
    assert get_value(summary, "sut_error_rate") == 1


def test_failed_latency_probe_keeps_ranking(source: str, server: FakeLLMServer) -> None:
    """Check that the stored vector is used, and only the latency is unknown."""
    seen: set[str] = set()

    def script(number: int, request: dict[str, Any]) -> Action | bytes:
        again = seen & set(request["input"]) if len(request["input"]) == 1 else set()
        seen.update(request["input"])
        return make_response(400, "{}") if any("Что велит" in text for text in again) else lexical(number, request)

    server.script = script
    summary = evaluate("tier1", source=source)
    assert get_value(summary, "hit_rate@10") == 1
    assert {row["status"] for row in read_rows(summary)} == {"ok"}
    assert {row["latency_ms"] for row in read_rows(summary)} == {None}


def test_refused_text_leaves_other_clusters(source: str, server: FakeLLMServer) -> None:
    server.script = refusing("Правило 3")
    rows = {row["text"].split()[1]: row for row in read_rows(evaluate("tier0", source=source))}
    assert (rows["3"]["status"], rows["3"]["nn_distance"]) == ("sut_error", None)
    assert rows["3"]["reason"].startswith("embedder: HTTP 400")
    assert rows["4"]["nn_distance"] is not None


def test_refused_reference_fails_only_similarity(source: str, server: FakeLLMServer) -> None:
    """Check that the other metrics of the case stay; its similarity is NULL, with a reason."""
    server.script = refusing("Сдать книгу 3 до мая.")
    summary = evaluate("tier3", source=source)
    rows = {row["question_id"]: row for row in read_rows(summary)}
    for number in ("3", "13"):
        assert (rows[number]["status"], rows[number]["semantic_similarity"]) == ("judge_error", None)
        assert rows[number]["reason"].startswith("semantic_similarity: embedder: HTTP 400")
        assert None not in (rows[number]["rouge1_f"], rows[number]["e2e_score"])
    assert rows["4"]["semantic_similarity"] > 0
    assert summary["system"]["similarity_embedder"] == f"{server.url}#asked"


def test_refused_question_of_log_is_judge_error(source: str, server: FakeLLMServer) -> None:
    server.script = refusing("правило 7,")
    rows = {row["question_id"]: row for row in read_rows(evaluate("ux", source=source))}
    assert rows["7"]["status"] == "judge_error"
    assert rows["7"]["reason"].startswith("embedder: HTTP 400")
    assert rows["8"]["status"] == "ok"


def test_doctor_checks_http_embedder(server: FakeLLMServer, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use a separate database, because the doctor checks every source, and other tests leave many."""
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("CREATE DATABASE of_embedder")
    monkeypatch.setenv(
        "YARUS_DATABASE_URL", engine.url.set(database="of_embedder").render_as_string(hide_password=False)
    )
    monkeypatch.setenv("YARUS_SIMILARITY_EMBEDDER", f"{server.url}#measuring")

    def checks() -> dict[str, dict[str, Any]]:
        result = CliRunner().invoke(cli, ["doctor", "--json"], standalone_mode=False)
        return {check["check_name"]: check for check in json.loads(result.stdout)}

    checks_by_name = checks()
    assert checks_by_name["embedder"]["check_result"] == f"{server.url}#asked, 2000 dimensions"
    assert checks_by_name["similarity embedder"]["check_result"] == f"{server.url}#measuring, 2000 dimensions"
    server.script = lambda number, request: make_response(401, f"no {KEY}-revoked")
    monkeypatch.setenv("YARUS_EMBEDDER_API_KEY", f"{KEY}-revoked")
    refused = checks()["embedder"]
    assert refused["exit_code"] == 3
    assert "Set YARUS_EMBEDDER_API_KEY to a valid key" in refused["check_result"]
    assert KEY not in refused["check_result"]


@pytest.mark.parametrize("words", [("run", "tier1", "--embedder"), ("sweep", "--embedders")])
def test_wrong_address_is_refused_before_start(
    server: FakeLLMServer, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.delenv("YARUS_EMBEDDER_MODEL")
    for name, message in ((server.url, "no model is named"), ("http://user:s3cret@127.0.0.1:9/v1#m", "API_KEY")):
        with pytest.raises(InputError, match=message) as error:
            CliRunner().invoke(cli, [*words, name], standalone_mode=False, catch_exceptions=False)
        assert "s3cret" not in str(error.value)
    assert server.requests == []
