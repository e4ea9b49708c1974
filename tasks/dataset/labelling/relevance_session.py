"""One evaluation's results while people judge them: what comes next, what was said, what is known by now."""

from collections.abc import Iterator

from sqlalchemy import Engine
from sqlalchemy.engine import RowMapping

from yarus.db import journal
from yarus.db.errors import InputError
from yarus.db.stores import labels as store
from yarus.db.stores.labels import Label
from yarus.tasks.cases.rankings import Pooled, to_judge
from yarus.tasks.dataset.labelling.alpha import annotator as named
from yarus.tasks.dataset.labelling.answers import finished_evaluations, judged
from yarus.tasks.dataset.labelling.corrected import store_filled
from yarus.tasks.dataset.labelling.estimate import estimate_of
from yarus.tasks.dataset.labelling.relevance.estimate import known, results_labelled
from yarus.tasks.dataset.labelling.relevance.pools import DRAWN_BY, Pools, heard, is_filled, pools
from yarus.tasks.dataset.labelling.relevance.walk import is_whole, wanted
from yarus.tasks.dataset.labelling.session import Asked, Labelling, Progress, asked_about, checked
from yarus.tasks.evaluation.standings import FILLING

PART = "\n"
"""Between the id of a case and that of a result."""


class RelevanceLabelling:
    """The results of an evaluation and what people say of them. All annotators share the work: what one has judged, the
    others are not asked about, and what was judged over the same source before is known."""

    prompt = metric = FILLING

    def __init__(self, engine: Engine, evaluation: str) -> None:
        """See `yarus.tasks.dataset.labelling.relevance.pools.pools` for what is refused."""
        self._engine = engine
        self.of: Pools = pools(engine, evaluation)
        self.evaluation_id = self.of.evaluation_id

    def next(self, annotator: str) -> Asked | None:
        """The first result that is wanted and nobody has judged, this annotator has not passed over; None: no more."""
        labels, name = self.said(), named(annotator)
        said = heard(self.of, labels)
        passed = {label.shown_sha256 for label in labels if label.value is None and label.annotator == name}
        for one in self.of.order:
            whole = is_whole(self.of.ids[one.row])
            asked = wanted(self.of.pools[one.row], said[one.row], whole=whole)
            result = next((result for result in asked if result["result"] not in said[one.row]), None)
            if result is not None and self.of.digests[one.row][result["result"]] not in passed:
                return self._asked(one.row, result, None)
        return None

    def save(self, annotator: str, case_id: str, value: float | None, note: str = "") -> float:
        """Keeps what an annotator says, before it returns; what they said of the result before is replaced.

        Args:
            annotator: 1 to 60 letters, digits, spaces and `. @ - _`.
            case_id: of the question and the result, as they were asked about.
            value: 0 to 1, of which 0.5 and more is relevant; None passes the result over.
            note: up to 2,000 characters.

        Returns:
            The judge's grade as a share of the best, which may be shown now.

        Raises:
            InputError: a value outside 0..1, no such result, no name, a longer note.
            DatabaseUnavailable: nothing was kept.
        """
        row, one = self._known(case_id)
        label = self.of.label(row, one, annotator, value, checked(value, note))
        store.save(self._engine, [label])
        self._correct()
        return label.score

    def undo(self, annotator: str) -> Asked | None:
        """Takes back what an annotator has said last; that result with what was said, None where nothing was."""
        gone = store.take_back(self._engine, self.evaluation_id, FILLING, named(annotator))
        self._correct()
        return self._asked(*self._known(f"{gone.case_id}{PART}{gone.result}"), gone) if gone else None

    def progress(self, annotator: str) -> Progress:
        """How far they are, and what is known by now."""
        labels = self.said()
        own = [one for one in labels if one.annotator == named(annotator) and one.evaluation_id == self.evaluation_id]
        return {
            "labelled": sum(map(len, heard(self.of, labels))),
            "own": sum(label.value is not None for label in own),
            "passed_over": sum(label.value is None for label in own),
            "cases": self.of.n_pairs,
            "estimate": estimate_of(known(self.of, labels)[DRAWN_BY]),
        }

    def said(self) -> list[Label]:
        """Everything that people have said of results over the source, in the order in which they did."""
        return results_labelled(self._engine, self.of.source)

    def _correct(self) -> None:
        store_filled(self._engine, self.of, self.said())

    def _known(self, case_id: str) -> tuple[int, Pooled]:
        name, _, result = case_id.rpartition(PART)
        if (row := self.of.row_of.get(name)) is not None:
            for one in self.of.pools[row]:
                if one["result"] == result and to_judge(one):
                    return row, one
        raise InputError(
            "no result {case_id!r} to judge in evaluation {evaluation}",
            case_id=case_id[:200],
            evaluation=self.evaluation_id,
        )

    def _asked(self, row: int, one: Pooled, before: Label | None) -> Asked:
        place = [drawn.row for drawn in self.of.order].index(row)
        return asked_about(f"{self.of.ids[row]}{PART}{one['result']}", place, self.of.shown(row, one), before)


def labelling(engine: Engine, evaluation: str, metric: str | None) -> Labelling | RelevanceLabelling:
    """The labelling of an evaluation's results, where `metric` is `relevance`, or none is named and a judge has filled
    its labels up; or else of its answers."""
    if metric == FILLING or (metric is None and evaluation != "last" and is_filled(journal.find(engine, evaluation))):
        return RelevanceLabelling(engine, evaluation)
    return Labelling(engine, evaluation, metric)


def labellable(engine: Engine) -> Iterator[tuple[RowMapping, list[str]]]:
    """The newest evaluations that have something to label, newest first, and what."""
    for row in finished_evaluations(engine):
        if found := [FILLING] if is_filled(row) else list(judged(row)):
            yield row, found
