"""Aggregate columns of cases into metrics with intervals, and compute the coverage."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from yarus.db.messages import Words
from yarus.db.tables import MetricRow
from yarus.metrics.metric import QUANTILES, RUBRIC_PREFIX, Metric
from yarus.metrics.statistics import Interval, mean_interval, quantile_interval
from yarus.metrics.statistics.groups import Floats
from yarus.metrics.statistics.intervals import NO_INTERVAL
from yarus.metrics.table import get_metric, grades, metrics_for_tier
from yarus.metrics.table.exam import exam_metrics
from yarus.tasks.cases.outcomes import unmeasurable_reasons
from yarus.tasks.cases.table import column_values, float_column
from yarus.tasks.cases.vocabulary import MEASURED_STATUSES, TURN_STRATA, UNMEASURABLE_STATUSES, USER_STRATA
from yarus.tasks.evaluation.config import EvaluationConfig, MetricOptions
from yarus.tasks.evaluation.judge_standing import JudgeStanding
from yarus.tasks.evaluation.number_format import replace_non_finite
from yarus.tasks.evaluation.set_metrics import SetValue, measure_set


class MetricValue(NamedTuple):
    """A metric of a set of cases; `value` is None where it was not measured, and `reason` says why."""

    metric: Metric
    value: float | None
    reason: str | None
    ci_low: float | None
    ci_high: float | None
    n_scored: int
    n_total: int
    n_missing: int
    """Cases that could have had a value and failed."""
    signature: str

    def row(self, stratum: str = "", standing: JudgeStanding | None = None) -> MetricRow:
        """Return the row stored in `evaluation_metric`, without a grade if its judge has not passed an exam."""
        declared = self.metric
        trusted = standing in (None, "passed")
        graded = grades(declared.name, self.value, self.ci_low, self.ci_high, self.n_scored) if trusted else None
        return {
            "metric": declared.name,
            "stratum": stratum,
            "value": self.value,
            "reason": self.reason,
            "ci_low": self.ci_low,
            "ci_high": self.ci_high,
            "n_scored": self.n_scored,
            "n_total": self.n_total,
            "grade": graded.low if graded else None,
            "direction": declared.better,
            "signature": self.signature,
        }


def list_metrics(tier: str, config: EvaluationConfig) -> tuple[Metric, ...]:
    """Return the metrics of an evaluation: the requested ones of its tier, and the user's own rubrics of its judge."""
    judged = (config.judge or {}).get("prompts", ())
    examined = (config.exam_of or {}).get("judge", {}).get("prompts", ())
    return (
        *(metric for metric in metrics_for_tier(tier) if _is_requested(metric.asked, config)),
        *(get_metric(f"avg_{name}") for name in judged if name.startswith(RUBRIC_PREFIX)),
        *(metric for name in examined if name.startswith(RUBRIC_PREFIX) for metric in exam_metrics(name)),
    )


def _is_requested(condition: str, config: EvaluationConfig) -> bool:
    """Return whether an evaluation requested what a metric needs; the choice precedes the first `|`."""
    field, _, choices = condition.partition("=")
    value = getattr(config, field) if field else None
    if not choices:
        return not field or value is not None
    return str(value).partition("|")[0] in choices.split(",")


def aggregate_metrics(
    declared: Sequence[Metric], cases: pa.Table, *, seed: int, options: MetricOptions, whole: Mapping[str, SetValue]
) -> list[MetricValue]:
    """Return every metric over the cases, with its 95 % interval.

    Args:
        declared: the metrics.
        cases: with a column for every per-case metric.
        seed: of the bootstrap.
        options: of the evaluation, for the metrics' signatures: gain, depth.
        whole: metrics of the set that a step has computed, or reasons why they have no value.

    Returns:
        One value per metric, in the same order.
    """
    computed = measure_set((metric.name for metric in declared), cases, seed) | dict(whole)
    return [_metric_value(metric, cases, seed, options, computed) for metric in declared]


def split_by_stratum(cases: pa.Table) -> dict[str, pa.Table]:
    """Return the cases by stratum, and all of them; one nameless stratum if the tier has none.

    For answers in dialogs the nameless stratum is all of them. The others are opening and following turns, and each
    turn if dialogs have more than two. (Tier `ux` measures the dialogs themselves.)
    """
    if "stratum" in cases.column_names:
        return {"all": cases} | {name: select_stratum(cases, name) for name in USER_STRATA}
    if not {"turn", "answer"} <= {*cases.column_names}:
        return {"": cases}
    longest = np.nanmax(float_column(cases, "turn"), initial=1)
    return {"": cases} | {name: select_stratum(cases, name) for name in list(TURN_STRATA)[: None if longest > 2 else 2]}


def select_stratum(cases: pa.Table, stratum: str) -> pa.Table:
    """Return the cases of a stratum; all of them for a stratum of feedback if the cases have no feedback."""
    if stratum in TURN_STRATA:
        first, last = TURN_STRATA[stratum]
        turns = np.nan_to_num(float_column(cases, "turn"), nan=1)
        return cases.filter(pa.array((first <= turns) & (turns <= last)))
    if stratum in USER_STRATA and "stratum" in cases.column_names:
        return cases.filter(pc.equal(cases["stratum"], stratum))
    return cases


def compute_coverage(cases: pa.Table) -> float | None:
    """Return measured cases / cases that could be measured; None if none could.

    A case without a label could not be measured, whether the system failed at it or not.
    """
    measurable = [
        status
        for status, lacks in zip(column_values(cases, "status"), unmeasurable_reasons(cases), strict=True)
        if lacks is None
    ]
    return sum(status in MEASURED_STATUSES for status in measurable) / len(measurable) if measurable else None


def _metric_value(
    metric: Metric, cases: pa.Table, seed: int, options: MetricOptions, computed: Mapping[str, SetValue]
) -> MetricValue:
    n_missing = 0
    if metric.aggregate == "whole":
        value, interval, n_scored, n_total, _ = computed[metric.name]
    else:
        values = float_column(cases, metric.column)
        groups = column_values(cases, "group")
        value, interval = _aggregate(metric, values, seed, groups)
        n_scored, n_total = int(np.count_nonzero(~np.isnan(values))), None
        if metric.aggregate == "mean":
            n_missing = int(np.count_nonzero(np.isnan(values) & _could_have(metric, cases)))
    is_measured, precomputed = not math.isnan(value), computed.get(metric.name)
    return MetricValue(
        metric=metric,
        value=value if is_measured else None,
        reason=None if is_measured else (precomputed.reason if precomputed else None) or _why_not(cases, metric),
        ci_low=replace_non_finite(interval.low),
        ci_high=replace_non_finite(interval.high),  # None too if it is open
        n_scored=n_scored,
        n_total=len(cases) if n_total is None else n_total,
        n_missing=n_missing,
        signature=metric.signature_with(**options),
    )


def _could_have(metric: Metric, cases: pa.Table) -> NDArray[np.bool_]:
    """Return the mask of failed cases that have what a value of the metric needs."""
    names = ["status", *((metric.needs,) if metric.needs in cases.column_names else ())]
    rows = zip(unmeasurable_reasons(cases), *(column_values(cases, name) for name in names), strict=True)
    unaffected = (*MEASURED_STATUSES, *UNMEASURABLE_STATUSES)
    return np.array([lacks is None and status not in unaffected and all(label) for lacks, status, *label in rows], bool)


def _aggregate(metric: Metric, values: Floats, seed: int, groups: list[str | None]) -> tuple[float, Interval]:
    measured = values[~np.isnan(values)]
    if not measured.size:
        return math.nan, NO_INTERVAL
    if metric.aggregate != "mean":
        quantile = QUANTILES[metric.aggregate]
        return float(np.quantile(measured, quantile)), quantile_interval(values, quantile, groups=groups)
    interval = mean_interval(values, seed=seed, low=metric.low, high=metric.high, groups=groups)
    return math.fsum(measured) / len(measured), interval


JUDGE_STATUSES = ("judge_error", "parse_error")


def _why_not(cases: pa.Table, metric: Metric) -> str:
    """Return why a metric has no value: its own reason if any case was measured, else the most frequent status."""
    counts = Counter(column_values(cases, "status"))
    if not counts:
        return Words("no case")
    if not metric.opinion:  # failures of a judge do not affect it
        counts = Counter(status for status in counts.elements() if status not in JUDGE_STATUSES)
    if not counts or any(status in counts for status in MEASURED_STATUSES):
        return Words("undefined: {why}", why=metric.undefined)
    status, count = counts.most_common(1)[0]
    return Words("{n} of {total} cases are {status}", n=count, total=len(cases), status=status)


def count_statuses(cases: pa.Table) -> dict[str, int]:
    """Count the cases of each status."""
    return dict(Counter(column_values(cases, "status")).most_common())
