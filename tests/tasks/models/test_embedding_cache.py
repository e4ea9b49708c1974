"""Embedding many texts: each once, stored portion by portion, continued after an interruption."""

import logging
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sqlalchemy import Engine

from yarus.db.engine import open_own_database
from yarus.db.stores.vectors import find_vectors
from yarus.tasks.models.embedding import cache as embedding
from yarus.tasks.models.embedding.cache import embed_texts


class CountingEmbedder:
    """Embedder of two numbers per text, which records its texts and can be interrupted."""

    worth_storing = True

    def __init__(self) -> None:
        self.identity = f"counting|{uuid.uuid4()}"
        self.embedded: list[str] = []
        self.fails_at = ""

    def encode(self, texts: list[str]) -> np.ndarray:
        if self.fails_at in texts:
            raise KeyboardInterrupt
        self.embedded += texts
        vectors = np.array([[len(text), text.count("x") + 1] for text in texts], dtype=np.float32).reshape(-1, 2)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    engine = open_own_database(tmp_path_factory.mktemp("home"), None)
    yield engine
    engine.dispose()


@pytest.fixture
def model() -> CountingEmbedder:
    model = CountingEmbedder()
    model.fails_at = "never"
    return model


def test_equal_texts_are_embedded_once_and_come_back_in_order(engine: Engine, model: CountingEmbedder) -> None:
    texts = ["b", "axx", "b", "c", "axx", "b"]
    vectors = embed_texts(texts, model, engine)
    assert sorted(model.embedded) == ["axx", "b", "c"]
    np.testing.assert_array_equal(vectors, model.encode(texts))
    assert vectors.dtype == np.float32


def test_stored_vectors_are_not_computed_again(engine: Engine, model: CountingEmbedder) -> None:
    first = embed_texts(["one", "two"], model, engine)
    model.embedded.clear()
    np.testing.assert_array_equal(embed_texts(["two", "three", "one"], model, engine)[[2, 0]], first)
    assert model.embedded == ["three"]


def test_vectors_of_another_model_are_not_read(engine: Engine, model: CountingEmbedder) -> None:
    embed_texts(["one"], model, engine)
    other_model = CountingEmbedder()
    other_model.fails_at = "never"
    embed_texts(["one"], other_model, engine)
    assert other_model.embedded == ["one"]


@pytest.mark.usefixtures("english")
@pytest.mark.parametrize(("portion_s", "stored"), [(0, 6), (3_600, 9)])
def test_interruption_loses_one_portion(
    engine: Engine,
    model: CountingEmbedder,
    portion_s: float,
    stored: int,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(embedding, "PORTION", 3)
    monkeypatch.setattr(embedding, "PORTION_S", portion_s)  # portions of 3, 3, 3 and 1 texts, or of 3, 6 and 1
    texts = ["x" * length for length in range(10, 0, -1)]
    model.fails_at = texts[stored]
    with pytest.raises(KeyboardInterrupt):
        embed_texts(texts, model, engine)
    assert model.embedded == texts[:stored]  # the longest first
    model.embedded.clear()
    model.fails_at = "never"
    with caplog.at_level(logging.INFO, logger="yarus"):
        embed_texts(texts, model, engine)
    assert model.embedded == texts[stored:]
    assert f"embedded {10 - stored} of {10 - stored} texts" in caplog.text
    assert caplog.messages[-1].endswith("a second, 0 s left")


def test_concurrent_embeddings_finish(engine: Engine, model: CountingEmbedder) -> None:
    texts = [f"text {number}" for number in range(600)]
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda order: embed_texts(order, model, engine), [texts, texts[::-1]])
    np.testing.assert_array_equal(first, second[::-1])


def test_lone_surrogates_and_empty_lists_are_embedded(engine: Engine, model: CountingEmbedder) -> None:
    assert embed_texts(["a \ud800"], model, engine).shape == (1, 2)
    assert embed_texts([], model, engine).shape == (0, 2)


@pytest.mark.usefixtures("english")
def test_empty_texts_are_logged(engine: Engine, model: CountingEmbedder, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="yarus"):
        embed_texts(["a", "", " "], model, engine)
    assert "2 of 3 texts are empty" in caplog.text


def test_vectors_not_worth_storing_are_not_stored(engine: Engine, model: CountingEmbedder) -> None:
    model.worth_storing = False
    embed_texts(["one"], model, engine)
    assert find_vectors(engine, model.identity, [b"any"]) == {}
    embed_texts(["one"], model, engine)
    assert model.embedded == ["one", "one"]
