"""How many labels a corrected mean needs, from what is known of the judge before they are asked for."""

from typing import Literal

import numpy as np
from sqlalchemy import Engine
from typing_extensions import TypedDict

from yarus.db.stores.exams import examined_in
from yarus.db.stores.labels import labels_by_judge
from yarus.db.words import Words
from yarus.metrics.statistics.intervals import independent_cases
from yarus.metrics.statistics.labels_needed import expected_width, labels_needed
from yarus.tasks.dataset.labelling.answers import Answers, answers
from yarus.tasks.dataset.labelling.corrected import labels_for
from yarus.tasks.dataset.labelling.estimate import FEWEST, estimate, spread, telling, together

Basis = Literal["labels", "exam", "nothing"]
"""What is known of the judge: people's labels of its scores; its exam; nothing, so that labels count alone."""


class LabelPlan(TypedDict):
    """Labels that are needed for an interval of a width."""

    evaluation_id: str
    metric: str
    width: float
    """Asked for, from end to end."""
    n_own: int
    """Labels that the evaluation has now."""
    width_now: float | None
    """By its own labels or, where there are fewer than 30, by those of other evaluations; null below two labels."""
    needed: int | None
    """In all; null where labels of all cases would not do."""
    missing: int | None
    needed_alone: int | None
    """If the judge told nothing: labels alone."""
    cases: int
    basis: Basis
    correlation: float
    """Of the judge's scores with people's labels, as far as it is known."""


def plan(engine: Engine, evaluation: str, metric: str | None, width: float) -> LabelPlan:
    """Plans the labels of an evaluation's judged mean.

    Args:
        engine: of our own database.
        evaluation: an id, the beginning or end of one, or `last`.
        metric: by default the first judged mean of the evaluation.
        width: of the 95 % interval, above 0 and below 1.

    Raises:
        InputError: nothing to label.
        ValueError: a width outside 0..1.
    """
    if not 0 < width < 1:
        raise ValueError(Words("a width lies above 0 and below 1, got {width:g}", width=width))
    of = answers(engine, evaluation, metric)
    said = labels_for(labels_by_judge(engine, of.source, of.tier, [of.judge_key]), of.metric.name, of.judge_key)
    n_own, said = telling(of, said)
    now = estimate(of, said)
    basis, variance, correlation = _known(engine, of, now["n_labels"] >= FEWEST and spread(together(of, said)))
    needed, alone = (_needed(of, width, variance, told) for told in (correlation, 0.0))
    return {
        "evaluation_id": of.evaluation_id,
        "metric": of.metric.name,
        "width": width,
        "n_own": n_own,
        "width_now": now["width"],
        "needed": needed,
        "missing": None if needed is None else max(0, needed - n_own),
        "needed_alone": alone,
        "cases": len(of.cases),
        "basis": basis,
        "correlation": correlation,
    }


def _known(engine: Engine, of: Answers, by_labels: tuple[float, float] | Literal[False]) -> tuple[Basis, float, float]:
    """What is known of the judge: the variance of people's labels, and how its scores follow them."""
    if by_labels:
        return "labels", by_labels[0], max(0.0, by_labels[1])
    judged = float(np.mean(of.scores))
    if (rates := examined_in(engine, of.judge_key, of.metric.opinion)) and sum(rates) > 1:
        sensitivity, specificity = rates
        share = min(max((judged + specificity - 1) / (sensitivity + specificity - 1), 0.05), 0.95)
        said = share * sensitivity + (1 - share) * (1 - specificity)
        variance = share * (1 - share)
        apart = variance * (said * (1 - said))
        return "exam", variance, variance * (sensitivity + specificity - 1) / apart**0.5 if apart else 0.0
    return "nothing", 0.25, 0.0


def _needed(of: Answers, width: float, variance: float, correlation: float) -> int | None:
    """As many more than of cases that stand alone as groups make the judge's own scores worth fewer."""
    scores = np.array(of.scores)
    effect = len(scores) / independent_cases(scores, of.groups, 0.95)
    worth = max(2, round(len(scores) / effect))
    known = {"label_variance": variance, "correlation": correlation, "cases": worth}
    found = labels_needed(width, **known)  # type: ignore[arg-type]
    if expected_width(found, **known) > width:  # type: ignore[arg-type]
        return None
    return min(len(scores), max(FEWEST, round(found * effect)))
