"""Scoring: per-case metrics as columns, and what the columns come to."""

import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from metrics import retrieval, text
from metrics.metric import RUBRIC, Metric, Tier
from metrics.statistics import Interval, bootstrap_interval, bootstrap_totals, quantile_interval, share_interval
from metrics.table import grade, metric, metrics_of
from tasks.cases import CANNOT_BE_MEASURED, MEASURED, STRATA, with_columns
from tasks.run import Run

Floats = NDArray[np.float64]
UNKNOWN = Interval(math.nan, math.nan)
TEXTS_AT_ONCE = 10_000
HIT_RATE, RECALL, PRECISION, NDCG = (1, 5, 10), (1, 3, 5, 10), (1, 3, 5, 10), (5, 10)


class Whole(NamedTuple):
    """A metric that is computed over the set, not from a column: NaN where it has no value."""

    value: float
    interval: Interval
    n_scored: int
    n_total: int | None = None
    """What it could have rested on, where that is not the cases: calls."""


class Value(NamedTuple):
    """A metric of a set of cases; `value` is None where it was not measured, and `reason` says why."""

    metric: Metric
    value: float | None
    reason: str | None
    ci_low: float | None
    ci_high: float | None
    n_scored: int
    n_total: int
    signature: str

    def row(self, stratum: str = "") -> dict[str, Any]:
        """As it is stored in `evaluation_metric`."""
        named = self._asdict()
        declared = named.pop("metric")
        return {
            **named,
            "metric": declared.name,
            "stratum": stratum,
            "grade": grade(declared.name, self.value),
            "direction": declared.better,
        }


def score_rankings(run: Run, cases: pa.Table) -> pa.Table:
    """Adds tier 1's metrics; NULL in all of them without a label, or without a ranking because the retriever failed."""
    rankings = cases["retrieved"].to_pylist()
    relevant = [
        dict(zip(ids, grades, strict=True)) if grades is not None else dict.fromkeys(ids, 1.0)
        for ids, grades in zip(cases["relevant"].to_pylist(), cases["grades"].to_pylist(), strict=True)
    ]
    depth = max(run.resolved["k"], *HIT_RATE)
    gains, n_relevant = retrieval.gain_matrix(rankings, relevant, depth=depth)
    ideal = retrieval.ideal_gains(relevant, depth=depth)
    columns = {f"hit_rate@{k}": retrieval.hit_rate(gains, k=k) for k in HIT_RATE}
    columns["mrr"] = retrieval.reciprocal_rank(gains)
    columns |= {f"recall@{k}": retrieval.recall(gains, n_relevant, k=k) for k in RECALL}
    columns |= {f"precision@{k}": retrieval.precision(gains, k=k) for k in PRECISION}
    columns |= {f"ndcg@{k}": retrieval.ndcg(gains, n_relevant, k=k, ideal=ideal) for k in NDCG}
    return with_columns(cases, **columns)


def measured_by(tier: Tier, resolved: Mapping[str, Any] | None) -> tuple[Metric, ...]:
    """The metrics of an evaluation: those of its tier, and the user's own that its judge is asked for."""
    asked = (resolved or {}).get("judge", {}).get("prompts", ())
    return (*metrics_of(tier), *(metric(f"avg_{name}") for name in asked if name.startswith(RUBRIC)))


def summarise(
    declared: Sequence[Metric], cases: pa.Table, *, seed: int, options: dict[str, Any], whole: Mapping[str, Whole]
) -> list[Value]:
    """Every metric over the cases, with its 95 % interval.

    Args:
        declared: the metrics.
        cases: with a column for every per-case metric.
        seed: of the bootstrap.
        options: of the evaluation, for the metrics' signatures: gain, depth.
        whole: metrics that a step has computed over the set.

    Returns:
        One value a metric, in the same order.
    """
    computed = {row.name: WHOLE[row.name](cases, seed) for row in declared if row.name in WHOLE}
    return [_value(row, cases, seed, options, computed | dict(whole)) for row in declared]


def strata(cases: pa.Table) -> dict[str, pa.Table]:
    """The cases by stratum, and all of them; one nameless stratum where the tier has none."""
    if "stratum" not in cases.column_names:
        return {"": cases}
    return {"all": cases} | {name: cases.filter(pc.equal(cases["stratum"], name)) for name in STRATA}


def coverage(statuses: dict[str, int]) -> float | None:
    """Measured cases / cases that could be measured; None if none could."""
    could = sum(count for status, count in statuses.items() if status not in CANNOT_BE_MEASURED)
    return sum(statuses.get(status, 0) for status in MEASURED) / could if could else None


def _value(metric: Metric, cases: pa.Table, seed: int, options: dict[str, Any], whole: Mapping[str, Whole]) -> Value:
    if metric.aggregate == "whole":
        value, interval, n_scored, n_total = whole[metric.name]
    else:
        there = metric.column in cases.column_names
        values = cases[metric.column].to_numpy() if there else np.full(len(cases), np.nan)
        groups = cases["group"].to_pylist()
        value, interval = _aggregate(metric, values, seed, groups)
        n_scored, n_total = int(np.count_nonzero(~np.isnan(values))), None
    measured = not math.isnan(value)
    return Value(
        metric=metric,
        value=value if measured else None,
        reason=None if measured else _why_not(cases, metric),
        ci_low=_number(interval.low),
        ci_high=_number(interval.high),
        n_scored=n_scored,
        n_total=len(cases) if n_total is None else n_total,
        signature=metric.signature_with(**options),
    )


def share(flags: Sequence[bool | None], groups: Sequence[Hashable]) -> Whole:
    """The share of yes among the cases that have an answer, with an interval that knows of groups."""
    values = np.array([math.nan if flag is None else float(flag) for flag in flags])
    n = int(np.count_nonzero(~np.isnan(values)))
    return Whole(float(np.nanmean(values)) if n else math.nan, share_interval(values, groups=groups), n)


def _aggregate(metric: Metric, values: Floats, seed: int, groups: list[str | None]) -> tuple[float, Interval]:
    measured = values[~np.isnan(values)]
    if not measured.size:
        return math.nan, UNKNOWN
    if metric.aggregate != "mean":
        quantile = {"p50": 0.5, "p95": 0.95}[metric.aggregate]
        return float(np.quantile(measured, quantile)), quantile_interval(measured, quantile, seed=seed)
    mean = math.fsum(measured) / len(measured)
    # A column of yes and no is a share, whatever else it could be: the bootstrap of twenty ones has no width.
    if metric.interval == "wilson" or (metric.low == 0 and metric.high == 1 and np.isin(measured, (0, 1)).all()):
        return mean, share_interval(values, groups=groups)
    method: Literal["bca", "percentile"] = "percentile" if metric.interval == "percentile" else "bca"
    return mean, bootstrap_interval(values, seed=seed, groups=groups, method=method)


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


def _corpus_bleu(cases: pa.Table, seed: int) -> Whole:
    counts = bleu_counts(cases)
    has_reference = counts[:, 1] > 0
    scored = counts[has_reference]
    groups = [group for group, has in zip(cases["group"].to_pylist(), has_reference, strict=True) if has]
    if not len(scored):
        return Whole(math.nan, UNKNOWN, 0)

    def bleu(totals: Floats) -> Floats:
        rows = np.atleast_2d(totals)
        return np.asarray((100 * text.score_bleu(rows.astype(np.int64))).reshape(totals.shape[:-1]))

    interval = bootstrap_totals(scored, bleu, seed=seed, groups=groups)
    return Whole(float(bleu(scored.sum(axis=0))), interval, len(scored))


WHOLE: dict[str, Callable[[pa.Table, int], Whole]] = {
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


def _why_not(cases: pa.Table, metric: Metric) -> str:
    """Why nothing was measured: what all cases are, or where some are fine, when the metric has no value."""
    counts = Counter(cases["status"].to_pylist())
    if not counts:
        return "no case"
    if any(status in counts for status in MEASURED):
        return f"undefined: {metric.undefined}"
    status, count = counts.most_common(1)[0]
    return f"{count} of {len(cases)} cases are {status}"


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value
