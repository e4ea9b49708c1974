"""Pools of an evaluation with LLM relevance labels, as people see them, and people's judgements."""

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
from yarus.db.stores.labels import Label, find_newest_llm_labelled
from yarus.metrics.metric import Metric
from yarus.tasks.cases.privacy.pseudonyms import mask_message
from yarus.tasks.cases.rankings import Pool, PooledResult, judge_grade, judged_passages, relevance_by_judge
from yarus.tasks.cases.table import column_values, float_column
from yarus.tasks.cases.vocabulary import HEADLINE_STRATUM
from yarus.tasks.dataset.labelling.alpha import parse_annotator
from yarus.tasks.dataset.labelling.sampling import LabelledCases, SampledCase, assign_strata, sampling_order
from yarus.tasks.evaluation import result_files
from yarus.tasks.evaluation.aggregate import list_metrics
from yarus.tasks.evaluation.config import EvaluationConfig
from yarus.tasks.evaluation.judge_standing import LABELLING_PROMPT, judge_key
from yarus.tasks.models.verdicts import GRADES

SAMPLING_METRIC = "ndcg@10"
"""Metric whose values define the strata, because it depends on all results."""
MIN_RELEVANT = 0.5
"""Mean label of people from which a result counts as relevant."""
CASE_COLUMNS = ("case_id", "question", "status", "group", "stratum", "pooled", "passages")
Judgements = dict[str, bool]
"""Result -> whether people judge it relevant."""


def has_llm_labels(row: RowMapping) -> bool:
    """Return whether a judge has filled in missing labels of an evaluation.

    Args:
        row: a row of the journal.
    """
    return EvaluationConfig.of(row).labels == "filled" and bool(row["parquet"])


@dataclass(frozen=True)
class Pools(LabelledCases):
    """The questions of an evaluation with their pools, without those for which the judge failed.

    `cases` has `case_id`, `question`, `group`, `pooled`, `passages` and the metrics' columns as the judge sees them.
    """

    k: int
    metrics: tuple[Metric, ...]
    """Ranking metrics with a mean."""

    @cached_property
    def questions(self) -> list[str]:
        """Return the texts of the questions."""
        return column_values(self.cases, "question")

    @cached_property
    def pools(self) -> list[Pool]:
        """Return the pool of each case."""
        return column_values(self.cases, "pooled")

    @cached_property
    def passages(self) -> list[dict[str, str]]:
        """Return result -> text for each case, of the results that can be judged."""
        return judged_passages(self.cases)

    @cached_property
    def strata(self) -> list[str]:
        """Return the stratum of each question: ranking quality by the judge, and whether the source has labels."""
        labelled = ["labelled" if any(result["label"] for result in pool) else "unlabelled" for pool in self.pools]
        return assign_strata(float_column(self.cases, SAMPLING_METRIC).tolist(), labelled)

    @cached_property
    def order(self) -> list[SampledCase]:
        """Return the questions in sampling order, the same every night, so that people judge only new results."""
        return sampling_order(self.ids, self.strata, seed=f"{LABELLING_PROMPT}|{self.source}")

    @cached_property
    def probabilities(self) -> dict[int, float]:
        """Return row -> sampling probability."""
        return {sampled.row: sampled.probability for sampled in self.order}

    @cached_property
    def digests(self) -> list[dict[str, str]]:
        """Return result -> digest of question and passage for each case, of the results that can be judged."""
        return [
            {result: text_digest(question, passage) for result, passage in passages.items()}
            for question, passages in zip(self.questions, self.passages, strict=True)
        ]

    @cached_property
    def n_pairs(self) -> int:
        """Return the number of results that people can judge."""
        return sum(map(len, self.digests))

    def texts_for_people(self, row: int, result: PooledResult) -> dict[str, str]:
        """Return question and passage, with pseudonyms if the source has them."""
        texts = {"question": self.questions[row], "context": self.passages[row][result["result"]]}
        return {name: mask_message(value, self.source) for name, value in texts.items()}

    def label(self, row: int, result: PooledResult, annotator: str, value: float | None, note: str | None) -> Label:
        """Return the label that an annotator gives a result now."""
        return self.make_label(
            row,
            metric=LABELLING_PROMPT,
            annotator=parse_annotator(annotator),
            value=value,
            score=judge_grade(result) / GRADES[-1],
            probability=self.probabilities[row],
            shown_sha256=self.digests[row][result["result"]],
            note=note,
            result=result["result"],
        )


def text_digest(question: str, passage: str) -> str:
    """Return a digest that binds a label to its texts in any evaluation."""
    return hashlib.sha256(f"{question}\0{passage}".encode("utf-8", "replace")).hexdigest()[:16]


def load_pools(engine: Engine, evaluation: str) -> Pools:
    """Return the pools of an evaluation.

    Args:
        engine: engine of Yarus's own database.
        evaluation: an evaluation id, its beginning or end, or `last`: the newest with filled labels.

    Raises:
        InputError: its labels were not filled in, or nothing is left to judge.
        ResultsUnavailable: its file cannot be read.
    """
    newest = find_newest_llm_labelled(engine) if evaluation == "last" else None
    row = newest or journal.find_evaluation(engine, evaluation)
    if not has_llm_labels(row):
        raise InputError(
            "evaluation {id} ({tier}, {state}) has no labels that a judge has filled up: run yarus run tier1 "
            "--source {source} --labels llm, then label its results",
            id=row["id"],
            tier=row["tier"],
            state=row["state"],
            source=row["source"],
        )
    evaluation_pools = pools_from_row(row)
    if not evaluation_pools.n_pairs:
        raise InputError("evaluation {id}: the labels say of every result whether it is relevant", id=row["id"])
    return evaluation_pools


def pools_from_row(row: RowMapping) -> Pools:
    """Return the pools of an evaluation whose labels are known to be filled in."""
    config = EvaluationConfig.of(row)
    metrics = tuple(metric for metric in list_metrics(row["tier"], config) if metric.of_relevance and metric.column)
    cases = result_files.read_results(row["parquet"], (*CASE_COLUMNS, *(metric.column or "" for metric in metrics)))
    if "stratum" in cases.column_names:  # of the log, only the stratum of its headline metrics
        cases = cases.filter(pc.equal(cases["stratum"], HEADLINE_STRATUM))
    cases = cases.filter(pc.and_(pc.equal(cases["status"], "ok"), cases["pooled"].is_valid()))
    readable = [relevance_by_judge(pool) is not None for pool in column_values(cases, "pooled")]
    return Pools(
        row["id"],
        row["source"],
        row["tier"],
        judge_key(config.judge, LABELLING_PROMPT),
        cases.filter(pa.array(readable, pa.bool_())),
        config.k,
        metrics,
    )


def majority_relevance(labels: Iterable[Label]) -> dict[str, bool]:
    """Return digest of texts -> whether most annotators judged the result relevant.

    Args:
        labels: labels in the order in which they were given; the last label of each annotator counts.
    """
    labels_by_text: dict[str, dict[str, float]] = defaultdict(dict)
    for label in labels:
        if label.value is not None:
            labels_by_text[label.shown_sha256][label.annotator] = label.value
    return {text_sha256: fmean(values.values()) >= MIN_RELEVANT for text_sha256, values in labels_by_text.items()}


def people_judgements(pools: Pools, labels: Iterable[Label]) -> list[Judgements]:
    """Return people's judgements of the results of each question, from this evaluation or others."""
    judged = majority_relevance(labels)
    if not judged:
        return [{} for _ in pools.ids]
    return [{name: judged[digest] for name, digest in texts.items() if digest in judged} for texts in pools.digests]
