"""Corpus analytics: what of the corpus is used, what people ask about, what to write next, and a map of both."""

from collections.abc import Sequence

import numpy as np
from sqlalchemy import Engine

from yarus.tasks.corpus.apart import counted_apart, kinds_of
from yarus.tasks.corpus.cohesion import held_together
from yarus.tasks.corpus.documents import CorpusAnalytics
from yarus.tasks.corpus.profile import profile
from yarus.tasks.corpus.projection import map_of, reduced, unit
from yarus.tasks.corpus.question_log import evaluations_of, read_log
from yarus.tasks.corpus.topics import cluster, served
from yarus.tasks.corpus.usage import utilisation
from yarus.tasks.corpus.wording.stop_words import content
from yarus.tasks.models.embedders import Embedder, Lexical, embedder, measuring_embedder

POINTS = 50_000
SEED = 0


def corpus(
    engine: Engine, source: str, *, evaluation: str | None = None, points: int = POINTS, limit: int | None = None
) -> CorpusAnalytics:
    """What a source's corpus and log are like.

    Args:
        engine: of our own database.
        source: its name.
        evaluation: whose rankings and outcomes count; None: the newest of the source.
        points: most points of the map.
        limit: most questions, the newest ones; None: all.

    Raises:
        InputError: no such source or evaluation, or there is nothing to look at.
    """
    evaluations = evaluations_of(engine, source, evaluation)
    log = read_log(engine, source, evaluations, limit=limit)
    used, uses = utilisation(log, evaluations)
    kinds = kinds_of(log)
    asked = log.of(np.flatnonzero([kind is None for kind in kinds]))
    model = embedder(measuring_embedder())
    texts = [question["question"] for question in asked.questions]
    questions, chunks, variance = reduced(
        _meant(texts, model), _meant(log.corpus.texts, model), model, engine, seed=SEED
    )
    directions = unit(questions)
    held = held_together(questions, cluster(directions, seed=SEED), seed=SEED)
    drawn = map_of(asked, questions, chunks, held.codes, uses, variance=variance, points=points, seed=SEED)
    return {
        "source": source,
        "embedder": model.identity,
        "utilisation": used,
        "chatter": counted_apart(log, kinds),
        **served(asked, directions, held),
        "profile": profile(log),
        "map": drawn,
    }


def _meant(texts: Sequence[str], model: Embedder) -> Sequence[str]:
    """What an embedder is given: one that knows no meaning only the words that say what a text is about."""
    if not isinstance(model, Lexical):
        return texts
    return [" ".join(content(text)) or text for text in texts]
