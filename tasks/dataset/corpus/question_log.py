"""Question log of a source with labels, the bot's outcomes and evaluation results per question."""

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlalchemy import Engine, select
from sqlalchemy.engine import RowMapping

from yarus.db import journal
from yarus.db.errors import InputError, ResultsUnavailable, empty_source_error
from yarus.db.messages import Words
from yarus.db.source_rows import Corpus, QuestionRow, read_corpus, read_questions
from yarus.db.sources import open_snapshot
from yarus.db.tables import config_value, evaluation
from yarus.tasks.cases.labels import BAD, GOOD, annotated_cases, page_by_chunk
from yarus.tasks.cases.outcomes import is_answerable, refusal_reason
from yarus.tasks.cases.table import column_values
from yarus.tasks.cases.vocabulary import MEASURED_STATUSES
from yarus.tasks.config.connections import open_source
from yarus.tasks.config.settings import get_settings
from yarus.tasks.dataset.corpus.corpus_schema import PageCount
from yarus.tasks.evaluation import result_files

Floats = NDArray[np.float64]
MAX_EVALUATIONS = 50
HIT_METRIC = "hit_rate@10"
RANKING_TIERS = ("tier1", "real_users", "tier3")
"""Tiers whose hits count, the deepest rankings first."""


@dataclass(frozen=True)
class QuestionLog:
    """The real questions of a source, n entries per field, and its corpus."""

    name: str
    questions: list[QuestionRow]
    corpus: Corpus
    pages: dict[str, str | None]
    """Chunk -> page."""
    is_missing: NDArray[np.bool_]
    """Whether the corpus has no page for the question: its labelled pages were removed, or it has no answer."""
    removed_pages: list[list[str]]
    """Labelled pages that are not in the corpus."""
    relevant: list[list[str]]
    hits: Floats
    """1 if something relevant was retrieved, 0 if not, NaN if unknown."""
    failures: Floats
    """1 if the newest evaluation, or else the user, found the answer bad; NaN if unknown."""

    def select_questions(self, rows: NDArray[np.intp]) -> "QuestionLog":
        """Return the log with these questions only."""
        indices = rows.tolist()
        return replace(
            self,
            questions=[self.questions[row] for row in indices],
            is_missing=self.is_missing[rows],
            removed_pages=[self.removed_pages[row] for row in indices],
            relevant=[self.relevant[row] for row in indices],
            hits=self.hits[rows],
            failures=self.failures[rows],
        )


def read_log(name: str, evaluations: list[RowMapping], *, limit: int | None) -> QuestionLog:
    """Return the log of a source without synthetic questions; with `limit`, only the newest questions.

    Raises:
        InputError: the source does not exist, or has no questions or chunks.
    """
    data_source = open_source(name)
    with open_snapshot(data_source) as connection:
        questions = [row for row in read_questions(connection, data_source) if row.get("origin") != "synthetic"]
        corpus = read_corpus(connection, data_source, vectors=False)
    if not questions or not corpus.ids:
        raise empty_source_error(name, Words("chunks") if questions else Words("questions of users"))
    if limit is not None and len(questions) > limit:
        questions.sort(key=lambda row: (row["created_at"] is not None, row["created_at"] or 0, row["question_id"]))
        questions = questions[-limit:]
    cases, _ = annotated_cases(name, questions, corpus, "page")
    relevant = column_values(cases, "relevant")
    split_labels = [[label.rpartition("=") for label in labels] for labels in column_values(cases, "labelled")]
    labelled = [[page for page, _, grade in labels if float(grade) > 0] for labels in split_labels]
    removed = [
        [page for page in pages if page not in relevant_pages]
        for pages, relevant_pages in zip(labelled, relevant, strict=True)
    ]
    is_stale = [status == "stale_label" for status in column_values(cases, "status")]
    is_missing = [stale or is_answerable(row) is False for stale, row in zip(is_stale, questions, strict=True)]
    ids = [row["question_id"] for row in questions]
    return QuestionLog(
        name=name,
        questions=questions,
        corpus=corpus,
        pages=page_by_chunk(corpus),
        is_missing=np.array(is_missing, dtype=bool),
        removed_pages=removed,
        relevant=relevant,
        hits=_read_hits(ids, evaluations),
        failures=_read_failures(questions, evaluations),
    )


def find_evaluations(engine: Engine, name: str, chosen: str | None = None) -> list[RowMapping]:
    """Return the newest finished evaluations of a source with rankings, newest first; or only the chosen one.

    Evaluations with perturbed questions and variants of a sweep are excluded, because production does not run them.

    Raises:
        InputError: the evaluation does not exist, has another source, or has no rankings.
    """
    if chosen is not None:
        row = journal.find_evaluation(engine, chosen)
        if row["source"] != name or row["parquet"] is None or row["tier"] not in RANKING_TIERS:
            raise InputError(
                "evaluation {id} is of {tier} over {source!r}, {state}: corpus analytics need a finished one of "
                "{tiers} over {name!r}",
                id=row["id"],
                tier=row["tier"],
                source=row["source"],
                state=row["state"],
                tiers=", ".join(RANKING_TIERS),
                name=name,
            )
        return [row]
    finished = select(evaluation).where(
        evaluation.c.source == name,
        evaluation.c.state.in_(journal.FINISHED_STATES),
        evaluation.c.tier.in_(RANKING_TIERS),
        evaluation.c.parquet.is_not(None),
        config_value("perturbation").astext.is_(None),
        *(config_value(mark).astext.is_(None) for mark in journal.NON_LIVE_KEYS),
    )
    with engine.connect() as connection:
        newest = finished.order_by(evaluation.c.started_at.desc()).limit(MAX_EVALUATIONS)
        return list(connection.execute(newest).mappings())


def read_columns(row: RowMapping, *names: str) -> pa.Table | None:
    """Return columns of an evaluation's file; None if the file or a column is missing."""
    try:
        cases = result_files.read_results(row["parquet"], list(names))
    except ResultsUnavailable:
        return None
    return None if set(names) - set(cases.column_names) else cases


def _read_hits(ids: list[str], evaluations: list[RowMapping]) -> Floats:
    """Return the hits by the newest evaluation of each tier; the tier with the deepest rankings takes precedence."""
    hits_by_question: dict[str, float] = {}
    for tier in reversed(RANKING_TIERS):
        row = next((row for row in evaluations if row["tier"] == tier), None)
        cases = read_columns(row, "question_id", HIT_METRIC) if row is not None else None
        if cases is not None:
            pairs = zip(column_values(cases, "question_id"), column_values(cases, HIT_METRIC), strict=True)
            hits_by_question |= {question: hit for question, hit in pairs if hit is not None}
    return np.array([hits_by_question.get(question, np.nan) for question in ids])


def _read_failures(questions: list[QuestionRow], evaluations: list[RowMapping]) -> Floats:
    newest = next((row for row in evaluations if row["tier"] == "tier3"), None)
    cases = read_columns(newest, "question_id", "status", "failure") if newest is not None else None
    rows = cases.to_pylist() if cases is not None else []
    measured = {
        row["question_id"]: float(row["failure"] is not None) for row in rows if row["status"] in MEASURED_STATUSES
    }
    phrases = get_settings().refusal_phrases
    return np.array([measured.get(row["question_id"], _user_failure(row, phrases)) for row in questions])


def _user_failure(question: QuestionRow, phrases: list[str]) -> float:
    """Return 1 if the bot declined or the user was dissatisfied, 0 if satisfied, or else NaN."""
    if question["score"] in (GOOD, BAD):
        return float(question["score"] == BAD)
    return 1.0 if refusal_reason(question["answer"] or "", phrases) else np.nan


def most_common_pages(items: list[list[str]], limit: int) -> list[PageCount]:
    """Return the most common pages of the lists, with the number of lists that contain each."""
    counts = Counter(page for pages in items for page in dict.fromkeys(pages))
    return [{"page": page, "n": n} for page, n in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:limit]]
