"""Labelling session for the results of one evaluation: next result, judgements and progress."""

from collections.abc import Iterator

from sqlalchemy import Engine
from sqlalchemy.engine import RowMapping

from yarus.db import journal
from yarus.db.errors import InputError
from yarus.db.stores import labels as store
from yarus.db.stores.labels import Label
from yarus.tasks.cases.rankings import PooledResult, needs_judgement
from yarus.tasks.dataset.labelling.alpha import parse_annotator
from yarus.tasks.dataset.labelling.answers import finished_evaluations, judged_metrics
from yarus.tasks.dataset.labelling.corrected import store_filled_corrections
from yarus.tasks.dataset.labelling.estimate import estimate_from_labelled
from yarus.tasks.dataset.labelling.relevance.estimate import estimate_inputs, load_result_labels
from yarus.tasks.dataset.labelling.relevance.pools import (
    SAMPLING_METRIC,
    Pools,
    has_llm_labels,
    load_pools,
    people_judgements,
)
from yarus.tasks.dataset.labelling.relevance.result_order import is_fully_judged, results_to_judge
from yarus.tasks.dataset.labelling.session import (
    CaseToLabel,
    LabellingProgress,
    LabellingSession,
    case_to_label,
    check_label,
)
from yarus.tasks.evaluation.judge_standing import LABELLING_PROMPT

CASE_ID_SEPARATOR = "\n"
"""Separator between a case id and a result id."""


class RelevanceLabellingSession:
    """The results of an evaluation and people's labels of them."""

    prompt = metric = LABELLING_PROMPT

    def __init__(self, engine: Engine, evaluation: str) -> None:
        """Open the pools of an evaluation; see `relevance.pools.load_pools` for the errors."""
        self._engine = engine
        self.evaluation_pools: Pools = load_pools(engine, evaluation)
        self.evaluation_id = self.evaluation_pools.evaluation_id

    def next(self, annotator: str) -> CaseToLabel | None:
        """Return the first unjudged result that this annotator has not skipped, or None."""
        labels, name = self.said(), parse_annotator(annotator)
        judgements = people_judgements(self.evaluation_pools, labels)
        skipped = {label.shown_sha256 for label in labels if label.value is None and label.annotator == name}
        for sampled in self.evaluation_pools.order:
            whole = is_fully_judged(self.evaluation_pools.ids[sampled.row])
            needed = results_to_judge(self.evaluation_pools.pools[sampled.row], judgements[sampled.row], whole=whole)
            result = next((result for result in needed if result["result"] not in judgements[sampled.row]), None)
            if result is not None and self.evaluation_pools.digests[sampled.row][result["result"]] not in skipped:
                return self._case_to_label(sampled.row, result, None)
        return None

    def save(self, annotator: str, case_id: str, value: float | None, note: str = "") -> float:
        """Store an annotator's label; replace the annotator's earlier label of the result.

        Args:
            annotator: 1 to 60 letters, digits, spaces and `. @ - _`.
            case_id: id of the question and the result, from `next`.
            value: 0 to 1, where 0.5 and more is relevant; None skips the result.
            note: up to 2,000 characters.

        Returns:
            The judge's grade as a share of the maximum; it may be shown now.

        Raises:
            InputError: the value is outside 0..1, the result does not exist, or the name or note is invalid.
            DatabaseUnavailable: the label was not stored.
        """
        row, result = self._find_result(case_id)
        label = self.evaluation_pools.label(row, result, annotator, value, check_label(value, note))
        store.save_labels(self._engine, [label])
        self._correct()
        return label.score

    def undo(self, annotator: str) -> CaseToLabel | None:
        """Delete the annotator's last label, and return its result with the label, or None if there was none."""
        label = store.delete_last_label(self._engine, self.evaluation_id, LABELLING_PROMPT, parse_annotator(annotator))
        self._correct()
        return (
            self._case_to_label(*self._find_result(f"{label.case_id}{CASE_ID_SEPARATOR}{label.result}"), label)
            if label
            else None
        )

    def progress(self, annotator: str) -> LabellingProgress:
        """Return the numbers of labels and the current estimate."""
        labels = self.said()
        own = [
            label
            for label in labels
            if label.annotator == parse_annotator(annotator) and label.evaluation_id == self.evaluation_id
        ]
        return {
            "labelled": sum(map(len, people_judgements(self.evaluation_pools, labels))),
            "own": sum(label.value is not None for label in own),
            "passed_over": sum(label.value is None for label in own),
            "cases": self.evaluation_pools.n_pairs,
            "estimate": estimate_from_labelled(estimate_inputs(self.evaluation_pools, labels)[SAMPLING_METRIC]),
        }

    def said(self) -> list[Label]:
        """Return all labels of results over the source, in the order in which they were given."""
        return load_result_labels(self._engine, self.evaluation_pools.source)

    def _correct(self) -> None:
        store_filled_corrections(self._engine, self.evaluation_pools, self.said())

    def _find_result(self, case_id: str) -> tuple[int, PooledResult]:
        parent_id, _, result_id = case_id.rpartition(CASE_ID_SEPARATOR)
        if (row := self.evaluation_pools.row_by_case.get(parent_id)) is not None:
            for result in self.evaluation_pools.pools[row]:
                if result["result"] == result_id and needs_judgement(result):
                    return row, result
        raise InputError(
            "no result {case_id!r} to judge in evaluation {evaluation}",
            case_id=case_id[:200],
            evaluation=self.evaluation_id,
        )

    def _case_to_label(self, row: int, result: PooledResult, before: Label | None) -> CaseToLabel:
        position = [sampled.row for sampled in self.evaluation_pools.order].index(row)
        return case_to_label(
            f"{self.evaluation_pools.ids[row]}{CASE_ID_SEPARATOR}{result['result']}",
            position,
            self.evaluation_pools.texts_for_people(row, result),
            before,
        )


def open_session(engine: Engine, evaluation: str, metric: str | None) -> LabellingSession | RelevanceLabellingSession:
    """Return a session for the results of an evaluation, or else for its answers."""
    if metric == LABELLING_PROMPT or (
        metric is None and evaluation != "last" and has_llm_labels(journal.find_evaluation(engine, evaluation))
    ):
        return RelevanceLabellingSession(engine, evaluation)
    return LabellingSession(engine, evaluation, metric)


def list_labellable(engine: Engine) -> Iterator[tuple[RowMapping, list[str]]]:
    """Yield the newest evaluations that have something to label, newest first, with their metrics."""
    for row in finished_evaluations(engine):
        if metrics := [LABELLING_PROMPT] if has_llm_labels(row) else list(judged_metrics(row)):
            yield row, metrics
