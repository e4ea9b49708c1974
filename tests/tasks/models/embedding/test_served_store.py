"""Vectors of a server are bought once: kept as they come, gone on with, and never mixed with another model's."""

import logging
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from sqlalchemy import Engine

from tests.support.embedding.replies import asked, embeddings, of_questions
from tests.support.llm_server import Do, FakeLLMServer, http
from yarus.db.errors import InputError, ModelUnavailable
from yarus.db.source_rows import Corpus
from yarus.tasks.models.embedding import cache
from yarus.tasks.models.embedding.cache import check_stored, embed, embed_each


@pytest.fixture(autouse=True)
def new_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(cache, "COMPARED", set())
    yield


@pytest.mark.usefixtures("english")
def test_texts_are_bought_once_and_come_back_in_order(
    server: FakeLLMServer, engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    model = of_questions(server, batch=3)
    with caplog.at_level(logging.INFO, logger="yarus"):
        found = embed(["b", "a long one", "b", "", "c"], model, engine)
    assert sorted(asked(server)) == ["a long one", "b", "c"]
    assert "embedded 4 of 4 texts" in caplog.text
    np.testing.assert_array_equal(found, model.encode(["b", "a long one", "b", "", "c"]))
    server.requests.clear()
    np.testing.assert_array_equal(embed(["c", "d", "b"], model, engine)[[0, 2]], found[[4, 0]])
    assert asked(server) == ["b", "d"]  # one that is known, to see whether the model is the same
    server.requests.clear()
    embed(["c", "d", "b"], model, engine)
    assert asked(server) == []


def test_what_came_before_a_failure_is_kept(server: FakeLLMServer, engine: Engine) -> None:
    texts = [f"{'x' * length} text" for length in range(30, 0, -1)]  # the longest first, as they are asked for
    server.script = lambda number, request: embeddings(request) if number <= 7 else http(401)
    model = of_questions(server, batch=3, concurrency=1)
    with pytest.raises(ModelUnavailable, match="API_KEY"):
        embed(texts, model, engine)
    server.requests.clear()
    server.script = lambda number, request: embeddings(request)
    embed(texts, model, engine)
    assert asked(server)[1:] == texts[18:]  # the first is known, and compared


def test_one_refused_text_ends_what_needs_all_and_costs_the_others_nothing(
    server: FakeLLMServer, engine: Engine
) -> None:
    server.script = lambda number, request: (
        http(400, '{"error": {"message": "too long"}}') if "refused" in request["input"] else embeddings(request)
    )
    model, texts = of_questions(server, batch=4), [*"abcdefg", "refused", "refused"]
    with pytest.raises(ModelUnavailable, match=r"no vector for 2 of 9 texts, first .*'refused': HTTP 400: too long"):
        embed(texts, model, engine)
    server.requests.clear()
    vectors, wrong = embed_each(texts, model, engine)
    assert set(asked(server)) == {"a", "refused"}
    assert wrong == {7: "HTTP 400: too long", 8: "HTTP 400: too long"}
    assert np.isnan(vectors[7:]).all()
    np.testing.assert_allclose(np.linalg.norm(vectors[:7], axis=1), 1, atol=1e-6)


def test_nothing_at_all(server: FakeLLMServer, engine: Engine) -> None:
    server.script = lambda number, request: http(503)
    vectors, wrong = embed_each(["a", "b"], of_questions(server), engine)
    assert (len(vectors), list(wrong)) == (2, [0, 1])


@pytest.mark.parametrize("dimensions", [8, 4])
def test_another_model_under_the_same_name_is_no_more_mixed_in(
    server: FakeLLMServer, engine: Engine, dimensions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = of_questions(server)
    embed(["a", "b"], model, engine)
    model.client.dimensions = 0  # as in a new process
    monkeypatch.setattr(cache, "COMPARED", set())
    other = {"model": "asked", "encoding_format": "base64"}
    server.script = lambda number, request: embeddings(
        other | {"input": [f"as another sees {text}" for text in request["input"]]}, dimensions=dimensions
    )
    told = "gives another vector than is stored" if dimensions == 8 else "gives 4 dimensions, its stored vectors have 8"
    with pytest.raises(InputError, match=f"{server.url}#asked {told}.*YARUS_EMBEDDER_MODEL"):
        embed(["a", "c"], model, engine)
    assert "c" not in asked(server)


def test_what_is_known_needs_no_server(server: FakeLLMServer, engine: Engine) -> None:
    model = of_questions(server)
    found = embed(["a", "b"], model, engine)
    cache.COMPARED.clear()
    server.script = lambda number, request: http(503)
    np.testing.assert_array_equal(embed(["b", "a"], model, engine), found[::-1])


def test_the_store_is_written_as_replies_arrive(server: FakeLLMServer, engine: Engine) -> None:
    """Half of them is kept while the other half is still on its way."""
    kept: list[int] = []

    def script(number: int, request: dict) -> Do | bytes:
        with engine.connect() as connection:
            kept.append(connection.exec_driver_sql("SELECT count(*) FROM yarus.embedding").scalar())
        return Do(embeddings(request), after_s=0.05)

    server.script = script
    embed([f"kept {number}" for number in range(20)], of_questions(server, batch=1, concurrency=2), engine)
    assert kept[-1] >= kept[1] + 10


def test_a_sources_own_vectors_are_compared_with_the_servers(server: FakeLLMServer) -> None:
    model, texts = of_questions(server), ["a", "b"]
    own = Corpus(["1", "2"], [None] * 2, texts, model.encode(texts))
    assert check_stored(own, model, "log") == []
    with pytest.raises(InputError, match=f"embedder '{server.url}#asked' have cosine"):
        check_stored(replace(own, vectors=model.encode(texts[::-1])), model, "log")
