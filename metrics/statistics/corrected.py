"""Means of a judge's scores, corrected by people's labels of some of the same answers."""

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from yarus.metrics.statistics.groups import Floats, Ints, group_codes
from yarus.metrics.statistics.intervals import NO_INTERVAL, UNDEFINED, Interval, independent_cases, student_quantile

Bools = NDArray[np.bool_]
INVENTED = (1.0, 1.0, 0.0, 0.0)
"""Labels that are added for the interval, for a failure that is rare may be one that nobody has labelled yet."""


class Corrected(NamedTuple):
    """A corrected mean with its interval, both within 0..1, and what is known of the judge; NaN where there is none."""

    value: float
    low: float
    high: float
    error: float
    """Standard error; of the estimate without invented labels."""
    weight: float
    """Of the judge's scores, 0..1: 0 where they say nothing of the labels, so that these stand alone."""
    n_labels: int
    judge_error: float
    """How much higher the judge scores than people; mean over the labels by their weights."""


class Labelled(NamedTuple):
    """What `corrected_mean` takes."""

    scores: Floats
    labels: Floats
    probabilities: Floats
    groups: Sequence[Hashable]
    """Where two evaluations are compared, what is the same in both (a user, a case) has the same name."""
    counted: Bools
    bounded: bool = True
    """Whether labels lie within 0..1, as people's do; what is estimated from a part of theirs may lie outside."""


class Sample(NamedTuple):
    """Cases that a judge has scored, some of which people have labelled; see `corrected_mean`."""

    scores: Floats
    labels: Floats
    probabilities: Floats
    codes: Ints
    """Of the groups."""
    counted: Bools


class Estimated(NamedTuple):
    """An estimate, and how it is made up."""

    of: Sample
    value: float
    weight: float
    w: Floats
    """(n,) of the labels, as shares of 1; 0 where there is none."""
    influences: Floats
    """(n,) how far each case moves it."""

    def worth(self, confidence: float) -> float:
        """How many labels of cases that stand alone would tell as much."""
        labelled = ~np.isnan(self.of.labels)
        return independent_cases(self.of.labels[labelled], self.of.codes[labelled].tolist(), confidence)


def corrected_mean(
    scores: ArrayLike,
    labels: ArrayLike,
    probabilities: ArrayLike,
    *,
    groups: Sequence[Hashable] | None = None,
    counted: ArrayLike | None = None,
    bounded: bool = True,
    confidence: float = 0.95,
) -> Corrected:
    """The mean that people's labels would have, estimated from all of a judge's scores and a random sample of labels.

    `weight * mean(scores) + sum over the labels of w (label - weight * score)`, w inversely proportional to the
    probability of having been labelled. The weight is the one of least variance; a judge that is of no use gets 0.

    Args:
        scores: (n,) a judge's, 0..1; cases without one (NaN) are left out, labelled or not.
        labels: (n,) people's, 0..1; NaN where there is none.
        probabilities: (n,) with which each case was to be labelled, above 0 and at most 1 where it was. Cases of one
            probability are a stratum, of which a fixed number was drawn.
        groups: n labels of users, dialogs or pages; None marks a case that stands alone.
        counted: (n,) False for a case whose label tells only how far the judge is off, because it is of other answers
            than those whose mean is wanted; by default all count.
        bounded: False where labels are unbiased estimates from a part of what people say, which may leave 0..1.
        confidence: the interval's level, 0..1.

    Returns:
        The mean of what the cases are a sample of, with Student's interval over the labelled groups, of these labels
        and two invented ones of either kind. NaN below two labels.

    Raises:
        ValueError: series of different lengths, a score or label outside 0..1, a probability outside 0..1 or 0.

    Reference: Angelopoulos, Duchi and Zrnic 2023, PPI++: Efficient prediction-powered inference (arXiv 2311.01453).

    Example:
        >>> import numpy as np
        >>> from yarus.metrics.statistics.corrected import corrected_mean
        >>> scores = np.array([1.0, 1.0, 0.0, 1.0] * 50)  # 75 % by the judge
        >>> labels = np.full(200, np.nan)
        >>> labels[:40] = [1.0, 0.0, 0.0, 1.0] * 10  # people say half of it
        >>> found = corrected_mean(scores, labels, np.full(200, 0.2))
        >>> round(found.value, 3), round(found.judge_error, 3)
        (0.5, 0.25)
    """
    found = estimated(checked(scores, labels, probabilities, groups, counted, bounded=bounded))
    if found is None:
        n = int((~np.isnan(np.asarray(labels)) & ~np.isnan(np.asarray(scores))).sum())
        return Corrected(UNDEFINED, *NO_INTERVAL, UNDEFINED, UNDEFINED, n, UNDEFINED)
    f, y, _, codes, _ = found.of
    error = float(np.sqrt((np.bincount(codes, found.influences) ** 2).sum()))
    low, high = _interval(found.value, found.influences, found.w, codes, found.worth(confidence), confidence)
    value = min(max(found.value, 0.0), 1.0)
    judge_error = float(found.w @ np.where(np.isnan(y), 0, f - y))
    n = int((~np.isnan(y)).sum())
    return Corrected(value, min(low, value), max(high, value), error, found.weight, n, judge_error)


def estimated(of: Sample, *, weight: float | None = None) -> Estimated | None:
    """The estimate and what each case moves it by; None below two labels.

    Args:
        of: the cases.
        weight: of the judge's scores; by default that of least variance.

    Example:
        >>> from yarus.metrics.statistics.corrected import checked, estimated
        >>> found = estimated(checked([0.0, 1.0, 1.0], [0.0, 1.0, 0.0], [1.0, 1.0, 1.0], None), weight=0.5)
        >>> round(found.value, 3), found.influences.round(3).tolist()
        (0.333, [-0.111, 0.222, -0.111])
    """
    f, y, p, _, ours = of
    labelled = ~np.isnan(y)
    if labelled.sum() < 2 or not ours.any():
        return None
    w = np.where(labelled, 1 / np.where(labelled, p, 1), 0)
    w /= w.sum()
    weight = _weight(f[ours], f, np.where(labelled, y, 0), w) if weight is None else weight
    residuals = np.where(labelled, y - weight * f, 0)
    value = weight * float(f[ours].mean()) + float(w @ residuals)
    return Estimated(of, value, weight, w, _influences(weight * f, residuals, w, p, ours))


def _weight(counted: Floats, scores: Floats, labels: Floats, w: Floats) -> float:
    """The weight of least variance where cases stand alone: how labels follow scores, by the variance of all scores."""
    variance = float(counted.var(ddof=1)) if len(counted) > 1 else 0.0
    if variance <= 1e-12:
        return 0.0
    squares = w**2 / (w**2).sum()
    together = squares @ ((labels - squares @ labels) * (scores - squares @ scores))
    return min(max(float(together) / variance, 0.0), 1.0)


def _influences(imputed: Floats, residuals: Floats, w: Floats, p: Floats, ours: Bools) -> Floats:
    """What each case moves the estimate by: its own score, and its label's surprise among those drawn as likely.

    Cases of one probability are a stratum, of which so many were drawn: only what varies within it is chance. Labels
    of other answers are one stratum: how many there are of each kind of these is chance too.
    """
    strata = np.unique(p, return_inverse=True)[1] + 1
    strata[~ours] = 0
    shares = np.bincount(strata, w)
    means: Floats = np.bincount(strata, w * residuals) / np.where(shares > 0, shares, 1)
    means[np.bincount(strata, w > 0) < 2] = w @ residuals  # one label tells nothing of its stratum's spread
    labelled = 2 * strata + (w > 0)
    own: Floats = imputed + means[strata] - (_means(imputed, labelled) - _means(imputed, strata))
    return np.asarray(np.where(ours, own - own[ours].mean(), 0) / ours.sum() + w * (residuals - means[strata]))


def _means(values: Floats, codes: Ints) -> Floats:
    """Of each case, the mean of its group."""
    return np.asarray((np.bincount(codes, values) / np.maximum(np.bincount(codes), 1))[codes])


def _interval(value: float, influences: Floats, w: Floats, codes: Ints, worth: float, confidence: float) -> Interval:
    """Student's, of the labels and two invented ones of either kind (Agresti-Coull).

    Args:
        value: the estimate.
        influences: (n,) what each case moves it by.
        w: (n,) weights of the labels, 0 of a case without one.
        codes: (n,) of the groups.
        worth: how many labels of cases that stand alone would tell as much.
        confidence: the interval's level.
    """
    more = len(INVENTED)
    kept = worth / (worth + more)
    centre = kept * value + (1 - kept) * float(np.mean(INVENTED))
    by_group = np.append(kept * np.bincount(codes, influences), (np.array(INVENTED) - value) / (worth + more))
    shares = np.append(kept * np.bincount(codes, w), np.full(more, 1 / (worth + more)))
    reach = leave_one_out_reach(by_group, shares, confidence)
    return Interval(*(float(np.clip(bound, 0, 1)) for bound in (centre - reach, centre + reach)))


def leave_one_out_reach(by_group: Floats, shares: Floats, confidence: float) -> float:
    """How far the interval reaches: Student's of the spread of the estimates that leave one group out.

    Args:
        by_group: (m,) what each group moves the estimate by.
        shares: (m,) of the labels that are its.
        confidence: the interval's level.

    Example:
        >>> import numpy as np
        >>> from yarus.metrics.statistics.corrected import leave_one_out_reach
        >>> round(leave_one_out_reach(np.array([-0.1, 0.0, 0.1]), np.ones(3), 0.95), 2)
        0.75
    """
    m = int(np.count_nonzero(shares))
    if m < 2:
        return float("inf")
    shares = shares / shares.sum()
    without = by_group / np.maximum(1 - shares, 1 / m)
    error = float(np.sqrt((m - 1) / m * (without**2).sum()))
    return student_quantile(confidence, 1 / float((shares**2).sum()) - 1) * error


def checked(
    scores: ArrayLike,
    labels: ArrayLike,
    probabilities: ArrayLike,
    groups: Sequence[Hashable] | None,
    counted: ArrayLike | None = None,
    *,
    bounded: bool = True,
) -> Sample:
    """The cases that have a score.

    Example:
        >>> from math import nan
        >>> from yarus.metrics.statistics.corrected import checked
        >>> [part.tolist() for part in checked([0.5, nan], [1.0, 0.0], [0.5, 0.5], None)]
        [[0.5], [1.0], [0.5], [0], [True]]
    """
    f, y, p = (np.asarray(given, dtype=np.float64) for given in (scores, labels, probabilities))
    if not f.shape == y.shape == p.shape or f.ndim != 1:
        raise ValueError(f"{f.shape} scores, {y.shape} labels and {p.shape} probabilities: one of each a case")
    ours = np.ones(len(f), dtype=bool) if counted is None else np.asarray(counted, dtype=bool)
    if ours.shape != f.shape:
        raise ValueError(f"{len(f)} scores, but of {len(ours)} it is said whether they count")
    kept = ~np.isnan(f)
    labelled = kept & ~np.isnan(y)
    for name, values in (("score", f[kept]), *((("label", y[labelled]),) if bounded else ())):
        if values.size and not 0 <= values.min() <= values.max() <= 1:
            raise ValueError(f"a {name} lies between 0 and 1, got {values.min():g} to {values.max():g}")
    drawn = p[labelled]
    if (bad := ~((drawn > 0) & (drawn <= 1))).any():
        raise ValueError(f"a labelled case has the probability {drawn[bad][0]:g}: above 0 and at most 1 is needed")
    numbers = np.arange(len(f)) if groups is None else group_codes(groups, len(f))
    _, codes = np.unique(numbers[kept], return_inverse=True)
    return Sample(f[kept], y[kept], p[kept], codes.astype(np.intp), ours[kept])
