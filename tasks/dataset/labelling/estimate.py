"""Judged means corrected by people's labels, and the judge's errors that the labels show."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from statistics import fmean

import numpy as np
from numpy.typing import NDArray
from typing_extensions import TypedDict

from yarus.db.stores.labels import Label
from yarus.metrics.statistics.corrected import LabelledScores, ppi_mean
from yarus.metrics.statistics.labels_needed import expected_width
from yarus.metrics.statistics.rogan_gladen import rogan_gladen
from yarus.tasks.dataset.labelling.answers import JudgedAnswers
from yarus.tasks.evaluation.number_format import replace_non_finite

MIN_LABELS = 30
"""Minimum number of labels for a corrected mean to be used in decisions."""
MIN_NARROWING = 0.02
"""Minimum share by which ten more labels must narrow the interval to be worthwhile."""
NAN = float("nan")
FloatArray = NDArray[np.float64]


class JudgeAccuracy(TypedDict):
    """Accuracy of a binary judge against people's labels."""

    sensitivity: float
    """Share of people's yes that the judge calls yes."""
    specificity: float
    """Share of people's no that the judge calls no."""
    value: float | None
    """Share of yes by Rogan-Gladen; null if the judge is not better than chance."""
    ci_low: float | None
    ci_high: float | None


class CorrectedEstimate(TypedDict):
    """A corrected mean with its interval."""

    value: float | None
    """Null with fewer than two labels."""
    ci_low: float | None
    ci_high: float | None
    n_labels: int
    """Answers with a label."""
    n_own: int
    """Labelled answers of this evaluation."""
    n_others: int
    """Labelled answers of other evaluations with the same judge."""
    judge_value: float
    """The judge's own mean before the correction."""
    judge_error: float | None
    """Mean difference of the judge's scores from people's labels."""
    weight: float | None
    """Weight of the judge's scores: 0 (labels only) to 1."""
    shares: JudgeAccuracy | None
    """Null if a score or label is between 0 and 1, or all labels are equal."""
    width: float | None
    """Width of the interval."""
    width_after_ten: float | None
    """Expected width after ten more labels."""
    enough: bool
    """Whether ten more labels would narrow the interval by less than a fiftieth."""


def estimate_corrected_mean(answers: JudgedAnswers, labels: Iterable[Label]) -> CorrectedEstimate:
    """Return the corrected mean of an evaluation's judged metric.

    Args:
        answers: answers of the evaluation.
        labels: labels of the same judge's scores by the same metric, of these or other answers.
    """
    return estimate_from_labelled(align_labels(answers, labels))


def estimate_from_labelled(labelled: LabelledScores) -> CorrectedEstimate:
    """Return the corrected mean from aligned scores and labels."""
    arrays = labelled.scores, labelled.labels, labelled.probabilities
    result = ppi_mean(*arrays, groups=labelled.groups, counted=labelled.counted, bounded=labelled.bounded)
    n_own = int((~np.isnan(labelled.labels[labelled.counted])).sum())
    width = result.high - result.low
    after_ten = _width_after_ten(labelled, result.n_labels, width)
    return {
        "value": replace_non_finite(result.value),
        "ci_low": replace_non_finite(result.low),
        "ci_high": replace_non_finite(result.high),
        "n_labels": result.n_labels,
        "n_own": n_own,
        "n_others": result.n_labels - n_own,
        "judge_value": float(labelled.scores[labelled.counted].mean()),
        "judge_error": replace_non_finite(result.judge_error),
        "weight": replace_non_finite(result.weight),
        "shares": _judge_accuracy(labelled),
        "width": replace_non_finite(width),
        "width_after_ten": after_ten,
        "enough": after_ten is not None and result.n_labels >= MIN_LABELS and after_ten > (1 - MIN_NARROWING) * width,
    }


def count_missing_labels(n_own: int) -> int:
    """Return the number of labels that the evaluation lacks for its corrected mean to be used in decisions."""
    return max(0, MIN_LABELS - n_own)


def select_labels(answers: JudgedAnswers, labels: Sequence[Label]) -> tuple[int, list[Label]]:
    """Return the number of own labelled answers, and the labels to use: own ones if they suffice, or else others.

    Labels of other evaluations measure the judge's error on other answers. If the answers differ in quality, the error
    may differ too, and the interval does not show it. Such a value is shown, but not used in decisions.
    """
    own = [label for label in labels if label.evaluation_id == answers.evaluation_id]
    other_labels = [label for label in labels if label.evaluation_id != answers.evaluation_id]
    n_own = len({label.case_id for label in own if label.value is not None and label.case_id in answers.row_by_case})
    return n_own, own if not count_missing_labels(n_own) or not other_labels else other_labels


def align_labels(answers: JudgedAnswers, labels: Iterable[Label]) -> LabelledScores:
    """Align labels with answers; several labels of one answer are averaged.

    The probability of a label is the labelled share of its stratum, so that labels represent the skipped and unlabelled
    answers of their stratum. Labels of other evaluations have a mean weight of 1.
    """
    n, row_by_case = len(answers.ids), answers.row_by_case
    scores, values, probabilities, groups = list(answers.scores), [NAN] * n, [NAN] * n, list(answers.group_names)
    valid_labels = sorted((label for label in labels if label.value is not None), key=_answer_key)
    by_answer = [list(repeats) for _, repeats in groupby(valid_labels, key=_answer_key)]
    for evaluation, group in groupby(by_answer, key=lambda repeats: repeats[0].evaluation_id):
        is_own = evaluation == answers.evaluation_id
        means = {repeats[0]: fmean(label.value for label in repeats if label.value is not None) for repeats in group}
        if is_own:
            means = {label: value for label, value in means.items() if label.case_id in row_by_case}
        stratum = {label: answers.strata[row_by_case[label.case_id]] if is_own else label.stratum for label in means}
        counts = Counter(stratum.values())
        sizes = answers.sizes if is_own else {label.stratum: label.stratum_size for label in means}
        # Labels weigh 1 on average in every evaluation.
        scale = sum(sizes[name] for name in counts) / max(1, counts.total())
        probability_by_stratum = {name: counts[name] / sizes[name] * scale for name in counts}
        if is_own:
            probabilities[:n] = [probability_by_stratum.get(name, NAN) for name in answers.strata]
        for label, value in means.items():
            if is_own:
                values[row_by_case[label.case_id]] = value
            else:
                scores.append(label.score)
                values.append(value)
                probabilities.append(probability_by_stratum[stratum[label]])
                groups.append(label.case_group or label.case_id)
    shares = np.array(probabilities)
    highest = float(shares[~np.isnan(shares)].max(initial=0)) or 1.0
    return LabelledScores(np.array(scores), np.array(values), shares / highest, groups, np.arange(len(scores)) < n)


def _answer_key(label: Label) -> tuple[str, str]:
    return label.evaluation_id, label.case_id


def _width_after_ten(labelled: LabelledScores, n: int, width: float) -> float | None:
    """Return the expected width after ten more labels, scaled from the current width."""
    cases = int(labelled.counted.sum())
    if n < 2:
        return None
    variance, correlation = label_variance(labelled)
    current_width, later_width = (
        expected_width(min(count, max(cases, n)), label_variance=variance, correlation=correlation, cases=cases)
        for count in (n, n + 10)
    )
    return width * later_width / current_width if current_width else width


def label_variance(labelled_data: LabelledScores) -> tuple[float, float]:
    """Return the variance of labels, with two added labels of each kind, and their correlation with the scores."""
    is_labelled = ~np.isnan(labelled_data.labels)
    labels, scores = labelled_data.labels[is_labelled], labelled_data.scores[is_labelled]
    variance = float(np.var([*labels, 1.0, 1.0, 0.0, 0.0]))
    is_varied = len(labels) > 2 and np.ptp(labels) > 0 and np.ptp(scores) > 0
    return variance, float(np.corrcoef(labels, scores)[0, 1]) if is_varied else 0.0


def _judge_accuracy(data: LabelledScores) -> JudgeAccuracy | None:
    is_labelled = ~np.isnan(data.labels)
    value_arrays: Sequence[FloatArray] = (data.scores, data.labels[is_labelled])
    if not is_labelled.any() or not all(np.isin(values, (0, 1)).all() for values in value_arrays):
        return None
    n = int(data.counted.sum())  # the share is of this evaluation's answers; without labels of them there is none
    rates = rogan_gladen(data.scores[:n], data.labels[:n], data.probabilities[:n], groups=data.groups[:n])
    if rates.sensitivity != rates.sensitivity:
        return None
    return {
        "sensitivity": rates.sensitivity,
        "specificity": rates.specificity,
        "value": replace_non_finite(rates.value),
        "ci_low": replace_non_finite(rates.low),
        "ci_high": replace_non_finite(rates.high),
    }
