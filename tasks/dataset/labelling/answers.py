"""The answers of an evaluation that a judge has scored, as people are shown them."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from sqlalchemy import Engine
from sqlalchemy.engine import RowMapping

from yarus.db import journal
from yarus.db.errors import InputError, unknown
from yarus.db.stores.labels import Label
from yarus.db.words import Words
from yarus.metrics.metric import Metric
from yarus.metrics.table import metric
from yarus.tasks.cases.privacy.masking import mask, own_key
from yarus.tasks.cases.privacy.pseudonyms import has_pseudonyms
from yarus.tasks.cases.table import values_of
from yarus.tasks.config.settings import settings
from yarus.tasks.dataset.labelling.draw import OfCases, strata
from yarus.tasks.evaluation import result_files
from yarus.tasks.evaluation.aggregate import measured_by
from yarus.tasks.evaluation.config import EvaluationConfig
from yarus.tasks.evaluation.standings import judge_key

SHOWN = ("question", "answer", "context", "reference")
"""Columns of texts that people are shown."""
USED = ("case_id", "status", "group")
LISTED = 60
"""Evaluations among which those with judged answers are looked for."""


@dataclass(frozen=True)
class Answers(OfCases):
    """What a judge has scored in an evaluation, of one metric.

    `cases` has a row for each answer with a score: `case_id`, `status`, `group`, the metric's column, the texts shown.
    """

    metric: Metric

    @cached_property
    def strata(self) -> list[str]:
        """What each case is drawn from."""
        return strata(self.scores, values_of(self.cases, "status"))

    @cached_property
    def scores(self) -> list[float]:
        """The judge's, in the order of the cases."""
        found: list[float] = self.cases[self.metric.column].to_pylist()
        return found

    def shown(self, row: int, *, leaves: bool = False) -> dict[str, str]:
        """The texts of a case, empty where there is none; with pseudonyms where the source has them.

        Args:
            row: of the cases.
            leaves: whether they leave this machine, in a file for others.
        """
        texts = self._texts(row)
        if not has_pseudonyms(self.source, unset=leaves):
            return texts
        return {name: mask(text, own_key(), settings().language) for name, text in texts.items()}

    def digest(self, row: int) -> str:
        """What binds a label to the texts that it is about."""
        return hashlib.sha256("\0".join(self._texts(row).values()).encode("utf-8", "replace")).hexdigest()[:16]

    def label(self, row: int, annotator: str, value: float | None, note: str | None, *, probability: float) -> Label:
        """What an annotator says of a case, now."""
        return self.labelled(
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
        given = {name: self.cases[name][row].as_py() for name in SHOWN if name in self.cases.column_names}
        return {name: given.get(name) or "" for name in SHOWN}


def judged(row: RowMapping) -> dict[str, str]:
    """The means of an evaluation that are a judge's word: metric -> what these numbers stand or fall with.

    Args:
        row: of the journal.
    """
    config = EvaluationConfig.of(row)
    identity = config.judge or {}
    asked = identity.get("prompts", {})
    return {
        found.name: judge_key(identity, found.opinion)
        for found in measured_by(row["tier"], config)
        if found.opinion in asked and found.name == f"avg_{found.column}" and found.column == found.opinion
    }


def finished_evaluations(engine: Engine) -> Iterator[RowMapping]:
    """The newest evaluations that have cases, newest first."""
    for row in journal.listing(engine, limit=LISTED):
        if row["state"] in journal.FINISHED and row["parquet"]:
            yield journal.find(engine, row["id"])


def answers(engine: Engine, evaluation: str, name: str | None = None) -> Answers:
    """The answers of an evaluation that a judge has scored.

    Args:
        engine: of our own database.
        evaluation: an id, the beginning or end of one, or `last`: the newest with judged answers.
        name: of a judged metric; by default the first that the evaluation has.

    Raises:
        InputError: it has no cases, no judge scored any, or not by that metric.
        ResultsUnavailable: its file cannot be read.
    """
    newest = next((row for row in finished_evaluations(engine) if judged(row)), None) if evaluation == "last" else None
    row = newest or journal.find(engine, evaluation)
    known = judged(row)
    if row["parquet"] is None or not known:
        what = Words("no answer that a judge has scored") if row["parquet"] else Words("no cases")
        raise InputError(
            "evaluation {id} ({tier}, {state}) has {what}: nothing to label",
            id=row["id"],
            tier=row["tier"],
            state=row["state"],
            what=what,
        )
    if name is not None and name not in known:
        raise unknown("judged metric", name, known, Words("of evaluation {id}", id=row["id"]))
    chosen = metric(name or next(iter(known)))
    found = of_row(row, chosen, known[chosen.name])
    if not len(found.cases):
        raise InputError(
            "evaluation {id}: the judge has given no answer a score of {chosen}", id=row["id"], chosen=chosen.name
        )
    return found


def of_row(row: RowMapping, chosen: Metric, key: str, *, texts: bool = True) -> Answers:
    """As `answers`, of an evaluation that is known; without the texts where only numbers are wanted."""
    wanted = (*USED, chosen.column or "", *(SHOWN if texts else ()))  # a column that a file has not is passed over
    cases = result_files.read(row["parquet"], wanted)
    scored = cases.filter(cases[chosen.column].is_valid())
    return Answers(row["id"], row["source"], row["tier"], key, scored, chosen)
