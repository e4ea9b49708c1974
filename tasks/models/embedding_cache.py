"""Embedding many texts: equal texts once, texts embedded before not again; and the vectors that a source brings."""

import hashlib
import logging
import time

import numpy as np
from sqlalchemy import Engine

from db.errors import InputError
from db.source_rows import Corpus
from db.stores.embeddings import store_vectors, stored_vectors
from tasks.cases.vocabulary import Note
from tasks.models.embedders import Embedder, Vectors

log = logging.getLogger("yarus")
PORTION = 128  # texts that are embedded, then kept: what an interruption can cost
QUIET_S = 5.0  # at most one line of progress in so many seconds
PROBED = 5
"""Chunks that are embedded again, to see whether the stored vectors are the embedder's."""


def embed(texts: list[str], model: Embedder, engine: Engine) -> Vectors:
    """One vector a text, from the store where the model has embedded the text before.

    Equal texts are embedded once. What is embedded is kept portion by portion, so that after an interruption the same
    call goes on where it was.

    Args:
        texts: n texts; one without content gets a vector of zeros, which is near to nothing.
        model: the embedder.
        engine: of our own database, where the store is.

    Returns:
        (n, d) float32, rows of length 1 or 0.
    """
    empty = sum(not text.strip() for text in texts)
    if empty:
        log.warning("%d of %d texts are empty: their vectors are zero, and nothing is found by them", empty, len(texts))
    if not model.worth_storing or not texts:
        return model.encode(texts)
    hashes = [hashlib.sha256(text.encode("utf-8", "replace")).digest() for text in texts]
    unique = dict(zip(hashes, texts, strict=True))
    known = stored_vectors(engine, model.identity, list(unique))
    known |= _embedded({key: text for key, text in unique.items() if key not in known}, model, engine)
    return np.stack([np.frombuffer(known[key], dtype="<f4") for key in hashes])


def _embedded(missing: dict[bytes, str], model: Embedder, engine: Engine) -> dict[bytes, bytes]:
    """Embeds texts and keeps them; the longest first, so that texts of one portion are padded alike."""
    items = sorted(missing.items(), key=lambda item: -len(item[1]))
    size = sum(len(text) + 1 for text in missing.values())  # time goes by characters more than by texts
    fresh: dict[bytes, bytes] = {}
    started = said = time.monotonic()
    done = 0
    for start in range(0, len(items), PORTION):
        keys, portion = zip(*items[start : start + PORTION], strict=True)
        vectors = model.encode(list(portion)).astype("<f4")
        kept = {key: vector.tobytes() for key, vector in zip(keys, vectors, strict=True)}
        store_vectors(engine, model.identity, kept)
        fresh |= kept
        done += sum(len(text) + 1 for text in portion)
        now = time.monotonic()
        if now - said >= QUIET_S or len(fresh) == len(items):
            said, rate, left_s = now, len(fresh) / (now - started), (now - started) * (size - done) / done
            log.info("embedded %d of %d texts, %.0f a second, %.0f s left", len(fresh), len(items), rate, left_s)
    return fresh


def check_stored(corpus: Corpus, chunks: Embedder, source: str) -> list[Note]:
    """That the source's vectors are those of the embedder: same dimensions, and equal for a few chunks.

    Returns:
        Notes on chunks without a vector, which cannot be found, as in production.

    Raises:
        InputError: they are another model's.
    """
    vectors = corpus.vectors
    if vectors is None:
        raise InputError(f"source {source!r} has no stored vectors; give --vectors computed")
    there = np.flatnonzero(np.linalg.norm(vectors, axis=1) > 0)  # NaN: none is stored; 0: it has no direction
    if not len(there):
        raise InputError(f"source {source!r}: all stored vectors are zero; give --vectors computed")
    probe = there[np.linspace(0, len(there) - 1, num=min(PROBED, len(there)), dtype=int)]
    expected = chunks.encode([corpus.texts[number] for number in probe])
    ours = f"the embedder {chunks.identity.split('|')[0]!r}"
    way_out = "Set YARUS_EMBEDDER to the model that made them, or give --vectors computed to embed the chunks anew"
    if expected.shape[1] != vectors.shape[1]:
        raise InputError(
            f"source {source!r}: chunk.embedding has {vectors.shape[1]} dimensions, "
            f"{ours} gives {expected.shape[1]}. {way_out}"
        )
    cosines = _cosines(vectors[probe], expected)
    if cosines.min() < 0.99:
        worst = corpus.ids[probe[cosines.argmin()]]
        raise InputError(
            f"source {source!r}: the stored vector of chunk {worst} and that of {ours} have cosine "
            f"{cosines.min():.2f}, not 1: they are of different models (or prefixes). {way_out}"
        )
    missing = len(corpus.ids) - len(there)
    return [{"note": "chunks without vector", "n": missing, "of": len(corpus.ids)}] if missing else []


def _cosines(left: Vectors, right: Vectors) -> Vectors:
    lengths = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    return np.asarray(np.einsum("ij,ij->i", left, right) / np.where(lengths > 0, lengths, 1))
