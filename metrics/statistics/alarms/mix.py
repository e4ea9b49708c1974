"""What of a level comes from which questions were asked, and on which day of the week: no loss of the system."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from yarus.metrics.statistics.alarms.noise import Cells, Night
from yarus.metrics.statistics.groups import Floats, Ints

LIKE_ALL = 5.0
"""Questions of each kind of which it is assumed, before any was asked, that they score like all others."""
LATE = 10
"""Nights whose mix is held against that of all nights."""
WEEK, HALF = 7, 3
"""Days."""
FIRST, FEWEST, NEWEST = 4, 3, 12
"""Weeks that must have passed, in which a weekday must have been, and of which at most it is told."""
DIFFER = 0.01
"""What a weekday adds before that is told, as a standard deviation: a share of the best value of a metric."""


def remove_mix(nights: Sequence[Night]) -> list[Night]:
    """Return the nights as if each had asked kinds of questions in the shares of the first.

    Each kind of question has an effect, each night another, and a question scores their sum on average. The effects of
    kinds are estimated from the new questions of all nights up to the one that is corrected, so that what a night was
    found to be does not change later. A loss that all kinds share is an effect of the night, and stays.

    Args:
        nights: oldest first, with `cells`; one without them stays as it is.

    Returns:
        As many, with `mix`, and as much more `sampling` as the effects are uncertain. An error of the effects adds the
        same to all nights of late, while nights are taken for independent: it is counted as often as there were nights.

    Reference: Kitagawa 1955, Components of a difference between two rates; Robinson 1991, That BLUP is a good thing.

    Example:
        >>> from yarus.metrics.statistics.alarms.mix import remove_mix
        >>> from yarus.metrics.statistics.alarms.noise import Night
        >>> first = Night(0.7, 0.0021, 100, cells={"fees": (50, 45.0), "visas": (50, 25.0)})
        >>> later = Night(0.58, 0.0024, 100, cells={"fees": (20, 18.0), "visas": (80, 40.0)})
        >>> [round(night.value, 2) for night in remove_mix([first, later])]
        [0.7, 0.69]
    """
    kinds = {kind: number for number, kind in enumerate(sorted({kind for night in nights for kind in night.cells}))}
    usual: Floats | None = None
    of_all = of_late = np.zeros(len(kinds))
    precision, sums = LIKE_ALL * np.eye(len(kinds)), np.zeros(len(kinds))
    found, told = [], 0
    for night in nights:
        if not night.cells:
            found.append(night)
            continue
        n, _ = _table(night.cells, kinds)
        new, scored = _table(night.cells if night.change is None else night.new_cells, kinds)
        shares, new_shares = (of / max(1.0, of.sum()) for of in (n, new))
        usual = shares if usual is None else usual
        told += 1
        of_all = of_all + (shares - of_all) / told
        of_late = of_late + (shares - of_late) / min(told, LATE)
        precision += np.diag(new) - np.outer(new, new_shares)
        sums += scored - new_shares * scored.sum()
        effects, by_night, lasting = np.linalg.solve(
            precision, np.array([sums, new_shares - usual, of_late - of_all]).T
        ).T
        spread = (new_shares - usual) @ by_night + told * (of_late - of_all) @ lasting
        mix = float((shares - usual) @ effects)
        found.append(
            night._replace(
                value=night.value - mix,
                new_value=None if night.new_value is None else night.new_value - float((new_shares - usual) @ effects),
                sampling=night.sampling * float(1 + new.sum() * spread),
                mix=mix,
            )
        )
    return found


def remove_weekdays(nights: Sequence[Night], best: float = 1.0) -> list[Night]:
    """Return the nights as if all had been on the same day of the week.

    What a weekday adds is the mean of how far the level was from that of the nights around it, on such days of the
    newest weeks before the night that is corrected; shrunk by as much as these means differ by chance.

    Args:
        nights: oldest first, with `day`.
        best: the highest value that the metric can have.

    Returns:
        As many. Those of the first weeks keep their values, and have what is `unknown` of their weekday.

    Reference: James and Stein 1961, Estimation with quadratic loss.

    Example:
        >>> from yarus.metrics.statistics.alarms.mix import remove_weekdays
        >>> from yarus.metrics.statistics.alarms.noise import Night
        >>> nights = [Night(0.8 - 0.02 * (day % 7 == 6), 0.001, 160, day=day) for day in range(42)]
        >>> [round(night.value, 2) for night in remove_weekdays(nights)[20:42:7]]  # Sundays
        [0.78, 0.78, 0.8, 0.8]
    """
    levels = np.cumsum([0.0, *(night.moved_since(before) for before, night in pairwise(nights))])
    days = np.array([night.day for night in nights])
    beyond = levels - [levels[np.abs(days - day) <= HALF].mean() for day in days.tolist()]
    found, before = list[Night](), 0.0
    for night in nights:
        passed = night.day - nights[0].day
        told = passed >= FIRST * WEEK
        known = (days < night.day - HALF) & (days >= max(night.day - NEWEST * WEEK, nights[0].day + HALF))
        adds = _adds(days[known] % WEEK, beyond[known], night.day % WEEK) if told else 0.0
        found.append(
            night._replace(
                value=night.value - adds,
                new_value=None if night.new_value is None else night.new_value - adds,
                change=None if night.change is None else night.change - adds + before,
                unknown=0.0 if told or passed % WEEK == 0 else (DIFFER * best) ** 2,
            )
        )
        before = adds
    return found


def _adds(weekdays: Ints, beyond: Floats, weekday: int) -> float:
    """What a weekday adds, by those so far."""
    n = np.bincount(weekdays, minlength=WEEK)
    if n[weekday] < FEWEST or (often := n >= FEWEST).sum() < 2:
        return 0.0
    weekdays, beyond = weekdays[often[weekdays]], beyond[often[weekdays]]
    means = np.bincount(weekdays, beyond, minlength=WEEK) / np.maximum(1, n)
    by_chance = ((beyond - means[weekdays]) ** 2).sum() / (len(beyond) - often.sum()) * (1 / n[often]).mean()
    differ = (means[often] ** 2).sum() / (often.sum() - 1)
    return float(means[weekday] * max(0.0, 1 - by_chance / differ)) if differ else 0.0


def _table(cells: Cells, kinds: Mapping[str, int]) -> Floats:
    """How many questions there are of each kind, and the sums of their scores: (2, kinds)."""
    table = np.zeros((2, len(kinds)))
    for kind, of_kind in cells.items():
        table[:, kinds[kind]] = of_kind
    return table
