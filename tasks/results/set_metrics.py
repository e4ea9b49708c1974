"""The metrics that are made of a set of cases, not of the mean of a column."""

import math
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from metrics import text
from metrics.statistics import Interval, bootstrap_totals, share_interval

Floats = NDArray[np.float64]
UNKNOWN = Interval(math.nan, math.nan)
TEXTS_AT_ONCE = 10_000


class Whole(NamedTuple):
    """A metric that is computed over the set, not from a column: NaN where it has no value."""

    value: float
    interval: Interval
    n_scored: int
    n_total: int | None = None
    """What it could have rested on, where that is not the cases: calls."""


def share(flags: Sequence[bool | None], groups: Sequence[Hashable]) -> Whole:
    """The share of yes among the cases that have an answer, with an interval that knows of groups."""
    values = np.array([math.nan if flag is None else float(flag) for flag in flags])
    n = int(np.count_nonzero(~np.isnan(values)))
    return Whole(float(np.nanmean(values)) if n else math.nan, share_interval(values, groups=groups), n)


def _share(status: str) -> Callable[[pa.Table, int], Whole]:
    return lambda cases, seed: share([has == status for has in cases["status"].to_pylist()], cases["group"].to_pylist())


def _refusal_rate(cases: pa.Table, seed: int) -> Whole:
    said = zip(answered(cases), cases["status"].to_pylist(), strict=True)  # a refusal is said too
    refused = [status == "sut_refusal" if answered else None for answered, status in said]
    return share(refused, cases["group"].to_pylist())


def _count(answerable: bool, refused: bool) -> Callable[[pa.Table, int], Whole]:
    """A cell of the answerable x answered matrix."""

    def count(cases: pa.Table, seed: int) -> Whole:
        rows = zip(cases["answerable"].to_pylist(), answered(cases), cases["status"].to_pylist(), strict=True)
        known = [(can, status == "sut_refusal") for can, answered, status in rows if can is not None and answered]
        return Whole(float(known.count((answerable, refused))) if known else math.nan, UNKNOWN, len(known))

    return count


def answered(cases: pa.Table) -> list[bool]:
    """Whether there is an answer, case by case."""
    said: list[bool] = pc.is_valid(cases["answer"]).to_pylist()
    return said


def bleu_counts(cases: pa.Table) -> NDArray[np.int64]:
    """What every case adds to corpus BLEU, as `metrics.text.bleu_counts` has it; few texts in memory at a time."""
    some = (cases.slice(start, TEXTS_AT_ONCE) for start in range(0, max(len(cases), 1), TEXTS_AT_ONCE))
    return np.vstack([text.bleu_counts(part["answer"].to_pylist(), part["reference"].to_pylist()) for part in some])


def bleu_of(totals: Floats) -> Floats:
    """Corpus BLEU, 0 to 100, of sums (..., p) of `bleu_counts`."""
    return np.asarray(100 * text.score_bleu(totals).score)


def _corpus_bleu(cases: pa.Table, seed: int) -> Whole:
    counts = bleu_counts(cases)
    has_reference = counts[:, 1] > 0
    scored = counts[has_reference]
    groups = [group for group, has in zip(cases["group"].to_pylist(), has_reference, strict=True) if has]
    if not len(scored):
        return Whole(math.nan, UNKNOWN, 0)
    interval = bootstrap_totals(scored, bleu_of, seed=seed, groups=groups)
    return Whole(float(bleu_of(scored.sum(axis=0))), interval, len(scored))


SET_METRICS: dict[str, Callable[[pa.Table, int], Whole]] = {
    "sut_error_rate": _share("sut_error"),
    "unlabelled_rate": _share("unlabelled"),
    "stale_label_rate": _share("stale_label"),
    "refusal_rate": _refusal_rate,
    "answerable_answered": _count(True, False),
    "answerable_refused": _count(True, True),
    "unanswerable_answered": _count(False, False),
    "unanswerable_refused": _count(False, True),
    "corpus_bleu": _corpus_bleu,
}
"""Metrics that are computed over the set of cases, not from one column."""
