"""A change of a mean, split: other questions than before, or the same kinds of questions answered otherwise."""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from yarus.metrics.statistics.groups import Floats, Ints, group_codes
from yarus.metrics.statistics.intervals import NO_INTERVAL, Interval, student_quantile

LEAST = 5
"""Cases of either side that a cell needs to stand alone."""
RARE = 10
"""Groups that changed, below which a change that nobody has seen yet is reckoned with."""
MOST = 1_000
"""Units that are left out one by one; more groups are put together."""
ROUNDING = 1e-12
"""Of sums: what is smaller is nothing."""
AT_ONCE = 2_000_000
"""Numbers in memory at a time."""


class Part(NamedTuple):
    """A part of the difference of two means, with its interval."""

    value: float
    interval: Interval


class Decomposition(NamedTuple):
    """A difference of two means and what it is made of: `questions` and `answers` add up to it."""

    difference: float
    questions: Part
    """By other questions: other kinds of them, or others of a kind."""
    answers: Part
    """By other answers to the same questions, or where too few are the same, to questions of the same kind."""
    parts: Mapping[Hashable, Part]
    """Of `answers`: by the part that each cell is of; they add up to it."""
    by_case: Floats
    """(n,) what each question adds to `answers`; 0 for one that was not measured after."""


def cells(levels: Sequence[Sequence[Hashable]], before: ArrayLike, after: ArrayLike, *, least: int = LEAST) -> Ints:
    """The cell of every question: as fine as both sides have enough questions for.

    Questions that are alike on all levels are a cell. What has fewer than `least` of either side is put together with
    its like on all levels but the last, and so on; of the first level what has few on both sides is one cell. What has
    many on one side and few on the other stays apart, for it is a change of the questions.

    Args:
        levels: n labels each, what divides most first.
        before, after: (n,) whether the question is there on that side.
        least: of questions of either side.

    Returns:
        (n,) the number of each question's cell, from 0.

    Example:
        >>> from yarus.metrics.statistics.differences.decomposition import cells
        >>> topics, lengths = ["fees"] * 4 + ["rooms"] * 2, ["long", "long", "short", "short", "long", "short"]
        >>> cells([topics, lengths], [1, 1, 0, 1, 1, 1], [1, 1, 1, 0, 1, 1], least=2)
        array([0, 0, 1, 1, 2, 2])
    """
    sides = [np.asarray(side, dtype=bool) for side in (before, after)]
    names: list[Hashable] = [None] * len(sides[0])
    left = list(range(len(names)))
    for depth in range(len(levels), 0, -1):
        labels = {row: tuple(level[row] for level in levels[:depth]) for row in left}
        counts = [Counter(labels[row] for row in left if side[row]) for side in sides]
        rest = []
        for row in left:
            here = [count[labels[row]] for count in counts]
            if min(here) >= least or (depth == 1 and max(here) >= least):
                names[row] = labels[row]
            else:
                rest.append(row)
        left = rest
    return group_codes([(name,) for name in names], len(names))


def decompose(
    before: ArrayLike,
    after: ArrayLike,
    cells: ArrayLike,
    *,
    span: float = 1.0,
    groups: Sequence[Hashable] | None = None,
    parts: Mapping[int, Hashable] | None = None,
    confidence: float = 0.95,
) -> Decomposition:
    """Splits the difference of two means over the questions that either was measured on.

    Within a cell `answers` is the mean change of the questions that both sides have, where they are five or half of
    the smaller side; else the difference of the sides' means. Cells count by the mean of their shares before and
    after. What is left of the difference is `questions`; a cell that only one side has is part of it. The intervals
    leave out one group after the other (jackknife), with Student's quantile of the groups' effective number; where
    fewer than ten have changed, two invented ones, a gain and a loss, have their place in them.

    Args:
        before, after: (n,) values of the union of the questions, NaN where a side has it not or did not measure it.
        cells: (n,) numbers from 0, as `cells` gives them.
        span: the widest that two values lie apart.
        groups: n labels of users, dialogs or pages; None marks a question that stands alone.
        parts: cell -> the part of `answers` that it is of.
        confidence: of the intervals.

    Returns:
        All NaN where a side has no value; `answers` NaN where no cell has both sides.

    Raises:
        ValueError: lengths that differ.

    Reference: Kitagawa 1955, Components of a difference between two rates; Oaxaca 1973; Blinder 1973.

    Example:
        >>> from yarus.metrics.statistics.differences.decomposition import decompose
        >>> before, after = [1.0] * 30 + [0.0] * 10, [1.0] * 10 + [0.0] * 30  # of other questions: fewer easy ones
        >>> none = [float("nan")] * 40
        >>> found = decompose(before + none, none + after, [0] * 30 + [1] * 10 + [0] * 10 + [1] * 30)
        >>> found.difference, found.questions.value, found.answers.value
        (-0.5, -0.5, 0.0)
    """
    a, b = (np.asarray(side, dtype=np.float64) for side in (before, after))
    codes = np.asarray(cells, dtype=np.intp)
    if not len(a) == len(b) == len(codes):
        raise ValueError(f"{len(a)} values before, {len(b)} after and {len(codes)} cells: they must be as many")
    there = [~np.isnan(side) for side in (a, b)]
    both = there[0] & there[1]
    rows = np.column_stack(
        [there[0], np.where(there[0], a, 0), there[1], np.where(there[1], b, 0), both, np.where(both, b - a, 0)]
    ).astype(np.float64)
    names = dict.fromkeys((parts or {}).values())
    nothing = Part(np.nan, NO_INTERVAL)
    if not there[0].any() or not there[1].any():
        return Decomposition(np.nan, nothing, nothing, dict.fromkeys(names, nothing), np.zeros(len(a)))
    m = int(codes.max()) + 1
    totals = np.zeros((m, 6))
    np.add.at(totals, codes, rows)
    paired = (totals[:, 4] >= LEAST) | (2 * totals[:, 4] >= np.minimum(totals[:, 0], totals[:, 2])) & (totals[:, 4] > 0)
    member = np.array([[(parts or {}).get(cell) == name for cell in range(m)] for name in names], dtype=np.float64)
    member = member.reshape(len(names), m)
    units = group_codes(groups if groups is not None else [None] * len(a), len(a))
    used = there[0] | there[1]
    spread = _jackknife(totals, rows[used], codes[used], units[used] % MOST, paired, member)
    found = _split(totals, paired, member)
    sizes = np.bincount(units[used] % MOST).astype(np.float64)
    degrees = float(sizes.sum() ** 2 / (sizes**2).sum()) - 1
    reach = student_quantile(confidence, degrees) if degrees >= 1 else np.nan
    errors = np.sqrt((spread**2).sum(axis=0) * (1 - 1 / max(1, len(spread))))
    moved = used & np.where(paired[codes], rows[:, 5] != 0, True)
    if len(np.unique(units[moved])) < RARE:
        unseen = np.sqrt(2) * span / min(float(side.sum()) for side in there)
        errors[1:] = np.hypot(errors[1:], unseen)
        if both.sum() < used.sum():
            errors[0] = np.hypot(errors[0], unseen)

    def part(place: int) -> Part:
        value, far = float(found[place]), float(reach * errors[place])
        value = 0.0 if abs(value) < ROUNDING else value
        far = 0.0 if far < ROUNDING else far
        return Part(value, Interval(max(-2 * span, value - far), min(2 * span, value + far)))

    comparable = bool((paired | ((totals[:, 0] > 0) & (totals[:, 2] > 0))).any())
    difference = float(b[there[1]].mean() - a[there[0]].mean())
    if not comparable:
        return Decomposition(difference, part(0), nothing, dict.fromkeys(names, nothing), np.zeros(len(a)))
    whole = {name: part(2 + place) for place, name in enumerate(names)}
    return Decomposition(difference, part(0), part(1), whole, _by_case(totals, paired, rows, codes))


def _changes(totals: Floats, paired: NDArray[np.bool_]) -> Floats:
    """How far the answers of each cell changed, counted by its share; 0 where a side has none."""
    n_a, sum_a, n_b, sum_b, n, change = np.moveaxis(totals, -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        apart = np.where(paired, change / n, sum_b / n_b - sum_a / n_a)
        weights = n_a / n_a.sum(axis=-1, keepdims=True) + n_b / n_b.sum(axis=-1, keepdims=True)
        changes: Floats = np.nan_to_num(apart * weights / 2, nan=0.0, posinf=0.0, neginf=0.0)
        return changes


def _split(totals: Floats, paired: NDArray[np.bool_], member: Floats) -> Floats:
    """(…, 2 + parts): by questions, by answers, and the parts of the latter."""
    sums = totals.sum(axis=-2)
    with np.errstate(divide="ignore", invalid="ignore"):
        difference = sums[..., 3] / sums[..., 2] - sums[..., 1] / sums[..., 0]
    changes = _changes(totals, paired)
    answers = changes.sum(axis=-1)
    return np.concatenate([np.stack([difference - answers, answers], axis=-1), changes @ member.T], axis=-1)


def _jackknife(
    totals: Floats, rows: Floats, codes: Ints, units: Ints, paired: NDArray[np.bool_], member: Floats
) -> Floats:
    """(units, 2 + parts): how far each number lies from their mean when one unit is left out."""
    order = np.argsort(units, kind="stable")
    labels, first = np.unique(units[order], return_index=True)
    block = max(1, AT_ONCE // totals.size)
    found = []
    for start in range(0, len(labels), block):
        ends = np.append(first, len(order))[[start, min(start + block, len(labels))]]
        own = order[ends[0] : ends[1]]
        without = np.repeat(totals[None], min(block, len(labels) - start), axis=0)
        places = np.searchsorted(labels, units[own]) - start
        np.subtract.at(without, (places, codes[own]), rows[own])
        found.append(_split(without, paired, member))
    numbers = np.concatenate(found) if found else np.zeros((0, 2 + len(member)))
    numbers = np.nan_to_num(numbers)
    return np.asarray(numbers - numbers.mean(axis=0) if len(numbers) else numbers)


def _by_case(totals: Floats, paired: NDArray[np.bool_], rows: Floats, codes: Ints) -> Floats:
    """What each question adds: its own change, or how far it lies from the mean before of its cell."""
    n_a, sum_a, n_b, _, n, _ = totals.T
    with np.errstate(divide="ignore", invalid="ignore"):
        weights = (n_a / n_a.sum() + n_b / n_b.sum()) / 2
        change = np.where(
            paired[codes],
            rows[:, 5] / n[codes],
            rows[:, 2] * (rows[:, 3] - (sum_a / n_a)[codes]) / n_b[codes],
        )
    found: Floats = np.nan_to_num(weights[codes] * change, nan=0.0, posinf=0.0, neginf=0.0)
    return found
