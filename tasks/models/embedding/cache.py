"""Embed many texts: equal texts once, stored ones not again; and check the vectors of a source."""

import hashlib
import logging
import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from sqlalchemy import Engine

from yarus.db.errors import InputError, ModelUnavailable
from yarus.db.messages import Words
from yarus.db.source_rows import Corpus
from yarus.db.stores.vectors import find_vectors, store_vectors
from yarus.tasks.cases.vocabulary import Note
from yarus.tasks.models.embedding.embedders import Embedder
from yarus.tasks.models.embedding.partial_results import RemoteEmbedder, Vectors, build_missing_error

log = logging.getLogger("yarus")
PORTION = 128
"""Texts that are first embedded and stored together; doubled while that takes less than `PORTION_S`."""
PORTION_S = 1.0
"""Seconds of computing that an interruption may lose, about."""
LOG_INTERVAL_S = 5.0  # least time between two lines of progress
MIN_COSINE = 0.99
"""Least cosine of two vectors of one text by one model; half precision and other batches change the last digits."""
N_PROBED_CHUNKS = 5
"""Chunks that are embedded again, to check that the stored vectors are the embedder's."""
VERIFIED_IDENTITIES: set[str] = set()
"""Identities of servers whose vectors this process has compared with stored ones."""


def embed_texts(texts: list[str], model: Embedder, engine: Engine) -> Vectors:
    """Return one vector per text, from the store if the model has embedded the text before.

    Equal texts are embedded once. New vectors are stored portion by portion, so that an interrupted call continues
    where it stopped.

    Args:
        texts: n texts; one without content gets a vector of zeros, which is not near to anything.
        model: the embedder.
        engine: of Yarus's database, which has the store.

    Returns:
        (n, d) float32, rows of length 1 or 0.

    Raises:
        InputError: the store has vectors of another model under that name.
        ModelUnavailable: a server does not return a vector for every text; the received ones are stored.
    """
    vectors, failures = embed_texts_with_failures(texts, model, engine)
    if failures:
        raise build_missing_error(model.identity, texts, failures)
    return vectors


def embed_texts_with_failures(texts: list[str], model: Embedder, engine: Engine) -> tuple[Vectors, dict[int, str]]:
    """Return vectors as `embed_texts`, and why texts have none; a text without a vector does not end the call.

    Returns:
        (n, d) float32, rows of length 1 or 0, or of NaN without a vector; and position -> reason of a missing vector.

    Raises:
        InputError: the store has vectors of another model under that name.
        ModelUnavailable: a server would refuse every text.
    """
    empty = sum(not text.strip() for text in texts)
    if empty:
        log.warning("%d of %d texts are empty: their vectors are zero, and nothing is found by them", empty, len(texts))
    if not model.worth_storing or not texts:
        return model.encode(texts), {}
    hashes = [hashlib.sha256(text.encode("utf-8", "replace")).digest() for text in texts]
    unique = dict(zip(hashes, texts, strict=True))
    by_hash = find_vectors(engine, model.identity, list(unique))
    if by_hash and isinstance(model, RemoteEmbedder):
        _require_same({unique[key]: vector for key, vector in by_hash.items()}, model)
    fresh, failed = _embed_missing({key: text for key, text in unique.items() if key not in by_hash}, model, engine)
    by_hash |= fresh
    n_bytes = max(map(len, by_hash.values()), default=0)
    if any(len(vector) != n_bytes for vector in by_hash.values()):
        raise _other_model(
            model, f"has stored vectors of {len(next(iter(by_hash.values()))) // 4} dimensions and others"
        )
    missing = np.full(n_bytes // 4, np.nan, dtype="<f4").tobytes()
    vectors = np.stack([np.frombuffer(by_hash.get(key, missing), dtype="<f4") for key in hashes])
    return vectors, {row: failed[key] for row, key in enumerate(hashes) if key in failed}


def _embed_missing(
    missing_texts: dict[bytes, str], model: Embedder, engine: Engine
) -> tuple[dict[bytes, bytes], dict[bytes, str]]:
    """Embed and store texts, the longest first, so that texts of one portion are padded alike.

    Returns:
        The vectors, and why other texts have none.
    """
    items = sorted(missing_texts.items(), key=lambda item: -len(item[1]))
    texts = [text for _, text in items]
    n_chars = sum(len(text) + 1 for text in texts)  # time depends on characters more than on texts
    fresh: dict[bytes, bytes] = {}
    failed: dict[bytes, str] = {}
    started_at = logged_at = time.monotonic()
    done = 0
    for portion in _embed_portions(texts, model):
        portion_vectors = {items[index][0]: vector.tobytes() for index, vector in portion.vectors}
        store_vectors(engine, model.identity, portion_vectors)
        fresh |= portion_vectors
        failed |= {items[index][0]: reason for index, reason in portion.failures.items()}
        done += sum(len(texts[index]) + 1 for index in (*(index for index, _ in portion.vectors), *portion.failures))
        now = time.monotonic()
        if now - logged_at >= LOG_INTERVAL_S or len(fresh) == len(items):
            logged_at, rate, left_s = now, len(fresh) / (now - started_at), (now - started_at) * (n_chars - done) / done
            log.info("embedded %d of %d texts, %.0f a second, %.0f s left", len(fresh), len(items), rate, left_s)
    return fresh, failed


class _Portion(NamedTuple):
    vectors: list[tuple[int, Vectors]]
    failures: dict[int, str]


def _embed_portions(texts: list[str], model: Embedder) -> Iterator[_Portion]:
    """Yield portions to store: a number of texts, or what has arrived from a server."""
    if isinstance(model, RemoteEmbedder):
        for parts in model.parts(texts) if texts else ():
            rows = [(part, row, index) for part in parts for row, index in enumerate(part.positions)]
            yield _Portion(
                [(index, part.vectors[row].astype("<f4")) for part, row, index in rows if row not in part.failures],
                {index: part.failures[row] for part, row, index in rows if row in part.failures},
            )
        return
    start, n_texts = 0, PORTION
    while start < len(texts):
        started_at = time.monotonic()
        vectors = model.encode(texts[start : start + n_texts]).astype("<f4")
        yield _Portion(list(enumerate(vectors, start=start)), {})
        start += n_texts
        if time.monotonic() - started_at < PORTION_S:
            n_texts *= 2


def _require_same(vectors_by_text: dict[str, bytes], model: Embedder) -> None:
    """Check once per process that a server still is the model whose vectors are stored under its name.

    Raises:
        InputError: it returns another vector for a text than before.
    """
    text = min((text for text in vectors_by_text if text.strip()), key=lambda text: (len(text), text), default=None)
    if text is None or model.identity in VERIFIED_IDENTITIES:
        return
    try:
        computed = model.encode([text])
    except ModelUnavailable:  # reported by the call that needs the server
        return
    stored = np.frombuffer(vectors_by_text[text], dtype="<f4")[None]
    if stored.shape != computed.shape:
        raise _other_model(
            model,
            Words(
                "gives {computed} dimensions, its stored vectors have {stored}",
                computed=computed.shape[1],
                stored=stored.shape[1],
            ),
        )
    if (cosine := _row_cosines(stored, computed)[0]) < MIN_COSINE:
        raise _other_model(
            model, Words("gives another vector than is stored for the same text (cosine {cosine:.2f})", cosine=cosine)
        )
    VERIFIED_IDENTITIES.add(model.identity)


def _other_model(model: Embedder, problem: str) -> InputError:
    return InputError(
        "embedder {embedder} {what}: another model answers under this name than before. Give it a name of its own, "
        "behind the # of the address or in YARUS_EMBEDDER_MODEL, or serve the one that it was",
        embedder=model.identity.split("|")[0],
        what=problem,
    )


def check_stored_vectors(corpus: Corpus, chunks: Embedder, source: str) -> list[Note]:
    """Check that the source's vectors are those of the embedder: same dimensions, and equal for a few chunks.

    Returns:
        Notes on chunks without a vector, which retrieval cannot find, as in production.

    Raises:
        InputError: they are of another model.
    """
    vectors = corpus.vectors
    if vectors is None:
        raise InputError("source {source!r} has no stored vectors; give --vectors computed", source=source)
    usable = np.flatnonzero(np.linalg.norm(vectors, axis=1) > 0)  # NaN: not stored; 0: no direction
    if not len(usable):
        raise InputError("source {source!r}: all stored vectors are zero; give --vectors computed", source=source)
    probe = usable[np.linspace(0, len(usable) - 1, num=min(N_PROBED_CHUNKS, len(usable)), dtype=int)]
    expected = chunks.encode([corpus.texts[position] for position in probe])
    embedder_name = Words("the embedder {identity!r}", identity=chunks.identity.split("|")[0])
    way_out = Words(
        "Set YARUS_EMBEDDER to the model that made them, or give --vectors computed to embed the chunks anew"
    )
    if expected.shape[1] != vectors.shape[1]:
        raise InputError(
            "source {source!r}: chunk.embedding has {stored} dimensions, {ours} gives {computed}. {way_out}",
            source=source,
            stored=vectors.shape[1],
            ours=embedder_name,
            computed=expected.shape[1],
            way_out=way_out,
        )
    cosines = _row_cosines(vectors[probe], expected)
    if cosines.min() < MIN_COSINE:
        worst = corpus.ids[probe[cosines.argmin()]]
        raise InputError(
            "source {source!r}: the stored vector of chunk {worst} and that of {ours} have cosine {cosine:.2f}, not "
            "1: they are of different models (or prefixes). {way_out}",
            source=source,
            worst=worst,
            ours=embedder_name,
            cosine=cosines.min(),
            way_out=way_out,
        )
    missing = len(corpus.ids) - len(usable)
    return [{"note": "chunks without vector", "n": missing, "of": len(corpus.ids)}] if missing else []


def _row_cosines(left: Vectors, right: Vectors) -> Vectors:
    lengths = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    return np.asarray(np.einsum("ij,ij->i", left, right) / np.where(lengths > 0, lengths, 1))
