"""Embedding many texts: equal texts once, texts embedded before not again."""

import hashlib
import logging
import time

import numpy as np
from sqlalchemy import Engine

from db.stores import store_vectors, stored_vectors
from tasks.models.embedders import Embedder, Vectors

log = logging.getLogger("yarus")
PORTION = 512  # texts that are embedded, then kept: what an interruption can cost


def embed(texts: list[str], model: Embedder, engine: Engine) -> Vectors:
    """One vector a text, from the store where the model has embedded the text before.

    Args:
        texts: n texts.
        model: the embedder.
        engine: of our own database, where the store is.

    Returns:
        (n, d) float32, rows of length 1.
    """
    if not model.worth_storing:
        return model.encode(texts)
    hashes = [hashlib.sha256(text.encode()).digest() for text in texts]
    unique = dict(zip(hashes, texts, strict=True))
    known = stored_vectors(engine, model.identity, list(unique))
    # By length: texts of one portion are padded alike, so that the last portions are the slow ones.
    missing = sorted((item for item in unique.items() if item[0] not in known), key=lambda item: len(item[1]))
    started = time.monotonic()
    for start in range(0, len(missing), PORTION):
        portion = missing[start : start + PORTION]
        vectors = model.encode([text for _, text in portion]).astype("<f4")
        fresh = {text_hash: vector.tobytes() for (text_hash, _), vector in zip(portion, vectors, strict=True)}
        store_vectors(engine, model.identity, fresh)
        known |= fresh
        done = start + len(portion)
        rate = done / (time.monotonic() - started)
        log.info("embedded %d of %d texts, %.0f a second", done, len(missing), rate)
    return (
        np.stack([np.frombuffer(known[text_hash], dtype="<f4") for text_hash in hashes])
        if texts
        else np.zeros((0, 0), np.float32)
    )
