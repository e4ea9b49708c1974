"""Corpus analytics: what of the corpus is used, what people ask about, what to write next, and a map of both."""

from sqlalchemy import Engine

from tasks.corpus.documents import CorpusAnalytics
from tasks.corpus.profile import profile
from tasks.corpus.projection import map_of, reduced, unit
from tasks.corpus.question_log import evaluations_of, read_log
from tasks.corpus.topics import cluster, served
from tasks.corpus.usage import utilisation
from tasks.models.embedders import embedder, measuring_embedder

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
    model = embedder(measuring_embedder())
    texts = [question["question"] for question in log.questions]
    questions, chunks, variance = reduced(texts, log.corpus.texts, model, engine, seed=SEED)
    directions = unit(questions)
    topics = cluster(directions, seed=SEED)
    drawn = map_of(log, questions, chunks, topics, uses, variance=variance, points=points, seed=SEED)
    return {
        "source": source,
        "embedder": model.identity,
        "utilisation": used,
        **served(log, directions, topics),
        "profile": profile(log),
        "map": drawn,
    }
