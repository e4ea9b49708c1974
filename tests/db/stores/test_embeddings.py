"""The store of vectors returns them bit by bit."""

import hashlib

import numpy as np
from sqlalchemy import Engine

from yarus.db.stores.vectors import BLOCK_SIZE, find_vectors, store_vectors


def text_hash(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def test_stored_vectors_are_bit_equal_per_model(engine: Engine) -> None:
    vector = np.random.default_rng(1).normal(size=384).astype("<f4")
    store_vectors(engine, "a", {text_hash("ёж"): vector.tobytes()})
    assert find_vectors(engine, "a", [text_hash("ёж"), text_hash("уж")]) == {text_hash("ёж"): vector.tobytes()}
    assert find_vectors(engine, "b", [text_hash("ёж")]) == {}


def test_store_vectors_keeps_existing_vectors(engine: Engine) -> None:
    store_vectors(engine, "stays", {text_hash("x"): b"1111"})
    store_vectors(engine, "stays", {text_hash("x"): b"2222", text_hash("y"): b"3333"})
    assert find_vectors(engine, "stays", [text_hash("x"), text_hash("y")]) == {
        text_hash("x"): b"1111",
        text_hash("y"): b"3333",
    }


def test_vectors_store_accepts_empty_input(engine: Engine) -> None:
    store_vectors(engine, "empty", {})
    assert find_vectors(engine, "empty", []) == {}


def test_find_vectors_reads_more_than_one_block(engine: Engine) -> None:
    vectors = {text_hash(str(number)): number.to_bytes(4, "little") for number in range(BLOCK_SIZE + 10)}
    store_vectors(engine, "blocks", vectors)
    assert find_vectors(engine, "blocks", list(vectors)) == vectors
