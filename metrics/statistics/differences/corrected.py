"""Two corrected means: is the later one better?"""

import numpy as np

from yarus.metrics.metric import Direction
from yarus.metrics.statistics.corrected import INVENTED, Estimated, Labelled, checked, estimated, leave_one_out_reach
from yarus.metrics.statistics.differences.comparison import Comparison, concluded
from yarus.metrics.statistics.differences.intervals import level_at
from yarus.metrics.statistics.differences.numbers import Compared
from yarus.metrics.statistics.groups import Floats, group_codes
from yarus.metrics.statistics.intervals import NO_INTERVAL, UNDEFINED, Interval, normal_quantile
from yarus.metrics.statistics.power import detectable

MARGIN = 0.05
"""A difference that does not matter: five points of a share."""
METHOD = "PPI++ (by group)"


def compare_corrected(a: Labelled, b: Labelled, *, better: Direction = "higher", confidence: float = 0.95) -> Compared:
    """Is b better than a, as people would judge both?

    Both means believe the judge equally far, and what a group adds to both is one chance. Labels must be of each
    side's own answers: those of others correct both alike, and leave of a difference what the judge sees of it.

    Args:
        a, b: both sides.
        better: which direction of the metric is better.
        confidence: the interval's level, 0..1.

    Returns:
        Both means, and the comparison: Student's interval of the difference over groups, and its test. Where a side has
        fewer than two labels the values are NaN.

    Reference: Angelopoulos, Duchi and Zrnic 2023, PPI++: Efficient prediction-powered inference (arXiv 2311.01453).

    Example:
        >>> from yarus.metrics.statistics.corrected import Labelled
        >>> from yarus.metrics.statistics.differences.corrected import compare_corrected
        >>> people = [1.0] * 18 + [0.0] * 2 + [float("nan")] * 60, [1.0] * 11 + [0.0] * 9 + [float("nan")] * 60
        >>> names, chances, counted = list(range(80)), [0.25] * 80, [True] * 80
        >>> sides = [Labelled([1.0] * 80, labels, chances, names, counted) for labels in people]
        >>> found = compare_corrected(*sides)
        >>> round(found.a, 2), round(found.b, 2), found.comparison.verdict
        (0.9, 0.55, 'regressed')
    """
    codes = group_codes([*a.groups, *b.groups], len(a.groups) + len(b.groups))
    samples = []
    for side, own in zip((a, b), np.split(codes, [len(a.groups)]), strict=True):
        sample = checked(side.scores, side.labels, side.probabilities, None, side.counted, bounded=side.bounded)
        samples.append(sample._replace(codes=own[~np.isnan(np.asarray(side.scores, dtype=np.float64))]))
    alone = [estimated(sample) for sample in samples]
    if alone[0] is None or alone[1] is None:
        return Compared(UNDEFINED, UNDEFINED, _nothing(better, confidence))
    weight = (alone[0].weight + alone[1].weight) / 2
    one, other = (estimated(sample, weight=weight) for sample in samples)
    if one is None or other is None:  # as they were not before
        return Compared(UNDEFINED, UNDEFINED, _nothing(better, confidence))
    return Compared(one.value, other.value, _compared(one, other, int(codes.max()) + 1, better, confidence))


def _compared(one: Estimated, other: Estimated, groups: int, better: Direction, confidence: float) -> Comparison:
    sides = (one, other)
    moved = [_by_group(side, side.influences, groups) for side in sides]
    labels = [_by_group(side, side.w, groups) for side in sides]
    worth = [side.worth(confidence) for side in sides]
    kept = [many / (many + len(INVENTED)) for many in worth]
    invented = [
        sign * (np.array(INVENTED) - side.value) / (many + len(INVENTED))
        for sign, side, many in zip((-1, 1), sides, worth, strict=True)
    ]
    by_group = np.concatenate([kept[1] * moved[1] - kept[0] * moved[0], *invented])
    shares = np.append((labels[0] + labels[1]) / 2, np.zeros(2 * len(INVENTED)))
    difference = round(other.value - one.value, 12) + 0.0  # the same labels in another order are no difference

    def interval_at(level: float) -> Interval:
        reach = leave_one_out_reach(by_group, shares, level)
        return Interval(difference - reach, difference + reach)

    reach = leave_one_out_reach(by_group, shares, confidence)
    units = int(np.count_nonzero(shares))
    return concluded(
        difference,
        level_at(interval_at, 0.0),
        interval_at,
        METHOD,
        detectable_at=lambda alpha, margin: detectable(reach / normal_quantile(confidence), alpha=alpha),
        n=min(int((~np.isnan(side.of.labels)).sum()) for side in sides),
        units=units,
        n_missing=0,
        better=better,
        margin=MARGIN,
        confidence=confidence,
    )


def _by_group(side: Estimated, by_case: Floats, groups: int) -> Floats:
    return np.asarray(np.bincount(side.of.codes, by_case, minlength=groups), dtype=np.float64)


def _nothing(better: Direction, confidence: float) -> Comparison:
    return concluded(
        UNDEFINED,
        UNDEFINED,
        lambda level: NO_INTERVAL,
        "none: a side has fewer than two labels",
        detectable_at=lambda alpha, margin: UNDEFINED,
        n=0,
        units=0,
        n_missing=0,
        better=better,
        margin=MARGIN,
        confidence=confidence,
    )
