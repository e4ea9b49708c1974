"""A judged mean as people's labels correct it, and what they show of the judge."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from statistics import fmean

import numpy as np
from numpy.typing import NDArray
from typing_extensions import TypedDict

from yarus.db.stores.labels import Label
from yarus.metrics.statistics.corrected import Labelled, corrected_mean
from yarus.metrics.statistics.labels_needed import expected_width
from yarus.metrics.statistics.rogan_gladen import rogan_gladen
from yarus.tasks.dataset.labelling.answers import Answers
from yarus.tasks.evaluation.numbers import finite

FEWEST = 30
"""Labels below which a corrected mean is told, but is not acted on."""
LITTLE = 0.02
"""Share by which ten more labels must narrow the interval, for them to gain much."""
NOT_KNOWN = float("nan")
Floats = NDArray[np.float64]


class Shares(TypedDict):
    """What the judge gets right where it and people say yes or no."""

    sensitivity: float
    """Share of people's yes that it calls yes."""
    specificity: float
    """Share of people's no that it calls no."""
    value: float | None
    """The share of yes that follows (Rogan-Gladen); null where the judge is no better than chance."""
    ci_low: float | None
    ci_high: float | None


class Estimate(TypedDict):
    """A corrected mean by now."""

    value: float | None
    """Null below two labels."""
    ci_low: float | None
    ci_high: float | None
    n_labels: int
    """Answers with a label."""
    n_own: int
    """Of them, those of this evaluation."""
    n_others: int
    """Those of other evaluations, whose answers the same judge has scored."""
    judge_value: float
    """The judge's own mean, which is corrected."""
    judge_error: float | None
    """How much higher than people it scores, on average."""
    weight: float | None
    """How far its scores were believed: 0 (not at all, the labels stand alone) to 1."""
    shares: Shares | None
    """Null where a score or label lies between 0 and 1, or people have said only yes, or only no, of these answers."""
    width: float | None
    """Of the interval."""
    width_after_ten: float | None
    """As it is expected to be after ten more labels."""
    enough: bool
    """Whether ten more would narrow it by less than a fiftieth."""


def estimate(answers: Answers, labels: Iterable[Label]) -> Estimate:
    """The corrected mean of an evaluation's judged metric.

    Args:
        answers: of the evaluation.
        labels: of the same judge's scores by the same metric: of these answers, or of others.
    """
    return estimate_of(together(answers, labels))


def estimate_of(known: Labelled) -> Estimate:
    """The same of scores and labels that stand beside each other."""
    arrays = known.scores, known.labels, known.probabilities
    found = corrected_mean(*arrays, groups=known.groups, counted=known.counted, bounded=known.bounded)
    own = int((~np.isnan(known.labels[known.counted])).sum())
    width = found.high - found.low
    after_ten = _after(known, found.n_labels, width)
    return {
        "value": finite(found.value),
        "ci_low": finite(found.low),
        "ci_high": finite(found.high),
        "n_labels": found.n_labels,
        "n_own": own,
        "n_others": found.n_labels - own,
        "judge_value": float(known.scores[known.counted].mean()),
        "judge_error": finite(found.judge_error),
        "weight": finite(found.weight),
        "shares": _shares(known),
        "width": finite(width),
        "width_after_ten": after_ten,
        "enough": after_ten is not None and found.n_labels >= FEWEST and after_ten > (1 - LITTLE) * width,
    }


def lacking(n_own: int) -> int:
    """How many labels of its own an evaluation lacks before its corrected mean is acted on; 0 where it has enough."""
    return max(0, FEWEST - n_own)


def telling(answers: Answers, labels: Sequence[Label]) -> tuple[int, list[Label]]:
    """How many answers have a label of their own, and the labels that tell most: these, if enough or the only ones.

    Others' say how far the judge is off on other answers. Where these answers are worse than those, the judge may be
    off otherwise, and no interval knows by how much: such a value is shown, and not acted on.
    """
    own = [label for label in labels if label.evaluation_id == answers.evaluation_id]
    others = [label for label in labels if label.evaluation_id != answers.evaluation_id]
    n_own = len({label.case_id for label in own if label.value is not None and label.case_id in answers.row_of})
    return n_own, own if not lacking(n_own) or not others else others


def together(answers: Answers, labels: Iterable[Label]) -> Labelled:
    """The labels beside the answers; what several people have said of one answer is their mean.

    The chance of a label is the share of its stratum that has one, so that what people passed over, or have not come
    to, weighs on those of its stratum. Labels of other evaluations weigh as many labels as they are.
    """
    n, row_of = len(answers.ids), answers.row_of
    scores, said, chances, groups = list(answers.scores), [NOT_KNOWN] * n, [NOT_KNOWN] * n, list(answers.group_names)
    given = sorted((one for one in labels if one.value is not None), key=_answer)
    by_answer = [list(same) for _, same in groupby(given, key=_answer)]
    for evaluation, several in groupby(by_answer, key=lambda same: same[0].evaluation_id):
        mine = evaluation == answers.evaluation_id
        heard = {same[0]: fmean(one.value for one in same if one.value is not None) for same in several}
        if mine:
            heard = {label: value for label, value in heard.items() if label.case_id in row_of}
        stratum = {label: answers.strata[row_of[label.case_id]] if mine else label.stratum for label in heard}
        counts = Counter(stratum.values())
        sizes = answers.sizes if mine else {label.stratum: label.stratum_size for label in heard}
        # So that labels weigh 1 on average, in every evaluation.
        scale = sum(sizes[name] for name in counts) / max(1, counts.total())
        share = {name: counts[name] / sizes[name] * scale for name in counts}
        if mine:
            chances[:n] = [share.get(name, NOT_KNOWN) for name in answers.strata]
        for label, value in heard.items():
            if mine:
                said[row_of[label.case_id]] = value
            else:
                scores.append(label.score)
                said.append(value)
                chances.append(share[stratum[label]])
                groups.append(label.case_group or label.case_id)
    every = np.array(chances)
    most = float(every[~np.isnan(every)].max(initial=0)) or 1.0
    return Labelled(np.array(scores), np.array(said), every / most, groups, np.arange(len(scores)) < n)


def _answer(label: Label) -> tuple[str, str]:
    return label.evaluation_id, label.case_id


def _after(known: Labelled, n: int, width: float) -> float | None:
    """The width after ten more labels: this one's, by how the expected width of so many falls."""
    cases = int(known.counted.sum())
    if n < 2:
        return None
    variance, correlation = spread(known)
    now, then = (
        expected_width(min(count, max(cases, n)), label_variance=variance, correlation=correlation, cases=cases)
        for count in (n, n + 10)
    )
    return width * then / now if now else width


def spread(known: Labelled) -> tuple[float, float]:
    """The variance of people's labels, with two invented ones of either kind, and their correlation with the scores."""
    labelled = ~np.isnan(known.labels)
    y, f = known.labels[labelled], known.scores[labelled]
    variance = float(np.var([*y, 1.0, 1.0, 0.0, 0.0]))
    varied = len(y) > 2 and np.ptp(y) > 0 and np.ptp(f) > 0
    return variance, float(np.corrcoef(y, f)[0, 1]) if varied else 0.0


def _shares(known: Labelled) -> Shares | None:
    labelled = ~np.isnan(known.labels)
    said: Sequence[Floats] = (known.scores, known.labels[labelled])
    if not labelled.any() or not all(np.isin(values, (0, 1)).all() for values in said):
        return None
    n = int(known.counted.sum())  # the share of yes is of these answers; with labels of others alone, there is none
    found = rogan_gladen(known.scores[:n], known.labels[:n], known.probabilities[:n], groups=known.groups[:n])
    if found.sensitivity != found.sensitivity:
        return None
    return {
        "sensitivity": found.sensitivity,
        "specificity": found.specificity,
        "value": finite(found.value),
        "ci_low": finite(found.low),
        "ci_high": finite(found.high),
    }
