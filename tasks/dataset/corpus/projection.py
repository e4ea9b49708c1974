"""Projection of questions and chunks: to fifty dimensions for topics, and to two for the map."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Engine

from yarus.tasks.cases.privacy.pseudonyms import truncate_text
from yarus.tasks.dataset.corpus.corpus_schema import CorpusMap
from yarus.tasks.dataset.corpus.question_log import QuestionLog
from yarus.tasks.models.embedding.cache import embed_texts
from yarus.tasks.models.embedding.embedders import Embedder
from yarus.tasks.models.embedding.partial_results import Vectors

Floats = NDArray[np.float64]
DIMENSIONS, FIT_SAMPLE, BLOCK, DIGITS = 50, 8_000, 5_000, 4
MAX_CHARS = 100
EPSILON = 1e-9


def reduce_dimensions(
    questions: Sequence[str], chunks: Sequence[str], model: Embedder, engine: Engine, *, seed: int
) -> tuple[Floats, Floats, Floats]:
    """Return the principal components of question and chunk vectors.

    Each column is scaled to the same root mean square first, so that features of all texts (in character n-grams the
    most common words) do not dominate. Scales and components are fitted on a seeded sample of 8,000 texts. All texts
    are then projected in blocks to limit memory.

    Args:
        questions: n texts.
        chunks: m texts.
        model: the measuring embedder.
        engine: engine of Yarus's own database, for the vector store.
        seed: seed of the sample.

    Returns:
        (n, d) and (m, d) coordinates with d at most 50 and rows of NaN for texts without a vector; (d,) share of
        variance of each component.
    """
    texts = [*questions, *chunks]
    rows = np.sort(np.random.default_rng(seed).permutation(len(texts))[:FIT_SAMPLE])
    sample = embed_texts([texts[row] for row in rows], model, engine)
    sample = sample[np.linalg.norm(sample, axis=1) > 0]
    scales = _column_scales(sample)
    sample = normalize_rows(sample * scales)
    mean = sample.mean(axis=0) if len(sample) else np.zeros(sample.shape[1], dtype=np.float32)
    components, variance = _principal_components(sample - mean)
    starts = range(0, len(texts), BLOCK)
    blocks = (embed_texts(texts[start : start + BLOCK], model, engine) for start in starts)
    points = np.concatenate([_project(vectors, scales, mean, components) for vectors in blocks])
    return points[: len(questions)], points[len(questions) :], variance


def normalize_rows(points: NDArray[Any]) -> NDArray[Any]:
    """Normalize rows to length 1 in their own precision; rows without a vector or direction become zeros."""
    finite_points = np.nan_to_num(points)
    lengths = np.linalg.norm(finite_points, axis=1, keepdims=True)
    return np.asarray(finite_points / np.where(lengths > EPSILON, lengths, 1) * (lengths > EPSILON), dtype=points.dtype)


def build_corpus_map(
    log: QuestionLog,
    questions: Floats,
    chunks: Floats,
    topics: NDArray[np.int64],
    uses: NDArray[np.int64],
    *,
    variance: Floats,
    points: int,
    seed: int,
) -> CorpusMap:
    """Return the map as columns, with one point per question and chunk, or a seeded sample of `points` of them.

    Returns:
        x, y (the first two components), kind, id, text, topic and outcome of questions, retrieval counts of chunks, and
        `explained_variance`, the share of variance on the map.
    """
    n = len(questions)
    coordinates = np.concatenate([questions, chunks])[:, :2]
    coordinates = np.pad(coordinates, ((0, 0), (0, 2 - coordinates.shape[1])))
    located = np.flatnonzero(~np.isnan(coordinates).any(axis=1))
    sampled_rows = np.sort(np.random.default_rng(seed).permutation(located)[:points])
    outcomes = np.select([log.is_missing, log.hits == 0, log.hits == 1], ["missing", "miss", "hit"], "unknown").tolist()
    columns: dict[str, list[object]] = {
        name: [] for name in ("kind", "id", "text", "topic", "outcome", "retrieval_counts")
    }
    for row in sampled_rows.tolist():
        if row < n:
            question = log.questions[row]
            question_values = (question["question_id"], question["question"], int(topics[row]), outcomes[row])
            values: tuple[object, ...] = ("question", *question_values, None)
        else:
            chunk_row = row - n
            values = ("chunk", log.corpus.ids[chunk_row], log.corpus.texts[chunk_row], None, None, int(uses[chunk_row]))
        for name, value in zip(columns, values, strict=True):
            columns[name].append(value if name != "text" else truncate_text(" ".join(str(value).split()), MAX_CHARS))
    x, y = (coordinates[sampled_rows, axis].round(DIGITS).tolist() for axis in (0, 1))
    explained = float(variance[:2].sum()) if len(variance) else None
    return cast(CorpusMap, {"x": x, "y": y, **columns, "n_total": len(coordinates), "explained_variance": explained})


def _principal_components(centred: Vectors) -> tuple[Floats, Floats]:
    """Return (d, 50) principal axes with positive largest coordinates, and their shares of variance.

    They are computed from the products of rows or of columns, whichever are fewer; both have the same eigenvalues.
    """
    n, d = centred.shape
    products = (centred @ centred.T if n < d else centred.T @ centred).astype(np.float64)
    n_components = min(DIMENSIONS, n - 1, d)
    total = float(np.trace(products))
    if n_components < 1 or total <= EPSILON:
        return np.zeros((d, 1)), np.zeros(1)
    last_index = len(products) - 1
    from scipy.linalg import eigh  # imported here, because the import takes 0.1 s

    values, axes = eigh(products, subset_by_index=(last_index - n_components + 1, last_index))
    values, axes = values[::-1], axes[:, ::-1]
    is_nonzero = values > total * EPSILON
    values, axes = values[is_nonzero], axes[:, is_nonzero]
    if n < d:
        axes = centred.T.astype(np.float64) @ axes / np.sqrt(values)
    signs = np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])])
    return np.asarray(axes * signs), np.asarray(values / total)


def _column_scales(sample: Vectors) -> Vectors:
    """Return factors that scale each column to the same root mean square; 0 for unused columns."""
    rms = np.sqrt((sample**2).mean(axis=0)) if len(sample) else np.zeros(sample.shape[1], dtype=np.float32)
    return np.asarray((rms > EPSILON) / np.where(rms > EPSILON, rms, 1), dtype=np.float32)


def _project(vectors: Vectors, scales: Vectors, mean: Vectors, components: Floats) -> Floats:
    points = (normalize_rows(vectors * scales) - mean) @ components.astype(np.float32)
    points[np.linalg.norm(vectors, axis=1) == 0] = np.nan
    return np.asarray(points, dtype=np.float64)
