"""Compute the budget of alarms: the number of looks per year, and the smallest change that is reported."""

from datetime import timedelta

from sqlalchemy import Engine, func, select
from sqlalchemy.engine import RowMapping

from yarus.db.tables import config_value, evaluation, nightly_verdict
from yarus.metrics.metric import Metric
from yarus.tasks.config.settings import get_settings

DAYS_PER_YEAR = 365
RECENT_DAYS = 28
"""Days over which the looks are counted."""
LEAST_SHARE = 0.005
"""Smallest loss that raises an alarm by default, as a share of a metric's range."""


def least_change(metric: Metric) -> float:
    """Return the smallest loss of a headline metric that raises an alarm, in its unit."""
    return get_settings().min_change.get(metric.name, LEAST_SHARE * metric.high)


def looks_per_false_alarm(engine: Engine, row: RowMapping) -> float:
    """Return the number of looks in which one false alarm is within the budget: looks over alarms per year.

    Every evaluation that nights have judged in the last four weeks counts as a look, of all tiers. The year counts at
    least one per night for each tier and source.

    Args:
        engine: the engine of Yarus's database.
        row: the row of the evaluation that is judged now.
    """
    columns = evaluation.c
    recent = columns.started_at.between(
        row["started_at"] - timedelta(days=RECENT_DAYS), row["started_at"] + timedelta(days=1)
    )
    series = func.concat_ws("/", columns.tier, columns.source, config_value("anchor").astext)
    judged = select(func.count(), func.count(series.distinct())).select_from(evaluation.join(nightly_verdict))
    statement = judged.where(recent, columns.id != row["id"])
    with engine.connect() as connection:
        looks, n_series = connection.execute(statement).one()
    looks_per_year = max((looks + 1) * DAYS_PER_YEAR / RECENT_DAYS, max(1, n_series) * DAYS_PER_YEAR)
    return float(looks_per_year / get_settings().max_false_alarms_per_year)
