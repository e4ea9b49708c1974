"""From which score on an answer is best shown: risk against coverage, expected cost, and the cheapest threshold."""

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from yarus.metrics.statistics.groups import Floats, Ints, group_codes, group_totals
from yarus.metrics.statistics.intervals import Interval

CANDIDATES = 50
"""Most thresholds that are tried."""
DRAWS = 1_000
FOLDS = 5


class Shown(NamedTuple):
    """What showing from a threshold on comes to."""

    threshold: float
    """Answers are shown from this score on; infinite: none is."""
    coverage: float
    """Share of the answers that is shown, 0..1."""
    risk: float
    """Share of the shown answers that are wrong, 0..1; NaN where none is shown."""
    cost: float
    """Mean over all answers: of a wrong one that is shown, or a right one that is hidden."""


class Cheapest(NamedTuple):
    """The threshold of least expected cost."""

    shown: Shown
    interval: Interval
    """It holds the threshold that is truly the cheapest."""
    saved: float
    """What it saves of each answer against the decisions as they were, where it was chosen on other cases."""
    saved_interval: Interval


def costs(right: ArrayLike, shown: ArrayLike, *, wrong_shown: float, right_hidden: float) -> Floats:
    """What each decision costs.

    Args:
        right: (n,) whether the answer should be shown.
        shown: (n,) whether it is, or (n, m) for m thresholds.
        wrong_shown, right_hidden: the cost of either mistake.

    Example:
        >>> from yarus.metrics.selective import costs
        >>> costs([1, 0, 1], [1, 1, 0], wrong_shown=5, right_hidden=1)
        array([0., 5., 1.])
    """
    good, out = np.asarray(right, dtype=bool), np.asarray(shown, dtype=bool)
    good = good[:, None] if out.ndim == 2 else good
    return np.where(out & ~good, wrong_shown, np.where(~out & good, right_hidden, 0.0))


def thresholds(scores: ArrayLike) -> Floats:
    """The thresholds worth trying, upward: the scores that occur, fifty of them at most, and infinity, for none.

    Example:
        >>> from yarus.metrics.selective import thresholds
        >>> thresholds([0.5, 0.9, 0.5])
        array([0.5, 0.9, inf])
    """
    given = np.asarray(scores, dtype=np.float64)
    distinct: Floats = np.unique(given)
    if len(distinct) >= CANDIDATES:
        distinct = np.unique(np.quantile(given, np.linspace(0, 1, CANDIDATES - 1), method="inverted_cdf"))
    return np.append(distinct, np.inf)


def curve(scores: ArrayLike, right: ArrayLike, *, wrong_shown: float, right_hidden: float) -> list[Shown]:
    """Risk against coverage, and cost, by threshold.

    Args:
        scores: (n,) how sure the gate is that the answer should be shown, 0..1.
        right: (n,) whether it should be.
        wrong_shown, right_hidden: the cost of either mistake.

    Returns:
        One entry a threshold, upward: the first shows everything, the last nothing.

    Raises:
        ValueError: lengths that differ, or no case.

    Reference: El-Yaniv and Wiener 2010, On the foundations of noise-free selective classification; Chow 1970.

    Example:
        >>> from yarus.metrics.selective import curve
        >>> [tuple(point)[:3] for point in curve([0.2, 0.8], [0, 1], wrong_shown=1, right_hidden=1)]
        [(0.2, 1.0, 0.5), (0.8, 0.5, 0.0), (inf, 0.0, nan)]
    """
    sure, good = _checked(scores, right)
    tried = thresholds(sure)
    out = sure[:, None] >= tried
    spent = costs(good, out, wrong_shown=wrong_shown, right_hidden=right_hidden).mean(axis=0)
    wrong = (out & ~good[:, None]).sum(axis=0)
    risk = np.where(out.any(axis=0), wrong / np.maximum(out.sum(axis=0), 1), np.nan)
    rows = zip(tried, out.mean(axis=0), risk, spent, strict=True)
    return [Shown(*(float(value) for value in row)) for row in rows]


def cheapest(
    scores: ArrayLike,
    right: ArrayLike,
    shown: ArrayLike,
    *,
    wrong_shown: float,
    right_hidden: float,
    seed: int,
    groups: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
) -> Cheapest:
    """The threshold of least expected cost, all those that may be it, and what it saves.

    A threshold may be the cheapest unless another one is cheaper beyond chance, over all others at once (multiple
    comparisons with the best, its critical value by a bootstrap of cases, or of groups). The interval reaches from
    below the first of these to the last. What it saves is measured on cases that it was not chosen on, in five folds.

    Args:
        scores: (n,) how sure the gate is that the answer should be shown, 0..1.
        right: (n,) whether it should be.
        shown: (n,) what was decided.
        wrong_shown, right_hidden: the cost of either mistake.
        seed: of the bootstrap and the folds.
        groups: n labels of users, dialogs or pages; None marks a case that stands alone.
        confidence: of the intervals.

    Raises:
        ValueError: lengths that differ, or no case.

    Reference: Hsu 1981, Simultaneous confidence intervals for all distances from the best; Hansen, Lunde and Nason
    2011, The model confidence set.

    Example:
        >>> from yarus.metrics.selective import cheapest
        >>> scores, right = [0.1, 0.3, 0.7, 0.9] * 25, [0, 0, 1, 1] * 25
        >>> found = cheapest(scores, right, [1] * 100, wrong_shown=1, right_hidden=1, seed=0)
        >>> found.shown.threshold, found.interval, found.saved
        (0.7, Interval(low=0.3, high=0.7), 0.5)
    """
    sure, good = _checked(scores, right)
    points = curve(sure, good, wrong_shown=wrong_shown, right_hidden=right_hidden)
    tried = np.array([point.threshold for point in points])
    spent = costs(good, sure[:, None] >= tried, wrong_shown=wrong_shown, right_hidden=right_hidden)
    codes = group_codes(groups if groups is not None else [None] * len(sure), len(sure))
    generator = np.random.default_rng(seed)
    best = int(np.argmin(spent.mean(axis=0)))
    possible = np.flatnonzero(_may_be_least(spent, codes, generator, confidence))
    low = float(tried[possible[0] - 1]) if possible[0] else 0.0
    interval = Interval(low, min(1.0, float(tried[possible[-1]])))
    decided = costs(good, np.asarray(shown, dtype=bool), wrong_shown=wrong_shown, right_hidden=right_hidden)
    saved = decided - _chosen_elsewhere(spent, codes, generator)
    units = group_totals(np.column_stack([saved, np.ones(len(saved))]), codes)
    drawn = _weights(len(units), generator) @ units
    ends = np.quantile(drawn[:, 0] / drawn[:, 1], [(1 - confidence) / 2, (1 + confidence) / 2])
    return Cheapest(points[best], interval, float(saved.mean()), Interval(*map(float, ends)))


def _checked(scores: ArrayLike, right: ArrayLike) -> tuple[Floats, NDArray[np.bool_]]:
    sure, good = np.asarray(scores, dtype=np.float64), np.asarray(right, dtype=bool)
    if len(sure) != len(good) or not len(sure):
        raise ValueError(f"{len(sure)} scores and {len(good)} answers: they must be as many, and at least one")
    return sure, good


def _weights(units: int, generator: np.random.Generator) -> Floats:
    """(draws, units) how often each unit is in a resample."""
    return generator.multinomial(units, np.full(units, 1 / units), size=DRAWS).astype(np.float64)


def _may_be_least(spent: Floats, codes: Ints, generator: np.random.Generator, confidence: float) -> NDArray[np.bool_]:
    """(m,) whether no other column is less on average beyond chance."""
    units = group_totals(np.column_stack([spent, np.ones(len(spent))]), codes)
    drawn = _weights(len(units), generator) @ units
    means = drawn[:, :-1] / drawn[:, -1:]
    mean = spent.mean(axis=0)
    kept = np.zeros(len(mean), dtype=bool)
    for place in range(len(mean)):
        apart = mean[place] - mean
        moved = means[:, [place]] - means - apart
        error = moved.std(axis=0)
        other = error > 0
        if not other.any():
            kept[place] = bool((apart <= 0).all())
            continue
        limit = np.quantile((moved[:, other] / error[other]).max(axis=1), confidence)
        kept[place] = bool((apart[other] / error[other]).max() <= limit) and bool((apart[~other] <= 0).all())
    kept[int(np.argmin(mean))] = True
    return kept


def _chosen_elsewhere(spent: Floats, codes: Ints, generator: np.random.Generator) -> Floats:
    """(n,) the cost of every case under the column that is least on the other folds."""
    units = int(codes.max()) + 1
    folds = generator.permutation(units) % min(FOLDS, units)
    found = np.zeros(len(spent))
    for fold in range(min(FOLDS, units)):
        own = folds[codes] == fold
        others = spent[~own] if not own.all() else spent
        found[own] = spent[own, int(np.argmin(others.mean(axis=0)))]
    return found
