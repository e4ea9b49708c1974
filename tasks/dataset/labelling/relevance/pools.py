"""The pools of an evaluation whose labels a judge has filled up, as people are shown them, and what they have said."""

import hashlib
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Engine
from sqlalchemy.engine import RowMapping

from yarus.db import journal
from yarus.db.errors import InputError
from yarus.db.stores.labels import Label, newest_filled
from yarus.metrics.metric import Metric
from yarus.tasks.cases.privacy.pseudonyms import text
from yarus.tasks.cases.rankings import Pool, Pooled, by_judge, graded, passages_of
from yarus.tasks.cases.table import floats, values_of
from yarus.tasks.cases.vocabulary import HEADLINE_STRATUM
from yarus.tasks.dataset.labelling.alpha import annotator as named
from yarus.tasks.dataset.labelling.draw import Drawn, OfCases, drawn, strata
from yarus.tasks.evaluation import result_files
from yarus.tasks.evaluation.aggregate import measured_by
from yarus.tasks.evaluation.config import EvaluationConfig
from yarus.tasks.evaluation.standings import FILLING, judge_key
from yarus.tasks.models.verdicts import GRADES

DRAWN_BY = "ndcg@10"
"""The metric by which questions are drawn, for it rests on every result."""
RELEVANT = 0.5
"""What people say from which on a result is relevant."""
READ = ("case_id", "question", "status", "group", "stratum", "pooled", "passages")
Heard = dict[str, bool]
"""Result -> whether people call it relevant."""


def is_filled(row: RowMapping) -> bool:
    """Whether a judge has filled up the labels of an evaluation.

    Args:
        row: of the journal.
    """
    return EvaluationConfig.of(row).labels == "filled" and bool(row["parquet"])


@dataclass(frozen=True)
class Pools(OfCases):
    """The questions of an evaluation with their pools; those where the judge has failed are left out.

    `cases` has `case_id`, `question`, `group`, `pooled`, `passages` and the metrics' columns as the judge sees them.
    """

    k: int
    metrics: tuple[Metric, ...]
    """Whose means are made of relevance."""

    @cached_property
    def questions(self) -> list[str]:
        """The texts."""
        return values_of(self.cases, "question")

    @cached_property
    def pools(self) -> list[Pool]:
        """Of each case."""
        return values_of(self.cases, "pooled")

    @cached_property
    def passages(self) -> list[dict[str, str]]:
        """Of each case: result -> text, of what can be judged."""
        return passages_of(self.cases)

    @cached_property
    def strata(self) -> list[str]:
        """What each question is drawn from: how good its ranking is by the judge, and whether the source has labels."""
        labelled = ["labelled" if any(one["label"] for one in pool) else "unlabelled" for pool in self.pools]
        return strata(floats(self.cases, DRAWN_BY).tolist(), labelled)

    @cached_property
    def order(self) -> list[Drawn]:
        """The questions as people are asked about them: the same every night, so that only what is new is asked."""
        return drawn(self.ids, self.strata, seed=f"{FILLING}|{self.source}")

    @cached_property
    def probabilities(self) -> dict[int, float]:
        """Row -> of being drawn."""
        return {one.row: one.probability for one in self.order}

    @cached_property
    def digests(self) -> list[dict[str, str]]:
        """Of each case: result -> what binds a label to question and passage; of what can be judged."""
        return [
            {result: digest(question, passage) for result, passage in passages.items()}
            for question, passages in zip(self.questions, self.passages, strict=True)
        ]

    @cached_property
    def n_pairs(self) -> int:
        """Results that people could judge."""
        return sum(map(len, self.digests))

    def shown(self, row: int, one: Pooled) -> dict[str, str]:
        """Question and passage; with pseudonyms where the source has them."""
        texts = {"question": self.questions[row], "context": self.passages[row][one["result"]]}
        return {name: text(said, self.source) for name, said in texts.items()}

    def label(self, row: int, one: Pooled, annotator: str, value: float | None, note: str | None) -> Label:
        """What an annotator says of a result, now."""
        return self.labelled(
            row,
            metric=FILLING,
            annotator=named(annotator),
            value=value,
            score=graded(one) / GRADES[-1],
            probability=self.probabilities[row],
            shown_sha256=self.digests[row][one["result"]],
            note=note,
            result=one["result"],
        )


def digest(question: str, passage: str) -> str:
    """What binds a label to the texts that it is about, in whatever evaluation they meet again."""
    return hashlib.sha256(f"{question}\0{passage}".encode("utf-8", "replace")).hexdigest()[:16]


def pools(engine: Engine, evaluation: str) -> Pools:
    """The pools of an evaluation.

    Args:
        engine: of our own database.
        evaluation: an id, the beginning or end of one, or `last`: the newest with filled labels.

    Raises:
        InputError: its labels were not filled up, or nothing is left to judge.
        ResultsUnavailable: its file cannot be read.
    """
    newest = newest_filled(engine) if evaluation == "last" else None
    row = newest or journal.find(engine, evaluation)
    if not is_filled(row):
        raise InputError(
            "evaluation {id} ({tier}, {state}) has no labels that a judge has filled up: run yarus run tier1 "
            "--source {source} --labels filled, then label its results",
            id=row["id"],
            tier=row["tier"],
            state=row["state"],
            source=row["source"],
        )
    found = of_row(row)
    if not found.n_pairs:
        raise InputError("evaluation {id}: the labels say of every result whether it is relevant", id=row["id"])
    return found


def of_row(row: RowMapping) -> Pools:
    """The same of an evaluation that is known to be filled."""
    config = EvaluationConfig.of(row)
    metrics = tuple(one for one in measured_by(row["tier"], config) if one.of_relevance and one.column)
    cases = result_files.read(row["parquet"], (*READ, *(one.column or "" for one in metrics)))
    if "stratum" in cases.column_names:  # of the log, the part that its headline is made of
        cases = cases.filter(pc.equal(cases["stratum"], HEADLINE_STRATUM))
    cases = cases.filter(pc.and_(pc.equal(cases["status"], "ok"), cases["pooled"].is_valid()))
    readable = [by_judge(pool) is not None for pool in values_of(cases, "pooled")]
    return Pools(
        row["id"],
        row["source"],
        row["tier"],
        judge_key(config.judge, FILLING),
        cases.filter(pa.array(readable, pa.bool_())),
        config.k,
        metrics,
    )


def people_say(labels: Iterable[Label]) -> dict[str, bool]:
    """Whether a result is relevant by most of those who judged it, by what binds their labels to its texts.

    Args:
        labels: in the order in which they were given; the last word of each annotator counts.
    """
    by_text: dict[str, dict[str, float]] = defaultdict(dict)
    for label in labels:
        if label.value is not None:
            by_text[label.shown_sha256][label.annotator] = label.value
    return {text: fmean(values.values()) >= RELEVANT for text, values in by_text.items()}


def heard(of: Pools, labels: Iterable[Label]) -> list[Heard]:
    """What people have said of the results of each question, in this evaluation or another."""
    said = people_say(labels)
    if not said:
        return [{} for _ in of.ids]
    return [{name: said[text] for name, text in texts.items() if text in said} for texts in of.digests]
