"""The store of vectors: what was embedded is found again, to the bit."""

import hashlib

import numpy as np
from sqlalchemy import Engine

from yarus.db.stores.vectors import BLOCK, store_vectors, stored_vectors


def key(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def test_vectors_come_back_to_the_bit_by_model(engine: Engine) -> None:
    vector = np.random.default_rng(1).normal(size=384).astype("<f4")
    store_vectors(engine, "a", {key("ёж"): vector.tobytes()})
    assert stored_vectors(engine, "a", [key("ёж"), key("уж")]) == {key("ёж"): vector.tobytes()}
    assert stored_vectors(engine, "b", [key("ёж")]) == {}


def test_what_is_there_stays(engine: Engine) -> None:
    store_vectors(engine, "stays", {key("x"): b"1111"})
    store_vectors(engine, "stays", {key("x"): b"2222", key("y"): b"3333"})
    assert stored_vectors(engine, "stays", [key("x"), key("y")]) == {key("x"): b"1111", key("y"): b"3333"}


def test_nothing_is_stored_and_found_of_nothing(engine: Engine) -> None:
    store_vectors(engine, "empty", {})
    assert stored_vectors(engine, "empty", []) == {}


def test_more_than_a_block_is_found_whole(engine: Engine) -> None:
    vectors = {key(str(number)): number.to_bytes(4, "little") for number in range(BLOCK + 10)}
    store_vectors(engine, "blocks", vectors)
    assert stored_vectors(engine, "blocks", list(vectors)) == vectors
