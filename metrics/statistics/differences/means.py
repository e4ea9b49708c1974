"""The comparison of one mean of two evaluations of the same cases.

paired.py compares all statistics of `yarus compare` with the same resamples (unpaired.py if the cases differ).
"""

from collections.abc import Hashable, Sequence
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from yarus.metrics.metric import Direction
from yarus.metrics.statistics.differences.comparison import Comparison, build_comparison
from yarus.metrics.statistics.differences.intervals import IntervalAt, difference_interval, is_sparse
from yarus.metrics.statistics.groups import Floats, Ints, effective_groups, group_codes
from yarus.metrics.statistics.intervals import NO_INTERVAL, UNDEFINED, normal_quantile
from yarus.metrics.statistics.power import min_detectable_effect
from yarus.metrics.statistics.power_in_groups import min_detectable_effect_in_groups
from yarus.metrics.statistics.significance import mcnemar_exact, newcombe_paired_interval, permutation_p


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
    """Compare two evaluations of the same cases: is b better than a?

    Yes/no values: exact McNemar test and Newcombe's paired score interval. Other values, and any with groups: paired
    permutation test (signs of the differences, of a whole group at once), and Student's interval or, if most cases (or
    groups) did not change, a score interval (`difference_interval`). If test and interval disagree, the more
    conservative one is used, so that p is below 1 - confidence if and only if the interval does not contain 0.

    The verdict is "improved" or "regressed" ("changed" if neither direction is better) if p < 1 - confidence. Otherwise
    it is "no difference shown" if the whole interval lies within -margin..margin, so that no difference that matters is
    possible, and else "inconclusive": more cases are needed.

    Args:
        a, b: (n,) values of the same cases in the same order; NaN where not measured.
        seed: of the permutations.
        better: which direction of the metric is better.
        binary: whether the values are yes/no; None detects it.
        groups: n labels of users, dialogs or pages whose cases belong together; None marks a case without a group.
        margin: the largest difference that does not matter. Default: 0.05 for yes/no values (five points of a share),
            else a fifth of the standard deviation of the values of both sides (Cohen's "small" effect).
        confidence: the interval's level, 0..1; 1 - confidence is the level of the test.
        resamples: of the permutation test.

    Returns:
        The comparison. Below two complete pairs (or groups) p and interval are NaN. With fewer pairs (or groups) than
        the test needs to find anything (6 at 95 %) the verdict is "inconclusive".

    Raises:
        ValueError: different lengths, an infinite value, binary values other than 0 and 1, a margin below 0, a level
            outside 0..1, fewer than 1 resample.

    Reference: McNemar 1947; Newcombe 1998; Fisher 1935, The design of experiments.

    Example:
        >>> from yarus.metrics.statistics import compare_paired
        >>> before = [0.2, 0.5, 0.4, 0.6, 0.3, 0.7, 0.5, 0.4]
        >>> after = [0.5, 0.6, 0.6, 0.7, 0.5, 0.9, 0.6, 0.8]
        >>> result = compare_paired(before, after, seed=0)
        >>> round(result.difference, 3), round(result.p, 3), result.verdict
        (0.2, 0.008, 'improved')
    """
    before, after, codes, n_missing = _complete_pairs(a, b, groups)
    values = np.concatenate([before, after])
    yes_no = is_binary(values) if binary is None else binary
    if yes_no and not is_binary(values):
        raise ValueError("binary values must be 0, 1 or NaN; leave binary out, or give binary=False")
    if margin is None:
        margin = default_margin(values, yes_no=yes_no)
    normal_quantile(confidence)  # raises if it is not a level
    if not margin >= 0:
        raise ValueError(f"margin must be at least 0, got {margin}")
    is_ungrouped = len(set(codes.tolist())) == len(codes)
    p = UNDEFINED
    if not (yes_no and is_ungrouped):
        p = permutation_p(after - before, seed=seed, resamples=resamples, groups=codes.tolist())
    return compare_means(
        before, after, codes, p, yes_no=yes_no, better=better, margin=margin, confidence=confidence, n_missing=n_missing
    )


def compare_means(
    before: Floats,
    after: Floats,
    codes: Ints,
    p: float,
    *,
    yes_no: bool,
    better: Direction,
    margin: float,
    confidence: float,
    n_missing: int,
) -> Comparison:
    """Compare complete pairs, given the p of their permutation test; `compare_paired` documents the rules.

    Args:
        before, after: (n,) both sides, without NaN.
        codes: (n,) the group of each pair, numbered in any way.
        p: of the permutation test; not used if the values are yes/no and no cases share a group.
        yes_no, better, margin, confidence: as in `compare_paired`.
        n_missing: pairs that were left out.

    Example:
        >>> import numpy as np
        >>> from yarus.metrics.statistics.differences.means import compare_means
        >>> before, after, alone = np.zeros(8), np.array([0.2, 0.1, 0.3, 0.2, 0.1, 0.2, 0.2, 0.3]), np.arange(8)
        >>> options = {"yes_no": False, "better": "lower", "margin": 0.05, "confidence": 0.95, "n_missing": 0}
        >>> compare_means(before, after, alone, 2 / 2**8, **options).verdict
        'regressed'
    """
    differences = after - before

    def detectable_at(alpha: float, margin: float) -> float:
        if units < n:
            return min_detectable_effect_in_groups(differences, codes, alpha=alpha, margin=margin, span=span)
        return min_detectable_effect(differences, alpha=alpha, yes_no=yes_no, margin=margin, span=span)

    labels, codes = np.unique(codes, return_inverse=True)
    units, n = len(labels), len(differences)
    span = float(np.ptp(np.concatenate([before, after]))) if n else 0.0
    result: tuple[float, IntervalAt, str]
    if units < 2:
        result = UNDEFINED, lambda confidence: NO_INTERVAL, "none: fewer than two pairs"
    elif yes_no and units == n:
        won, lost, both = (int(is_pair.sum()) for is_pair in (after > before, before > after, before * after))
        interval = partial(newcombe_paired_interval, both, lost, won, n - both - lost - won)
        result = mcnemar_exact(lost, won), lambda level: interval(confidence=level), "exact McNemar, Newcombe 10"
    else:
        method = "paired permutation, " + ("score" if is_sparse(differences, codes) else "Student's t")
        result = p, difference_interval(differences, codes, span), method + (" (by group)" if units < n else "")
    return build_comparison(
        float(differences.mean()) if n else UNDEFINED,
        *result,
        detectable_at=detectable_at,
        n=n,
        units=units,
        effective_units=effective_groups(codes),
        n_missing=n_missing,
        better=better,
        margin=margin,
        confidence=confidence,
    )


def _complete_pairs(a: ArrayLike, b: ArrayLike, groups: Sequence[Hashable] | None) -> tuple[Floats, Floats, Ints, int]:
    """Return the pairs measured on both sides, the numbers of their groups, and how many pairs are left out."""
    before, after = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if before.shape != after.shape or before.ndim != 1:
        raise ValueError(f"the two evaluations must have the same cases, got {before.size} and {after.size} values")
    if np.isinf(before).any() or np.isinf(after).any():
        raise ValueError("values must be finite, or NaN where not measured; got an infinite one")
    is_complete = ~(np.isnan(before) | np.isnan(after))
    codes = np.arange(len(before)) if groups is None else group_codes(groups, len(before))
    return before[is_complete], after[is_complete], codes[is_complete], int((~is_complete).sum())


def is_binary(values: Floats) -> bool:
    """Return whether all values are 0 or 1.

    Example:
        >>> import numpy as np
        >>> from yarus.metrics.statistics.differences.means import is_binary
        >>> is_binary(np.array([0.0, 1.0])), is_binary(np.array([0.5]))
        (True, False)
    """
    return bool(np.isin(values, (0.0, 1.0)).all())


def default_margin(values: Floats, *, yes_no: bool) -> float:
    """Return the default margin, the largest difference of means that does not matter; see `compare_paired`.

    Example:
        >>> import numpy as np
        >>> from yarus.metrics.statistics.differences.means import default_margin
        >>> round(default_margin(np.array([0.0, 0.5, 1.0]), yes_no=False), 3)
        0.082
    """
    return 0.05 if yes_no or not values.size else 0.2 * float(values.std())
