"""Compute what each case of two evaluations adds to each metric, for comparisons."""

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from yarus.db.messages import Words
from yarus.metrics.metric import QUANTILES, Metric
from yarus.metrics.statistics.differences.compared_statistics import SampleStatistic
from yarus.metrics.statistics.differences.means import default_margin, is_binary
from yarus.metrics.statistics.groups import Floats
from yarus.metrics.statistics.significance import mcnemar_exact
from yarus.tasks.cases.table import float_column
from yarus.tasks.comparison.comparison_schema import AnsweredMeans, FailedCases
from yarus.tasks.evaluation.set_metrics import SET_METRICS, find_failures, metric_columns, metric_parts

Sides: TypeAlias = tuple[Floats, Floats]
Flags: TypeAlias = tuple[NDArray[np.bool_], NDArray[np.bool_]]
FAILURE_ALPHA = 0.05
"""The p-value below which two numbers of failures are taken as different."""
ERROR_RATE = "sut_error_rate"
"""The metric of the system's failures."""
POINT_UNITS = ("share", "correlation", "kappa")
"""Units in which a difference of five points may matter."""
NEEDS_VECTORS = Words(
    "its vectors are not in the file of the evaluation, so it cannot be computed for the common cases"
)
NOWHERE = Words("it was not measured in a and b")
NOT_COMPARED = dict.fromkeys(
    (
        "avg_intra_cluster_sim",
        "avg_inter_cluster_dist",
        "effective_dimensionality",
        "avg_pairwise_distance",
        "context_preservation",
        "multi_turn_consistency",
    ),
    NEEDS_VECTORS,
)
NOT_COMPARED |= dict.fromkeys(
    ("total_texts", "total_pairs", "n_clusters"), Words("it counts the texts, which both share")
)
NOT_COMPARED["consistency_score_expected"] = Words("it is the level of chance, which consistency_score is read against")
NOT_COMPARED["user_votes_spearman"] = Words(
    "ranks change with every draw of cases; user_votes_weighted_kappa is compared instead"
)


def comparable_numbers(
    declared: Iterable[Metric], a: pa.Table, b: pa.Table, *, failures_are_losses: bool = True
) -> tuple[dict[str, SampleStatistic], dict[str, str]]:
    """Return the comparable numbers of the metrics, and why other metrics cannot be compared.

    A mean leaves out a case at which the system failed; a decision about a release must not. If the system failed at
    more or fewer cases than before, beyond chance, each failure counts as the worst value of the metric. If failures
    are as frequent as before, counting them would only hide other changes.

    Args:
        declared: the metrics.
        a, b: the cases of both sides.
        failures_are_losses: whether failures may count as the worst value; the cases must be equal, in equal order.

    Returns:
        Numbers by metric, and reasons by metric.
    """
    losses = find_losses(a, b) if failures_are_losses else None
    numbers: dict[str, SampleStatistic] = {}
    reasons: dict[str, str] = {}
    for metric in declared:
        if metric.name in NOT_COMPARED:
            reasons[metric.name] = NOT_COMPARED[metric.name]
        elif missing := [side for side, cases in (("a", a), ("b", b)) if not _has_columns(metric, cases)]:
            reasons[metric.name] = (
                Words("it was not measured in {side}", side=missing[0]) if len(missing) == 1 else NOWHERE
            )
        else:
            numbers[metric.name] = metric_number(metric, a, b, losses)
    return numbers, reasons


def count_failures(headlines: Sequence[Metric], a: pa.Table, b: pa.Table) -> FailedCases | None:
    """Count the common cases at which the system failed, and take means without them; None if it never failed.

    Args:
        headlines: the metrics whose means are returned.
        a, b: the same cases, in the same order.
    """
    failed = find_failed(a, b)
    if failed is None or not any(side.any() for side in failed):
        return None
    answered: dict[str, AnsweredMeans] = {}
    for metric in headlines:
        if metric.aggregate != "mean":
            continue
        sides = np.stack([float_column(side, metric.column) for side in (a, b)])
        measured = sides[:, ~np.isnan(sides).any(axis=0)]
        if measured.size:
            answered[metric.name] = {"a": float(measured[0].mean()), "b": float(measured[1].mean())}
    before, after = (int(side.sum()) for side in failed)
    return {"a": before, "b": after, "are_losses": are_losses(failed), "answered": answered}


def find_failed(a: pa.Table, b: pa.Table) -> Flags | None:
    """Return the cases at which the system failed, as flags per side; None if a side does not record this."""
    if not all("status" in side.column_names for side in (a, b)):
        return None
    return find_failures(a) == 1, find_failures(b) == 1


def find_losses(a: pa.Table, b: pa.Table) -> Flags | None:
    """Return the cases at which the system failed, as flags per side, if failures count as losses; else None."""
    failed = find_failed(a, b)
    return failed if failed is not None and are_losses(failed) else None


def are_losses(failed: Flags) -> bool:
    """Return whether one side failed at more of the cases than the other, beyond chance."""
    before, after = failed
    return mcnemar_exact(int((before & ~after).sum()), int((after & ~before).sum())) < FAILURE_ALPHA


def count_failures_as_losses(metric: Metric, sides: Sides, failed: Flags) -> Sides:
    """Replace missing values by the worst value in cases that one side failed at and the other measured.

    A metric without a worst value (a latency, a cost) or without a direction is not changed.
    """
    unrelated = max(metric.low, 0.0)  # similarities can be below 0, but hardly ever are
    worst = {"higher": unrelated, "lower": metric.high, "neither": np.inf}[metric.better]
    if not np.isfinite(worst):
        return sides
    measured = [~np.isnan(side) for side in sides]
    return (
        np.where(failed[0] & measured[1], worst, sides[0]),
        np.where(failed[1] & measured[0], worst, sides[1]),
    )


def metric_number(metric: Metric, a: pa.Table, b: pa.Table, failed: Flags | None) -> SampleStatistic:
    """Return what each case adds to a metric; with `failed`, failures count as losses."""
    if metric.column is not None:
        sides, margin = (float_column(a, metric.column), float_column(b, metric.column)), None
        if failed is not None and metric.aggregate == "mean":
            answered = np.stack(sides)[:, ~np.isnan(sides).any(axis=0)]
            margin = default_margin(answered, yes_no=is_binary(answered))  # no wider for the failures
            sides = count_failures_as_losses(metric, sides, failed)
        quantile = QUANTILES.get(metric.aggregate)
        return SampleStatistic(a=sides[0], b=sides[1], quantile=quantile, better=metric.better, margin=margin)
    formula = SET_METRICS[metric.name]
    margin = 0.05 if metric.unit in POINT_UNITS else None
    return SampleStatistic(
        a=formula.parts(a), b=formula.parts(b), statistic=formula.statistic, better=metric.better, margin=margin
    )


def case_values(metric: Metric, cases: pa.Table) -> Floats | str:
    """Return the values of the cases if the metric is a mean over cases, else the reason why there are none."""
    if metric.name in NOT_COMPARED:
        return NOT_COMPARED[metric.name]
    parts = metric_parts(metric, cases)
    if metric.aggregate not in ("mean", "whole") or parts.ndim > 1:
        return "it is no mean over questions"
    return parts


def required_columns(metric: Metric) -> tuple[str, ...]:
    """Return the columns that a metric is compared by; none if it is not compared."""
    return () if metric.name in NOT_COMPARED else metric_columns(metric)


def _has_columns(metric: Metric, cases: pa.Table) -> bool:
    return set(required_columns(metric)) <= set(cases.column_names)
