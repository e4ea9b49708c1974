"""Numbers of two evaluations over different cases: all that is left where the cases cannot be paired."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from metrics.comparison import SMALLEST, Comparison, verdict_of
from metrics.draws import draw_values
from metrics.intervals import (
    NO_INTERVAL,
    NORMAL,
    UNDEFINED,
    Floats,
    Interval,
    group_codes,
    interval_of_draws,
    wilson_interval,
)
from metrics.paired import POWER, Compared, Number, Pair, prepare

FEWEST = 6
"""Units a side below which nothing is called different, as for pairs."""


def compare_independent(
    numbers: Mapping[str, Number],
    *,
    seed: int,
    groups: tuple[Sequence[Hashable], Sequence[Hashable]],
    confidence: float = 0.95,
    count: int = 10_000,
) -> dict[str, Compared]:
    """Compares every number over the cases of a with that over the cases of b, which are others.

    Means of cases that stand alone: Welch's test and interval. Everything else: the bootstrap of each side by itself
    (whole groups are drawn), percentiles of the difference, and p from the share of draws beyond no difference.

    Args:
        numbers: by name; each side over its own cases.
        seed: of the draws.
        groups: labels of a's cases and of b's; None marks a case that stands alone.
        confidence: the intervals' level, 0..1.
        count: how many draws.

    Returns:
        By name; `n` counts the measured cases of the smaller side, `n_missing` those of both that were not measured.

    Raises:
        ValueError: groups of another length.

    Reference: Welch 1947, The generalization of Student's problem; Efron and Tibshirani 1993, chapter 16.
    """
    sides = []
    for which, labels in enumerate(groups):
        alone = {name: _one_sided(number, which) for name, number in numbers.items()}
        codes = group_codes(labels, len(labels))
        pairs = {name: prepare(number, codes) for name, number in alone.items()}
        units = int(codes.max()) + 1 if len(codes) else 0
        drawn = {name: pair.side(0, units) for name, pair in pairs.items() if pair.units}
        sides.append((pairs, draw_values(drawn, units, seed=seed + which, count=count)))
    (one, drawn_a), (other, drawn_b) = sides
    none = np.full(1, UNDEFINED)
    return {
        name: _compared(number, one[name], other[name], drawn_b.get(name, none) - drawn_a.get(name, none), confidence)
        for name, number in numbers.items()
    }


def _one_sided(number: Number, which: int) -> Number:
    """A number that has the same evaluation on both sides."""
    side = (number.a, number.b)[which]
    return replace(number, a=side, b=side)


def _compared(number: Number, one: Pair, other: Pair, drawn: Floats, confidence: float) -> Compared:
    a, b = one.values()[0], other.values()[0]
    alpha, units = round(1 - confidence, 12), min(one.units, other.units)
    error = float(np.nanstd(drawn)) if units > 1 and not np.isnan(b - a) else UNDEFINED
    method = "independent bootstrap, percentile" + ("" if one.alone and other.alone else " (by group)")
    if np.isnan(error):
        p, interval, method = UNDEFINED, NO_INTERVAL, "none: fewer than two cases a side, or no value"
    elif one.is_mean and one.alone and other.alone and one.yes_no and other.yes_no:
        p, interval, method = *_shares(one.sides[0], other.sides[0], confidence), "exact Fisher, Newcombe"
    elif one.is_mean and one.alone and other.alone and error:
        p, interval, method = *_welch(one.sides[0], other.sides[0], confidence), "Welch"
    else:
        beyond = min(np.count_nonzero(drawn <= 0), np.count_nonzero(drawn >= 0)) + 1
        p = min(1.0, 2 * beyond / (np.count_nonzero(~np.isnan(drawn)) + 1))
        interval = interval_of_draws(b - a, drawn, None, confidence)
    margin = number.margin if number.margin is not None else _margin(one, other, a)
    verdict = verdict_of(b - a, interval, p, better=number.better, margin=margin, alpha=alpha)
    reach = NORMAL.inv_cdf(1 - alpha / 2) + NORMAL.inv_cdf(POWER)
    missing = sum(len(pair.kept) - len(pair.codes) for pair in (one, other))
    found = Comparison(
        difference=b - a,
        interval=interval,
        p=p,
        verdict=verdict if units >= FEWEST else "inconclusive",
        n=min(len(one.codes), len(other.codes)),
        n_missing=missing,
        method=method,
        smallest_detectable=reach * error if error > 0 and units >= FEWEST else UNDEFINED,
        better=number.better,
        margin=margin,
        alpha=alpha,
    )
    return Compared(a, b, found)


def _margin(one: Pair, other: Pair, a: float) -> float:
    if not one.is_mean:
        return 0.05 * abs(a)
    values = np.concatenate([one.sides[0], other.sides[0]])
    return 0.05 if one.yes_no and other.yes_no else 0.2 * float(values.std()) if values.size else 0.0


def _welch(a: Floats, b: Floats, confidence: float) -> tuple[float, Interval]:
    from scipy import stats  # here, because it costs half a second to import

    found = stats.ttest_ind(b, a, equal_var=False)
    low, high = found.confidence_interval(confidence)
    return max(float(found.pvalue), SMALLEST), Interval(float(low), float(high))


def _shares(a: Floats, b: Floats, confidence: float) -> tuple[float, Interval]:
    """Fisher's exact test, and the difference b - a of two shares between Wilson's bounds (Newcombe's method 10)."""
    from scipy import stats  # here, because it costs half a second to import

    yes_a, yes_b, n_a, n_b = int(a.sum()), int(b.sum()), len(a), len(b)
    p = float(stats.fisher_exact([[yes_a, n_a - yes_a], [yes_b, n_b - yes_b]]).pvalue)
    low_a, high_a = wilson_interval(yes_a, n_a, confidence=confidence)
    low_b, high_b = wilson_interval(yes_b, n_b, confidence=confidence)
    share_a, share_b = yes_a / n_a, yes_b / n_b
    low = share_b - share_a - ((share_b - low_b) ** 2 + (high_a - share_a) ** 2) ** 0.5
    return max(p, SMALLEST), Interval(
        low, share_b - share_a + ((high_b - share_b) ** 2 + (share_a - low_a) ** 2) ** 0.5
    )
