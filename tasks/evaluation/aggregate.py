"""Columns of cases to metrics with intervals, and the coverage."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from yarus.db.tables import MetricRow
from yarus.db.words import Words
from yarus.metrics.metric import QUANTILES, RUBRIC, Metric
from yarus.metrics.statistics import Interval, mean_interval, quantile_interval
from yarus.metrics.statistics.groups import Floats
from yarus.metrics.statistics.intervals import NO_INTERVAL
from yarus.metrics.table import grades, metric, metrics_of
from yarus.metrics.table.exam import exam_metrics
from yarus.tasks.cases.outcomes import unmeasurable
from yarus.tasks.cases.table import floats, values_of
from yarus.tasks.cases.vocabulary import CANNOT_BE_MEASURED, MEASURED, STRATA, TURNS
from yarus.tasks.evaluation.config import EvaluationConfig, MetricOptions
from yarus.tasks.evaluation.numbers import finite
from yarus.tasks.evaluation.set_metrics import Whole, measure_set
from yarus.tasks.evaluation.standings import Standing


class Value(NamedTuple):
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

    def row(self, stratum: str = "", standing: Standing | None = None) -> MetricRow:
        """As it is stored in `evaluation_metric`; without a grade where a judge says it that has passed no exam."""
        declared = self.metric
        trusted = standing in (None, "passed")
        found = grades(declared.name, self.value, self.ci_low, self.ci_high, self.n_scored) if trusted else None
        return {
            "metric": declared.name,
            "stratum": stratum,
            "value": self.value,
            "reason": self.reason,
            "ci_low": self.ci_low,
            "ci_high": self.ci_high,
            "n_scored": self.n_scored,
            "n_total": self.n_total,
            "grade": found.low if found else None,
            "direction": declared.better,
            "signature": self.signature,
        }


def measured_by(tier: str, config: EvaluationConfig) -> tuple[Metric, ...]:
    """Return the metrics of an evaluation: those of its tier that it was asked for, and the user's own of its judge."""
    asked = (config.judge or {}).get("prompts", ())
    examined = (config.exam_of or {}).get("judge", {}).get("prompts", ())
    return (
        *(row for row in metrics_of(tier) if _asked_for(row.asked, config)),
        *(metric(f"avg_{name}") for name in asked if name.startswith(RUBRIC)),
        *(row for name in examined if name.startswith(RUBRIC) for row in exam_metrics(name)),
    )


def _asked_for(asked: str, config: EvaluationConfig) -> bool:
    """Whether an evaluation was asked for what a metric needs; what was chosen stands before the first `|`."""
    name, _, some = asked.partition("=")
    value = getattr(config, name) if name else None
    if not some:
        return not name or value is not None
    return str(value).partition("|")[0] in some.split(",")


def summarise(
    declared: Sequence[Metric], cases: pa.Table, *, seed: int, options: MetricOptions, whole: Mapping[str, Whole]
) -> list[Value]:
    """Every metric over the cases, with its 95 % interval.

    Args:
        declared: the metrics.
        cases: with a column for every per-case metric.
        seed: of the bootstrap.
        options: of the evaluation, for the metrics' signatures: gain, depth.
        whole: metrics of the set that a step has computed, and why there is no value where a step knows that.

    Returns:
        One value a metric, in the same order.
    """
    computed = measure_set((row.name for row in declared), cases, seed) | dict(whole)
    return [_value(row, cases, seed, options, computed) for row in declared]


def strata(cases: pa.Table) -> dict[str, pa.Table]:
    """The cases by stratum, and all of them; one nameless stratum where the tier has none.

    Of answers in dialogs all are the nameless one, beside what opens a dialog and what follows, and where dialogs have
    more than two turns, each turn. (Of tier `ux` the dialogs themselves are measured.)
    """
    if "stratum" in cases.column_names:
        return {"all": cases} | {name: within(cases, name) for name in STRATA}
    if not {"turn", "answer"} <= {*cases.column_names}:
        return {"": cases}
    longest = np.nanmax(floats(cases, "turn"), initial=1)
    return {"": cases} | {name: within(cases, name) for name in list(TURNS)[: None if longest > 2 else 2]}


def within(cases: pa.Table, stratum: str) -> pa.Table:
    """The cases of a stratum, by its name; of cases without what users said, all are what any of that is."""
    if stratum in TURNS:
        first, last = TURNS[stratum]
        turns = np.nan_to_num(floats(cases, "turn"), nan=1)
        return cases.filter(pa.array((first <= turns) & (turns <= last)))
    if stratum in STRATA and "stratum" in cases.column_names:
        return cases.filter(pc.equal(cases["stratum"], stratum))
    return cases


def coverage(cases: pa.Table) -> float | None:
    """Measured cases / cases that could be measured; None if none could.

    One that has no label could not be measured, whether the system failed at it or not.
    """
    could = [
        status for status, lacks in zip(values_of(cases, "status"), unmeasurable(cases), strict=True) if lacks is None
    ]
    return sum(status in MEASURED for status in could) / len(could) if could else None


def _value(metric: Metric, cases: pa.Table, seed: int, options: MetricOptions, whole: Mapping[str, Whole]) -> Value:
    n_missing = 0
    if metric.aggregate == "whole":
        value, interval, n_scored, n_total, _ = whole[metric.name]
    else:
        values = floats(cases, metric.column)
        groups = values_of(cases, "group")
        value, interval = _aggregate(metric, values, seed, groups)
        n_scored, n_total = int(np.count_nonzero(~np.isnan(values))), None
        if metric.aggregate == "mean":
            n_missing = int(np.count_nonzero(np.isnan(values) & _could_have(metric, cases)))
    measured, known = not math.isnan(value), whole.get(metric.name)
    return Value(
        metric=metric,
        value=value if measured else None,
        reason=None if measured else (known.reason if known else None) or _why_not(cases, metric),
        ci_low=finite(interval.low),
        ci_high=finite(interval.high),  # None too where it is open
        n_scored=n_scored,
        n_total=len(cases) if n_total is None else n_total,
        n_missing=n_missing,
        signature=metric.signature_with(**options),
    )


def _could_have(metric: Metric, cases: pa.Table) -> NDArray[np.bool_]:
    """The cases that failed, and have what a value of the metric needs: they would have had one otherwise."""
    names = ["status", *((metric.needs,) if metric.needs in cases.column_names else ())]
    rows = zip(unmeasurable(cases), *(values_of(cases, name) for name in names), strict=True)
    beside = (*MEASURED, *CANNOT_BE_MEASURED)
    return np.array([lacks is None and status not in beside and all(label) for lacks, status, *label in rows], bool)


def _aggregate(metric: Metric, values: Floats, seed: int, groups: list[str | None]) -> tuple[float, Interval]:
    measured = values[~np.isnan(values)]
    if not measured.size:
        return math.nan, NO_INTERVAL
    if metric.aggregate != "mean":
        quantile = QUANTILES[metric.aggregate]
        return float(np.quantile(measured, quantile)), quantile_interval(values, quantile, groups=groups)
    interval = mean_interval(values, seed=seed, low=metric.low, high=metric.high, groups=groups)
    return math.fsum(measured) / len(measured), interval


OF_JUDGE = ("judge_error", "parse_error")


def _why_not(cases: pa.Table, metric: Metric) -> str:
    """Why nothing was measured: what all cases are, or where some are fine, when the metric has no value."""
    counts = Counter(values_of(cases, "status"))
    if not counts:
        return Words("no case")
    if not metric.opinion:  # what a judge failed at does not stand in its way
        counts = Counter(status for status in counts.elements() if status not in OF_JUDGE)
    if not counts or any(status in counts for status in MEASURED):
        return Words("undefined: {why}", why=metric.undefined)
    status, count = counts.most_common(1)[0]
    return Words("{n} of {total} cases are {status}", n=count, total=len(cases), status=status)


def statuses(cases: pa.Table) -> dict[str, int]:
    """How many cases have each status."""
    return dict(Counter(values_of(cases, "status")).most_common())
