"""One evaluation's metric while people label it: what comes next, what was said, what is known by now."""

from collections.abc import Mapping

from sqlalchemy import Engine
from typing_extensions import TypedDict

from yarus.db.errors import InputError
from yarus.db.stores import labels as store
from yarus.db.stores.labels import Label
from yarus.tasks.dataset.labelling.alpha import annotator as named
from yarus.tasks.dataset.labelling.answers import Answers, answers
from yarus.tasks.dataset.labelling.corrected import labels_for, store_corrected
from yarus.tasks.dataset.labelling.draw import Drawn, drawn
from yarus.tasks.dataset.labelling.estimate import Estimate, estimate

MOST_NOTE = 2_000
"""Characters of a note."""


class Asked(TypedDict):
    """A case as the page shows it, without the judge's score."""

    case_id: str
    position: int
    """Of the order in which cases are asked about, from 1."""
    question: str
    answer: str
    context: str
    reference: str
    value: float | None
    """What this annotator has said of it before; null where nothing, or where it was passed over."""
    note: str


class Progress(TypedDict):
    """How far people have come, all annotators together, and this one."""

    labelled: int
    """Of these answers, those with a label of anybody."""
    own: int
    """Labels of this annotator."""
    passed_over: int
    """By this annotator."""
    cases: int
    """Answers that could be labelled."""
    estimate: Estimate
    """The corrected mean by now, of these answers' labels alone."""


class Labelling:
    """The answers of an evaluation and what people say of them, which is kept in the database alone: several annotators
    and servers may be at it, and it goes on where it was left."""

    def __init__(self, engine: Engine, evaluation: str, metric: str | None = None) -> None:
        """See `yarus.tasks.dataset.labelling.answers.answers` for what is refused."""
        self._engine = engine
        self.answers: Answers = answers(engine, evaluation, metric)
        self.evaluation_id = self.answers.evaluation_id
        self.metric, self.prompt = self.answers.metric.name, self.answers.metric.opinion
        self._ids = self.answers.ids
        self._order = drawn(self._ids, self.answers.strata, seed=self.evaluation_id)
        self._places = {self._ids[one.row]: place for place, one in enumerate(self._order)}

    def next(self, annotator: str) -> Asked | None:
        """The first case that this annotator has neither labelled nor passed over; None when there is no more."""
        name = named(annotator)
        said = {label.case_id for label in self.said() if label.annotator == name}
        found = next((one for one in self._order if self._ids[one.row] not in said), None)
        return self._asked(found, None) if found else None

    def save(self, annotator: str, case_id: str, value: float | None, note: str = "") -> float:
        """Keeps what an annotator says, before it returns; what they said of the case before is replaced.

        Args:
            annotator: 1 to 60 letters, digits, spaces and `. @ - _`.
            case_id: of a case that was shown.
            value: 0 to 1; None passes the case over.
            note: up to 2,000 characters.

        Returns:
            The judge's score, which may be shown now.

        Raises:
            InputError: a value outside 0..1, no such case, no name, a longer note.
            DatabaseUnavailable: nothing was kept.
        """
        one, said = self._known(case_id), checked(value, note)
        label = self.answers.label(one.row, named(annotator), value, said, probability=one.probability)
        store.save(self._engine, [label])
        self._correct()
        return label.score

    def undo(self, annotator: str) -> Asked | None:
        """Takes back what an annotator has said last; that case with what was said, None where nothing was."""
        gone = store.take_back(self._engine, self.evaluation_id, self.metric, named(annotator))
        self._correct()
        return self._asked(self._known(gone.case_id), gone) if gone else None

    def progress(self, annotator: str) -> Progress:
        """How far they are, and what is known by now."""
        every = self.said()
        own = [label for label in every if label.annotator == named(annotator)]
        found = estimate(self.answers, every)
        return {
            "labelled": found["n_own"],
            "own": sum(label.value is not None for label in own),
            "passed_over": sum(label.value is None for label in own),
            "cases": len(self._order),
            "estimate": found,
        }

    def said(self) -> list[Label]:
        """Everything that people have said of these answers, in the order in which they did."""
        return store.labels_of(self._engine, self.evaluation_id, self.metric)

    def _correct(self) -> None:
        of = self.answers
        said = store.labels_by_judge(self._engine, of.source, of.tier, [of.judge_key])
        store_corrected(self._engine, of, labels_for(said, self.metric, of.judge_key))

    def _known(self, case_id: str) -> Drawn:
        if case_id not in self._places:
            raise InputError(
                "no case {case_id!r} with a score in evaluation {evaluation}",
                case_id=case_id[:200],
                evaluation=self.evaluation_id,
            )
        return self._order[self._places[case_id]]

    def _asked(self, one: Drawn, before: Label | None) -> Asked:
        case_id = self._ids[one.row]
        return asked_about(case_id, self._places[case_id], self.answers.shown(one.row), before)


def asked_about(case_id: str, place: int, texts: Mapping[str, str], before: Label | None) -> Asked:
    """A case as the page shows it.

    Args:
        case_id: what its label is saved by.
        place: in the order in which cases are asked about, from 0.
        texts: name -> text of those that there are.
        before: what this annotator has said of it.
    """
    return {
        "case_id": case_id,
        "position": place + 1,
        "question": texts["question"],
        "answer": texts.get("answer", ""),
        "context": texts["context"],
        "reference": texts.get("reference", ""),
        "value": before.value if before else None,
        "note": (before.note if before else None) or "",
    }


def checked(value: float | None, note: str) -> str | None:
    """The note as it is kept, beside a value that may be.

    Raises:
        InputError: a value outside 0..1, a note that is too long.
    """
    if value is not None and not 0 <= value <= 1:
        raise InputError("a label lies between 0 and 1, got {value:g}", value=value)
    if len(note) > MOST_NOTE:
        raise InputError("a note has at most {most:,} characters, got {n:,}", most=MOST_NOTE, n=len(note))
    return note.replace("\0", "").strip() or None
