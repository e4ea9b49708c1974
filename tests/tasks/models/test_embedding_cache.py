"""Embedding many texts: each once, kept on the way, gone on with after an interruption."""

import logging
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sqlalchemy import Engine

from yarus.db.engine import own
from yarus.db.stores.vectors import stored_vectors
from yarus.tasks.models.embedding import cache as embedding
from yarus.tasks.models.embedding.cache import embed


class Counting:
    """An embedder of two numbers a text, which counts what it is asked for and can be interrupted."""

    worth_storing = True

    def __init__(self) -> None:
        self.identity = f"counting|{uuid.uuid4()}"
        self.asked: list[str] = []
        self.fails_at = ""

    def encode(self, texts: list[str]) -> np.ndarray:
        if self.fails_at in texts:
            raise KeyboardInterrupt
        self.asked += texts
        found = np.array([[len(text), text.count("x") + 1] for text in texts], dtype=np.float32).reshape(-1, 2)
        return found / np.linalg.norm(found, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    engine = own(tmp_path_factory.mktemp("home"), None)
    yield engine
    engine.dispose()


@pytest.fixture
def model() -> Counting:
    model = Counting()
    model.fails_at = "never"
    return model


def test_equal_texts_are_embedded_once_and_come_back_in_order(engine: Engine, model: Counting) -> None:
    texts = ["b", "axx", "b", "c", "axx", "b"]
    vectors = embed(texts, model, engine)
    assert sorted(model.asked) == ["axx", "b", "c"]
    np.testing.assert_array_equal(vectors, model.encode(texts))
    assert vectors.dtype == np.float32


def test_what_was_embedded_before_is_read_from_the_store(engine: Engine, model: Counting) -> None:
    first = embed(["one", "two"], model, engine)
    model.asked.clear()
    np.testing.assert_array_equal(embed(["two", "three", "one"], model, engine)[[2, 0]], first)
    assert model.asked == ["three"]


def test_vectors_of_another_model_are_not_read(engine: Engine, model: Counting) -> None:
    embed(["one"], model, engine)
    other = Counting()
    other.fails_at = "never"
    embed(["one"], other, engine)
    assert other.asked == ["one"]


@pytest.mark.usefixtures("english")
@pytest.mark.parametrize(("portion_s", "stored"), [(0, 6), (3_600, 9)])
def test_interruption_costs_one_portion(
    engine: Engine,
    model: Counting,
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
        embed(texts, model, engine)
    assert model.asked == texts[:stored]  # the longest first
    model.asked.clear()
    model.fails_at = "never"
    with caplog.at_level(logging.INFO, logger="yarus"):
        embed(texts, model, engine)
    assert model.asked == texts[stored:]
    assert f"embedded {10 - stored} of {10 - stored} texts" in caplog.text
    assert caplog.messages[-1].endswith("a second, 0 s left")


def test_two_at_once_finish(engine: Engine, model: Counting) -> None:
    texts = [f"text {number}" for number in range(600)]
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda given: embed(given, model, engine), [texts, texts[::-1]])
    np.testing.assert_array_equal(first, second[::-1])


def test_a_lone_surrogate_and_no_text_at_all(engine: Engine, model: Counting) -> None:
    assert embed(["a \ud800"], model, engine).shape == (1, 2)
    assert embed([], model, engine).shape == (0, 2)


@pytest.mark.usefixtures("english")
def test_empty_texts_are_told_of(engine: Engine, model: Counting, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="yarus"):
        embed(["a", "", " "], model, engine)
    assert "2 of 3 texts are empty" in caplog.text


def test_what_is_not_worth_storing_is_not_stored(engine: Engine, model: Counting) -> None:
    model.worth_storing = False
    embed(["one"], model, engine)
    assert stored_vectors(engine, model.identity, [b"any"]) == {}
    embed(["one"], model, engine)
    assert model.asked == ["one", "one"]
