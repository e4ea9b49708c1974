"""What can serve the step `retrieve`, in one table; a new retriever is one file and one line here."""

from collections.abc import Callable
from typing import NamedTuple

from db.errors import unknown
from db.fulltext import CONFIGURATIONS, index_corpus
from db.sources import Corpus
from tasks.connect import database
from tasks.embed import embed
from tasks.models.embedders import embedders
from tasks.retrievers.dense import Dense, unit_vectors
from tasks.retrievers.fulltext import Fulltext
from tasks.retrievers.protocol import Ranking, Retriever
from tasks.run import Run
from tasks.settings import settings

__all__ = ["RETRIEVERS", "Ranking", "Retriever", "retriever_kind"]


class Kind(NamedTuple):
    """How to make a retriever, and what it needs."""

    open: Callable[[Run, Corpus], Retriever]
    """Makes the corpus searchable, if it is not yet, and returns the retriever over it."""
    uses_vectors: bool


def _dense(run: Run, corpus: Corpus) -> Retriever:
    questions, chunks = embedders(run.resolved["embedder"], settings())
    if corpus.vectors is not None and run.resolved["vectors"] == "stored":
        return Dense(corpus.ids, unit_vectors(corpus.vectors), questions)
    return Dense(corpus.ids, embed(corpus.texts, chunks, database()), questions)


def _fulltext(run: Run, corpus: Corpus) -> Retriever:
    configuration = CONFIGURATIONS[run.resolved["language"]]
    name = index_corpus(database(), configuration, corpus.texts)
    return Fulltext(database(), corpus.ids, corpus=name, configuration=configuration)


RETRIEVERS: dict[str, Kind] = {
    "dense": Kind(_dense, uses_vectors=True),
    "fulltext": Kind(_fulltext, uses_vectors=False),
}


def retriever_kind(name: str) -> Kind:
    """The kind of that name.

    Raises:
        InputError: there is none; the nearest is named.
    """
    if name not in RETRIEVERS:
        raise unknown("retriever", name, RETRIEVERS)
    return RETRIEVERS[name]
