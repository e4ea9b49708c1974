"""Plan the number of labels for a corrected mean from the known quality of the judge."""

from typing import Literal

import numpy as np
from sqlalchemy import Engine
from typing_extensions import TypedDict

from yarus.db.messages import Words
from yarus.db.stores.exams import exam_sensitivity_specificity
from yarus.db.stores.labels import read_labels_by_judge
from yarus.metrics.statistics.intervals import effective_sample_size
from yarus.metrics.statistics.labels_needed import expected_width, labels_needed
from yarus.tasks.dataset.labelling.answers import JudgedAnswers, load_answers
from yarus.tasks.dataset.labelling.corrected import select_metric_labels
from yarus.tasks.dataset.labelling.estimate import (
    MIN_LABELS,
    align_labels,
    estimate_corrected_mean,
    label_variance,
    select_labels,
)

PlanBasis = Literal["labels", "exam", "nothing"]
"""Basis of the plan: people's labels of the judge's scores, its exam, or nothing (labels count alone)."""


class LabelPlan(TypedDict):
    """Number of labels needed for an interval of a given width."""

    evaluation_id: str
    metric: str
    width: float
    """Requested width, from end to end."""
    n_own: int
    """Labels of the evaluation now."""
    width_now: float | None
    """Width with its own labels, or with those of other evaluations if it has fewer than 30; null with fewer than two
    labels."""
    n_labels_needed: int | None
    """Total number of labels; null if labels of all cases do not suffice."""
    n_labels_missing: int | None
    """Labels that are still to be given."""
    n_labels_without_judge: int | None
    """Total number of labels if the judge's scores were not used."""
    cases: int
    basis: PlanBasis
    correlation: float
    """Estimated correlation of the judge's scores with people's labels."""


def plan_labels(engine: Engine, evaluation: str, metric: str | None, width: float) -> LabelPlan:
    """Return the number of labels that an evaluation's judged mean needs.

    Args:
        engine: engine of Yarus's own database.
        evaluation: an evaluation id, its beginning or end, or `last`.
        metric: by default the first judged mean of the evaluation.
        width: width of the 95 % interval, above 0 and below 1.

    Raises:
        InputError: the evaluation has nothing to label.
        ValueError: a width outside 0..1.
    """
    if not 0 < width < 1:
        raise ValueError(Words("a width lies above 0 and below 1, got {width:g}", width=width))
    answers = load_answers(engine, evaluation, metric)
    labels = select_metric_labels(
        read_labels_by_judge(engine, answers.source, answers.tier, [answers.judge_key]),
        answers.metric.name,
        answers.judge_key,
    )
    n_own, labels = select_labels(answers, labels)
    current = estimate_corrected_mean(answers, labels)
    basis, variance, correlation = _judge_quality(
        engine, answers, current["n_labels"] >= MIN_LABELS and label_variance(align_labels(answers, labels))
    )
    needed, needed_alone = (_labels_needed(answers, width, variance, assumed) for assumed in (correlation, 0.0))
    return {
        "evaluation_id": answers.evaluation_id,
        "metric": answers.metric.name,
        "width": width,
        "n_own": n_own,
        "width_now": current["width"],
        "n_labels_needed": needed,
        "n_labels_missing": None if needed is None else max(0, needed - n_own),
        "n_labels_without_judge": needed_alone,
        "cases": len(answers.cases),
        "basis": basis,
        "correlation": correlation,
    }


def _judge_quality(
    engine: Engine, answers: JudgedAnswers, from_labels: tuple[float, float] | Literal[False]
) -> tuple[PlanBasis, float, float]:
    """Return the basis, the variance of people's labels and their correlation with the judge's scores."""
    if from_labels:
        return "labels", from_labels[0], max(0.0, from_labels[1])
    mean_score = float(np.mean(answers.scores))
    if (rates := exam_sensitivity_specificity(engine, answers.judge_key, answers.metric.opinion)) and sum(rates) > 1:
        sensitivity, specificity = rates
        share = min(max((mean_score + specificity - 1) / (sensitivity + specificity - 1), 0.05), 0.95)
        judged_share = share * sensitivity + (1 - share) * (1 - specificity)
        variance = share * (1 - share)
        product = variance * (judged_share * (1 - judged_share))
        return "exam", variance, variance * (sensitivity + specificity - 1) / product**0.5 if product else 0.0
    return "nothing", 0.25, 0.0


def _labels_needed(answers: JudgedAnswers, width: float, variance: float, correlation: float) -> int | None:
    """Return the number of labels; groups of dependent cases raise it by their effect on the judge's own scores."""
    scores = np.array(answers.scores)
    design_effect = len(scores) / effective_sample_size(scores, answers.groups, 0.95)
    n_effective = max(2, round(len(scores) / design_effect))
    assumptions = {"label_variance": variance, "correlation": correlation, "cases": n_effective}
    n_effective_labels = labels_needed(width, **assumptions)  # type: ignore[arg-type]
    if expected_width(n_effective_labels, **assumptions) > width:  # type: ignore[arg-type]
        return None
    return min(len(scores), max(MIN_LABELS, round(n_effective_labels * design_effect)))
