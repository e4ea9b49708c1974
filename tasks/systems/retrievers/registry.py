"""Table of the retrievers that can serve the step `retrieve`; a new retriever is one file and one line here."""

from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection

from yarus.db.errors import unknown
from yarus.db.source_rows import Corpus
from yarus.db.sources import require_unchanged
from yarus.db.stores.fulltext import TEXT_SEARCH_CONFIGURATIONS, index_corpus
from yarus.db.stores.vectors import corpus_name, index_vectors
from yarus.db.tables import chunk_vector
from yarus.tasks.config.connections import database, open_source
from yarus.tasks.config.services import is_function_path, is_http_url, require_public_address
from yarus.tasks.config.settings import get_settings
from yarus.tasks.evaluation.run import EvaluationRun
from yarus.tasks.models.embedding.cache import embed_texts
from yarus.tasks.models.embedding.embedders import Embedder, get_embedder_pair
from yarus.tasks.models.embedding.partial_results import Vectors
from yarus.tasks.systems.retrievers.database import FulltextRetriever, PgvectorRetriever
from yarus.tasks.systems.retrievers.dense import DenseRetriever, normalise_vectors
from yarus.tasks.systems.retrievers.hybrid import HybridRetriever
from yarus.tasks.systems.retrievers.protocol import Retriever


class RetrieverKind(NamedTuple):
    """Way to make a retriever, and its needs."""

    open: Callable[[EvaluationRun, Corpus], Retriever]
    """Makes the corpus searchable, if necessary, and returns the retriever over it."""
    uses_vectors: bool


def _open_dense(run: EvaluationRun, corpus: Corpus) -> Retriever:
    questions, chunks = get_embedder_pair(run.config.embedder, get_settings())
    return DenseRetriever(corpus.ids, _chunk_vectors(run, corpus, chunks), questions)


def _open_pgvector(run: EvaluationRun, corpus: Corpus) -> Retriever:
    """Return a retriever over the source's vectors and index if they are used, else over those in Yarus's database."""
    questions, chunks = get_embedder_pair(run.config.embedder, get_settings())
    if run.config.vectors == "stored":
        source_tables = open_source(run.parameters.source)
        chunk, loaded_at = source_tables.tables["chunk"].c, run.config.source_loaded_at

        def check(connection: Connection) -> None:
            if loaded_at:
                require_unchanged(connection, source_tables, datetime.fromisoformat(loaded_at))

        return PgvectorRetriever(
            source_tables.engine,
            questions,
            chunk_id=chunk.id,
            vector=chunk.embedding,
            tie=chunk.id,
            where=chunk.embedding.is_not(None) & chunk.text.is_not(None),
            check=check,
        )
    name = corpus_name(chunks.identity, corpus.ids, corpus.texts)
    index_vectors(database(), name, corpus.ids, _chunk_vectors(run, corpus, chunks))
    columns = chunk_vector.c
    return PgvectorRetriever(
        database(),
        questions,
        chunk_id=columns.chunk_id,
        vector=columns.vector,
        tie=columns.position,
        where=columns.corpus == name,
    )


def _chunk_vectors(run: EvaluationRun, corpus: Corpus, chunks: Embedder) -> Vectors:
    """Return the source's own vectors if they are used, else the embedder's; at length 1, NaN without a direction."""
    if corpus.vectors is not None and run.config.vectors == "stored":
        return normalise_vectors(corpus.vectors)
    return normalise_vectors(embed_texts(corpus.texts, chunks, database()))


def _open_hybrid(run: EvaluationRun, corpus: Corpus) -> Retriever:
    return HybridRetriever([_open_dense(run, corpus), _open_fulltext(run, corpus)])


def _open_fulltext(run: EvaluationRun, corpus: Corpus) -> Retriever:
    configuration = TEXT_SEARCH_CONFIGURATIONS[run.config.language]
    name = index_corpus(database(), configuration, corpus.texts)
    return FulltextRetriever(database(), corpus.ids, corpus=name, configuration=configuration)


def _open_service(run: EvaluationRun, corpus: Corpus) -> Retriever:
    from yarus.tasks.systems.retrievers.external import (  # aiohttp: only needed here
        ExternalRetriever,
        open_ranking_service,
    )

    service = get_settings().retriever_service
    return ExternalRetriever(open_ranking_service(run.config.retriever, service), concurrency=service.concurrency)


def _open_callable(run: EvaluationRun, corpus: Corpus) -> Retriever:
    from yarus.tasks.systems.retrievers.external import ExternalRetriever
    from yarus.tasks.systems.user_code import UserFunctions

    code = run.resources.get(UserFunctions).get(run.config.retriever, "YARUS_RETRIEVER", "ranking")
    return ExternalRetriever(lambda question, k: code.call(question, k)[0], concurrency=code.concurrency)


RETRIEVERS: dict[str, RetrieverKind] = {
    "dense": RetrieverKind(_open_dense, uses_vectors=True),
    "pgvector": RetrieverKind(_open_pgvector, uses_vectors=True),
    "fulltext": RetrieverKind(_open_fulltext, uses_vectors=False),
    "hybrid": RetrieverKind(_open_hybrid, uses_vectors=True),
    "http://…": RetrieverKind(_open_service, uses_vectors=False),
    "module:function": RetrieverKind(_open_callable, uses_vectors=False),
}


def get_retriever_kind(name: str) -> RetrieverKind:
    """Return the kind of a retriever by its name, a service's address or a callable's name.

    Raises:
        InputError: the name is unknown, and the message suggests the nearest; or an address has a password in it.
    """
    if is_http_url(name):
        require_public_address(name, "YARUS_RETRIEVER_SERVICE")
        return RETRIEVERS["http://…"]
    if is_function_path(name):
        return RETRIEVERS["module:function"]
    if name not in RETRIEVERS:
        raise unknown("retriever", name, RETRIEVERS)
    return RETRIEVERS[name]
