"""The noise floor: how far a metric moves when nothing has changed, from evaluations that were simply repeated."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from sqlalchemy import Engine, select

from yarus.db.errors import ResultsUnavailable
from yarus.db.tables import config_at, evaluation
from yarus.metrics.metric import Metric
from yarus.metrics.statistics.groups import group_codes, group_totals
from yarus.metrics.statistics.intervals import normal_quantile
from yarus.metrics.table import metrics_of
from yarus.tasks.cases.table import floats, values_of
from yarus.tasks.comparison.common_cases import common
from yarus.tasks.evaluation import result_files

NEWEST = 10
"""A/A pairs that are read, so that a long history does not slow down the reader."""


class Noise(NamedTuple):
    """What the A/A pairs of a comparability key say of one metric."""

    band: float
    """The difference of two evaluations of the same system stays below this 19 times in 20; in the metric's unit."""
    pairs: int
    n: int
    """Cases measured twice, of all pairs."""


def noise(engine: Engine, comparability_key: str) -> dict[str, float]:
    """The noise floor of every per-case metric: a difference within this band is what repeating alone makes.

    Args:
        engine: of our own database.
        comparability_key: of the evaluations whose difference is to be judged.

    Returns:
        Metric -> half the width of its band, at least 0, in the metric's unit; empty without an A/A pair.
    """
    return {name: found.band for name, found in floors(engine, comparability_key).items()}


def floors(engine: Engine, comparability_key: str) -> dict[str, Noise]:
    """The noise floors, and what they rest on; see `noise`.

    A mean's difference in an A/A pair has expectation 0, so that its variance is the mean of its square: over cases,
    sum of squared differences / n ** 2; where cases come in groups, of the groups' sums. The band is 1.96 of its roots,
    averaged over the pairs.
    """
    squares: dict[str, list[tuple[float, int]]] = {}
    for tier, first, second in _pairs(engine, comparability_key):
        for metric in metrics_of(tier):
            measured = _square(metric, first, second)
            if measured is not None:
                squares.setdefault(metric.name, []).append(measured)
    reach = normal_quantile(0.95)
    return {
        name: Noise(
            reach * float(np.sqrt(np.mean([square for square, _ in found]))), len(found), sum(n for _, n in found)
        )
        for name, found in squares.items()
    }


def _pairs(engine: Engine, comparability_key: str) -> Iterator[tuple[str, pa.Table, pa.Table]]:
    """Tier, and the common cases of the first and the repeated evaluation, newest pairs first."""
    first = evaluation.alias()
    found = (
        select(evaluation.c.tier, first.c.parquet, evaluation.c.parquet)
        .join(first, first.c.id == config_at("again").astext)
        .where(config_at("again").astext.is_not(None))  # few among many, and so says an index
        .where(evaluation.c.comparability_key == comparability_key, first.c.comparability_key == comparability_key)
        .where(*(side.c.state == "completed" for side in (evaluation, first)))
        .where(*(side.c.parquet.is_not(None) for side in (evaluation, first)))
        .order_by(evaluation.c.started_at.desc())
        .limit(NEWEST)
    )
    with engine.connect() as connection:
        rows = connection.execute(found).all()
    for tier, *paths in rows:
        try:
            one, other = (_read(path, tier) for path in paths)
        except ResultsUnavailable:  # pruned or broken: the other pairs still tell
            continue
        yield tier, *common(one, other)


def _read(path: str, tier: str) -> pa.Table:
    """What is measured of the cases, without their texts."""
    return result_files.read(
        path, ["case_id", "group", *(metric.column for metric in metrics_of(tier) if metric.column)]
    )


def _square(metric: Metric, first: pa.Table, second: pa.Table) -> tuple[float, int] | None:
    """The estimated variance of the difference of the means, and the cases that were measured twice."""
    if metric.aggregate != "mean":
        return None
    one, other = (floats(side, metric.column) for side in (first, second))
    kept = ~(np.isnan(one) | np.isnan(other))
    n = int(kept.sum())
    if not n:
        return None
    codes = group_codes(values_of(first, "group"), len(first))[kept]
    sums = group_totals((other - one)[kept][:, None], codes)
    return float((sums**2).sum()) / n**2, n
