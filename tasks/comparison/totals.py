"""The numbers of two evaluations as a comparison needs them: what each case adds to each metric."""

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from yarus.db.words import Words
from yarus.metrics.metric import QUANTILES, Metric
from yarus.metrics.statistics.differences.means import only_yes_no, usual_margin
from yarus.metrics.statistics.differences.numbers import Number
from yarus.metrics.statistics.groups import Floats
from yarus.metrics.statistics.significance import mcnemar_exact
from yarus.tasks.cases.table import floats
from yarus.tasks.comparison.comparison_schema import AnsweredMeans, FailedCases
from yarus.tasks.evaluation.set_metrics import SET_METRICS, columns_of, find_failures, parts_of

Sides: TypeAlias = tuple[Floats, Floats]
Flags: TypeAlias = tuple[NDArray[np.bool_], NDArray[np.bool_]]
DIFFERS = 0.05
"""The p of two numbers of failures from which on they are not as frequent as before."""
ERRORS = "sut_error_rate"
"""The metric of the system's failures."""
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
    declared: Iterable[Metric], a: pa.Table, b: pa.Table, *, failures_are_losses: bool = True
) -> tuple[dict[str, Number], dict[str, str]]:
    """What can be compared of the metrics, and why the others cannot.

    A mean leaves out a case at which the system failed; a decision about a release must not: if the system failed at
    more cases than before, or at fewer, beyond chance, each failure counts as the worst value that the metric can have.
    Failures that are as frequent as before would only hide other changes.

    Args:
        declared: the metrics.
        a, b: the cases of both sides.
        failures_are_losses: whether that is decided; the cases must be the same, in the same order.

    Returns:
        Numbers by metric, and reasons by metric.
    """
    failed = find_losses(a, b) if failures_are_losses else None
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
            found[metric.name] = number_of(metric, a, b, failed)
    return found, reasons


def count_failures(headlines: Sequence[Metric], a: pa.Table, b: pa.Table) -> FailedCases | None:
    """Count the common cases at which the system failed, and take means without them; None where there are none.

    Args:
        headlines: the metrics whose means are wanted.
        a, b: the same cases, in the same order.
    """
    failed = find_failed(a, b)
    if failed is None or not any(side.any() for side in failed):
        return None
    answered: dict[str, AnsweredMeans] = {}
    for metric in headlines:
        if metric.aggregate != "mean":
            continue
        sides = np.stack([floats(side, metric.column) for side in (a, b)])
        both = sides[:, ~np.isnan(sides).any(axis=0)]
        if both.size:
            answered[metric.name] = {"a": float(both[0].mean()), "b": float(both[1].mean())}
    before, after = (int(side.sum()) for side in failed)
    return {"a": before, "b": after, "are_losses": are_losses(failed), "answered": answered}


def find_failed(a: pa.Table, b: pa.Table) -> Flags | None:
    """Return where the system failed; None where a side does not know."""
    if not all("status" in side.column_names for side in (a, b)):
        return None
    return find_failures(a) == 1, find_failures(b) == 1


def find_losses(a: pa.Table, b: pa.Table) -> Flags | None:
    """Return where the system failed, if that counts as a loss; else None."""
    failed = find_failed(a, b)
    return failed if failed is not None and are_losses(failed) else None


def are_losses(failed: Flags) -> bool:
    """Whether one side failed at more of the cases than the other, beyond chance."""
    before, after = failed
    return mcnemar_exact(int((before & ~after).sum()), int((after & ~before).sum())) < DIFFERS


def count_failures_as_losses(metric: Metric, sides: Sides, failed: Flags) -> Sides:
    """Replace the missing value of a case that one side failed at, and the other measured, by the worst one.

    A metric without a worst value (a latency, a cost), or without a direction, is left as it is.
    """
    unrelated = max(metric.low, 0.0)  # of a similarity, which can be below 0 but hardly is
    worst = {"higher": unrelated, "lower": metric.high, "neither": np.inf}[metric.better]
    if not np.isfinite(worst):
        return sides
    measured = [~np.isnan(side) for side in sides]
    return (
        np.where(failed[0] & measured[1], worst, sides[0]),
        np.where(failed[1] & measured[0], worst, sides[1]),
    )


def number_of(metric: Metric, a: pa.Table, b: pa.Table, failed: Flags | None) -> Number:
    """Return what each case adds to a metric; where `failed`, as a loss."""
    if metric.column is not None:
        sides, margin = (floats(a, metric.column), floats(b, metric.column)), None
        if failed is not None and metric.aggregate == "mean":
            answered = np.stack(sides)[:, ~np.isnan(sides).any(axis=0)]
            margin = usual_margin(answered, yes_no=only_yes_no(answered))  # no wider for the failures
            sides = count_failures_as_losses(metric, sides, failed)
        quantile = QUANTILES.get(metric.aggregate)
        return Number(a=sides[0], b=sides[1], quantile=quantile, better=metric.better, margin=margin)
    made = SET_METRICS[metric.name]
    margin = 0.05 if metric.unit in POINTS else None
    return Number(a=made.parts(a), b=made.parts(b), statistic=made.statistic, better=metric.better, margin=margin)


def case_values(metric: Metric, cases: pa.Table) -> Floats | str:
    """Return what each case has of a metric that is a mean over cases, else why there is no such thing."""
    if metric.name in NOT_COMPARED:
        return NOT_COMPARED[metric.name]
    parts = parts_of(metric, cases)
    if metric.aggregate not in ("mean", "whole") or parts.ndim > 1:
        return "it is no mean over questions"
    return parts


def needs(metric: Metric) -> tuple[str, ...]:
    """The columns that a metric is compared by; none for what is not compared."""
    return () if metric.name in NOT_COMPARED else columns_of(metric)


def _there(metric: Metric, cases: pa.Table) -> bool:
    return set(needs(metric)) <= set(cases.column_names)
