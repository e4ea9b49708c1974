"""Retrieval: the corpus made searchable once, then a ranking for every question."""

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from prefect import task

from db import journal
from db.errors import InputError
from db.sources import Corpus
from db.urls import canonical_url
from tasks.cases import with_columns
from tasks.connect import database
from tasks.embed import embed
from tasks.labels import Note, pages_of
from tasks.load import read_cases, read_stored_corpus
from tasks.models.embedders import Embedder, Vectors, embedders
from tasks.retrievers import Ranking, Retriever, retriever_kind
from tasks.retrievers.dense import Dense, unit_vectors
from tasks.retrievers.pgvector import Pgvector
from tasks.run import Run
from tasks.settings import settings
from tasks.sharing import shared

TIMED = 100
"""Questions of an evaluation that are timed alone, where a batch is faster than its questions."""

ROUNDING = 1e-6
"""Above what pgvector's float32 distances and ours can differ by."""

WARM_UP = "?"
"""Embedded before anything is timed: loading the model is no part of what a user waits for."""

PROBED = 5
"""Chunks that are embedded again, to see whether the stored vectors are the embedder's."""


@task(task_run_name="index the corpus")
async def index(run: Run) -> Run:
    """Makes the corpus searchable, and writes down by what; a system that is not ours searches by itself.

    Raises:
        InputError: the source's vectors are not the embedder's.
    """
    return await asyncio.to_thread(_index, run) if run.resolved.get("sut", "local") == "local" else run


def _index(run: Run) -> Run:
    kind = retriever_kind(run.resolved["retriever"])
    if kind.uses_vectors:
        run = choose_vectors(run, read_stored_corpus(run))
    _, retriever = _opened(run)
    if isinstance(retriever, Pgvector) and run.resolved["vectors"] == "stored":
        recall = _index_recall(run, retriever)
        run = replace(run, resolved=run.resolved | {"index_recall": recall})
        run = with_notes(run, [{"note": "index recall", "value": recall}] if recall is not None else [])
    journal.describe(database(), run.id, resolved=run.resolved)
    return run


def choose_vectors(run: Run, corpus: Corpus) -> Run:
    """Decides whose vectors are used, the source's or the embedder's, and writes it down.

    Raises:
        InputError: the source's are not the embedder's, or there are none where they were asked for.
    """
    configuration = settings()
    name = run.resolved.get("embedder") or run.embedding.embedder or configuration.embedder
    questions, chunks = embedders(name, configuration)
    begun = run.resolved.get("embedder_identity", questions.identity)
    if begun != questions.identity:
        raise InputError(f"evaluation {run.id} was begun with {begun}, now it would go on with {questions.identity}")
    stored = corpus.vectors is not None or run.embedding.vectors == "stored"
    notes = check_stored(corpus, chunks, run.parameters.source) if stored else []
    resolved = {
        "embedder": name,
        "embedder_identity": questions.identity,
        "vectors": "stored" if stored else "computed",
    }
    return with_notes(replace(run, resolved=run.resolved | resolved), notes)


def with_notes(run: Run, notes: Sequence[Note]) -> Run:
    """The evaluation with these notes, each kind once: a resumed one has some already."""
    fresh = {note["note"] for note in notes}
    known = [note for note in run.resolved["notes"] if note["note"] not in fresh]
    return replace(run, resolved=run.resolved | {"notes": [*known, *notes]})


def unknown_ids(run: Run, cases: pa.Table) -> list[Note]:
    """A note on what was retrieved but is not in the corpus: by a service with another one, or since it changed."""
    if "retrieved" not in cases.column_names:
        return []
    pages = pages_of(read_stored_corpus(run))
    there = pages.keys() if run.resolved["unit"] == "chunk" else set(pages.values()) - {None}
    retrieved = pc.list_flatten(cases["retrieved"])
    unknown = len(retrieved) - pc.sum(pc.is_in(retrieved, value_set=pa.array(there, pa.string())), min_count=0).as_py()
    return [{"note": "unknown ids", "n": unknown}] if unknown else []


def _index_recall(run: Run, retriever: Retriever) -> float | None:
    """Share of the k nearest chunks that production's index finds; of equally near ones any will do."""
    questions = read_cases(run).slice(0, TIMED)["question"].to_pylist()
    corpus = read_stored_corpus(run)
    model, _ = embedders(run.resolved["embedder"], settings())
    vectors = embed(questions, model, database())
    if corpus.vectors is None:
        raise ValueError("an index over stored vectors needs stored vectors")
    k = run.resolved["k"]
    exact = Dense(corpus.ids, unit_vectors(corpus.vectors), model).retrieve(questions, vectors, k, timed=0)
    found = retriever.retrieve(questions, vectors, k, timed=0)
    shares = [
        sum(distance <= nearest.distances[-1] + ROUNDING for distance in ranking.distances) / len(nearest.ids)
        for ranking, nearest in zip(found, exact, strict=True)
        if nearest.ids
    ]
    return sum(shares) / len(shares) if shares else None


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


def retrieve(run: Run, cases: pa.Table) -> pa.Table:
    """Adds `retrieved`, `distances` and the latencies; a retriever that fails makes the case `sut_error`."""
    questions = cases["question"].to_pylist()
    timed = -(-TIMED // run.n_batches)
    rankings = rank(run, questions, run.resolved["k"], unit=run.resolved["unit"], timed=timed)
    statuses, reasons = cases["status"].to_pylist(), cases["reason"].to_pylist()
    for number, ranking in enumerate(rankings):
        if ranking.error is not None and statuses[number] == "ok":
            statuses[number], reasons[number] = "sut_error", ranking.error
    failed = [ranking.error is not None for ranking in rankings]
    latencies = [ranking.latency_ms for ranking in rankings]
    return with_columns(
        cases,
        status=statuses,
        reason=reasons,
        retrieved=[None if fail else ranking.ids for ranking, fail in zip(rankings, failed, strict=True)],
        distances=[None if fail else ranking.distances for ranking, fail in zip(rankings, failed, strict=True)],
        latency_ms=latencies,
        retrieval_latency_ms=latencies,
    )


def rank(run: Run, questions: Sequence[str], k: int, *, unit: str, timed: int) -> list[Ranking]:
    """Rankings of k chunks, or of k pages by the best chunk of each, fetching more chunks until they are found."""
    pages, _ = _opened(run)
    named = tuple(run.resolved.get(name) for name in ("retriever", "embedder_identity", "vectors"))
    place = (named, unit, k, hash(tuple(pages.items())))
    return shared(place, questions, lambda some: _rank(run, some, k, unit=unit, timed=timed))


def _rank(run: Run, questions: Sequence[str], k: int, *, unit: str, timed: int) -> list[Ranking]:
    pages, retriever = _opened(run)
    vectors = _question_vectors(run, questions)
    if unit == "chunk":
        return retriever.retrieve(questions, vectors, k, timed=timed)
    rankings: list[Ranking] = [Ranking([], [])] * len(questions)
    pending, fetch, n_pages = list(range(len(questions))), 4 * k, len({*pages.values()} - {None})
    while pending:
        some = vectors[pending] if vectors is not None else None
        chunks = retriever.retrieve([questions[number] for number in pending], some, fetch, timed=timed)
        short = []
        for number, ranking in zip(pending, chunks, strict=True):
            latency_ms = ranking.latency_ms if timed else rankings[number].latency_ms
            rankings[number] = replace(by_page(ranking, pages, k), latency_ms=latency_ms)
            if len(rankings[number].ids) < min(k, n_pages) and len(ranking.ids) == fetch:
                short.append(number)
        pending, fetch, timed = short if fetch < len(pages) else [], 4 * fetch, 0
    return rankings


def by_page(ranking: Ranking, pages: dict[str, str | None], k: int) -> Ranking:
    """The k best pages of a ranking of chunks, each where its best chunk stands."""
    best: dict[str, float] = {}
    for chunk, distance in zip(ranking.ids, ranking.distances, strict=True):
        page = pages.get(chunk) or (canonical_url(chunk) if chunk not in pages else None)
        if page is not None and page not in best and len(best) < k:
            best[page] = distance
    return replace(ranking, ids=list(best), distances=list(best.values()))


def _question_vectors(run: Run, questions: Sequence[str]) -> Vectors | None:
    if not retriever_kind(run.resolved["retriever"]).uses_vectors:
        return None
    model, _ = embedders(run.resolved["embedder"], settings())
    return embed(list(questions), model, database())


def _opened(run: Run) -> tuple[dict[str, str | None], Retriever]:
    """The page of every chunk, and the retriever; made once a process."""
    with _OPENING:
        if run.id not in _OPEN:
            _OPEN.clear()
            corpus = read_stored_corpus(run)
            kind = retriever_kind(run.resolved["retriever"])
            _OPEN[run.id] = pages_of(corpus), kind.open(run, corpus)
            if kind.uses_vectors:
                embedders(run.resolved["embedder"], settings())[0].encode([WARM_UP])
        return _OPEN[run.id]


_OPENING = threading.Lock()
_OPEN: dict[str, tuple[dict[str, str | None], Retriever]] = {}


def _cosines(left: Vectors, right: Vectors) -> Vectors:
    lengths = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    return np.asarray(np.einsum("ij,ij->i", left, right) / np.where(lengths > 0, lengths, 1))
