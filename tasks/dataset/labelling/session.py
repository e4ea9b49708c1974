"""Labelling session for one metric of one evaluation: next case, labels and progress."""

from collections.abc import Mapping

from sqlalchemy import Engine
from typing_extensions import TypedDict

from yarus.db.errors import InputError
from yarus.db.stores import labels as store
from yarus.db.stores.labels import Label
from yarus.tasks.dataset.labelling.alpha import parse_annotator
from yarus.tasks.dataset.labelling.answers import JudgedAnswers, load_answers
from yarus.tasks.dataset.labelling.corrected import select_metric_labels, store_corrected
from yarus.tasks.dataset.labelling.estimate import CorrectedEstimate, estimate_corrected_mean
from yarus.tasks.dataset.labelling.sampling import SampledCase, sampling_order

MAX_NOTE_CHARS = 2_000
"""Maximum length of a note in characters."""


class CaseToLabel(TypedDict):
    """A case on the labelling page, without the judge's score."""

    case_id: str
    position: int
    """Position in the labelling order, from 1."""
    question: str
    answer: str
    context: str
    reference: str
    value: float | None
    """This annotator's label; null if there is none, or if the case was skipped."""
    note: str


class LabellingProgress(TypedDict):
    """Progress of all annotators, and of this one."""

    labelled: int
    """Answers with a label of any annotator."""
    own: int
    """Labels of this annotator."""
    passed_over: int
    """Cases that this annotator skipped."""
    cases: int
    """Answers that can be labelled."""
    estimate: CorrectedEstimate
    """Corrected mean by the labels of these answers only."""


class LabellingSession:
    """The answers of an evaluation and people's labels of them, which are stored in the database only."""

    def __init__(self, engine: Engine, evaluation: str, metric: str | None = None) -> None:
        """Open the answers of an evaluation; see `answers.load_answers` for the errors."""
        self._engine = engine
        self.answers: JudgedAnswers = load_answers(engine, evaluation, metric)
        self.evaluation_id = self.answers.evaluation_id
        self.metric, self.prompt = self.answers.metric.name, self.answers.metric.opinion
        self._ids = self.answers.ids
        self._order = sampling_order(self._ids, self.answers.strata, seed=self.evaluation_id)
        self._positions = {self._ids[sampled.row]: position for position, sampled in enumerate(self._order)}

    def next(self, annotator: str) -> CaseToLabel | None:
        """Return the first case that this annotator has neither labelled nor skipped, or None."""
        name = parse_annotator(annotator)
        labelled_ids = {label.case_id for label in self.said() if label.annotator == name}
        sampled_case = next((sampled for sampled in self._order if self._ids[sampled.row] not in labelled_ids), None)
        return self._case_to_label(sampled_case, None) if sampled_case else None

    def save(self, annotator: str, case_id: str, value: float | None, note: str = "") -> float:
        """Store an annotator's label; replace the annotator's earlier label of the case.

        Args:
            annotator: 1 to 60 letters, digits, spaces and `. @ - _`.
            case_id: id of a case from `next`.
            value: 0 to 1; None skips the case.
            note: up to 2,000 characters.

        Returns:
            The judge's score; it may be shown now.

        Raises:
            InputError: the value is outside 0..1, the case does not exist, or the name or note is invalid.
            DatabaseUnavailable: the label was not stored.
        """
        sampled, checked_note = self._find_case(case_id), check_label(value, note)
        label = self.answers.label(
            sampled.row, parse_annotator(annotator), value, checked_note, probability=sampled.probability
        )
        store.save_labels(self._engine, [label])
        self._correct()
        return label.score

    def undo(self, annotator: str) -> CaseToLabel | None:
        """Delete the annotator's last label, and return its case with the label, or None if there was none."""
        label = store.delete_last_label(self._engine, self.evaluation_id, self.metric, parse_annotator(annotator))
        self._correct()
        return self._case_to_label(self._find_case(label.case_id), label) if label else None

    def progress(self, annotator: str) -> LabellingProgress:
        """Return the numbers of labels and the current estimate."""
        labels = self.said()
        own = [label for label in labels if label.annotator == parse_annotator(annotator)]
        estimate = estimate_corrected_mean(self.answers, labels)
        return {
            "labelled": estimate["n_own"],
            "own": sum(label.value is not None for label in own),
            "passed_over": sum(label.value is None for label in own),
            "cases": len(self._order),
            "estimate": estimate,
        }

    def said(self) -> list[Label]:
        """Return all labels of these answers, in the order in which they were given."""
        return store.read_labels(self._engine, self.evaluation_id, self.metric)

    def _correct(self) -> None:
        answers = self.answers
        labels = store.read_labels_by_judge(self._engine, answers.source, answers.tier, [answers.judge_key])
        store_corrected(self._engine, answers, select_metric_labels(labels, self.metric, answers.judge_key))

    def _find_case(self, case_id: str) -> SampledCase:
        if case_id not in self._positions:
            raise InputError(
                "no case {case_id!r} with a score in evaluation {evaluation}",
                case_id=case_id[:200],
                evaluation=self.evaluation_id,
            )
        return self._order[self._positions[case_id]]

    def _case_to_label(self, sampled: SampledCase, before: Label | None) -> CaseToLabel:
        case_id = self._ids[sampled.row]
        return case_to_label(case_id, self._positions[case_id], self.answers.texts_for_people(sampled.row), before)


def case_to_label(case_id: str, index: int, texts: Mapping[str, str], before: Label | None) -> CaseToLabel:
    """Return a case as the page shows it.

    Args:
        case_id: id under which the label is saved.
        index: index in the labelling order, from 0.
        texts: name -> text of the case.
        before: this annotator's label of the case, if any.
    """
    return {
        "case_id": case_id,
        "position": index + 1,
        "question": texts["question"],
        "answer": texts.get("answer", ""),
        "context": texts["context"],
        "reference": texts.get("reference", ""),
        "value": before.value if before else None,
        "note": (before.note if before else None) or "",
    }


def check_label(value: float | None, note: str) -> str | None:
    """Check a value and its note; return the note as stored.

    Raises:
        InputError: the value is outside 0..1, or the note is too long.
    """
    if value is not None and not 0 <= value <= 1:
        raise InputError("a label lies between 0 and 1, got {value:g}", value=value)
    if len(note) > MAX_NOTE_CHARS:
        raise InputError("a note has at most {most:,} characters, got {n:,}", most=MAX_NOTE_CHARS, n=len(note))
    return note.replace("\0", "").strip() or None
