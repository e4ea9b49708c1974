"""The log of a source with what is known of every question: its labels, what the bot said, how evaluations went."""

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlalchemy import Engine, select
from sqlalchemy.engine import RowMapping

from yarus.db import journal
from yarus.db.errors import InputError, ResultsUnavailable, nothing_in
from yarus.db.source_rows import Corpus, Row, read_corpus, read_questions
from yarus.db.sources import snapshot
from yarus.db.tables import config_at, evaluation
from yarus.db.words import Words
from yarus.tasks.cases.labels import BAD, GOOD, annotated_cases, pages_of
from yarus.tasks.cases.outcomes import answerable, declined
from yarus.tasks.cases.table import values_of
from yarus.tasks.cases.vocabulary import MEASURED
from yarus.tasks.config.connections import source
from yarus.tasks.config.settings import settings
from yarus.tasks.dataset.corpus.corpus_schema import CountedPage
from yarus.tasks.evaluation import result_files

Floats = NDArray[np.float64]
MOST_EVALUATIONS = 50
HIT = "hit_rate@10"
BY_TIER = ("tier1", "real_users", "tier3")
"""Whose hits count: the deepest rankings first."""


@dataclass(frozen=True)
class Log:
    """The real questions of a source, n rows each, and its corpus."""

    name: str
    questions: list[Row]
    corpus: Corpus
    pages: dict[str, str | None]
    """Chunk -> page."""
    missing: NDArray[np.bool_]
    """Whether the corpus has no page for the question: its labels name pages that are gone, or it has no answer."""
    gone: list[list[str]]
    """The pages that are labelled and not in the corpus."""
    relevant: list[list[str]]
    hits: Floats
    """1 where something relevant was retrieved, 0 where not, NaN where that is not known."""
    failures: Floats
    """1 where the question was answered badly, by the newest evaluation or else by its user; NaN where unknown."""

    def of(self, rows: NDArray[np.intp]) -> "Log":
        """The log with these questions only."""
        kept = rows.tolist()
        return replace(
            self,
            questions=[self.questions[row] for row in kept],
            missing=self.missing[rows],
            gone=[self.gone[row] for row in kept],
            relevant=[self.relevant[row] for row in kept],
            hits=self.hits[rows],
            failures=self.failures[rows],
        )


def read_log(name: str, evaluations: list[RowMapping], *, limit: int | None) -> Log:
    """The log of a source; the newest `limit` questions, all of them without. Synthetic questions are not real ones.

    Raises:
        InputError: no such source, or one without questions or chunks.
    """
    where = source(name)
    with snapshot(where) as connection:
        questions = [row for row in read_questions(connection, where) if row.get("origin") != "synthetic"]
        corpus = read_corpus(connection, where, vectors=False)
    if not questions or not corpus.ids:
        raise nothing_in(name, Words("chunks") if questions else Words("questions of users"))
    if limit is not None and len(questions) > limit:
        questions.sort(key=lambda row: (row["created_at"] is not None, row["created_at"] or 0, row["question_id"]))
        questions = questions[-limit:]
    cases, _ = annotated_cases(name, questions, corpus, "page")
    relevant = values_of(cases, "relevant")
    labels = [[label.rpartition("=") for label in of] for of in values_of(cases, "labelled")]
    labelled = [[page for page, _, grade in of if float(grade) > 0] for of in labels]
    gone = [[page for page in of if page not in there] for of, there in zip(labelled, relevant, strict=True)]
    stale = [status == "stale_label" for status in values_of(cases, "status")]
    missing = [lost or answerable(row) is False for lost, row in zip(stale, questions, strict=True)]
    ids = [row["question_id"] for row in questions]
    return Log(
        name=name,
        questions=questions,
        corpus=corpus,
        pages=pages_of(corpus),
        missing=np.array(missing, dtype=bool),
        gone=gone,
        relevant=relevant,
        hits=_hits(ids, evaluations),
        failures=_failures(questions, evaluations),
    )


def evaluations_of(engine: Engine, name: str, chosen: str | None = None) -> list[RowMapping]:
    """The newest finished evaluations of a source that have rankings, newest first; or the chosen one alone.

    Those that asked the questions otherwise, and arms of a sweep, are left out: production does not run them.

    Raises:
        InputError: no such evaluation, of another source, or without rankings.
    """
    if chosen is not None:
        row = journal.find(engine, chosen)
        if row["source"] != name or row["parquet"] is None or row["tier"] not in BY_TIER:
            raise InputError(
                "evaluation {id} is of {tier} over {source!r}, {state}: corpus analytics need a finished one of "
                "{tiers} over {name!r}",
                id=row["id"],
                tier=row["tier"],
                source=row["source"],
                state=row["state"],
                tiers=", ".join(BY_TIER),
                name=name,
            )
        return [row]
    finished = select(evaluation).where(
        evaluation.c.source == name,
        evaluation.c.state.in_(journal.FINISHED),
        evaluation.c.tier.in_(BY_TIER),
        evaluation.c.parquet.is_not(None),
        config_at("perturbation").astext.is_(None),
        *(config_at(mark).astext.is_(None) for mark in journal.ASIDE),
    )
    with engine.connect() as connection:
        newest = finished.order_by(evaluation.c.started_at.desc()).limit(MOST_EVALUATIONS)
        return list(connection.execute(newest).mappings())


def columns_of(row: RowMapping, *names: str) -> pa.Table | None:
    """Columns of an evaluation's file; None where the file is gone, or has one of them not."""
    try:
        cases = result_files.read(row["parquet"], list(names))
    except ResultsUnavailable:
        return None
    return None if set(names) - set(cases.column_names) else cases


def _hits(ids: list[str], evaluations: list[RowMapping]) -> Floats:
    """By the newest evaluation of each tier; the tier with the deepest rankings decides."""
    found: dict[str, float] = {}
    for tier in reversed(BY_TIER):
        row = next((row for row in evaluations if row["tier"] == tier), None)
        cases = columns_of(row, "question_id", HIT) if row is not None else None
        if cases is not None:
            pairs = zip(values_of(cases, "question_id"), values_of(cases, HIT), strict=True)
            found |= {question: hit for question, hit in pairs if hit is not None}
    return np.array([found.get(question, np.nan) for question in ids])


def _failures(questions: list[Row], evaluations: list[RowMapping]) -> Floats:
    newest = next((row for row in evaluations if row["tier"] == "tier3"), None)
    cases = columns_of(newest, "question_id", "status", "failure") if newest is not None else None
    rows = cases.to_pylist() if cases is not None else []
    measured = {row["question_id"]: float(row["failure"] is not None) for row in rows if row["status"] in MEASURED}
    phrases = settings().refusals
    return np.array([measured.get(row["question_id"], _by_user(row, phrases)) for row in questions])


def _by_user(question: Row, phrases: list[str]) -> float:
    """1 where the bot had nothing to say or its user was not content, 0 where content, else NaN."""
    if question["score"] in (GOOD, BAD):
        return float(question["score"] == BAD)
    return 1.0 if declined(question["answer"] or "", phrases) else np.nan


def counted(items: list[list[str]], most: int) -> list[CountedPage]:
    """The commonest texts in lists, with how many lists have each."""
    counts = Counter(item for of in items for item in dict.fromkeys(of))
    return [{"page": page, "n": n} for page, n in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:most]]
