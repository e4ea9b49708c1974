"""Measure the noise floor: how far a metric moves between repeated evaluations of one system."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from sqlalchemy import Engine, select

from yarus.db.errors import ResultsUnavailable
from yarus.db.tables import config_value, evaluation
from yarus.metrics.metric import Metric
from yarus.metrics.statistics.groups import group_codes, group_totals
from yarus.metrics.statistics.intervals import normal_quantile
from yarus.metrics.table import metrics_for_tier
from yarus.tasks.cases.table import column_values, float_column
from yarus.tasks.comparison.common_cases import match_cases
from yarus.tasks.evaluation import result_files

MAX_PAIRS = 10
"""How many A/A pairs are read, so that a long history does not slow down the reader."""


class MetricNoise(NamedTuple):
    """The noise floor of one metric, from the A/A pairs of a comparability key."""

    band: float
    """The difference of two evaluations of the same system stays below this 19 times in 20; in the metric's unit."""
    pairs: int
    n: int
    """Cases measured twice, of all pairs."""


def noise_bands(engine: Engine, comparability_key: str) -> dict[str, float]:
    """Return the noise floor of every per-case metric: repeating alone makes a difference within this band.

    Args:
        engine: the engine of Yarus's database.
        comparability_key: the key of the evaluations whose difference is judged.

    Returns:
        Metric -> half the width of its band, at least 0, in the metric's unit; empty without an A/A pair.
    """
    return {name: floor.band for name, floor in estimate_noise_floors(engine, comparability_key).items()}


def estimate_noise_floors(engine: Engine, comparability_key: str) -> dict[str, MetricNoise]:
    """Return the noise floors and the pairs that they are estimated from; see `noise_bands`.

    In an A/A pair the expected difference of the means is 0, so the mean of its square estimates its variance. Over
    cases this is the sum of squared differences / n ** 2; if cases come in groups, the groups' sums are squared. The
    band is 1.96 times the root of the variance, averaged over the pairs.
    """
    squares: dict[str, list[tuple[float, int]]] = {}
    for tier, first, second in _read_pairs(engine, comparability_key):
        for metric in metrics_for_tier(tier):
            measured = _estimate_variance(metric, first, second)
            if measured is not None:
                squares.setdefault(metric.name, []).append(measured)
    quantile = normal_quantile(0.95)
    return {
        name: MetricNoise(
            quantile * float(np.sqrt(np.mean([square for square, _ in pairs]))), len(pairs), sum(n for _, n in pairs)
        )
        for name, pairs in squares.items()
    }


def _read_pairs(engine: Engine, comparability_key: str) -> Iterator[tuple[str, pa.Table, pa.Table]]:
    """Yield the tier and the common cases of the first and the repeated evaluation, newest pairs first."""
    first = evaluation.alias()
    statement = (
        select(evaluation.c.tier, first.c.parquet, evaluation.c.parquet)
        .join(first, first.c.id == config_value("again").astext)
        .where(config_value("again").astext.is_not(None))  # few among many; an index finds them
        .where(evaluation.c.comparability_key == comparability_key, first.c.comparability_key == comparability_key)
        .where(*(side.c.state == "completed" for side in (evaluation, first)))
        .where(*(side.c.parquet.is_not(None) for side in (evaluation, first)))
        .order_by(evaluation.c.started_at.desc())
        .limit(MAX_PAIRS)
    )
    with engine.connect() as connection:
        rows = connection.execute(statement).all()
    for tier, *paths in rows:
        try:
            first_cases, repeated_cases = (_read_measured(path, tier) for path in paths)
        except ResultsUnavailable:  # pruned or broken: the other pairs are still of use
            continue
        yield tier, *match_cases(first_cases, repeated_cases)


def _read_measured(path: str, tier: str) -> pa.Table:
    """Read the measured columns of the cases, without their texts."""
    return result_files.read_results(
        path, ["case_id", "group", *(metric.column for metric in metrics_for_tier(tier) if metric.column)]
    )


def _estimate_variance(metric: Metric, first: pa.Table, second: pa.Table) -> tuple[float, int] | None:
    """Return the estimated variance of the difference of the means, and the number of cases measured twice."""
    if metric.aggregate != "mean":
        return None
    first_values, second_values = (float_column(side, metric.column) for side in (first, second))
    is_measured = ~(np.isnan(first_values) | np.isnan(second_values))
    n = int(is_measured.sum())
    if not n:
        return None
    codes = group_codes(column_values(first, "group"), len(first))[is_measured]
    sums = group_totals((second_values - first_values)[is_measured][:, None], codes)
    return float((sums**2).sum()) / n**2, n
