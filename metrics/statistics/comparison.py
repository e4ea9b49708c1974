"""One number of two evaluations: the difference, its interval, whether it is more than chance, and a verdict.

All numbers of `yarus compare` at once, by the same draws, are in metrics/statistics/paired.py (unpaired.py where the
cases differ).
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from metrics.metric import Direction
from metrics.statistics.bootstrap import bootstrap_interval
from metrics.statistics.groups import Floats, Ints, group_codes
from metrics.statistics.intervals import NO_INTERVAL, UNDEFINED, Interval, level_of
from metrics.statistics.power import fewest_pairs, smallest_detectable_difference
from metrics.statistics.significance import compare_yes_no, permutation_p

ComparisonVerdict = Literal["improved", "regressed", "changed", "no difference shown", "inconclusive"]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What two evaluations of the same cases say about one metric."""

    difference: float
    """Mean of b - a over the complete pairs, in the metric's unit."""
    interval: Interval
    p: float
    """Two-sided, for no difference at all; NaN below two pairs."""
    verdict: ComparisonVerdict
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
        found = verdict_of(self.difference, self.interval, p, better=self.better, margin=self.margin, alpha=self.alpha)
        return replace(self, p=p, verdict=found)


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

    Example:
        >>> from metrics.statistics import compare_paired
        >>> before = [0.2, 0.5, 0.4, 0.6, 0.3, 0.7, 0.5, 0.4]
        >>> after = [0.5, 0.6, 0.6, 0.7, 0.5, 0.9, 0.6, 0.8]
        >>> found = compare_paired(before, after, seed=0)
        >>> round(found.difference, 3), round(found.p, 3), found.verdict
        (0.2, 0.008, 'improved')
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
    """Whether all values are 0 or 1.

    Example:
        >>> import numpy as np
        >>> from metrics.statistics.comparison import only_yes_no
        >>> only_yes_no(np.array([0.0, 1.0])), only_yes_no(np.array([0.5]))
        (True, False)
    """
    return bool(np.isin(values, (0.0, 1.0)).all())


def usual_margin(values: Floats, *, yes_no: bool) -> float:
    """The largest difference of means that does not matter where nobody said so: how, stands at `compare_paired`.

    Example:
        >>> import numpy as np
        >>> from metrics.statistics.comparison import usual_margin
        >>> round(usual_margin(np.array([0.0, 0.5, 1.0]), yes_no=False), 3)
        0.082
    """
    return 0.05 if yes_no or not values.size else 0.2 * float(values.std())


def verdict_of(
    difference: float, interval: Interval, p: float, *, better: Direction, margin: float, alpha: float
) -> ComparisonVerdict:
    """What a difference, its interval and its p say together; how, stands at `compare_paired`.

    Example:
        >>> from metrics.statistics import Interval
        >>> from metrics.statistics.comparison import verdict_of
        >>> verdict_of(0.04, Interval(0.01, 0.07), 0.01, better="higher", margin=0.05, alpha=0.05)
        'improved'
        >>> verdict_of(0.04, Interval(-0.02, 0.1), 0.2, better="higher", margin=0.05, alpha=0.05)
        'inconclusive'
    """
    if p < alpha:
        if better == "neither":
            return "changed"
        return "improved" if (difference > 0) == (better == "higher") else "regressed"
    return "no difference shown" if interval.low >= -margin and interval.high <= margin else "inconclusive"
