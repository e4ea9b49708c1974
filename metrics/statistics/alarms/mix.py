"""What of a level comes from which questions were asked, and on which day of the week: no loss of the system."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from metrics.statistics.alarms.noise import Cells, Night
from metrics.statistics.groups import Floats, Ints

LIKE_ALL = 5.0
"""Questions of each kind of which it is assumed, before any was asked, that they score like all others."""
WEEK, WEEKS = 7, 4
"""Days of a week, and weeks after which weekdays are told apart."""
HALF = WEEK // 2


def remove_mix(nights: Sequence[Night]) -> list[Night]:
    """Return the nights as if each had asked kinds of questions in the shares of the first.

    Each kind of question has an effect, each night another, and a question scores their sum on average. The effects of
    kinds are estimated from the new questions of all nights up to the one that is corrected, so that what a night was
    found to be does not change later. A loss that all kinds share is an effect of the night, and stays.

    Args:
        nights: oldest first, with `cells`; one without them stays as it is.

    Returns:
        As many, with `mix`, and as much more `sampling` as the effects are uncertain. Their error is the same in all
        nights, which are taken for independent: it is counted as often as there were nights.

    Reference: Kitagawa 1955, Components of a difference between two rates; Robinson 1991, That BLUP is a good thing.

    Example:
        >>> from metrics.statistics.alarms.mix import remove_mix
        >>> from metrics.statistics.alarms.noise import Night
        >>> first = Night(0.7, 0.0021, 100, cells={"fees": (50, 45.0), "visas": (50, 25.0)})
        >>> later = Night(0.58, 0.0024, 100, cells={"fees": (20, 18.0), "visas": (80, 40.0)})
        >>> [round(night.value, 2) for night in remove_mix([first, later])]
        [0.7, 0.69]
    """
    kinds = {kind: number for number, kind in enumerate(sorted({kind for night in nights for kind in night.cells}))}
    usual: Floats | None = None
    precision, sums = LIKE_ALL * np.eye(len(kinds)), np.zeros(len(kinds))
    found, told = [], 0
    for night in nights:
        if not night.cells:
            found.append(night)
            continue
        told += 1
        shares = _table(night.cells, kinds)[0] / night.total
        usual = shares if usual is None else usual
        new, scored = _table(night.cells if night.change is None else night.new_cells, kinds)
        new_shares = new / max(1.0, new.sum())
        precision += np.diag(new) - np.outer(new, new_shares)
        sums += scored - new_shares * scored.sum()
        uncertain = np.linalg.inv(precision)
        mix, new_mix = (float((of - usual) @ uncertain @ sums) for of in (shares, new_shares))
        spread = float((new_shares - usual) @ uncertain @ (new_shares - usual))
        found.append(
            night._replace(
                value=night.value - mix,
                new_value=None if night.new_value is None else night.new_value - new_mix,
                sampling=night.sampling * (1 + told * new.sum() * spread),
                mix=mix,
            )
        )
    return found


def remove_weekdays(nights: Sequence[Night]) -> list[Night]:
    """Return the nights as if all had been on the same day of the week.

    What a weekday adds is the mean of how far the level was from that of the week around it, on such days whose week
    had passed before the night that is corrected; shrunk by as much as these means differ by chance.

    Args:
        nights: oldest first, with `day`; those of the first weeks, and one without a day, stay as they are.

    Reference: James and Stein 1961, Estimation with quadratic loss.
    """
    levels = np.cumsum([0.0, *(night.moved_since(before) for before, night in pairwise(nights))])
    at = {night.day: number for number, night in enumerate(nights)}
    beyond = np.full(len(nights), np.nan)
    for number, night in enumerate(nights):
        week = [at[day] for day in range(night.day - HALF, night.day + HALF + 1) if day in at]
        if len(week) == WEEK:
            beyond[number] = levels[number] - levels[week].mean()
    days = np.array([night.day for night in nights])
    found, before = list[Night](), 0.0
    for night in nights:
        known = (days < night.day - HALF) & ~np.isnan(beyond)
        adds = _adds(days[known] % WEEK, beyond[known], night.day % WEEK)
        found.append(
            night._replace(
                value=night.value - adds,
                new_value=None if night.new_value is None else night.new_value - adds,
                change=None if night.change is None else night.change - adds + before,
            )
        )
        before = adds
    return found


def _adds(weekdays: Ints, beyond: Floats, weekday: int) -> float:
    """What a weekday adds, by those so far."""
    n = np.bincount(weekdays, minlength=WEEK)
    if n.min() < WEEKS - 1:  # weeks begin and end within one
        return 0.0
    means = np.bincount(weekdays, beyond, minlength=WEEK) / n
    by_chance = ((beyond - means[weekdays]) ** 2).sum() / (len(beyond) - WEEK) * (1 / n).mean()
    differ = (means**2).sum() / (WEEK - 1)
    return float(means[weekday] * max(0.0, 1 - by_chance / differ)) if differ else 0.0


def _table(cells: Cells, kinds: Mapping[str, int]) -> Floats:
    """How many questions there are of each kind, and the sums of their scores: (2, kinds)."""
    table = np.zeros((2, len(kinds)))
    for kind, of_kind in cells.items():
        table[:, kinds[kind]] = of_kind
    return table
