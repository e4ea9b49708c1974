"""Judged answers of an evaluation, as people see them."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from sqlalchemy import Engine
from sqlalchemy.engine import RowMapping

from yarus.db import journal
from yarus.db.errors import InputError, unknown
from yarus.db.messages import Words
from yarus.db.stores.labels import Label
from yarus.metrics.metric import Metric
from yarus.metrics.table import get_metric
from yarus.tasks.cases.privacy.masking import load_own_key, mask
from yarus.tasks.cases.privacy.pseudonyms import should_mask
from yarus.tasks.cases.table import column_values
from yarus.tasks.config.settings import get_settings
from yarus.tasks.dataset.labelling.sampling import LabelledCases, assign_strata
from yarus.tasks.evaluation import result_files
from yarus.tasks.evaluation.aggregate import list_metrics
from yarus.tasks.evaluation.config import EvaluationConfig
from yarus.tasks.evaluation.judge_standing import judge_key

TEXT_COLUMNS = ("question", "answer", "context", "reference")
"""Columns of texts that people see."""
CASE_COLUMNS = ("case_id", "status", "group")
MAX_EVALUATIONS = 60
"""Number of newest evaluations in which judged answers are searched for."""


@dataclass(frozen=True)
class JudgedAnswers(LabelledCases):
    """Answers of an evaluation that a judge has scored by one metric.

    `cases` has one row per scored answer: `case_id`, `status`, `group`, the metric's column and the texts.
    """

    metric: Metric

    @cached_property
    def strata(self) -> list[str]:
        """Return the sampling stratum of each case."""
        return assign_strata(self.scores, column_values(self.cases, "status"))

    @cached_property
    def scores(self) -> list[float]:
        """Return the judge's scores in the order of the cases."""
        scores: list[float] = self.cases[self.metric.column].to_pylist()
        return scores

    def texts_for_people(self, row: int, *, leaves: bool = False) -> dict[str, str]:
        """Return the texts of a case, empty if missing, with pseudonyms if the source has them.

        Args:
            row: row of the case.
            leaves: whether the texts leave this machine in a file.
        """
        texts = self._texts(row)
        if not should_mask(self.source, unset=leaves):
            return texts
        return {name: mask(text, load_own_key(), get_settings().language) for name, text in texts.items()}

    def digest(self, row: int) -> str:
        """Return a digest that binds a label to its texts."""
        return hashlib.sha256("\0".join(self._texts(row).values()).encode("utf-8", "replace")).hexdigest()[:16]

    def label(self, row: int, annotator: str, value: float | None, note: str | None, *, probability: float) -> Label:
        """Return the label that an annotator gives a case now."""
        return self.make_label(
            row,
            metric=self.metric.name,
            annotator=annotator,
            value=value,
            score=self.scores[row],
            probability=probability,
            shown_sha256=self.digest(row),
            note=note,
        )

    def _texts(self, row: int) -> dict[str, str]:
        column_texts = {name: self.cases[name][row].as_py() for name in TEXT_COLUMNS if name in self.cases.column_names}
        return {name: column_texts.get(name) or "" for name in TEXT_COLUMNS}


def judged_metrics(row: RowMapping) -> dict[str, str]:
    """Return the judged means of an evaluation: metric -> key of the judge.

    Args:
        row: a row of the journal.
    """
    config = EvaluationConfig.of(row)
    identity = config.judge or {}
    judge_prompts = identity.get("prompts", {})
    return {
        metric.name: judge_key(identity, metric.opinion)
        for metric in list_metrics(row["tier"], config)
        if metric.opinion in judge_prompts and metric.name == f"avg_{metric.column}" and metric.column == metric.opinion
    }


def finished_evaluations(engine: Engine) -> Iterator[RowMapping]:
    """Yield the newest finished evaluations with cases, newest first."""
    for row in journal.list_evaluations(engine, limit=MAX_EVALUATIONS):
        if row["state"] in journal.FINISHED_STATES and row["parquet"]:
            yield journal.find_evaluation(engine, row["id"])


def load_answers(engine: Engine, evaluation: str, name: str | None = None) -> JudgedAnswers:
    """Return the judged answers of an evaluation.

    Args:
        engine: engine of Yarus's own database.
        evaluation: an evaluation id, its beginning or end, or `last`: the newest with judged answers.
        name: name of a judged metric; by default the first of the evaluation.

    Raises:
        InputError: it has no cases, or no judge has scored them, or not by this metric.
        ResultsUnavailable: its file cannot be read.
    """
    newest = (
        next((row for row in finished_evaluations(engine) if judged_metrics(row)), None)
        if evaluation == "last"
        else None
    )
    row = newest or journal.find_evaluation(engine, evaluation)
    judge_keys = judged_metrics(row)
    if row["parquet"] is None or not judge_keys:
        missing = Words("no answer that a judge has scored") if row["parquet"] else Words("no cases")
        raise InputError(
            "evaluation {id} ({tier}, {state}) has {what}: nothing to label",
            id=row["id"],
            tier=row["tier"],
            state=row["state"],
            what=missing,
        )
    if name is not None and name not in judge_keys:
        raise unknown("judged metric", name, judge_keys, Words("of evaluation {id}", id=row["id"]))
    metric = get_metric(name or next(iter(judge_keys)))
    judged_answers = answers_from_row(row, metric, judge_keys[metric.name])
    if not len(judged_answers.cases):
        raise InputError(
            "evaluation {id}: the judge has given no answer a score of {chosen}", id=row["id"], chosen=metric.name
        )
    return judged_answers


def answers_from_row(row: RowMapping, judged_metric: Metric, key: str, *, texts: bool = True) -> JudgedAnswers:
    """Return the judged answers of an evaluation's row, without texts if only numbers are needed."""
    # Columns that the file lacks are skipped.
    columns = (*CASE_COLUMNS, judged_metric.column or "", *(TEXT_COLUMNS if texts else ()))
    cases = result_files.read_results(row["parquet"], columns)
    scored = cases.filter(cases[judged_metric.column].is_valid())
    return JudgedAnswers(row["id"], row["source"], row["tier"], key, scored, judged_metric)
