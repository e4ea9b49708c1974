"""Corrections of a level for the mix of questions and for the day of the week, which are not losses of the system."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from yarus.metrics.statistics.change_detection.noise import NightlyValue, QuestionCells
from yarus.metrics.statistics.groups import Floats, Ints

PRIOR_QUESTIONS = 5.0
"""Pseudo-count: questions of each kind that are assumed to score like all others."""
RECENT_NIGHTS = 10
"""Nights whose mix is compared with that of all nights."""
WEEK, HALF_WEEK = 7, 3
"""Days."""
MIN_WEEKS, MIN_WEEKDAYS, MAX_WEEKS = 4, 3, 12
"""Weeks that must have passed, least weeks with the weekday, and most recent weeks that are used."""
PRIOR_DEVIATION = 0.01
"""Prior standard deviation of the effect of a weekday, as a share of the best value of a metric."""


def remove_mix(nights: Sequence[NightlyValue]) -> list[NightlyValue]:
    """Return the nights as if each had asked kinds of questions in the shares of the first.

    Each kind of question has an effect, each night another, and a question scores their sum on average. The effects of
    kinds are estimated from the new questions of all nights up to the corrected one, so that the value of a night does
    not change later. A loss that all kinds share is an effect of the night, and stays.

    Args:
        nights: oldest first, with `cells`; a night without cells stays as it is.

    Returns:
        As many nights, with `mix`, and with `sampling` increased by the uncertainty of the effects. An error of the
        effects shifts all recent nights alike, although nights are taken as independent: it counts once per night so
        far.

    Reference: Kitagawa 1955, Components of a difference between two rates; Robinson 1991, That BLUP is a good thing.

    Example:
        >>> from yarus.metrics.statistics.change_detection.mix import remove_mix
        >>> from yarus.metrics.statistics.change_detection.noise import NightlyValue
        >>> first = NightlyValue(0.7, 0.0021, 100, cells={"fees": (50, 45.0), "visas": (50, 25.0)})
        >>> later = NightlyValue(0.58, 0.0024, 100, cells={"fees": (20, 18.0), "visas": (80, 40.0)})
        >>> [round(night.value, 2) for night in remove_mix([first, later])]
        [0.7, 0.69]
    """
    kinds = {kind: index for index, kind in enumerate(sorted({kind for night in nights for kind in night.cells}))}
    usual: Floats | None = None
    mean_shares = recent_shares = np.zeros(len(kinds))
    precision, sums = PRIOR_QUESTIONS * np.eye(len(kinds)), np.zeros(len(kinds))
    corrected, n_nights = [], 0
    for night in nights:
        if not night.cells:
            corrected.append(night)
            continue
        n, _ = _count_by_kind(night.cells, kinds)
        new, scored = _count_by_kind(night.cells if night.change is None else night.new_cells, kinds)
        shares, new_shares = (counts / max(1.0, counts.sum()) for counts in (n, new))
        usual = shares if usual is None else usual
        n_nights += 1
        mean_shares = mean_shares + (shares - mean_shares) / n_nights
        recent_shares = recent_shares + (shares - recent_shares) / min(n_nights, RECENT_NIGHTS)
        precision += np.diag(new) - np.outer(new, new_shares)
        sums += scored - new_shares * scored.sum()
        effects, by_night, lasting = np.linalg.solve(
            precision, np.array([sums, new_shares - usual, recent_shares - mean_shares]).T
        ).T
        spread = (new_shares - usual) @ by_night + n_nights * (recent_shares - mean_shares) @ lasting
        mix = float((shares - usual) @ effects)
        corrected.append(
            night._replace(
                value=night.value - mix,
                new_value=None if night.new_value is None else night.new_value - float((new_shares - usual) @ effects),
                sampling=night.sampling * float(1 + new.sum() * spread),
                mix=mix,
            )
        )
    return corrected


def remove_weekdays(nights: Sequence[NightlyValue], best: float = 1.0) -> list[NightlyValue]:
    """Return the nights as if all had been on the same day of the week.

    The effect of a weekday is the mean deviation of its level from the nights around it, in the most recent weeks
    before the corrected night. It is shrunk by as much as these means differ by chance.

    Args:
        nights: oldest first, with `day`.
        best: the highest value that the metric can have.

    Returns:
        As many nights. Those of the first weeks keep their values, and get the variance `unknown` for their weekday.

    Reference: James and Stein 1961, Estimation with quadratic loss.

    Example:
        >>> from yarus.metrics.statistics.change_detection.mix import remove_weekdays
        >>> from yarus.metrics.statistics.change_detection.noise import NightlyValue
        >>> nights = [NightlyValue(0.8 - 0.02 * (day % 7 == 6), 0.001, 160, day=day) for day in range(42)]
        >>> [round(night.value, 2) for night in remove_weekdays(nights)[20:42:7]]  # Sundays
        [0.78, 0.78, 0.8, 0.8]
    """
    levels = np.cumsum([0.0, *(night.moved_since(before) for before, night in pairwise(nights))])
    days = np.array([night.day for night in nights])
    deviations = levels - [levels[np.abs(days - day) <= HALF_WEEK].mean() for day in days.tolist()]
    corrected, last_effect = list[NightlyValue](), 0.0
    for night in nights:
        passed = night.day - nights[0].day
        has_effects = passed >= MIN_WEEKS * WEEK
        recent = (days < night.day - HALF_WEEK) & (days >= max(night.day - MAX_WEEKS * WEEK, nights[0].day + HALF_WEEK))
        effect = _weekday_effect(days[recent] % WEEK, deviations[recent], night.day % WEEK) if has_effects else 0.0
        corrected.append(
            night._replace(
                value=night.value - effect,
                new_value=None if night.new_value is None else night.new_value - effect,
                change=None if night.change is None else night.change - effect + last_effect,
                unknown=0.0 if has_effects or passed % WEEK == 0 else (PRIOR_DEVIATION * best) ** 2,
            )
        )
        last_effect = effect
    return corrected


def _weekday_effect(weekdays: Ints, deviations: Floats, weekday: int) -> float:
    """Return the effect of a weekday, from the nights so far."""
    n = np.bincount(weekdays, minlength=WEEK)
    if n[weekday] < MIN_WEEKDAYS or (frequent := n >= MIN_WEEKDAYS).sum() < 2:
        return 0.0
    weekdays, deviations = weekdays[frequent[weekdays]], deviations[frequent[weekdays]]
    means = np.bincount(weekdays, deviations, minlength=WEEK) / np.maximum(1, n)
    chance = ((deviations - means[weekdays]) ** 2).sum() / (len(deviations) - frequent.sum()) * (1 / n[frequent]).mean()
    between = (means[frequent] ** 2).sum() / (frequent.sum() - 1)
    return float(means[weekday] * max(0.0, 1 - chance / between)) if between else 0.0


def _count_by_kind(cells: QuestionCells, kinds: Mapping[str, int]) -> Floats:
    """Return how many questions there are of each kind, and the sums of their scores: (2, kinds)."""
    table = np.zeros((2, len(kinds)))
    for kind, counts in cells.items():
        table[:, kinds[kind]] = counts
    return table
