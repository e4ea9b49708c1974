"""How large a loss has to be for a comparison to find it, where cases come in groups of very different sizes.

A few users who ask much decide a mean, and how much they vary is hardly known: the error of the mean alone promises far
too much. So the test itself is repeated on drawn losses, with the groups that there are.
"""

from math import ceil
from typing import NamedTuple

import numpy as np

from yarus.metrics.statistics.groups import Floats, Ints, effective_groups, group_totals
from yarus.metrics.statistics.intervals import NORMAL, UNDEFINED, student_quantile
from yarus.metrics.statistics.power import ALL_CHANGED, POWER, detectable

DRAWS, SWAPS, STEPS = 200, 399, 5
"""Of losses, of sides of a loss (more for tests whose level is low), and towards the size of a loss."""
LEAST_GROUPS = 5
"""Groups of equal size that the groups must be worth: from fewer nothing can be promised."""
UNSEEN = 0.03
"""As in `yarus.metrics.statistics.differences.intervals`, whose intervals are repeated here for many draws at once."""
AGREE = 0.05
"""Level at which the interval must exclude 0, too, if the level of the test is less because there are several."""


class _Groups(NamedTuple):
    """Paired differences by group."""

    gains: Floats
    """(groups,) sums of what cases gained."""
    losses: Floats
    """(groups,) above 0."""
    sizes: Floats
    still: Floats
    """(groups,) cases that did not change."""
    jump: float
    """What a case loses that loses, at least; 0: all cases lose alike."""
    span: float
    degrees: float
    """Of freedom: as many equal groups as these are worth, less one."""

    @property
    def error(self) -> float:
        """Standard error of the mean, from the noise alone."""
        return float(np.sqrt(((self.gains - self.losses) ** 2).sum())) / float(self.sizes.sum())


def smallest_detectable_in_groups(
    differences: Floats, codes: Ints, *, alpha: float, margin: float = 0.0, span: float
) -> float:
    """Return the mean loss that the paired test of such groups finds four times in five, if all groups lose alike.

    A loss that falls on a few groups is found less often, however large it is.

    Args:
        differences: (n,) one difference a complete pair; their noise, not their mean, decides.
        codes: (n,) the group of each, from 0.
        alpha: level of the two-sided test.
        margin: a loss that is tolerated: then what the loss has to exceed it by.
        span: the widest that two values lie apart.

    Returns:
        Above 0; NaN where no loss is found so often, and where the groups are worth fewer than five of equal size.

    Reference: for the standard deviation of few, Gurland and Tripathi 1971, A simple approximation for unbiased
    estimation of the standard deviation.

    Example:
        >>> import numpy as np
        >>> from yarus.metrics.statistics.power_in_groups import smallest_detectable_in_groups
        >>> changes = np.random.default_rng(0).normal(0, 0.2, 120)
        >>> for sizes in ([2] * 60, [40] + [8] * 10):
        ...     codes = np.repeat(np.arange(len(sizes)), sizes)
        ...     print(round(smallest_detectable_in_groups(changes, codes, alpha=0.05, span=1.0), 3))
        0.053
        0.069
    """
    found = _groups_of(differences, codes, span)
    if found.degrees < LEAST_GROUPS - 1:
        return UNDEFINED
    loss = _detectable(found, len(differences), alpha, margin)
    if np.isnan(loss) and found.jump:  # too few cases stay as they are: those that change lose, too
        loss = _detectable(found._replace(jump=0.0), len(differences), alpha, margin)
    return loss


def _detectable(found: _Groups, n: int, alpha: float, margin: float) -> float:
    draws = _Draws(found, np.random.default_rng(0), max(SWAPS, ceil(4 / alpha)))
    most = float(min(found.span, draws.most)) - margin
    if most <= 0:
        return UNDEFINED
    t = student_quantile(1 - alpha, found.degrees)
    alone = detectable(found.error, alpha=alpha, jump=found.jump, n=n)
    loss = min(most, alone) if alone > 0 else most
    for _ in range(STEPS):  # as if the power went up like a normal distribution's: a few steps are enough
        share = _share_found(found, draws, margin + loss, margin, alpha)
        if loss == most and share < POWER:
            return UNDEFINED
        reached = NORMAL.inv_cdf(min(max(share, 0.02), 0.98))
        loss = min(most, loss * (t + NORMAL.inv_cdf(POWER)) / max(0.5, t + reached))
    loss *= 1 + 1 / (4 * found.degrees)  # few groups show less spread than there is
    return loss if loss <= most else UNDEFINED


def _groups_of(differences: Floats, codes: Ints, span: float) -> _Groups:
    gains, losses, sizes, still = group_totals(
        np.column_stack(
            [np.maximum(differences, 0), np.maximum(-differences, 0), np.ones(len(differences)), differences == 0]
        ),
        codes,
    ).T
    changed = np.abs(differences[differences != 0])
    jump = float((changed**2).sum() / changed.sum()) if len(changed) else span
    jump = jump if len(changed) < ALL_CHANGED * len(differences) else 0.0
    return _Groups(gains, losses, sizes, still, jump, span, max(1.0, effective_groups(codes) - 1))


class _Draws:
    """Repetitions: whose noise goes which way."""

    def __init__(self, groups: _Groups, chance: np.random.Generator, swaps: int) -> None:
        self._groups = groups
        shape = (DRAWS, len(groups.sizes))
        self.swapped = chance.random(shape) < 0.5
        self.signs = np.where(chance.random((len(groups.sizes), swaps)) < 0.5, -1.0, 1.0)
        self._seed = int(chance.integers(2**31))

    @property
    def most(self) -> float:
        """The largest mean loss that these groups can have."""
        groups = self._groups
        can = float((groups.still if groups.jump else groups.sizes).sum()) * groups.span
        return can / float(groups.sizes.sum())

    def lost(self, loss: float) -> Floats:
        """(DRAWS, groups) what each group loses where so much is lost in the mean of all cases."""
        groups = self._groups
        cases = groups.still if groups.jump else groups.sizes
        total = loss * float(groups.sizes.sum()) / max(float(cases.sum()), 1e-9)  # a case
        if not groups.jump:
            return np.broadcast_to(cases * total, self.swapped.shape)
        chance = np.random.default_rng(self._seed)  # the same chance for every loss, so that more loss is found sooner
        jump = max(groups.jump, total)
        changed = chance.binomial(cases.astype(np.intp), total / jump, self.swapped.shape)
        return jump * changed.astype(np.float64)


def _share_found(groups: _Groups, draws: _Draws, loss: float, margin: float, alpha: float) -> float:
    gains = np.where(draws.swapped, groups.losses, groups.gains)
    losses = np.where(draws.swapped, groups.gains, groups.losses) + draws.lost(loss)
    found = _least_loss(gains, losses, groups, alpha if margin else max(alpha, AGREE)) > margin
    if not margin:
        moved = np.abs(losses - gains).sum(axis=1)
        sums = (losses - gains) @ draws.signs
        total = (losses - gains).sum(axis=1)
        larger = (np.abs(sums) >= np.abs(total)[:, None] - 1e-9 * moved[:, None]).sum(axis=1)
        found &= (larger + 1) / (draws.signs.shape[1] + 1) < alpha
    return float(found.mean())


def _least_loss(gains: Floats, losses: Floats, groups: _Groups, alpha: float) -> Floats:
    """(draws,) the lower end of the interval of the mean loss, as `interval_of_differences` has it."""
    sizes, n = groups.sizes, float(groups.sizes.sum())
    units = len(sizes)
    t = student_quantile(1 - alpha, groups.degrees)
    mean = (losses - gains).sum(axis=1) / n
    without = (losses - gains - mean[:, None] * sizes) / (n - sizes)
    dense = mean - t * np.sqrt((units - 1) / units * (without**2).sum(axis=1))
    size, either = n / units, gains + losses
    unseen = groups.span * size
    jump = ((either**2).sum(axis=1) + UNSEEN * unseen**2) / (either.sum(axis=1) + UNSEEN * unseen)
    gain, loss = gains.mean(axis=1), losses.mean(axis=1)
    spread = gains.std(axis=1) * losses.std(axis=1)
    product = ((gains - gain[:, None]) * (losses - loss[:, None])).mean(axis=1)
    together = np.divide(product, spread, out=np.zeros_like(spread), where=spread > 0)
    most_gain, least_loss = _score_bound(gain, jump, units, t, 1), _score_bound(loss, jump, units, t, -1)
    down, up = loss - least_loss, most_gain - gain
    sparse = (loss - gain - np.sqrt(np.maximum(0, down**2 + up**2 - 2 * together * down * up))) / size
    is_sparse = 2 * ((either > 0).sum(axis=1)) < units
    return np.asarray(np.where(is_sparse, sparse, dense))


def _score_bound(mean: Floats, jump: Floats, n: int, z: float, side: int) -> Floats:
    share, shrink = mean / jump, 1 + z * z / n
    centre = (share + z * z / (2 * n)) / shrink
    half = z / shrink * np.sqrt(np.maximum(0.0, share * (1 - share)) / n + z * z / (4 * n * n))
    return np.where(
        mean > 0, np.clip(centre + side * half, 0, 1) * jump, 0.0 if side < 0 else np.clip(centre + half, 0, 1) * jump
    )
