"""The numbers of two evaluations as a comparison needs them: what each case adds to each metric."""

from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from db.words import Words
from metrics.metric import QUANTILES, Metric
from metrics.statistics.differences.numbers import Number
from metrics.statistics.groups import Floats
from tasks.cases.table import floats
from tasks.results.set_metrics import SET_METRICS, find_failures

Sides: TypeAlias = tuple[Floats, Floats]
Failures: TypeAlias = tuple[NDArray[np.bool_], NDArray[np.bool_]]
POINTS = ("share", "correlation", "kappa")
"""Units of which five points are taken as a difference that may matter."""
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


def numbers(
    declared: Iterable[Metric], a: pa.Table, b: pa.Table, *, paired: bool = True
) -> tuple[dict[str, Number], dict[str, str]]:
    """What can be compared of the metrics, and why the others cannot.

    A mean leaves out a case at which the system failed; a decision about a release must not: of two measurements of one
    case, a failure counts as the worst value that the metric can have.

    Args:
        declared: the metrics.
        a, b: the cases of both sides.
        paired: they are the same cases in the same order.

    Returns:
        Numbers by metric, and reasons by metric.
    """
    failures = tuple(find_failures(side) == 1 for side in (a, b)) if paired and _have_statuses(a, b) else None
    found: dict[str, Number] = {}
    reasons: dict[str, str] = {}
    for metric in declared:
        if metric.name in NOT_COMPARED:
            reasons[metric.name] = NOT_COMPARED[metric.name]
        elif missing := [side for side, cases in (("a", a), ("b", b)) if not _there(metric, cases)]:
            reasons[metric.name] = (
                Words("it was not measured in {side}", side=missing[0]) if len(missing) == 1 else NOWHERE
            )
        else:
            found[metric.name] = _number(metric, a, b, failures)
    return found, reasons


def _have_statuses(*sides: pa.Table) -> bool:
    return all({"status"} <= set(side.column_names) for side in sides)


def count_failures_as_losses(metric: Metric, sides: Sides, failures: Failures) -> Sides:
    """Replace the missing value of a case that one side failed at, and the other measured, by the worst one.

    A metric without a worst value (a latency, a cost), or without a direction, is left as it is.
    """
    worst = {"higher": metric.low, "lower": metric.high, "neither": np.inf}[metric.better]
    if not np.isfinite(worst):
        return sides
    measured = [~np.isnan(side) for side in sides]
    return (
        np.where(failures[0] & measured[1], worst, sides[0]),
        np.where(failures[1] & measured[0], worst, sides[1]),
    )


def _number(metric: Metric, a: pa.Table, b: pa.Table, failures: Failures | None) -> Number:
    if metric.column is not None:
        sides = floats(a, metric.column), floats(b, metric.column)
        if failures is not None and metric.aggregate == "mean":
            sides = count_failures_as_losses(metric, sides, failures)
        quantile = QUANTILES.get(metric.aggregate)
        return Number(a=sides[0], b=sides[1], quantile=quantile, better=metric.better)
    made = SET_METRICS[metric.name]
    margin = 0.05 if metric.unit in POINTS else None
    return Number(a=made.parts(a), b=made.parts(b), statistic=made.statistic, better=metric.better, margin=margin)


def needs(metric: Metric) -> tuple[str, ...]:
    """The columns that a metric is compared by; none for what is not compared."""
    if metric.name in NOT_COMPARED:
        return ()
    return (metric.column,) if metric.column is not None else SET_METRICS[metric.name].needs


def _there(metric: Metric, cases: pa.Table) -> bool:
    return set(needs(metric)) <= set(cases.column_names)
