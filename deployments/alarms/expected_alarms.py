"""Estimate what to expect of alarms: how often without a cause, and how soon with one; `yarus alerts budget`."""

from collections.abc import Iterator

from sqlalchemy import Engine, select
from sqlalchemy.engine import RowMapping
from typing_extensions import TypedDict

from yarus.db import journal
from yarus.db.errors import InputError, unknown
from yarus.db.journal import IS_LIVE
from yarus.db.tables import evaluation
from yarus.deployments.alarms.budget import looks_per_false_alarm
from yarus.deployments.alarms.levels import create_detectors
from yarus.deployments.alarms.nights import read_nights_since
from yarus.metrics.statistics.change_detection.expectation import NightlyNoise, detection_delay, expected_false_alarms
from yarus.metrics.table import get_metric
from yarus.tasks.config.settings import get_settings
from yarus.tasks.config.tiers import TIERS


class ExpectedOfMetric(TypedDict):
    """Expected alarms of a tier, by its first headline metric."""

    tier: str
    metric: str
    evaluation_id: str
    """The newest evaluation, whose cases are counted."""
    cases: int
    nights: int
    """Nights since the accepted evaluation, from which the noise is estimated."""
    min_change: float
    """Smallest loss that raises an alarm, in the metric's unit."""
    night_noise_sd: float | None
    """Standard deviation of the noise of one night; null with a single night."""
    false_alarms_per_year: float | None
    """Mean over ten simulated years of such nights."""
    detection_delay_5_points: float | None
    """Nights until a sudden loss of 5 points raises an alarm: median over simulations; null above 60 nights, or with a
    single night."""
    detection_delay_2_points: float | None
    """The same for a loss of 2 points."""
    detection_delay_drift: float | None
    """The same for a gradual loss of 0.2 points per night."""


class AlarmBudget(TypedDict):
    """Budget of false alarms, and the losses that alarms detect with it."""

    source: str
    false_alarms_per_year: float
    """Budget of all tiers together."""
    checks_per_year: float
    """Evaluations that alarms check in a year: as many as in the last four weeks, at least one per night and series."""
    tiers: list[ExpectedOfMetric]
    unmonitored_evaluations: list[str]
    """Newest evaluations of tiers without an accepted level, or without measured values."""


def alarm_budget(engine: Engine, source: str | None) -> AlarmBudget:
    """Return the expected alarms of a source, from its newest evaluation of every tier.

    Args:
        engine: the engine of Yarus's database.
        source: the source; None for that of the newest evaluation.

    Raises:
        InputError: the source does not exist, or nothing has been evaluated.
    """
    columns, sources = evaluation.c, select(evaluation.c.source)
    with engine.connect() as connection:
        name = source or connection.scalar(sources.where(IS_LIVE).order_by(columns.started_at.desc()).limit(1))
        if name is None:
            raise InputError("nothing has been evaluated: there is no noise to go by; run yarus run nightly first")
        evaluated = connection.scalar(sources.where(columns.source == name).limit(1))
        if evaluated is None:
            raise unknown("evaluated source", name, connection.scalars(sources.distinct()))
    newest = list(_newest_evaluations(engine, name))
    looks = looks_per_false_alarm(engine, max(newest, key=lambda row: row["started_at"])) if newest else 0.0
    expected = {row["id"]: _expect_of_tier(engine, row, looks) for row in newest}
    budget = get_settings().max_false_alarms_per_year
    return {
        "source": name,
        "false_alarms_per_year": budget,
        "checks_per_year": looks * budget,
        "tiers": [expectation for expectation in expected.values() if expectation],
        "unmonitored_evaluations": [name for name, expectation in expected.items() if expectation is None],
    }


def _newest_evaluations(engine: Engine, source: str) -> Iterator[RowMapping]:
    """Yield the newest completed evaluation of each tier."""
    columns = evaluation.c
    for tier in TIERS:
        tier_evaluations = select(columns.id).where(
            columns.tier == tier, columns.source == source, columns.state == "completed", IS_LIVE
        )
        with engine.connect() as connection:
            name = connection.scalar(tier_evaluations.order_by(columns.started_at.desc()).limit(1))
        if name:
            yield journal.find_evaluation(engine, name)


def _expect_of_tier(engine: Engine, row: RowMapping, looks: float) -> ExpectedOfMetric | None:
    baseline = row["id"] if row["accepted_at"] else journal.find_baseline(engine, row["id"])
    levels = create_detectors(engine, row)
    watched = read_nights_since(engine, row, baseline, list(levels)) if baseline else []
    name = next((name for name in levels if watched and name in watched[-1].nights), None)
    if name is None:
        return None
    level, nights = levels[name], [night.nights[name] for night in watched if name in night.nights]
    for night in nights:
        level.add(night)
    model = NightlyNoise(level.noise, nights[-1], level.least, looks)
    has_noise = len(nights) > 1
    point = get_metric(name).high / 100
    return {
        "tier": row["tier"],
        "metric": name,
        "evaluation_id": row["id"],
        "cases": nights[-1].total,
        "nights": len(nights),
        "min_change": level.least,
        "night_noise_sd": model.spread**0.5 if has_noise else None,
        "false_alarms_per_year": expected_false_alarms(model) if has_noise else None,
        "detection_delay_5_points": detection_delay(model, 5 * point) if has_noise else None,
        "detection_delay_2_points": detection_delay(model, 2 * point) if has_noise else None,
        "detection_delay_drift": detection_delay(model, a_night=point / 5) if has_noise else None,
    }
