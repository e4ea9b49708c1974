"""Questions and chunks in few dimensions: for topics in fifty, for the map in two."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Engine

from yarus.tasks.cases.privacy.pseudonyms import cut
from yarus.tasks.dataset.corpus.corpus_schema import CorpusMap
from yarus.tasks.dataset.corpus.question_log import Log
from yarus.tasks.models.embedding.cache import embed
from yarus.tasks.models.embedding.embedders import Embedder
from yarus.tasks.models.embedding.parts import Vectors

Floats = NDArray[np.float64]
DIMENSIONS, FITTED, BLOCK, DIGITS = 50, 8_000, 5_000, 4
TEXT = 100
FLAT = 1e-9


def reduced(
    questions: Sequence[str], chunks: Sequence[str], model: Embedder, engine: Engine, *, seed: int
) -> tuple[Floats, Floats, Floats]:
    """Vectors of questions and chunks in their principal components.

    Every column of the vectors is brought to the same root mean square first, so that what all texts share (in
    character n-grams the commonest words) does not decide. Scales and components are those of a seeded sample of 8,000
    texts; all texts are then projected in blocks, so that memory holds the full vectors of a block only.

    Args:
        questions: n texts.
        chunks: m texts.
        model: the measuring embedder.
        engine: of our own database, for the store of vectors.
        seed: of the sample.

    Returns:
        (n, d) and (m, d) coordinates, d at most 50, a row of NaN for a text without a vector; (d,) the share of the
        variance of each component.
    """
    texts = [*questions, *chunks]
    rows = np.sort(np.random.default_rng(seed).permutation(len(texts))[:FITTED])
    sample = embed([texts[row] for row in rows], model, engine)
    sample = sample[np.linalg.norm(sample, axis=1) > 0]
    scales = _scales(sample)
    sample = unit(sample * scales)
    mean = sample.mean(axis=0) if len(sample) else np.zeros(sample.shape[1], dtype=np.float32)
    components, variance = _components(sample - mean)
    starts = range(0, len(texts), BLOCK)
    blocks = (embed(texts[start : start + BLOCK], model, engine) for start in starts)
    points = np.concatenate([_projected(vectors, scales, mean, components) for vectors in blocks])
    return points[: len(questions)], points[len(questions) :], variance


def unit(points: NDArray[Any]) -> NDArray[Any]:
    """The rows at length 1, in their own precision; those without a vector, or without a direction, as zeros."""
    known = np.nan_to_num(points)
    lengths = np.linalg.norm(known, axis=1, keepdims=True)
    return np.asarray(known / np.where(lengths > FLAT, lengths, 1) * (lengths > FLAT), dtype=points.dtype)


def map_of(
    log: Log,
    questions: Floats,
    chunks: Floats,
    topics: NDArray[np.int64],
    uses: NDArray[np.int64],
    *,
    variance: Floats,
    points: int,
    seed: int,
) -> CorpusMap:
    """The map: one list a column, a point of each question and chunk; a seeded sample of `points` where there are more.

    Returns:
        x, y (the first two components), kind, id, text, topic and outcome (of questions), uses (of chunks), and
        `explained`, the share of the variance that the map shows.
    """
    n = len(questions)
    both = np.concatenate([questions, chunks])[:, :2]
    both = np.pad(both, ((0, 0), (0, 2 - both.shape[1])))
    there = np.flatnonzero(~np.isnan(both).any(axis=1))
    kept = np.sort(np.random.default_rng(seed).permutation(there)[:points])
    outcomes = np.select([log.missing, log.hits == 0, log.hits == 1], ["missing", "miss", "hit"], "unknown").tolist()
    columns: dict[str, list[object]] = {name: [] for name in ("kind", "id", "text", "topic", "outcome", "uses")}
    for row in kept.tolist():
        if row < n:
            question = log.questions[row]
            asked = (question["question_id"], question["question"], int(topics[row]), outcomes[row])
            values: tuple[object, ...] = ("question", *asked, None)
        else:
            place = row - n
            values = ("chunk", log.corpus.ids[place], log.corpus.texts[place], None, None, int(uses[place]))
        for name, value in zip(columns, values, strict=True):
            columns[name].append(value if name != "text" else cut(" ".join(str(value).split()), TEXT))
    x, y = (both[kept, axis].round(DIGITS).tolist() for axis in (0, 1))
    shown = float(variance[:2].sum()) if len(variance) else None
    return cast(CorpusMap, {"x": x, "y": y, **columns, "n_total": len(both), "explained": shown})


def _components(centred: Vectors) -> tuple[Floats, Floats]:
    """(d, 50) principal axes, each pointing where its largest coordinate is positive, and their shares of variance.

    From the products of the rows or of the columns, whichever are fewer: both have the same eigenvalues.
    """
    n, d = centred.shape
    products = (centred @ centred.T if n < d else centred.T @ centred).astype(np.float64)
    most = min(DIMENSIONS, n - 1, d)
    total = float(np.trace(products))
    if most < 1 or total <= FLAT:
        return np.zeros((d, 1)), np.zeros(1)
    last = len(products) - 1
    from scipy.linalg import eigh  # here, because it costs 0.1 s to import

    values, axes = eigh(products, subset_by_index=(last - most + 1, last))
    values, axes = values[::-1], axes[:, ::-1]
    kept = values > total * FLAT
    values, axes = values[kept], axes[:, kept]
    if n < d:
        axes = centred.T.astype(np.float64) @ axes / np.sqrt(values)
    signs = np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])])
    return np.asarray(axes * signs), np.asarray(values / total)


def _scales(sample: Vectors) -> Vectors:
    """What brings each column to the same root mean square; 0 for one that is nowhere used."""
    rms = np.sqrt((sample**2).mean(axis=0)) if len(sample) else np.zeros(sample.shape[1], dtype=np.float32)
    return np.asarray((rms > FLAT) / np.where(rms > FLAT, rms, 1), dtype=np.float32)


def _projected(vectors: Vectors, scales: Vectors, mean: Vectors, components: Floats) -> Floats:
    points = (unit(vectors * scales) - mean) @ components.astype(np.float32)
    points[np.linalg.norm(vectors, axis=1) == 0] = np.nan
    return np.asarray(points, dtype=np.float64)
