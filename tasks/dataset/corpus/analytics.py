"""Corpus analytics: page usage, question topics and content gaps; stored with every nightly run."""

import asyncio
from collections.abc import Sequence

import numpy as np
from prefect import task
from prefect.cache_policies import NO_CACHE
from sqlalchemy import Engine

from yarus.db import analyses
from yarus.tasks.config.connections import database
from yarus.tasks.dataset.corpus.cohesion import count_non_questions, non_question_kinds, select_cohesive_topics
from yarus.tasks.dataset.corpus.corpus_schema import CorpusAnalytics
from yarus.tasks.dataset.corpus.languages import content_words
from yarus.tasks.dataset.corpus.profile import log_profile
from yarus.tasks.dataset.corpus.projection import build_corpus_map, normalize_rows, reduce_dimensions
from yarus.tasks.dataset.corpus.question_log import find_evaluations, read_log
from yarus.tasks.dataset.corpus.topics import analyse_topics, cluster_questions
from yarus.tasks.dataset.corpus.usage import measure_usage
from yarus.tasks.models.embedding.embedders import Embedder, LexicalEmbedder, get_embedder, get_measuring_embedder_name

MAX_MAP_POINTS = 50_000
SEED = 0


def analyse_corpus(
    engine: Engine,
    source: str,
    *,
    evaluation: str | None = None,
    points: int = MAX_MAP_POINTS,
    limit: int | None = None,
) -> CorpusAnalytics:
    """Return the analysis of a source's corpus and log.

    Args:
        engine: engine of Yarus's own database.
        source: name of the source.
        evaluation: evaluation with the rankings and outcomes; None for the newest of the source.
        points: maximum number of points of the map.
        limit: maximum number of questions, the newest ones; None for all.

    Raises:
        InputError: the source or evaluation does not exist, or there is nothing to analyse.
    """
    evaluations = find_evaluations(engine, source, evaluation)
    log = read_log(source, evaluations, limit=limit)
    usage, uses = measure_usage(log, evaluations)
    kinds = non_question_kinds(log)
    real_log = log.select_questions(np.flatnonzero([kind is None for kind in kinds]))
    model = get_embedder(get_measuring_embedder_name())
    texts = [question["question"] for question in real_log.questions]
    questions, chunks, variance = reduce_dimensions(
        _embedding_texts(texts, model), _embedding_texts(log.corpus.texts, model), model, engine, seed=SEED
    )
    directions = normalize_rows(questions)
    cohesive = select_cohesive_topics(questions, cluster_questions(directions, seed=SEED), seed=SEED)
    corpus_map = build_corpus_map(
        real_log, questions, chunks, cohesive.codes, uses, variance=variance, points=points, seed=SEED
    )
    return {
        "source": source,
        "embedder": model.identity,
        "utilisation": usage,
        "non_questions": count_non_questions(log, kinds),
        **analyse_topics(real_log, directions, cohesive),
        "profile": log_profile(log),
        "map": corpus_map,
    }


def _embedding_texts(texts: Sequence[str], model: Embedder) -> Sequence[str]:
    """Return the texts to embed; a lexical embedder gets the content words only."""
    if not isinstance(model, LexicalEmbedder):
        return texts
    return [" ".join(content_words(text)) or text for text in texts]


NIGHTLY_MAP_POINTS, NIGHTLY_QUESTIONS = 3_000, 20_000


@task(task_run_name="describe_corpus {source}", cache_policy=NO_CACHE)
async def describe_corpus(source: str) -> str:
    """Store the analysis of the corpus and the newest log questions for the nightly report, and return its id."""
    return await asyncio.to_thread(_save_analysis, source)


def _save_analysis(source: str) -> str:
    engine = database()
    parameters = {"points": NIGHTLY_MAP_POINTS, "limit": NIGHTLY_QUESTIONS}
    with analyses.open_analysis(engine, "corpus", source, parameters) as corpus_id:
        document = analyse_corpus(engine, source, points=NIGHTLY_MAP_POINTS, limit=NIGHTLY_QUESTIONS)
        analyses.save_analysis(engine, corpus_id, document, "completed")
    return corpus_id
