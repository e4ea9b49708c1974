"""Embedding many texts: equal texts once, texts embedded before not again; and the vectors that a source brings."""

import hashlib
import logging
import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from sqlalchemy import Engine

from yarus.db.errors import InputError, ModelUnavailable
from yarus.db.source_rows import Corpus
from yarus.db.stores.vectors import store_vectors, stored_vectors
from yarus.db.words import Words
from yarus.tasks.cases.vocabulary import Note
from yarus.tasks.models.embedding.embedders import Embedder
from yarus.tasks.models.embedding.parts import Remote, Vectors, no_vectors

log = logging.getLogger("yarus")
PORTION = 128
"""Texts that are embedded and stored together at first; twice as many while that takes less than `PORTION_S`."""
PORTION_S = 1.0
"""Seconds of computing that an interruption may cost, about."""
QUIET_S = 5.0  # at most one line of progress in so many seconds
ALIKE = 0.99
"""Least cosine of two vectors of one text by one model: half precision and other batches change the last digits."""
PROBED = 5
"""Chunks that are embedded again, to see whether the stored vectors are the embedder's."""
COMPARED: set[str] = set()
"""Identities of servers that have been found to be who they were, in this process."""


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

    Raises:
        InputError: the store has vectors of another model under that name.
        ModelUnavailable: a server does not give a vector for every text; those that it gave are kept.
    """
    vectors, wrong = embed_each(texts, model, engine)
    if wrong:
        raise no_vectors(model.identity, texts, wrong)
    return vectors


def embed_each(texts: list[str], model: Embedder, engine: Engine) -> tuple[Vectors, dict[int, str]]:
    """See `embed`; a text that a server has no vector for ends nothing.

    Returns:
        (n, d) float32, rows of length 1 or 0, or of NaN where there is no vector; and position -> why there is none.

    Raises:
        InputError: the store has vectors of another model under that name.
        ModelUnavailable: a server refuses what every text would bring.
    """
    empty = sum(not text.strip() for text in texts)
    if empty:
        log.warning("%d of %d texts are empty: their vectors are zero, and nothing is found by them", empty, len(texts))
    if not model.worth_storing or not texts:
        return model.encode(texts), {}
    hashes = [hashlib.sha256(text.encode("utf-8", "replace")).digest() for text in texts]
    unique = dict(zip(hashes, texts, strict=True))
    known = stored_vectors(engine, model.identity, list(unique))
    if known and isinstance(model, Remote):
        _require_same({unique[key]: vector for key, vector in known.items()}, model)
    fresh, failed = _embedded({key: text for key, text in unique.items() if key not in known}, model, engine)
    known |= fresh
    size = max(map(len, known.values()), default=0)
    if any(len(vector) != size for vector in known.values()):
        raise _other_model(model, f"has stored vectors of {len(next(iter(known.values()))) // 4} dimensions and others")
    missing = np.full(size // 4, np.nan, dtype="<f4").tobytes()
    vectors = np.stack([np.frombuffer(known.get(key, missing), dtype="<f4") for key in hashes])
    return vectors, {number: failed[key] for number, key in enumerate(hashes) if key in failed}


def _embedded(
    missing: dict[bytes, str], model: Embedder, engine: Engine
) -> tuple[dict[bytes, bytes], dict[bytes, str]]:
    """Embeds texts and keeps them; the longest first, so that texts of one portion are padded alike.

    Returns:
        The vectors, and why the others have none.
    """
    items = sorted(missing.items(), key=lambda item: -len(item[1]))
    texts = [text for _, text in items]
    size = sum(len(text) + 1 for text in texts)  # time goes by characters more than by texts
    fresh: dict[bytes, bytes] = {}
    failed: dict[bytes, str] = {}
    started = said = time.monotonic()
    done = 0
    for portion in _portions(texts, model):
        kept = {items[position][0]: vector.tobytes() for position, vector in portion.vectors}
        store_vectors(engine, model.identity, kept)
        fresh |= kept
        failed |= {items[position][0]: why for position, why in portion.wrong.items()}
        done += sum(len(texts[position]) + 1 for position in (*(place for place, _ in portion.vectors), *portion.wrong))
        now = time.monotonic()
        if now - said >= QUIET_S or len(fresh) == len(items):
            said, rate, left_s = now, len(fresh) / (now - started), (now - started) * (size - done) / done
            log.info("embedded %d of %d texts, %.0f a second, %.0f s left", len(fresh), len(items), rate, left_s)
    return fresh, failed


class _Portion(NamedTuple):
    vectors: list[tuple[int, Vectors]]
    wrong: dict[int, str]


def _portions(texts: list[str], model: Embedder) -> Iterator[_Portion]:
    """What to keep at once: so many texts, or of a server what has arrived by then."""
    if isinstance(model, Remote):
        for parts in model.parts(texts) if texts else ():
            rows = [(part, row, position) for part in parts for row, position in enumerate(part.positions)]
            yield _Portion(
                [(position, part.vectors[row].astype("<f4")) for part, row, position in rows if row not in part.wrong],
                {position: part.wrong[row] for part, row, position in rows if row in part.wrong},
            )
        return
    start, size = 0, PORTION
    while start < len(texts):
        started = time.monotonic()
        vectors = model.encode(texts[start : start + size]).astype("<f4")
        yield _Portion(list(enumerate(vectors, start=start)), {})
        start += size
        if time.monotonic() - started < PORTION_S:
            size *= 2


def _require_same(known: dict[str, bytes], model: Embedder) -> None:
    """Makes sure, once a process, that a server still is the model whose vectors are stored under its name.

    Raises:
        InputError: it gives another vector for a text that it was asked for before.
    """
    text = min((text for text in known if text.strip()), key=lambda text: (len(text), text), default=None)
    if text is None or model.identity in COMPARED:
        return
    try:
        now = model.encode([text])
    except ModelUnavailable:  # where it is needed, that is said there
        return
    before = np.frombuffer(known[text], dtype="<f4")[None]
    if before.shape != now.shape:
        raise _other_model(
            model,
            Words(
                "gives {computed} dimensions, its stored vectors have {stored}",
                computed=now.shape[1],
                stored=before.shape[1],
            ),
        )
    if (cosine := _cosines(before, now)[0]) < ALIKE:
        raise _other_model(
            model, Words("gives another vector than is stored for the same text (cosine {cosine:.2f})", cosine=cosine)
        )
    COMPARED.add(model.identity)


def _other_model(model: Embedder, what: str) -> InputError:
    return InputError(
        "embedder {embedder} {what}: another model answers under this name than before. Give it a name of its own, "
        "behind the # of the address or in YARUS_EMBEDDER_MODEL, or serve the one that it was",
        embedder=model.identity.split("|")[0],
        what=what,
    )


def check_stored(corpus: Corpus, chunks: Embedder, source: str) -> list[Note]:
    """That the source's vectors are those of the embedder: same dimensions, and equal for a few chunks.

    Returns:
        Notes on chunks without a vector, which cannot be found, as in production.

    Raises:
        InputError: they are another model's.
    """
    vectors = corpus.vectors
    if vectors is None:
        raise InputError("source {source!r} has no stored vectors; give --vectors computed", source=source)
    there = np.flatnonzero(np.linalg.norm(vectors, axis=1) > 0)  # NaN: none is stored; 0: it has no direction
    if not len(there):
        raise InputError("source {source!r}: all stored vectors are zero; give --vectors computed", source=source)
    probe = there[np.linspace(0, len(there) - 1, num=min(PROBED, len(there)), dtype=int)]
    expected = chunks.encode([corpus.texts[number] for number in probe])
    ours = Words("the embedder {identity!r}", identity=chunks.identity.split("|")[0])
    way_out = Words(
        "Set YARUS_EMBEDDER to the model that made them, or give --vectors computed to embed the chunks anew"
    )
    if expected.shape[1] != vectors.shape[1]:
        raise InputError(
            "source {source!r}: chunk.embedding has {stored} dimensions, {ours} gives {computed}. {way_out}",
            source=source,
            stored=vectors.shape[1],
            ours=ours,
            computed=expected.shape[1],
            way_out=way_out,
        )
    cosines = _cosines(vectors[probe], expected)
    if cosines.min() < ALIKE:
        worst = corpus.ids[probe[cosines.argmin()]]
        raise InputError(
            "source {source!r}: the stored vector of chunk {worst} and that of {ours} have cosine {cosine:.2f}, not "
            "1: they are of different models (or prefixes). {way_out}",
            source=source,
            worst=worst,
            ours=ours,
            cosine=cosines.min(),
            way_out=way_out,
        )
    missing = len(corpus.ids) - len(there)
    return [{"note": "chunks without vector", "n": missing, "of": len(corpus.ids)}] if missing else []


def _cosines(left: Vectors, right: Vectors) -> Vectors:
    lengths = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    return np.asarray(np.einsum("ij,ij->i", left, right) / np.where(lengths > 0, lengths, 1))
