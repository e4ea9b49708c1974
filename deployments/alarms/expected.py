"""What to expect of alarms here: how often without a cause, and how soon with one; `yarus alerts budget`."""

from collections.abc import Iterator

from sqlalchemy import Engine, select
from sqlalchemy.engine import RowMapping
from typing_extensions import TypedDict

from yarus.db import journal
from yarus.db.errors import InputError, unknown
from yarus.db.journal import LIVE
from yarus.db.tables import evaluation
from yarus.deployments.alarms.budget import looks_for_one
from yarus.deployments.alarms.levels import levels_of
from yarus.deployments.alarms.nights import nights_since
from yarus.metrics.statistics.alarms.expectation import Nights, false_alarms, nights_to_notice
from yarus.metrics.table import metric
from yarus.tasks.config.settings import settings
from yarus.tasks.config.tiers import TIERS


class ExpectedOfMetric(TypedDict):
    """Of a tier's first headline metric."""

    tier: str
    metric: str
    evaluation_id: str
    """The newest, whose cases are counted."""
    cases: int
    nights: int
    """Since the accepted one, from which the noise is told."""
    least_change: float
    """The smallest loss that raises an alarm, in the metric's unit."""
    night_by_itself: float | None
    """Standard deviation of what a night does by itself; null where there was only one night."""
    false_alarms_a_year: float | None
    """In ten drawn years of such nights."""
    nights_to_notice_5_points: float | None
    """The median; null where it is more than 60 nights, or where there was only one night."""
    nights_to_notice_2_points: float | None
    nights_to_notice_a_fifth_of_a_point_a_night: float | None


class AlarmBudget(TypedDict):
    """What alarms may cost, and what they find for it."""

    source: str
    false_alarms_a_year: float
    """The budget of all tiers together."""
    looks_a_year: float
    tiers: list[ExpectedOfMetric]
    unwatched: list[str]
    """The newest evaluations of the tiers whose level is not watched: nothing is accepted, or nothing was measured."""


def alarm_budget(engine: Engine, source: str | None) -> AlarmBudget:
    """What to expect of alarms over a source, from its newest evaluation of every tier.

    Args:
        engine: of our own database.
        source: None for that of the newest evaluation.

    Raises:
        InputError: no such source, or nothing has been evaluated.
    """
    of, sources = evaluation.c, select(evaluation.c.source)
    with engine.connect() as connection:
        name = source or connection.scalar(sources.where(LIVE).order_by(of.started_at.desc()).limit(1))
        if name is None:
            raise InputError("nothing has been evaluated: there is no noise to go by; run yarus run nightly first")
        known = connection.scalar(sources.where(of.source == name).limit(1))
        if known is None:
            raise unknown("evaluated source", name, connection.scalars(sources.distinct()))
    newest = list(_newest(engine, name))
    looks = looks_for_one(engine, max(newest, key=lambda row: row["started_at"])) if newest else 0.0
    expected = {row["id"]: _expected(engine, row, looks) for row in newest}
    budget = settings().false_alarms_a_year
    return {
        "source": name,
        "false_alarms_a_year": budget,
        "looks_a_year": looks * budget,
        "tiers": [one for one in expected.values() if one],
        "unwatched": [name for name, one in expected.items() if one is None],
    }


def _newest(engine: Engine, source: str) -> Iterator[RowMapping]:
    """The newest completed evaluation of each tier."""
    of = evaluation.c
    for tier in TIERS:
        mine = select(of.id).where(of.tier == tier, of.source == source, of.state == "completed", LIVE)
        with engine.connect() as connection:
            name = connection.scalar(mine.order_by(of.started_at.desc()).limit(1))
        if name:
            yield journal.find(engine, name)


def _expected(engine: Engine, row: RowMapping, looks: float) -> ExpectedOfMetric | None:
    baseline = row["id"] if row["accepted_at"] else journal.baseline(engine, row["id"])
    levels = levels_of(engine, row)
    watched = nights_since(engine, row, baseline, list(levels)) if baseline else []
    name = next((name for name in levels if watched and name in watched[-1].nights), None)
    if name is None:
        return None
    level, nights = levels[name], [night.nights[name] for night in watched if name in night.nights]
    for night in nights:
        level.add(night)
    like = Nights(level.noise, nights[-1], level.least, looks)
    told = len(nights) > 1
    point = metric(name).high / 100
    return {
        "tier": row["tier"],
        "metric": name,
        "evaluation_id": row["id"],
        "cases": nights[-1].total,
        "nights": len(nights),
        "least_change": level.least,
        "night_by_itself": like.spread**0.5 if told else None,
        "false_alarms_a_year": false_alarms(like) if told else None,
        "nights_to_notice_5_points": nights_to_notice(like, 5 * point) if told else None,
        "nights_to_notice_2_points": nights_to_notice(like, 2 * point) if told else None,
        "nights_to_notice_a_fifth_of_a_point_a_night": nights_to_notice(like, a_night=point / 5) if told else None,
    }
