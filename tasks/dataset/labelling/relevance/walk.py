"""Which results of a drawn question people are asked about, and what their answers say of its metrics.

They go down the ranking until something relevant is found, and judge everything that the judge calls relevant. Of
every fourth drawn question, chosen at random, they judge all results: these tell what the others leave out. So a metric
of drawn questions is known from a third of their results.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from yarus.metrics.statistics.groups import Floats
from yarus.tasks.cases.labels import NO_TWINS
from yarus.tasks.cases.rankings import ANSWERS, Pool, Pooled, Said, graded, score, seen, to_judge
from yarus.tasks.cases.table import floats, values_of

WHOLE = 0.25
"""Chance of a drawn question that all of its results are judged."""
FEWEST_WHOLE = 3
"""Such questions below which nothing is known of what the others leave out."""
TINY = 1e-12


def is_whole(case_id: str) -> bool:
    """Whether all results of a question are judged, once it is drawn.

    Example:
        >>> from yarus.tasks.dataset.labelling.relevance.walk import is_whole
        >>> sum(is_whole(f"case {number}") for number in range(1_000))
        242
    """
    chance = hashlib.blake2b(f"whole|{case_id}".encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(chance) < WHOLE * 2**64


def wanted(pool: Pool, said: Said, *, whole: bool) -> Iterator[Pooled]:
    """The results that people are asked about, in the order in which they are; each depends on what was said before.

    Args:
        pool: of the question.
        said: what people have said of its results so far.
        whole: whether all are to be judged.
    """
    found = False
    in_order = sorted(pool, key=lambda one: (one["rank"] is None, one["rank"] or 0))  # last what only others have found
    for one in in_order:
        if not to_judge(one):
            found = found or bool(one["label"])
            continue
        on_the_way = one["rank"] is not None and not found
        if on_the_way or whole or graded(one) >= ANSWERS:
            yield one
            found = found or said.get(one["result"], False)


def metrics_by_people(
    cases: pa.Table, said: Sequence[Said], weights: Floats, names: Sequence[str], k: int
) -> dict[str, Floats]:
    """The metrics of drawn questions, of which people have judged what was wanted.

    By what was judged on the way, as far as those that were judged as a whole follow it (regression), and for these
    themselves what they differ by, as often as they stand for others. Single values may leave 0..1.

    Args:
        cases: n of them, with `case_id` and `pooled`.
        said: of each, what people have said of its results.
        weights: (n,) how many questions each stands for.
        names: of the metrics' columns.
        k: the length of the rankings.

    Returns:
        Column -> n values; NaN where fewer than three questions were judged as a whole.
    """
    whole = np.array([is_whole(name) for name in values_of(cases, "case_id")], dtype=bool)
    pairs = list(zip(values_of(cases, "pooled"), said, strict=True))
    n = int(whole.sum())
    if n < FEWEST_WHOLE:
        return {name: np.full(len(pairs), np.nan) for name in names}
    found = _scored(cases, [_as_far_as(pool, of, whole=False) for pool, of in pairs], names, k)
    full = _scored(
        cases.filter(pa.array(whole)), [_as_far_as(*pairs[row], whole=True) for row in np.flatnonzero(whole)], names, k
    )
    own = weights[whole]
    stands_for = weights.sum() / own.sum() * (n / (n - 2)) ** 0.5
    for name, values in found.items():
        believed = _slope(values[whole], full[name], own)
        change = full[name] - believed * values[whole]
        values *= believed
        values += np.average(change, weights=own)
        values[whole] += stands_for * (change - np.average(change, weights=own))
    return found


def _slope(partly: Floats, wholly: Floats, weights: Floats) -> float:
    """How far values follow those that were judged on the way, 0..1."""
    apart = partly - np.average(partly, weights=weights)
    variance = float(weights @ apart**2)
    return min(max(float(weights @ (apart * wholly)) / variance, 0.0), 1.0) if variance > TINY else 1.0


def _scored(cases: pa.Table, said: Sequence[Said], names: Sequence[str], k: int) -> dict[str, Floats]:
    scored = score(seen(cases, said), NO_TWINS, k)
    return {name: floats(scored, name).copy() for name in names}


def _as_far_as(pool: Pool, said: Said, *, whole: bool) -> Mapping[str, bool]:
    """What is relevant by labels and people; what was not asked about is not."""
    asked = {one["result"] for one in wanted(pool, said, whole=whole)}
    return {
        one["result"]: said.get(one["result"], False) if one["result"] in asked else bool(one["label"]) for one in pool
    }
