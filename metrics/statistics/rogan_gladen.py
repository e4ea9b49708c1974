"""The share of yes that people would give, from a judge's yes/no and its sensitivity and specificity."""

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from yarus.metrics.statistics.corrected import check_sample, jackknife_half_width
from yarus.metrics.statistics.groups import Floats, Ints
from yarus.metrics.statistics.intervals import NO_INTERVAL, UNDEFINED, Interval

PSEUDO_VERDICTS = 0.5
"""Pseudo-verdicts added for the interval: right and wrong ones, of either kind."""


class Prevalence(NamedTuple):
    """The share with its interval, both within 0..1, and the sensitivity and specificity of the judge."""

    value: float
    low: float
    high: float
    sensitivity: float
    specificity: float


def rogan_gladen(
    verdicts: ArrayLike,
    labels: ArrayLike,
    probabilities: ArrayLike,
    *,
    groups: Sequence[Hashable] | None = None,
) -> Prevalence:
    """Return the share of yes that people would give, from all of a judge's verdicts, its sensitivity and specificity.

    `(share of yes by the judge + specificity - 1) / (sensitivity + specificity - 1)`.

    Args:
        verdicts: (n,) a judge's, 1 for yes and 0 for no; NaN is left out.
        labels: (n,) people's, 1 or 0; NaN for a case without a label.
        probabilities, groups: as in `ppi_mean`.

    Returns:
        The share with Student's 95 % interval by the delta method, within 0..1, and the judge's sensitivity and
        specificity; NaN if people gave only one of the labels, or the judge is no better than chance.

    Raises:
        ValueError: as in `ppi_mean`, or a verdict or label that is neither 0 nor 1.

    Reference: Rogan and Gladen 1978, Estimating prevalence from the results of a screening test.

    Example:
        >>> import numpy as np
        >>> from yarus.metrics.statistics.rogan_gladen import rogan_gladen
        >>> verdicts, labels = np.array([1.0, 1.0, 1.0, 0.0, 0.0] * 20), np.full(100, np.nan)
        >>> labels[:50] = [1.0, 1.0, 0.0, 0.0, 0.0] * 10
        >>> result = rogan_gladen(verdicts, labels, np.full(100, 0.5))
        >>> round(result.value, 3), result.sensitivity, round(result.specificity, 3)
        (0.4, 1.0, 0.667)
    """
    f, y, p, codes, _ = check_sample(scores=verdicts, labels=labels, probabilities=probabilities, groups=groups)
    is_labelled = ~np.isnan(y)
    if not np.isin(f, (0, 1)).all() or not np.isin(y[is_labelled], (0, 1)).all():
        raise ValueError("Rogan-Gladen is for yes and no: verdicts and labels of 0 and 1")
    w = np.where(is_labelled, 1 / np.where(is_labelled, p, 1), 0)
    yes, no = (np.where(y == kind, w, 0) for kind in (1, 0))
    if not yes.sum() or not no.sum():
        return Prevalence(UNDEFINED, *NO_INTERVAL, UNDEFINED, UNDEFINED)
    yes, no = yes / yes.sum(), no / no.sum()
    sensitivity, specificity, share = float(yes @ f), float(no @ (1 - f)), float(f.mean())
    useful = sensitivity + specificity - 1
    if useful <= 0:
        return Prevalence(UNDEFINED, *NO_INTERVAL, sensitivity, specificity)
    value = (share + specificity - 1) / useful
    low, high = _delta_interval(f, yes, no, w, codes)
    value = float(np.clip(value, 0, 1))
    return Prevalence(value, min(low, value), max(high, value), sensitivity, specificity)


def _delta_interval(f: Floats, yes: Floats, no: Floats, w: Floats, codes: Ints) -> Interval:
    """Return the interval by the delta method, with half a right and half a wrong pseudo-verdict of either kind.

    Args:
        f: (n,) verdicts.
        yes, no: (n,) weights of the labels of either kind, which add up to 1.
        w: (n,) weights of all labels.
        codes: (n,) of the groups.
    """
    shares = [1 / (1 + 2 * PSEUDO_VERDICTS * float(weights @ weights)) for weights in (yes, no)]
    sensitivity, specificity = (
        part * float(weights @ right) + (1 - part) / 2
        for part, weights, right in zip(shares, (yes, no), (f, 1 - f), strict=True)
    )
    share, useful = float(f.mean()), sensitivity + specificity - 1
    if useful <= 0:
        return Interval(0.0, 1.0)
    value = float(np.clip((share + specificity - 1) / useful, 0, 1))
    influences = (f - share) / len(f) + (1 - value) * shares[1] * no * (1 - f - specificity)
    influences -= value * shares[0] * yes * (f - sensitivity)
    invented = [
        factor * (1 - part) / 2 * (right - rate)
        for factor, part, rate in ((value, shares[0], sensitivity), (1 - value, shares[1], specificity))
        for right in (1, 0)
    ]
    by_group: Floats = np.asarray(np.append(np.bincount(codes, influences), invented) / useful, dtype=np.float64)
    portions: Floats = np.asarray(np.append(np.bincount(codes, w / w.sum()), np.zeros(len(invented))), dtype=np.float64)
    half_width = jackknife_half_width(by_group, portions, 0.95)
    return Interval(*(float(np.clip(bound, 0, 1)) for bound in (value - half_width, value + half_width)))
