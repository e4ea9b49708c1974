"""Selective answering: risk-coverage curve, expected cost, and the threshold of least cost."""

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from yarus.metrics.statistics.groups import Floats, Ints, group_codes, group_totals
from yarus.metrics.statistics.intervals import Interval

MAX_THRESHOLDS = 50
"""Most thresholds to compare."""
N_RESAMPLES = 1_000
N_FOLDS = 5


class RiskCoveragePoint(NamedTuple):
    """Coverage, risk and cost of one threshold."""

    threshold: float
    """Answers with at least this score are shown; infinite: none is."""
    coverage: float
    """Share of shown answers, 0..1."""
    risk: float
    """Share of wrong answers among the shown ones, 0..1; NaN if none is shown."""
    cost: float
    """Mean over all answers: of a wrong answer that is shown, or a right one that is hidden."""


class BestThreshold(NamedTuple):
    """The threshold of least expected cost."""

    shown: RiskCoveragePoint
    interval: Interval
    """Contains the threshold with the least true cost."""
    saved: float
    """Saved cost per answer compared with the actual decisions, if the threshold was chosen on other cases."""
    saved_interval: Interval


def decision_costs(right: ArrayLike, shown: ArrayLike, *, wrong_shown: float, right_hidden: float) -> Floats:
    """Return the cost of each decision.

    Args:
        right: (n,) whether the answer should be shown.
        shown: (n,) whether it is, or (n, m) for m thresholds.
        wrong_shown, right_hidden: the cost of either mistake.

    Example:
        >>> from yarus.metrics.selective import decision_costs
        >>> decision_costs([1, 0, 1], [1, 1, 0], wrong_shown=5, right_hidden=1)
        array([0., 5., 1.])
    """
    is_right, is_shown = np.asarray(right, dtype=bool), np.asarray(shown, dtype=bool)
    is_right = is_right[:, None] if is_shown.ndim == 2 else is_right
    return np.where(is_shown & ~is_right, wrong_shown, np.where(~is_shown & is_right, right_hidden, 0.0))


def candidate_thresholds(scores: ArrayLike) -> Floats:
    """Return the candidate thresholds, ascending: the scores that occur, at most fifty of them, and infinity, for none.

    Example:
        >>> from yarus.metrics.selective import candidate_thresholds
        >>> candidate_thresholds([0.5, 0.9, 0.5])
        array([0.5, 0.9, inf])
    """
    series = np.asarray(scores, dtype=np.float64)
    distinct: Floats = np.unique(series)
    if len(distinct) >= MAX_THRESHOLDS:
        distinct = np.unique(np.quantile(series, np.linspace(0, 1, MAX_THRESHOLDS - 1), method="inverted_cdf"))
    return np.append(distinct, np.inf)


def risk_coverage_curve(
    scores: ArrayLike, right: ArrayLike, *, wrong_shown: float, right_hidden: float
) -> list[RiskCoveragePoint]:
    """Return the risk-coverage curve, with the cost, by threshold.

    Args:
        scores: (n,) the gate's confidence that the answer should be shown, 0..1.
        right: (n,) whether it should be.
        wrong_shown, right_hidden: the cost of either mistake.

    Returns:
        One entry per threshold, ascending: the first shows everything, the last nothing.

    Raises:
        ValueError: lengths that differ, or no cases.

    Reference: El-Yaniv and Wiener 2010, On the foundations of noise-free selective classification; Chow 1970.

    Example:
        >>> from yarus.metrics.selective import risk_coverage_curve
        >>> [tuple(point)[:3] for point in risk_coverage_curve([0.2, 0.8], [0, 1], wrong_shown=1, right_hidden=1)]
        [(0.2, 1.0, 0.5), (0.8, 0.5, 0.0), (inf, 0.0, nan)]
    """
    confidences, is_right = _check_lengths(scores, right)
    candidates = candidate_thresholds(confidences)
    is_shown = confidences[:, None] >= candidates
    mean_costs = decision_costs(is_right, is_shown, wrong_shown=wrong_shown, right_hidden=right_hidden).mean(axis=0)
    n_wrong = (is_shown & ~is_right[:, None]).sum(axis=0)
    risk = np.where(is_shown.any(axis=0), n_wrong / np.maximum(is_shown.sum(axis=0), 1), np.nan)
    rows = zip(candidates, is_shown.mean(axis=0), risk, mean_costs, strict=True)
    return [RiskCoveragePoint(*(float(value) for value in row)) for row in rows]


def best_threshold(
    scores: ArrayLike,
    right: ArrayLike,
    shown: ArrayLike,
    *,
    wrong_shown: float,
    right_hidden: float,
    seed: int,
    groups: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
) -> BestThreshold:
    """Return the threshold of least expected cost, an interval of candidates for it, and what it saves.

    A threshold is a candidate unless another one is cheaper beyond chance, over all others at once (multiple
    comparisons with the best, its critical value by a bootstrap of cases, or of groups). The interval reaches from
    below the first candidate to the last. The saving is measured on cases that the threshold was not chosen on, in five
    folds.

    Args:
        scores: (n,) the gate's confidence that the answer should be shown, 0..1.
        right: (n,) whether it should be.
        shown: (n,) the actual decisions.
        wrong_shown, right_hidden: the cost of either mistake.
        seed: of the bootstrap and the folds.
        groups: n labels of users, dialogs or pages; None marks a case without a group.
        confidence: of the intervals.

    Raises:
        ValueError: lengths that differ, or no cases.

    Reference: Hsu 1981, Simultaneous confidence intervals for all distances from the best; Hansen, Lunde and Nason
    2011, The model confidence set.

    Example:
        >>> from yarus.metrics.selective import best_threshold
        >>> scores, right = [0.1, 0.3, 0.7, 0.9] * 25, [0, 0, 1, 1] * 25
        >>> best = best_threshold(scores, right, [1] * 100, wrong_shown=1, right_hidden=1, seed=0)
        >>> best.shown.threshold, best.interval, best.saved
        (0.7, Interval(low=0.3, high=0.7), 0.5)
    """
    confidences, is_right = _check_lengths(scores, right)
    points = risk_coverage_curve(confidences, is_right, wrong_shown=wrong_shown, right_hidden=right_hidden)
    candidates = np.array([point.threshold for point in points])
    costs_by_threshold = decision_costs(
        is_right, confidences[:, None] >= candidates, wrong_shown=wrong_shown, right_hidden=right_hidden
    )
    codes = group_codes(groups if groups is not None else [None] * len(confidences), len(confidences))
    generator = np.random.default_rng(seed)
    best = int(np.argmin(costs_by_threshold.mean(axis=0)))
    possibly_best = np.flatnonzero(_may_be_least(costs_by_threshold, codes, generator, confidence))
    low = float(candidates[possibly_best[0] - 1]) if possibly_best[0] else 0.0
    interval = Interval(low, min(1.0, float(candidates[possibly_best[-1]])))
    actual = decision_costs(is_right, np.asarray(shown, dtype=bool), wrong_shown=wrong_shown, right_hidden=right_hidden)
    saved = actual - _cross_validated_costs(costs_by_threshold, codes, generator)
    units = group_totals(np.column_stack([saved, np.ones(len(saved))]), codes)
    resampled_totals = _draw_weights(len(units), generator) @ units
    ends = np.quantile(resampled_totals[:, 0] / resampled_totals[:, 1], [(1 - confidence) / 2, (1 + confidence) / 2])
    return BestThreshold(points[best], interval, float(saved.mean()), Interval(*map(float, ends)))


def _check_lengths(scores: ArrayLike, right: ArrayLike) -> tuple[Floats, NDArray[np.bool_]]:
    values, is_right = np.asarray(scores, dtype=np.float64), np.asarray(right, dtype=bool)
    if len(values) != len(is_right) or not len(values):
        raise ValueError(f"{len(values)} scores and {len(is_right)} answers: they must be as many, and at least one")
    return values, is_right


def _draw_weights(units: int, generator: np.random.Generator) -> Floats:
    """Return (draws, units) how often each unit is in a resample."""
    return generator.multinomial(units, np.full(units, 1 / units), size=N_RESAMPLES).astype(np.float64)


def _may_be_least(costs: Floats, codes: Ints, generator: np.random.Generator, confidence: float) -> NDArray[np.bool_]:
    """Return (m,) whether no other column is lower on average beyond chance."""
    units = group_totals(np.column_stack([costs, np.ones(len(costs))]), codes)
    resampled_totals = _draw_weights(len(units), generator) @ units
    means = resampled_totals[:, :-1] / resampled_totals[:, -1:]
    mean = costs.mean(axis=0)
    may_be_least = np.zeros(len(mean), dtype=bool)
    for column in range(len(mean)):
        gaps = mean[column] - mean
        deviations = means[:, [column]] - means - gaps
        error = deviations.std(axis=0)
        varies = error > 0
        if not varies.any():
            may_be_least[column] = bool((gaps <= 0).all())
            continue
        limit = np.quantile((deviations[:, varies] / error[varies]).max(axis=1), confidence)
        may_be_least[column] = bool((gaps[varies] / error[varies]).max() <= limit) and bool((gaps[~varies] <= 0).all())
    may_be_least[int(np.argmin(mean))] = True
    return may_be_least


def _cross_validated_costs(costs: Floats, codes: Ints, generator: np.random.Generator) -> Floats:
    """Return (n,) the cost of every case under the column that is lowest on the other folds."""
    units = int(codes.max()) + 1
    folds = generator.permutation(units) % min(N_FOLDS, units)
    chosen_costs = np.zeros(len(costs))
    for fold in range(min(N_FOLDS, units)):
        in_fold = folds[codes] == fold
        training_costs = costs[~in_fold] if not in_fold.all() else costs
        chosen_costs[in_fold] = costs[in_fold, int(np.argmin(training_costs.mean(axis=0)))]
    return chosen_costs
