"""Two evaluations of the same cases: the difference, its interval, whether it is more than chance, and a verdict."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from metrics.metric import Direction
from metrics.statistics.intervals import (
    NO_INTERVAL,
    SMALLEST,
    UNDEFINED,
    Floats,
    Interval,
    Ints,
    bootstrap_interval,
    group_codes,
    group_totals,
    level_of,
    wilson_interval,
)
from metrics.statistics.power import fewest_pairs, smallest_detectable_difference

Verdict = Literal["improved", "regressed", "changed", "no difference shown", "inconclusive"]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What two evaluations of the same cases say about one metric."""

    difference: float
    """Mean of b - a over the complete pairs, in the metric's unit."""
    interval: Interval
    p: float
    """Two-sided, for no difference at all; NaN below two pairs."""
    verdict: Verdict
    n: int
    """Complete pairs."""
    n_missing: int
    """Pairs left out because a side was not measured."""
    method: str
    smallest_detectable: float
    """The true difference that a comparison of this size finds four times in five; NaN where none is."""
    better: Direction
    margin: float
    """A difference up to this one is taken as none that matters."""
    alpha: float

    def adjusted(self, p: float) -> "Comparison":
        """The same comparison under another p, such as Holm's for the metrics of one gate."""
        # Shown under neither p, or not shown for want of cases although p is small: the verdict stays.
        if not min(self.p, p) < self.alpha or (self.p < self.alpha and self.verdict == "inconclusive"):
            return replace(self, p=p)
        judged = verdict_of(self.difference, self.interval, p, better=self.better, margin=self.margin, alpha=self.alpha)
        return replace(self, p=p, verdict=judged)


def compare_paired(
    a: ArrayLike,
    b: ArrayLike,
    *,
    seed: int,
    better: Direction = "higher",
    binary: bool | None = None,
    groups: Sequence[Hashable] | None = None,
    margin: float | None = None,
    confidence: float = 0.95,
    resamples: int = 10_000,
) -> Comparison:
    """Is b better than a on the same cases?

    Yes/no values: exact McNemar test and Newcombe's paired score interval. Other values, and any where cases come in
    groups: paired permutation test (signs of the differences, of a whole group at once), BCa interval of their mean.

    The verdict is "improved" or "regressed" ("changed" where neither direction is better) if p < 1 - confidence.
    Otherwise it is "no difference shown" where the whole interval lies within -margin..margin, so that no difference
    that matters is left possible, and else "inconclusive": more cases are needed.

    Args:
        a, b: (n,) values of the same cases in the same order; NaN where not measured.
        seed: of the permutations and the bootstrap.
        better: which direction of the metric is better.
        binary: whether the values are yes/no; None finds out.
        groups: n labels of users, dialogs or pages whose cases belong together; None marks a case that stands alone.
        margin: the largest difference that does not matter. Default: 0.05 for yes/no values (five points of a share),
            else a fifth of the standard deviation of the values of both sides (Cohen's "small" effect).
        confidence: the interval's level, 0..1; 1 - confidence is the level of the test.
        resamples: of the permutation test and of the bootstrap.

    Returns:
        The comparison. Below two complete pairs (or groups) p and interval are NaN. With fewer pairs (or groups) than
        the test needs to find anything (6 at 95 %) the verdict is "inconclusive".

    Raises:
        ValueError: different lengths, an infinite value, binary values other than 0 and 1, a margin below 0, a level
            outside 0..1, fewer than 1 resample.

    Reference: McNemar 1947; Newcombe 1998; Fisher 1935, The design of experiments.
    """
    before, after, codes, n_missing = _complete_pairs(a, b, groups)
    values = np.concatenate([before, after])
    yes_no = only_yes_no(values) if binary is None else binary
    if yes_no and not only_yes_no(values):
        raise ValueError("binary values must be 0, 1 or NaN; leave binary out, or give binary=False")
    if margin is None:
        margin = usual_margin(values, yes_no=yes_no)
    if not margin >= 0:
        raise ValueError(f"margin must be at least 0, got {margin}")
    differences = after - before
    n, alpha = len(differences), level_of(confidence)
    units = n if codes is None else len(set(codes.tolist()))
    labels = codes.tolist() if codes is not None and units < n else None  # nobody shares a group: there are none
    if units < 2:
        p, interval, method = UNDEFINED, NO_INTERVAL, "none: fewer than two pairs"
    elif yes_no and labels is None:
        p, interval, method = *compare_yes_no(before, after, confidence), "exact McNemar, Newcombe 10"
    else:
        p = permutation_p(differences, seed=seed, resamples=resamples, groups=labels)
        interval = bootstrap_interval(differences, seed=seed, confidence=confidence, resamples=resamples, groups=labels)
        method = "paired permutation, BCa" + (" (by group)" if labels else "")
    difference = float(differences.mean()) if n else UNDEFINED
    return Comparison(
        difference=difference,
        interval=interval,
        p=p,
        verdict=verdict_of(difference, interval, p, better=better, margin=margin, alpha=alpha)
        if units >= fewest_pairs(alpha)
        else "inconclusive",
        n=n,
        n_missing=n_missing,
        method=method,
        smallest_detectable=smallest_detectable_difference(differences, alpha=alpha, yes_no=yes_no, groups=labels),
        better=better,
        margin=margin,
        alpha=alpha,
    )


def permutation_p(
    differences: ArrayLike, *, seed: int, resamples: int = 10_000, groups: Sequence[Hashable] | None = None
) -> float:
    """Two-sided p of the paired permutation test: how often random signs give a mean difference as large.

    All sign patterns are tried where there are no more than `resamples` of them; otherwise (c + 1) / (resamples + 1).

    Args:
        differences: (n,) one finite difference a pair.
        seed: of the random signs.
        resamples: how many sign patterns to draw.
        groups: n labels; the cases of one group change sign together.

    Returns:
        p above 0, at most 1; NaN for no pair.

    Raises:
        ValueError: a difference that is NaN or infinite, groups of another length, fewer than 1 resample.

    Reference: Phipson and Smyth 2010, Permutation p-values should never be zero; equal to
    scipy.stats.permutation_test(permutation_type="samples") up to Monte-Carlo error.
    """
    pairs = np.asarray(differences, dtype=np.float64)
    if not np.isfinite(pairs).all() or resamples < 1:
        raise ValueError(f"differences must be finite and resamples at least 1, got {resamples} resamples")
    if not pairs.size:
        return UNDEFINED
    units = pairs if groups is None else group_totals(pairs[:, None], group_codes(groups, len(pairs))).ravel()
    moving = units[units != 0]
    # The same sum in another order differs in the last digits, and still counts as equally large.
    threshold = abs(moving.sum()) - 1e-12 * np.abs(moving).sum()
    if 2 ** len(moving) <= resamples:
        return float((np.abs(_sign_patterns(len(moving)) @ moving) >= threshold).mean())
    generator = np.random.default_rng(seed)
    sums = np.zeros(resamples)
    patterns = _sign_patterns(8)
    # Eight signs a random byte: the 256 sums of eight numbers are computed once and looked up for all resamples.
    for start in range(0, len(moving), 8):
        eight = moving[start : start + 8]
        signed = patterns[:, : len(eight)] @ eight
        sums += signed.take(generator.integers(0, 256, resamples, dtype=np.uint8))
    return float((np.count_nonzero(np.abs(sums) >= threshold) + 1) / (resamples + 1))


def mcnemar_exact(only_a: int, only_b: int) -> float:
    """Two-sided p of the exact McNemar test, from the cases on which two yes/no evaluations disagree.

    Args:
        only_a, only_b: cases that only a, and that only b, got right.

    Returns:
        p, above 0, at most 1; 1 where they never disagree.

    Raises:
        ValueError: a count below 0.

    Reference: McNemar 1947; equal to statsmodels' mcnemar(exact=True).
    """
    if min(only_a, only_b) < 0:
        raise ValueError(f"counts must be at least 0, got {only_a} and {only_b}")
    from scipy.special import bdtr  # here, because it costs 0.1 s to import

    return min(1.0, max(SMALLEST, 2 * float(bdtr(min(only_a, only_b), only_a + only_b, 0.5))))


def newcombe_paired_interval(
    both: int, only_a: int, only_b: int, neither: int, *, confidence: float = 0.95
) -> Interval:
    """Newcombe's score interval for the difference b - a of two shares on the same cases (his method 10).

    Args:
        both, only_a, only_b, neither: counts of cases by who got them right.
        confidence: the interval's level, 0..1.

    Returns:
        Bounds within -1..1; (nan, nan) for no cases.

    Raises:
        ValueError: a count below 0, or a level outside 0..1.

    Reference: Newcombe 1998, Improved confidence intervals for the difference between binomial proportions based on
    paired data.
    """
    if min(both, only_a, only_b, neither) < 0:
        raise ValueError(f"counts must be at least 0, got {both}, {only_a}, {only_b} and {neither}")
    n = both + only_a + only_b + neither
    yes_a, yes_b = both + only_a, both + only_b
    low_a, high_a = wilson_interval(yes_a, n, confidence=confidence)
    low_b, high_b = wilson_interval(yes_b, n, confidence=confidence)
    if n == 0:
        return NO_INTERVAL
    # The correlation of the two, pulled towards 0 by half a case where it is positive.
    together = both * neither - only_a * only_b
    spread = yes_a * (n - yes_a) * yes_b * (n - yes_b)
    phi = min(together, max(together - n / 2, 0)) / spread**0.5 if spread else 0.0
    share_a, share_b = yes_a / n, yes_b / n
    down, up = share_b - low_b, high_a - share_a
    low = share_b - share_a - (down**2 - 2 * phi * down * up + up**2) ** 0.5
    up, down = high_b - share_b, share_a - low_a
    return Interval(low, share_b - share_a + (up**2 - 2 * phi * up * down + down**2) ** 0.5)


def holm(p_values: ArrayLike) -> Floats:
    """P values adjusted for being several, so that the chance of any false alarm stays at the level of one test.

    Args:
        p_values: (m,) each 0..1, or NaN for a comparison that could not be made: it stays NaN and is not counted.

    Returns:
        (m,) adjusted values in the same order, 0..1, none smaller than it was.

    Raises:
        ValueError: a value outside 0..1.

    Reference: Holm 1979, A simple sequentially rejective multiple test procedure; equal to statsmodels'
    multipletests(method="holm").
    """
    given = np.asarray(p_values, dtype=np.float64)
    if ((given < 0) | (given > 1)).any():
        raise ValueError(f"p values must lie between 0 and 1, got {given.tolist()}")
    order = np.argsort(given)[: np.count_nonzero(~np.isnan(given))]  # NaN sorts last
    adjusted: Floats = np.full(given.shape, UNDEFINED)
    steps = np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(given[order] * steps), 1.0)
    return adjusted


def _complete_pairs(
    a: ArrayLike, b: ArrayLike, groups: Sequence[Hashable] | None
) -> tuple[Floats, Floats, Ints | None, int]:
    """The pairs measured on both sides, the numbers of their groups, and how many pairs are left out."""
    before, after = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if before.shape != after.shape or before.ndim != 1:
        raise ValueError(f"the two evaluations must have the same cases, got {before.size} and {after.size} values")
    if np.isinf(before).any() or np.isinf(after).any():
        raise ValueError("values must be finite, or NaN where not measured; got an infinite one")
    kept = ~(np.isnan(before) | np.isnan(after))
    codes = None if groups is None else group_codes(groups, len(before))[kept]
    return before[kept], after[kept], codes, int((~kept).sum())


def only_yes_no(values: Floats) -> bool:
    """Whether all values are 0 or 1."""
    return bool(np.isin(values, (0.0, 1.0)).all())


def usual_margin(values: Floats, *, yes_no: bool) -> float:
    """The largest difference of means that does not matter where nobody said so: how, stands at `compare_paired`."""
    return 0.05 if yes_no or not values.size else 0.2 * float(values.std())


def compare_yes_no(before: Floats, after: Floats, confidence: float) -> tuple[float, Interval]:
    """Exact McNemar p and Newcombe's paired interval of two (n,) columns of 0 and 1."""
    only_a, only_b = int((before > after).sum()), int((after > before).sum())
    both = int((before * after).sum())
    counts = (both, only_a, only_b, len(before) - both - only_a - only_b)
    return mcnemar_exact(only_a, only_b), newcombe_paired_interval(*counts, confidence=confidence)


def _sign_patterns(n: int) -> Floats:
    """(2 ** n, n) all patterns of -1 and 1."""
    bits = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    return np.where(bits, -1.0, 1.0)


def verdict_of(
    difference: float, interval: Interval, p: float, *, better: Direction, margin: float, alpha: float
) -> Verdict:
    """What a difference, its interval and its p say together; how, stands at `compare_paired`."""
    if p < alpha:
        if better == "neither":
            return "changed"
        return "improved" if (difference > 0) == (better == "higher") else "regressed"
    return "no difference shown" if interval.low >= -margin and interval.high <= margin else "inconclusive"
