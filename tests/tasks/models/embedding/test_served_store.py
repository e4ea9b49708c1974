"""Vectors of a server are bought once, stored as they arrive, and never mixed with another model's."""

import logging
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from sqlalchemy import Engine

from tests.support.embedding.replies import list_embedded_texts, make_question_embedder, make_reply
from tests.support.llm_server import Action, FakeLLMServer, make_response
from yarus.db.errors import InputError, ModelUnavailable
from yarus.db.source_rows import Corpus
from yarus.tasks.models.embedding import cache
from yarus.tasks.models.embedding.cache import check_stored_vectors, embed_texts, embed_texts_with_failures


@pytest.fixture(autouse=True)
def forget_verified_servers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(cache, "VERIFIED_IDENTITIES", set())
    yield


@pytest.mark.usefixtures("english")
def test_embed_buys_texts_once_and_keeps_order(
    server: FakeLLMServer, engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    model = make_question_embedder(server, batch=3)
    with caplog.at_level(logging.INFO, logger="yarus"):
        vectors = embed_texts(["b", "a long one", "b", "", "c"], model, engine)
    assert sorted(list_embedded_texts(server)) == ["a long one", "b", "c"]
    assert "embedded 4 of 4 texts" in caplog.text
    np.testing.assert_array_equal(vectors, model.encode(["b", "a long one", "b", "", "c"]))
    server.requests.clear()
    np.testing.assert_array_equal(embed_texts(["c", "d", "b"], model, engine)[[0, 2]], vectors[[4, 0]])
    assert list_embedded_texts(server) == ["b", "d"]  # a stored text, to check that the model is the same
    server.requests.clear()
    embed_texts(["c", "d", "b"], model, engine)
    assert list_embedded_texts(server) == []


def test_embed_stores_results_before_a_failure(server: FakeLLMServer, engine: Engine) -> None:
    texts = [f"{'x' * length} text" for length in range(30, 0, -1)]  # the longest first, as they are sent
    server.script = lambda number, request: make_reply(request) if number <= 7 else make_response(401)
    model = make_question_embedder(server, batch=3, concurrency=1)
    with pytest.raises(ModelUnavailable, match="API_KEY"):
        embed_texts(texts, model, engine)
    server.requests.clear()
    server.script = lambda number, request: make_reply(request)
    embed_texts(texts, model, engine)
    assert list_embedded_texts(server)[1:] == texts[18:]  # the first is stored, and compared


def test_refused_text_fails_embed_and_not_embed_each(server: FakeLLMServer, engine: Engine) -> None:
    server.script = lambda number, request: (
        make_response(400, '{"error": {"message": "too long"}}')
        if "refused" in request["input"]
        else make_reply(request)
    )
    model, texts = make_question_embedder(server, batch=4), [*"abcdefg", "refused", "refused"]
    with pytest.raises(ModelUnavailable, match=r"no vector for 2 of 9 texts, first .*'refused': HTTP 400: too long"):
        embed_texts(texts, model, engine)
    server.requests.clear()
    vectors, failures = embed_texts_with_failures(texts, model, engine)
    assert set(list_embedded_texts(server)) == {"a", "refused"}
    assert failures == {7: "HTTP 400: too long", 8: "HTTP 400: too long"}
    assert np.isnan(vectors[7:]).all()
    np.testing.assert_allclose(np.linalg.norm(vectors[:7], axis=1), 1, atol=1e-6)


def test_embed_each_reports_failure_of_all_texts(server: FakeLLMServer, engine: Engine) -> None:
    server.script = lambda number, request: make_response(503)
    vectors, failures = embed_texts_with_failures(["a", "b"], make_question_embedder(server), engine)
    assert (len(vectors), list(failures)) == (2, [0, 1])


@pytest.mark.parametrize("dimensions", [8, 4])
def test_embed_rejects_another_model_under_the_same_name(
    server: FakeLLMServer, engine: Engine, dimensions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make_question_embedder(server)
    embed_texts(["a", "b"], model, engine)
    model.client.dimensions = 0  # as in a new process
    monkeypatch.setattr(cache, "VERIFIED_IDENTITIES", set())
    other_request = {"model": "asked", "encoding_format": "base64"}
    server.script = lambda number, request: make_reply(
        other_request | {"input": [f"as another sees {text}" for text in request["input"]]}, dimensions=dimensions
    )
    problem = (
        "gives another vector than is stored" if dimensions == 8 else "gives 4 dimensions, its stored vectors have 8"
    )
    with pytest.raises(InputError, match=f"{server.url}#asked {problem}.*YARUS_EMBEDDER_MODEL"):
        embed_texts(["a", "c"], model, engine)
    assert "c" not in list_embedded_texts(server)


def test_stored_vectors_need_no_server(server: FakeLLMServer, engine: Engine) -> None:
    model = make_question_embedder(server)
    vectors = embed_texts(["a", "b"], model, engine)
    cache.VERIFIED_IDENTITIES.clear()
    server.script = lambda number, request: make_response(503)
    np.testing.assert_array_equal(embed_texts(["b", "a"], model, engine), vectors[::-1])


def test_vectors_are_stored_as_replies_arrive(server: FakeLLMServer, engine: Engine) -> None:
    """Half of the vectors is stored while the other half has not arrived."""
    n_stored: list[int] = []

    def script(number: int, request: dict) -> Action | bytes:
        with engine.connect() as connection:
            n_stored.append(connection.exec_driver_sql("SELECT count(*) FROM yarus.embedding").scalar())
        return Action(make_reply(request), after_s=0.05)

    server.script = script
    embed_texts([f"kept {n}" for n in range(20)], make_question_embedder(server, batch=1, concurrency=2), engine)
    assert n_stored[-1] >= n_stored[1] + 10


def test_check_stored_compares_with_vectors_of_the_server(server: FakeLLMServer) -> None:
    model, texts = make_question_embedder(server), ["a", "b"]
    corpus = Corpus(["1", "2"], [None] * 2, texts, model.encode(texts))
    assert check_stored_vectors(corpus, model, "log") == []
    with pytest.raises(InputError, match=f"embedder '{server.url}#asked' have cosine"):
        check_stored_vectors(replace(corpus, vectors=model.encode(texts[::-1])), model, "log")
