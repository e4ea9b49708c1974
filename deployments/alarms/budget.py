"""What alarms may cost: how often somebody looks in a year, and the smallest change that anybody is told of."""

from datetime import timedelta

from sqlalchemy import Engine, func, select
from sqlalchemy.engine import RowMapping

from yarus.db.tables import config_at, evaluation, nightly_verdict
from yarus.metrics.metric import Metric
from yarus.tasks.config.settings import settings

YEAR = 365
RECENT = 28
"""Days of which the looks are counted."""
LEAST = 0.005
"""Of a metric's range: the smallest loss that raises an alarm, where nothing else is set."""


def least_change(metric: Metric) -> float:
    """The smallest loss of a metric that raises an alarm, in its unit; of a headline metric, which has a range."""
    return settings().least_change.get(metric.name, LEAST * metric.high)


def looks_for_one(engine: Engine, row: RowMapping) -> float:
    """Looks in which one false alarm is within the budget: looks a year, of all tiers, over alarms a year.

    Every evaluation that nights have judged in the last four weeks was a look; the year counts at least one a night of
    each tier and source.

    Args:
        engine: of our own database.
        row: of the evaluation that is judged now.
    """
    of = evaluation.c
    recent = of.started_at.between(row["started_at"] - timedelta(days=RECENT), row["started_at"] + timedelta(days=1))
    place = func.concat_ws("/", of.tier, of.source, config_at("anchor").astext)
    judged = select(func.count(), func.count(place.distinct())).select_from(evaluation.join(nightly_verdict))
    found = judged.where(recent, of.id != row["id"])
    with engine.connect() as connection:
        looks, places = connection.execute(found).one()
    a_year = max((looks + 1) * YEAR / RECENT, max(1, places) * YEAR)
    return float(a_year / settings().false_alarms_a_year)
