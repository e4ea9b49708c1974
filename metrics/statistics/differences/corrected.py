"""Two corrected means: is the later one better?"""

import numpy as np

from metrics.metric import Direction
from metrics.statistics.corrected import INVENTED, Estimated, Labelled, checked, estimated, leave_one_out_reach
from metrics.statistics.differences.comparison import Comparison, concluded
from metrics.statistics.differences.intervals import level_at
from metrics.statistics.differences.numbers import Compared
from metrics.statistics.groups import Floats, Ints, group_codes
from metrics.statistics.intervals import NO_INTERVAL, UNDEFINED, Interval, normal_quantile
from metrics.statistics.power import detectable

MARGIN = 0.05
"""A difference that does not matter: five points of a share."""
METHOD = "PPI++ (by group)"
ROUNDING = 1e-12


def compare_corrected(a: Labelled, b: Labelled, *, better: Direction = "higher", confidence: float = 0.95) -> Compared:
    """Is b better than a, as people would judge both?

    Both means believe the judge equally far, so that labels which correct both cancel, and only what the sides do not
    share is chance.

    Args:
        a, b: both sides.
        better: which direction of the metric is better.
        confidence: the interval's level, 0..1.

    Returns:
        Both means, and the comparison: Student's interval of the difference over groups, and its test. Where a side has
        fewer than two labels the values are NaN.

    Reference: Angelopoulos, Duchi and Zrnic 2023, PPI++: Efficient prediction-powered inference (arXiv 2311.01453).

    Example:
        >>> from metrics.statistics.corrected import Labelled
        >>> from metrics.statistics.differences.corrected import compare_corrected
        >>> judged, people = [1.0] * 30 + [0.0] * 10, [1.0] * 27 + [0.0] * 12 + [1.0]  # 40 answers of an earlier night
        >>> unknown, chances = [float("nan")] * 100, [float("nan")] * 100 + [1.0] * 40
        >>> names, counted = list(range(140)), [True] * 100 + [False] * 40
        >>> sides = [
        ...     Labelled(scores + judged, unknown + people, chances, names, counted)
        ...     for scores in ([1.0] * 90 + [0.0] * 10, [1.0] * 75 + [0.0] * 25)
        ... ]
        >>> found = compare_corrected(*sides)
        >>> round(found.a, 2), round(found.b, 2), found.comparison.verdict
        (0.83, 0.7, 'regressed')
    """
    codes = group_codes([*a.groups, *b.groups], len(a.groups) + len(b.groups))
    samples = [checked(side.scores, side.labels, side.probabilities, None, side.counted) for side in (a, b)]
    apart = np.split(codes, [len(a.groups)])
    own = [kept[~np.isnan(np.asarray(side.scores, dtype=np.float64))] for kept, side in zip(apart, (a, b), strict=True)]
    samples = [sample._replace(codes=of) for sample, of in zip(samples, own, strict=True)]
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
    moved, labels, cases = ([_by_group(side, part, groups) for side in sides] for part in range(3))
    unshared = min(1.0, float(np.abs(labels[1] - labels[0]).sum()) / 2)
    worth = [side.worth(confidence) for side in sides]
    invented = [
        sign * unshared * (np.array(INVENTED) - side.value) / (many + len(INVENTED))
        for sign, side, many in zip((-1, 1), sides, worth, strict=True)
    ]
    by_group = np.concatenate([moved[1] - moved[0], *invented])
    shares = unshared * (labels[0] + labels[1]) / 2 + (1 - unshared) * (cases[0] + cases[1]) / 2
    shares = np.append(shares, np.zeros(2 * len(INVENTED)))
    difference = round(other.value - one.value, 12) + 0.0  # the same labels in another order are no difference
    by_group[np.abs(by_group) < ROUNDING] = 0.0

    def interval_at(level: float) -> Interval:
        reach = leave_one_out_reach(by_group, shares, level)
        return Interval(difference - reach, difference + reach)

    reach = leave_one_out_reach(by_group, shares, confidence)
    changed = difference != 0 and reach > 0
    units = int(np.count_nonzero(shares))
    return concluded(
        difference,
        level_at(interval_at, 0.0) if changed else 1.0,
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


def _by_group(side: Estimated, part: int, groups: int) -> Floats:
    """What each group moves the mean by, its share of the labels, its share of the cases."""
    counted = side.of.counted
    parts = (side.influences, side.w, counted / counted.sum())
    codes: Ints = side.of.codes
    return np.asarray(np.bincount(codes, parts[part], minlength=groups), dtype=np.float64)


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
