"""Means of a judge's scores, corrected by people's labels of some answers (prediction-powered inference)."""

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from yarus.metrics.statistics.groups import Floats, Ints, group_codes
from yarus.metrics.statistics.intervals import NO_INTERVAL, UNDEFINED, Interval, effective_sample_size, student_quantile

BoolArray = NDArray[np.bool_]
PSEUDO_LABELS = (1.0, 1.0, 0.0, 0.0)
"""Pseudo-labels added for the interval, because a rare failure may not have been labelled yet."""


class PPIMean(NamedTuple):
    """A corrected mean with its interval, both within 0..1, and the error of the judge; NaN if undefined."""

    value: float
    low: float
    high: float
    error: float
    """Standard error of the estimate without pseudo-labels."""
    weight: float
    """Weight of the judge's scores, 0..1; 0 if they do not predict the labels, so that only the labels count."""
    n_labels: int
    judge_error: float
    """How much higher the judge scores than people: weighted mean over the labels."""


class LabelledScores(NamedTuple):
    """Arguments of `ppi_mean`."""

    scores: Floats
    labels: Floats
    probabilities: Floats
    groups: Sequence[Hashable]
    """If two evaluations are compared, what both have (a user, a case) has the same name."""
    counted: BoolArray
    bounded: bool = True
    """Whether labels lie within 0..1, as people's do; estimates from a part of their labels may lie outside."""


class JudgedSample(NamedTuple):
    """Cases scored by a judge, some of them labelled by people; see `ppi_mean`."""

    scores: Floats
    labels: Floats
    probabilities: Floats
    codes: Ints
    """Numbers of the groups."""
    counted: BoolArray


class PPIEstimate(NamedTuple):
    """An estimate and its components."""

    sample: JudgedSample
    value: float
    weight: float
    w: Floats
    """(n,) weights of the labels, which add up to 1; 0 for a case without a label."""
    influences: Floats
    """(n,) influence of each case on the estimate."""

    def effective_labels(self, confidence: float) -> float:
        """Return the effective number of labels: independent ones that would be as informative."""
        labelled = ~np.isnan(self.sample.labels)
        return effective_sample_size(self.sample.labels[labelled], self.sample.codes[labelled].tolist(), confidence)


def ppi_mean(
    scores: ArrayLike,
    labels: ArrayLike,
    probabilities: ArrayLike,
    *,
    groups: Sequence[Hashable] | None = None,
    counted: ArrayLike | None = None,
    bounded: bool = True,
    confidence: float = 0.95,
) -> PPIMean:
    """Return the mean of people's labels, estimated from all of a judge's scores and a random sample of labels.

    `weight * mean(scores) + sum over the labels of w (label - weight * score)`, w inversely proportional to the
    probability of being labelled. The weight minimises the variance; a judge without predictive power gets 0.

    Args:
        scores: (n,) a judge's, 0..1; cases without one (NaN) are left out, labelled or not.
        labels: (n,) people's, 0..1; NaN for a case without a label.
        probabilities: (n,) with which each case was to be labelled; for labelled cases above 0 and at most 1. Cases of
            one probability are a stratum, of which a fixed number was drawn.
        groups: n labels of users, dialogs or pages; None marks a case without a group.
        counted: (n,) False for a case whose label only measures the error of the judge, because it belongs to other
            answers than those whose mean is estimated; by default all count.
        bounded: False if labels are unbiased estimates from a part of people's labels, which may leave 0..1.
        confidence: the interval's level, 0..1.

    Returns:
        The mean of the population of the cases, with Student's interval over the labelled groups, including two
        pseudo-labels of either kind. NaN below two labels.

    Raises:
        ValueError: series of different lengths, a score or label outside 0..1, a probability outside 0..1 or 0.

    Reference: Angelopoulos, Duchi and Zrnic 2023, PPI++: Efficient prediction-powered inference (arXiv 2311.01453).

    Example:
        >>> import numpy as np
        >>> from yarus.metrics.statistics.corrected import ppi_mean
        >>> scores = np.array([1.0, 1.0, 0.0, 1.0] * 50)  # 75 % by the judge
        >>> labels = np.full(200, np.nan)
        >>> labels[:40] = [1.0, 0.0, 0.0, 1.0] * 10  # people accept half
        >>> estimate = ppi_mean(scores, labels, np.full(200, 0.2))
        >>> round(estimate.value, 3), round(estimate.judge_error, 3)
        (0.5, 0.25)
    """
    mean = estimate_mean(check_sample(scores, labels, probabilities, groups, counted, bounded=bounded))
    if mean is None:
        n = int((~np.isnan(np.asarray(labels)) & ~np.isnan(np.asarray(scores))).sum())
        return PPIMean(UNDEFINED, *NO_INTERVAL, UNDEFINED, UNDEFINED, n, UNDEFINED)
    f, y, _, codes, _ = mean.sample
    error = float(np.sqrt((np.bincount(codes, mean.influences) ** 2).sum()))
    low, high = _interval(mean.value, mean.influences, mean.w, codes, mean.effective_labels(confidence), confidence)
    value = min(max(mean.value, 0.0), 1.0)
    judge_error = float(mean.w @ np.where(np.isnan(y), 0, f - y))
    n = int((~np.isnan(y)).sum())
    return PPIMean(value, min(low, value), max(high, value), error, mean.weight, n, judge_error)


def estimate_mean(sample: JudgedSample, *, weight: float | None = None) -> PPIEstimate | None:
    """Return the estimate and the influence of each case; None below two labels.

    Args:
        sample: the cases.
        weight: of the judge's scores; by default that of least variance.

    Example:
        >>> from yarus.metrics.statistics.corrected import check_sample, estimate_mean
        >>> estimate = estimate_mean(check_sample([0.0, 1.0, 1.0], [0.0, 1.0, 0.0], [1.0, 1.0, 1.0], None), weight=0.5)
        >>> round(estimate.value, 3), estimate.influences.round(3).tolist()
        (0.333, [-0.111, 0.222, -0.111])
    """
    f, y, p, _, counted = sample
    is_labelled = ~np.isnan(y)
    if is_labelled.sum() < 2 or not counted.any():
        return None
    w = np.where(is_labelled, 1 / np.where(is_labelled, p, 1), 0)
    w /= w.sum()
    weight = _optimal_weight(f[counted], f, np.where(is_labelled, y, 0), w) if weight is None else weight
    residuals = np.where(is_labelled, y - weight * f, 0)
    value = weight * float(f[counted].mean()) + float(w @ residuals)
    return PPIEstimate(sample, value, weight, w, _influences(weight * f, residuals, w, p, counted))


def _optimal_weight(counted: Floats, scores: Floats, labels: Floats, w: Floats) -> float:
    """Return the weight of least variance for independent cases: cov(labels, scores) / var(scores)."""
    variance = float(counted.var(ddof=1)) if len(counted) > 1 else 0.0
    if variance <= 1e-12:
        return 0.0
    squares = w**2 / (w**2).sum()
    covariance = squares @ ((labels - squares @ labels) * (scores - squares @ scores))
    return min(max(float(covariance) / variance, 0.0), 1.0)


def _influences(imputed: Floats, residuals: Floats, w: Floats, p: Floats, counted: BoolArray) -> Floats:
    """Return the influence of each case: its own score, and the residual of its label within its stratum.

    Cases of one probability are a stratum of fixed sample size: only the variation within it is chance. Labels of other
    answers are one stratum, because the number of each kind of these is chance too.
    """
    strata = np.unique(p, return_inverse=True)[1] + 1
    strata[~counted] = 0
    shares = np.bincount(strata, w)
    means: Floats = np.bincount(strata, w * residuals) / np.where(shares > 0, shares, 1)
    means[np.bincount(strata, w > 0) < 2] = w @ residuals  # one label cannot show the spread of its stratum
    labelled = 2 * strata + (w > 0)
    own: Floats = imputed + means[strata] - (_group_means(imputed, labelled) - _group_means(imputed, strata))
    return np.asarray(np.where(counted, own - own[counted].mean(), 0) / counted.sum() + w * (residuals - means[strata]))


def _group_means(values: Floats, codes: Ints) -> Floats:
    """Return the mean of the group of each case."""
    return np.asarray((np.bincount(codes, values) / np.maximum(np.bincount(codes), 1))[codes])


def _interval(value: float, influences: Floats, w: Floats, codes: Ints, n_labels: float, confidence: float) -> Interval:
    """Return Student's interval of the labels and two pseudo-labels of either kind (Agresti-Coull).

    Args:
        value: the estimate.
        influences: (n,) of the cases on the estimate.
        w: (n,) weights of the labels, 0 for a case without one.
        codes: (n,) of the groups.
        n_labels: their effective number.
        confidence: the interval's level.
    """
    added = len(PSEUDO_LABELS)
    share = n_labels / (n_labels + added)
    center = share * value + (1 - share) * float(np.mean(PSEUDO_LABELS))
    by_group = np.append(share * np.bincount(codes, influences), (np.array(PSEUDO_LABELS) - value) / (n_labels + added))
    shares = np.append(share * np.bincount(codes, w), np.full(added, 1 / (n_labels + added)))
    half_width = jackknife_half_width(by_group, shares, confidence)
    return Interval(*(float(np.clip(bound, 0, 1)) for bound in (center - half_width, center + half_width)))


def jackknife_half_width(by_group: Floats, shares: Floats, confidence: float) -> float:
    """Return the half-width of Student's interval from the estimates that leave one group out.

    Args:
        by_group: (m,) influence of each group on the estimate.
        shares: (m,) of the labels in each group.
        confidence: the interval's level.

    Example:
        >>> import numpy as np
        >>> from yarus.metrics.statistics.corrected import jackknife_half_width
        >>> round(jackknife_half_width(np.array([-0.1, 0.0, 0.1]), np.ones(3), 0.95), 2)
        0.75
    """
    m = int(np.count_nonzero(shares))
    if m < 2:
        return float("inf")
    shares = shares / shares.sum()
    without = by_group / np.maximum(1 - shares, 1 / m)
    error = float(np.sqrt((m - 1) / m * (without**2).sum()))
    return student_quantile(confidence, 1 / float((shares**2).sum()) - 1) * error


def check_sample(
    scores: ArrayLike,
    labels: ArrayLike,
    probabilities: ArrayLike,
    groups: Sequence[Hashable] | None,
    counted: ArrayLike | None = None,
    *,
    bounded: bool = True,
) -> JudgedSample:
    """Return the cases that have a score, or raise an error.

    Example:
        >>> from math import nan
        >>> from yarus.metrics.statistics.corrected import check_sample
        >>> [part.tolist() for part in check_sample([0.5, nan], [1.0, 0.0], [0.5, 0.5], None)]
        [[0.5], [1.0], [0.5], [0], [True]]
    """
    f, y, p = (np.asarray(series, dtype=np.float64) for series in (scores, labels, probabilities))
    if not f.shape == y.shape == p.shape or f.ndim != 1:
        raise ValueError(f"{f.shape} scores, {y.shape} labels and {p.shape} probabilities: one of each a case")
    is_counted = np.ones(len(f), dtype=bool) if counted is None else np.asarray(counted, dtype=bool)
    if is_counted.shape != f.shape:
        raise ValueError(f"{len(f)} scores, but of {len(is_counted)} it is said whether they count")
    has_score = ~np.isnan(f)
    is_labelled = has_score & ~np.isnan(y)
    for name, values in (("score", f[has_score]), *((("label", y[is_labelled]),) if bounded else ())):
        if values.size and not 0 <= values.min() <= values.max() <= 1:
            raise ValueError(f"a {name} lies between 0 and 1, got {values.min():g} to {values.max():g}")
    labelled_p = p[is_labelled]
    if (bad := ~((labelled_p > 0) & (labelled_p <= 1))).any():
        raise ValueError(f"a labelled case has the probability {labelled_p[bad][0]:g}: above 0 and at most 1 is needed")
    group_numbers = np.arange(len(f)) if groups is None else group_codes(groups, len(f))
    _, codes = np.unique(group_numbers[has_score], return_inverse=True)
    return JudgedSample(f[has_score], y[has_score], p[has_score], codes.astype(np.intp), is_counted[has_score])
