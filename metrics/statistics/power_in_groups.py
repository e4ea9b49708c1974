"""The smallest loss that a comparison detects if cases come in groups of very different sizes.

A few users with many questions dominate a mean, and their variance is poorly known: the error of the mean alone is far
too optimistic. So the test itself is repeated on simulated losses, with the given groups.
"""

from math import ceil
from typing import NamedTuple

import numpy as np

from yarus.metrics.statistics.groups import Floats, Ints, effective_groups, group_totals
from yarus.metrics.statistics.intervals import STANDARD_NORMAL, UNDEFINED, student_quantile
from yarus.metrics.statistics.power import ALL_CHANGED_SHARE, POWER, detectable_difference

DRAWS, SWAPS, STEPS = 200, 399, 5
"""Simulated losses, swaps per loss (more for tests with a low level), and steps towards the size of a loss."""
LEAST_GROUPS = 5
"""Least effective number of groups: with fewer there is no reliable result."""
UNSEEN_WEIGHT = 0.03
"""As in `yarus.metrics.statistics.differences.intervals`, whose intervals are repeated here for many draws at once."""
INTERVAL_ALPHA = 0.05
"""Level at which the interval must exclude 0 too, if the level of the test is lower because there are several tests."""


class _Groups(NamedTuple):
    """Paired differences by group."""

    gains: Floats
    """(groups,) sums of the gains of cases."""
    losses: Floats
    """(groups,) sums of the losses of cases, above 0."""
    sizes: Floats
    unchanged: Floats
    """(groups,) cases that did not change."""
    jump: float
    """Least loss of a case that loses; 0: all cases lose alike."""
    span: float
    degrees: float
    """Degrees of freedom: the effective number of groups, less one."""

    @property
    def error(self) -> float:
        """Return the standard error of the mean, from the noise alone."""
        return float(np.sqrt(((self.gains - self.losses) ** 2).sum())) / float(self.sizes.sum())


def min_detectable_effect_in_groups(
    differences: Floats, codes: Ints, *, alpha: float, margin: float = 0.0, span: float
) -> float:
    """Return the mean loss that the paired test of such groups detects with power 0.8, if all groups lose alike.

    A loss that falls on a few groups is detected less often, however large it is.

    Args:
        differences: (n,) one difference per complete pair; their noise, not their mean, decides.
        codes: (n,) the group of each, from 0.
        alpha: level of the two-sided test.
        margin: a tolerated loss: the result is then the excess over it.
        span: the largest possible difference of two values.

    Returns:
        Above 0; NaN if no loss is detected that often, and if the effective number of groups is below five.

    Reference: for the standard deviation of few, Gurland and Tripathi 1971, A simple approximation for unbiased
    estimation of the standard deviation.

    Example:
        >>> import numpy as np
        >>> from yarus.metrics.statistics.power_in_groups import min_detectable_effect_in_groups
        >>> changes = np.random.default_rng(0).normal(0, 0.2, 120)
        >>> for sizes in ([2] * 60, [40] + [8] * 10):
        ...     codes = np.repeat(np.arange(len(sizes)), sizes)
        ...     print(round(min_detectable_effect_in_groups(changes, codes, alpha=0.05, span=1.0), 3))
        0.053
        0.069
    """
    groups = _groups_of(differences, codes, span)
    if groups.degrees < LEAST_GROUPS - 1:
        return UNDEFINED
    loss = _detectable_loss(groups, len(differences), alpha, margin)
    if np.isnan(loss) and groups.jump:  # too few cases are unchanged: those that change lose, too
        loss = _detectable_loss(groups._replace(jump=0.0), len(differences), alpha, margin)
    return loss


def _detectable_loss(groups: _Groups, n: int, alpha: float, margin: float) -> float:
    draws = _Draws(groups, np.random.default_rng(0), max(SWAPS, ceil(4 / alpha)))
    most = float(min(groups.span, draws.most)) - margin
    if most <= 0:
        return UNDEFINED
    t = student_quantile(1 - alpha, groups.degrees)
    start = detectable_difference(groups.error, alpha=alpha, jump=groups.jump, n=n)
    loss = min(most, start) if start > 0 else most
    for _ in range(STEPS):  # a few steps are enough, as the power grows like a normal distribution function
        share = _detection_rate(groups, draws, margin + loss, margin, alpha)
        if loss == most and share < POWER:
            return UNDEFINED
        z = STANDARD_NORMAL.inv_cdf(min(max(share, 0.02), 0.98))
        loss = min(most, loss * (t + STANDARD_NORMAL.inv_cdf(POWER)) / max(0.5, t + z))
    loss *= 1 + 1 / (4 * groups.degrees)  # few groups underestimate their spread
    return loss if loss <= most else UNDEFINED


def _groups_of(differences: Floats, codes: Ints, span: float) -> _Groups:
    gains, losses, sizes, unchanged = group_totals(
        np.column_stack(
            [np.maximum(differences, 0), np.maximum(-differences, 0), np.ones(len(differences)), differences == 0]
        ),
        codes,
    ).T
    changed = np.abs(differences[differences != 0])
    jump = float((changed**2).sum() / changed.sum()) if len(changed) else span
    jump = jump if len(changed) < ALL_CHANGED_SHARE * len(differences) else 0.0
    return _Groups(gains, losses, sizes, unchanged, jump, span, max(1.0, effective_groups(codes) - 1))


class _Draws:
    """Repetitions of the test: random swaps, and random signs."""

    def __init__(self, groups: _Groups, generator: np.random.Generator, swaps: int) -> None:
        self._groups = groups
        shape = (DRAWS, len(groups.sizes))
        self.swapped = generator.random(shape) < 0.5
        self.signs = np.where(generator.random((len(groups.sizes), swaps)) < 0.5, -1.0, 1.0)
        self._seed = int(generator.integers(2**31))

    @property
    def most(self) -> float:
        """Return the largest mean loss that these groups can have."""
        groups = self._groups
        total = float((groups.unchanged if groups.jump else groups.sizes).sum()) * groups.span
        return total / float(groups.sizes.sum())

    def draw_losses(self, loss: float) -> Floats:
        """Return (DRAWS, groups) losses of each group if all cases lose this much on average."""
        groups = self._groups
        cases = groups.unchanged if groups.jump else groups.sizes
        per_case = loss * float(groups.sizes.sum()) / max(float(cases.sum()), 1e-9)  # per case
        if not groups.jump:
            return np.broadcast_to(cases * per_case, self.swapped.shape)
        generator = np.random.default_rng(self._seed)  # the same for every loss, so that the power grows with it
        jump = max(groups.jump, per_case)
        changed = generator.binomial(cases.astype(np.intp), per_case / jump, self.swapped.shape)
        return jump * changed.astype(np.float64)


def _detection_rate(groups: _Groups, draws: _Draws, loss: float, margin: float, alpha: float) -> float:
    gains = np.where(draws.swapped, groups.losses, groups.gains)
    losses = np.where(draws.swapped, groups.gains, groups.losses) + draws.draw_losses(loss)
    is_detected = _lower_bounds(gains, losses, groups, alpha if margin else max(alpha, INTERVAL_ALPHA)) > margin
    if not margin:
        magnitudes = np.abs(losses - gains).sum(axis=1)
        sums = (losses - gains) @ draws.signs
        total = (losses - gains).sum(axis=1)
        larger = (np.abs(sums) >= np.abs(total)[:, None] - 1e-9 * magnitudes[:, None]).sum(axis=1)
        is_detected &= (larger + 1) / (draws.signs.shape[1] + 1) < alpha
    return float(is_detected.mean())


def _lower_bounds(gains: Floats, losses: Floats, groups: _Groups, alpha: float) -> Floats:
    """Return (draws,) the lower end of the interval of the mean loss, as in `difference_interval`."""
    sizes, n = groups.sizes, float(groups.sizes.sum())
    units = len(sizes)
    t = student_quantile(1 - alpha, groups.degrees)
    mean = (losses - gains).sum(axis=1) / n
    without = (losses - gains - mean[:, None] * sizes) / (n - sizes)
    dense = mean - t * np.sqrt((units - 1) / units * (without**2).sum(axis=1))
    size, either = n / units, gains + losses
    unseen = groups.span * size
    jump = ((either**2).sum(axis=1) + UNSEEN_WEIGHT * unseen**2) / (either.sum(axis=1) + UNSEEN_WEIGHT * unseen)
    gain, loss = gains.mean(axis=1), losses.mean(axis=1)
    spread = gains.std(axis=1) * losses.std(axis=1)
    product = ((gains - gain[:, None]) * (losses - loss[:, None])).mean(axis=1)
    correlation = np.divide(product, spread, out=np.zeros_like(spread), where=spread > 0)
    most_gain, least_loss = _score_bound(gain, jump, units, t, 1), _score_bound(loss, jump, units, t, -1)
    below, above = loss - least_loss, most_gain - gain
    sparse = (loss - gain - np.sqrt(np.maximum(0, below**2 + above**2 - 2 * correlation * below * above))) / size
    is_sparse = 2 * ((either > 0).sum(axis=1)) < units
    return np.asarray(np.where(is_sparse, sparse, dense))


def _score_bound(mean: Floats, jump: Floats, n: int, z: float, side: int) -> Floats:
    share, shrink = mean / jump, 1 + z * z / n
    center = (share + z * z / (2 * n)) / shrink
    half = z / shrink * np.sqrt(np.maximum(0.0, share * (1 - share)) / n + z * z / (4 * n * n))
    return np.where(
        mean > 0, np.clip(center + side * half, 0, 1) * jump, 0.0 if side < 0 else np.clip(center + half, 0, 1) * jump
    )
