"""What can serve the step `retrieve`, in one table; a new retriever is one file and one line here."""

from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection

from yarus.db.errors import unknown
from yarus.db.source_rows import Corpus
from yarus.db.sources import require_unchanged
from yarus.db.stores.fulltext import CONFIGURATIONS, index_corpus
from yarus.db.stores.vectors import corpus_name, index_vectors
from yarus.db.tables import chunk_vector
from yarus.tasks.config.connections import database, source
from yarus.tasks.config.services import is_address, is_function, open_address
from yarus.tasks.config.settings import settings
from yarus.tasks.evaluation.run import Run
from yarus.tasks.models.embedding.cache import embed
from yarus.tasks.models.embedding.embedders import Embedder, embedders
from yarus.tasks.models.embedding.parts import Vectors
from yarus.tasks.systems.retrievers.database import Fulltext, Pgvector
from yarus.tasks.systems.retrievers.dense import Dense, unit_vectors
from yarus.tasks.systems.retrievers.hybrid import Hybrid
from yarus.tasks.systems.retrievers.protocol import Retriever


class Kind(NamedTuple):
    """How to make a retriever, and what it needs."""

    open: Callable[[Run, Corpus], Retriever]
    """Makes the corpus searchable, if it is not yet, and returns the retriever over it."""
    uses_vectors: bool


def _dense(run: Run, corpus: Corpus) -> Retriever:
    questions, chunks = embedders(run.config.embedder, settings())
    return Dense(corpus.ids, _chunk_vectors(run, corpus, chunks), questions)


def _pgvector(run: Run, corpus: Corpus) -> Retriever:
    """Over the source's own vectors and index where they are used, else over vectors in our own database."""
    questions, chunks = embedders(run.config.embedder, settings())
    if run.config.vectors == "stored":
        where = source(run.parameters.source)
        chunk, loaded_at = where.tables["chunk"].c, run.config.source_loaded_at

        def check(connection: Connection) -> None:
            if loaded_at:
                require_unchanged(connection, where, datetime.fromisoformat(loaded_at))

        return Pgvector(
            where.engine,
            questions,
            chunk_id=chunk.id,
            vector=chunk.embedding,
            tie=chunk.id,
            where=chunk.embedding.is_not(None) & chunk.text.is_not(None),
            check=check,
        )
    name = corpus_name(chunks.identity, corpus.ids, corpus.texts)
    index_vectors(database(), name, corpus.ids, _chunk_vectors(run, corpus, chunks))
    ours = chunk_vector.c
    return Pgvector(
        database(), questions, chunk_id=ours.chunk_id, vector=ours.vector, tie=ours.position, where=ours.corpus == name
    )


def _chunk_vectors(run: Run, corpus: Corpus, chunks: Embedder) -> Vectors:
    """The source's own vectors where they are used, else the embedder's; at length 1, NaN without a direction."""
    if corpus.vectors is not None and run.config.vectors == "stored":
        return unit_vectors(corpus.vectors)
    return unit_vectors(embed(corpus.texts, chunks, database()))


def _hybrid(run: Run, corpus: Corpus) -> Retriever:
    return Hybrid([_dense(run, corpus), _fulltext(run, corpus)])


def _fulltext(run: Run, corpus: Corpus) -> Retriever:
    configuration = CONFIGURATIONS[run.config.language]
    name = index_corpus(database(), configuration, corpus.texts)
    return Fulltext(database(), corpus.ids, corpus=name, configuration=configuration)


def _service(run: Run, corpus: Corpus) -> Retriever:
    from yarus.tasks.systems.retrievers.external import Outside, from_service  # aiohttp, which no search of ours needs

    service = settings().retriever_service
    return Outside(from_service(run.config.retriever, service), concurrency=service.concurrency)


def _callable(run: Run, corpus: Corpus) -> Retriever:
    from yarus.tasks.systems.retrievers.external import Outside
    from yarus.tasks.systems.user_code import UserCodes

    code = run.resources.get(UserCodes).get(run.config.retriever, "YARUS_RETRIEVER", "ranking")
    return Outside(lambda question, k: code.call(question, k)[0], concurrency=code.concurrency)


RETRIEVERS: dict[str, Kind] = {
    "dense": Kind(_dense, uses_vectors=True),
    "pgvector": Kind(_pgvector, uses_vectors=True),
    "fulltext": Kind(_fulltext, uses_vectors=False),
    "hybrid": Kind(_hybrid, uses_vectors=True),
    "http://…": Kind(_service, uses_vectors=False),
    "module:function": Kind(_callable, uses_vectors=False),
}


def retriever_kind(name: str) -> Kind:
    """The kind of a retriever's name, a service's address or a callable's.

    Raises:
        InputError: there is none, and the nearest is named; or an address that has a password in it.
    """
    if is_address(name):
        open_address(name, "YARUS_RETRIEVER_SERVICE")
        return RETRIEVERS["http://…"]
    if is_function(name):
        return RETRIEVERS["module:function"]
    if name not in RETRIEVERS:
        raise unknown("retriever", name, RETRIEVERS)
    return RETRIEVERS[name]
