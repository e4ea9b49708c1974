"""A change of a mean, split: other questions than before, or other answers to the same kinds of questions."""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from yarus.metrics.statistics.groups import Floats, Ints, group_codes
from yarus.metrics.statistics.intervals import NO_INTERVAL, Interval, student_quantile

MIN_CASES = 5
"""Cases of either side that a cell needs to stay separate."""
MIN_CHANGED_GROUPS = 10
"""Changed groups below which the interval allows for an unseen change."""
MAX_UNITS = 1_000
"""Units that are left out one by one; more groups are merged."""
ROUNDING = 1e-12
"""Sums below this are 0."""
MAX_VALUES_IN_MEMORY = 2_000_000
"""Numbers in memory at a time."""


class Component(NamedTuple):
    """A component of the difference of two means, with its interval."""

    value: float
    interval: Interval


class Decomposition(NamedTuple):
    """A difference of two means and its components: `questions` and `answers` add up to it."""

    difference: float
    questions: Component
    """Effect of other questions: other kinds of them, or others of a kind."""
    answers: Component
    """Effect of other answers to the same questions, or if too few are the same, to questions of the same kind."""
    parts: Mapping[Hashable, Component]
    """Components of `answers`, by the part that each cell belongs to; they add up to it."""
    by_case: Floats
    """(n,) contribution of each question to `answers`; 0 for one that was not measured after."""


def assign_cells(
    levels: Sequence[Sequence[Hashable]], before: ArrayLike, after: ArrayLike, *, least: int = MIN_CASES
) -> Ints:
    """Return the cell of every question: as fine as both sides have enough questions for.

    Questions with equal labels on all levels form a cell. A cell with fewer than `least` questions of either side is
    merged on all levels but the last, and so on; on the first level, those with few on both sides form one cell. A cell
    with many on one side and few on the other stays separate, because it is a change of the questions.

    Args:
        levels: n labels each, the most important division first.
        before, after: (n,) whether that side has the question.
        least: questions that a cell needs of either side.

    Returns:
        (n,) the number of each question's cell, from 0.

    Example:
        >>> from yarus.metrics.statistics.differences.decomposition import assign_cells
        >>> topics, lengths = ["fees"] * 4 + ["rooms"] * 2, ["long", "long", "short", "short", "long", "short"]
        >>> assign_cells([topics, lengths], [1, 1, 0, 1, 1, 1], [1, 1, 1, 0, 1, 1], least=2)
        array([0, 0, 1, 1, 2, 2])
    """
    sides = [np.asarray(side, dtype=bool) for side in (before, after)]
    names: list[Hashable] = [None] * len(sides[0])
    remaining = list(range(len(names)))
    for depth in range(len(levels), 0, -1):
        labels = {row: tuple(level[row] for level in levels[:depth]) for row in remaining}
        counts = [Counter(labels[row] for row in remaining if side[row]) for side in sides]
        unassigned = []
        for row in remaining:
            cell_counts = [count[labels[row]] for count in counts]
            if min(cell_counts) >= least or (depth == 1 and max(cell_counts) >= least):
                names[row] = labels[row]
            else:
                unassigned.append(row)
        remaining = unassigned
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
    """Split the difference of two means over the questions that either was measured on.

    Within a cell `answers` is the mean change of the common questions, if they are at least five or half of the smaller
    side; otherwise the difference of the sides' means. Cells are weighted by the mean of their shares before and after.
    The remaining difference is `questions`; a cell that only one side has is part of it. The intervals leave out one
    group at a time (jackknife), with Student's quantile of the effective number of groups. If fewer than ten groups
    have changed, the intervals include two pseudo-groups: a gain and a loss.

    Args:
        before, after: (n,) values of the union of the questions, NaN if a side does not have it or did not measure it.
        cells: (n,) numbers from 0, as returned by `assign_cells`.
        span: the largest possible difference of two values.
        groups: n labels of users, dialogs or pages; None marks a question without a group.
        parts: cell -> the part of `answers` that it belongs to.
        confidence: of the intervals.

    Returns:
        All NaN if a side has no value; `answers` NaN if no cell has both sides.

    Raises:
        ValueError: lengths that differ.

    Reference: Kitagawa 1955, Components of a difference between two rates; Oaxaca 1973; Blinder 1973.

    Example:
        >>> from yarus.metrics.statistics.differences.decomposition import decompose
        >>> before, after = [1.0] * 30 + [0.0] * 10, [1.0] * 10 + [0.0] * 30  # of other questions: fewer easy ones
        >>> none = [float("nan")] * 40
        >>> result = decompose(before + none, none + after, [0] * 30 + [1] * 10 + [0] * 10 + [1] * 30)
        >>> result.difference, result.questions.value, result.answers.value
        (-0.5, -0.5, 0.0)
    """
    a, b = (np.asarray(side, dtype=np.float64) for side in (before, after))
    codes = np.asarray(cells, dtype=np.intp)
    if not len(a) == len(b) == len(codes):
        raise ValueError(f"{len(a)} values before, {len(b)} after and {len(codes)} cells: they must be as many")
    scored = [~np.isnan(side) for side in (a, b)]
    both = scored[0] & scored[1]
    rows = np.column_stack(
        [scored[0], np.where(scored[0], a, 0), scored[1], np.where(scored[1], b, 0), both, np.where(both, b - a, 0)]
    ).astype(np.float64)
    names = dict.fromkeys((parts or {}).values())
    undefined = Component(np.nan, NO_INTERVAL)
    if not scored[0].any() or not scored[1].any():
        return Decomposition(np.nan, undefined, undefined, dict.fromkeys(names, undefined), np.zeros(len(a)))
    m = int(codes.max()) + 1
    sums = np.zeros((m, 6))
    np.add.at(sums, codes, rows)
    paired = (sums[:, 4] >= MIN_CASES) | (2 * sums[:, 4] >= np.minimum(sums[:, 0], sums[:, 2])) & (sums[:, 4] > 0)
    member = np.array([[(parts or {}).get(cell) == name for cell in range(m)] for name in names], dtype=np.float64)
    member = member.reshape(len(names), m)
    units = group_codes(groups if groups is not None else [None] * len(a), len(a))
    is_used = scored[0] | scored[1]
    spread = _jackknife_deviations(sums, rows[is_used], codes[is_used], units[is_used] % MAX_UNITS, paired, member)
    values = _split(sums, paired, member)
    sizes = np.bincount(units[is_used] % MAX_UNITS).astype(np.float64)
    degrees = float(sizes.sum() ** 2 / (sizes**2).sum()) - 1
    quantile = student_quantile(confidence, degrees) if degrees >= 1 else np.nan
    errors = np.sqrt((spread**2).sum(axis=0) * (1 - 1 / max(1, len(spread))))
    moved = is_used & np.where(paired[codes], rows[:, 5] != 0, True)
    if len(np.unique(units[moved])) < MIN_CHANGED_GROUPS:
        unseen = np.sqrt(2) * span / min(float(side.sum()) for side in scored)
        errors[1:] = np.hypot(errors[1:], unseen)
        if both.sum() < is_used.sum():
            errors[0] = np.hypot(errors[0], unseen)

    def build_part(index: int) -> Component:
        value, half_width = float(values[index]), float(quantile * errors[index])
        value = 0.0 if abs(value) < ROUNDING else value
        half_width = 0.0 if half_width < ROUNDING else half_width
        return Component(value, Interval(max(-2 * span, value - half_width), min(2 * span, value + half_width)))

    comparable = bool((paired | ((sums[:, 0] > 0) & (sums[:, 2] > 0))).any())
    difference = float(b[scored[1]].mean() - a[scored[0]].mean())
    if not comparable:
        return Decomposition(difference, build_part(0), undefined, dict.fromkeys(names, undefined), np.zeros(len(a)))
    by_part = {name: build_part(2 + index) for index, name in enumerate(names)}
    return Decomposition(difference, build_part(0), build_part(1), by_part, _by_case(sums, paired, rows, codes))


def _weighted_changes(totals: Floats, paired: NDArray[np.bool_]) -> Floats:
    """Return the change of the answers of each cell, weighted by its share; 0 if a side has none."""
    n_a, sum_a, n_b, sum_b, n, change = np.moveaxis(totals, -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        differences = np.where(paired, change / n, sum_b / n_b - sum_a / n_a)
        weights = n_a / n_a.sum(axis=-1, keepdims=True) + n_b / n_b.sum(axis=-1, keepdims=True)
        changes: Floats = np.nan_to_num(differences * weights / 2, nan=0.0, posinf=0.0, neginf=0.0)
        return changes


def _split(totals: Floats, paired: NDArray[np.bool_], member: Floats) -> Floats:
    """Return (…, 2 + parts): by questions, by answers, and the components of the latter."""
    sums = totals.sum(axis=-2)
    with np.errstate(divide="ignore", invalid="ignore"):
        difference = sums[..., 3] / sums[..., 2] - sums[..., 1] / sums[..., 0]
    changes = _weighted_changes(totals, paired)
    answers = changes.sum(axis=-1)
    return np.concatenate([np.stack([difference - answers, answers], axis=-1), changes @ member.T], axis=-1)


def _jackknife_deviations(
    totals: Floats, rows: Floats, codes: Ints, units: Ints, paired: NDArray[np.bool_], member: Floats
) -> Floats:
    """Return (units, 2 + parts): the deviation of each component from the mean when one unit is left out."""
    order = np.argsort(units, kind="stable")
    labels, first = np.unique(units[order], return_index=True)
    block = max(1, MAX_VALUES_IN_MEMORY // totals.size)
    blocks = []
    for start in range(0, len(labels), block):
        ends = np.append(first, len(order))[[start, min(start + block, len(labels))]]
        rows_of_block = order[ends[0] : ends[1]]
        without = np.repeat(totals[None], min(block, len(labels) - start), axis=0)
        indices = np.searchsorted(labels, units[rows_of_block]) - start
        np.subtract.at(without, (indices, codes[rows_of_block]), rows[rows_of_block])
        blocks.append(_split(without, paired, member))
    components = np.concatenate(blocks) if blocks else np.zeros((0, 2 + len(member)))
    components = np.nan_to_num(components)
    return np.asarray(components - components.mean(axis=0) if len(components) else components)


def _by_case(totals: Floats, paired: NDArray[np.bool_], rows: Floats, codes: Ints) -> Floats:
    """Return the contribution of each question: its own change, or its deviation from the mean before of its cell."""
    n_a, sum_a, n_b, _, n, _ = totals.T
    with np.errstate(divide="ignore", invalid="ignore"):
        weights = (n_a / n_a.sum() + n_b / n_b.sum()) / 2
        change = np.where(
            paired[codes],
            rows[:, 5] / n[codes],
            rows[:, 2] * (rows[:, 3] - (sum_a / n_a)[codes]) / n_b[codes],
        )
    contributions: Floats = np.nan_to_num(weights[codes] * change, nan=0.0, posinf=0.0, neginf=0.0)
    return contributions
