"""Choose the tiers of a nightly run: those that its source can measure."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlalchemy import Engine, exists, select

from yarus.db.errors import DatabaseUnavailable, InputError
from yarus.db.messages import Words
from yarus.db.sources import open_snapshot, refresh_source
from yarus.db.tables import evaluation, nightly_verdict
from yarus.deployments.upkeep.readiness import TIER_ORDER, TierReadiness, count_tiers, read_source_content
from yarus.tasks.cases.frozen_sets import read_frozen_questions
from yarus.tasks.config.connections import database, open_source
from yarus.tasks.config.flow_parameters import NightlyParameters
from yarus.tasks.config.settings import get_settings
from yarus.tasks.config.texts import texts
from yarus.tasks.config.texts.messages import told
from yarus.tasks.evaluation.summary import SkippedTier

log = logging.getLogger("yarus")


@dataclass(frozen=True)
class NightPlan:
    """The tiers of a night."""

    begun: list[str]
    skipped: list[SkippedTier] = field(default_factory=list)
    has_corpus: bool = True
    """Whether there are questions and pages to describe."""


class NothingToMeasureError(InputError):
    """No tier of a night has anything to measure."""


def plan_night_or_all(parameters: NightlyParameters) -> NightPlan:
    """Choose the tiers of a nightly run, or all of them if the source cannot be read.

    Every tier then fails and reports why, as alerts expect it.

    Args:
        parameters: of the night.

    Raises:
        NothingToMeasureError: the source can be read, and has nothing that a tier measures.
    """
    try:
        return plan_night(parameters)
    except NothingToMeasureError:
        raise
    except (InputError, DatabaseUnavailable) as error:
        log.warning("%s", told(error, get_settings().language))
        return NightPlan(list(parameters.tiers))


def plan_night(parameters: NightlyParameters) -> NightPlan:
    """Choose the tiers that a nightly run starts.

    A tier that can measure nothing is skipped, unless an earlier nightly run of this source has measured it. Its
    failure then shows that data are missing.

    Args:
        parameters: of the night.

    Raises:
        NothingToMeasureError: no tier can measure anything, and no anchor is set.
        InputError: the source cannot be read.
        DatabaseUnavailable: the source cannot be reached.
    """
    ready, has_corpus = _count_measurable(parameters)
    engine = database()
    lacking = {
        tier: readiness
        for tier, readiness in ready.items()
        if readiness.missing is not None and not _was_measured(engine, tier, parameters.source)
    }
    begun = [tier for tier in parameters.tiers if tier not in lacking]
    skipped = [_describe_missing(readiness) for readiness in lacking.values()]
    if not begun and parameters.anchor is None:
        raise NothingToMeasureError(
            "source {source!r}: there is nothing to measure in {tiers}: {reasons}",
            source=parameters.source,
            tiers=", ".join(parameters.tiers),
            reasons="; ".join(dict.fromkeys(tier["reason"] for tier in skipped)),
        )
    return NightPlan(begun, skipped, has_corpus)


def describe_skipped(tier: SkippedTier) -> str:
    """Return the reason why a tier is not started, as a line."""
    return Words("{tier} is skipped: {reason}", tier=tier["tier"], reason=tier["reason"])


def _count_measurable(parameters: NightlyParameters) -> tuple[Mapping[str, TierReadiness], bool]:
    """Return what the tiers can measure, and whether there are questions and pages."""
    origin = open_source(parameters.source)
    with open_snapshot(origin) as connection:
        origin = refresh_source(connection, origin)
        questions = read_frozen_questions(parameters.cases, origin.name) if parameters.cases else None
        content = read_source_content(connection, origin, questions=questions, nuggets=parameters.nuggets)
        built_in = [tier for tier in parameters.tiers if tier in TIER_ORDER]  # nothing is known about a user's own tier
        ready = {readiness.tier: readiness for readiness in count_tiers(origin.name, content, built_in, as_set=True)}
    return ready, bool(content.questions and content.corpus.ids)


def _was_measured(engine: Engine, tier: str, name: str) -> bool:
    """Return whether a nightly run has measured the tier on the source."""
    columns = evaluation.c
    has_verdict = exists().where(nightly_verdict.c.evaluation_id == columns.id)
    measured = (
        select(columns.id)
        .where(columns.tier == tier, columns.source == name, columns.state == "completed", has_verdict)
        .limit(1)
    )
    with engine.connect() as connection:
        return connection.execute(measured).first() is not None


def _describe_missing(ready: TierReadiness) -> SkippedTier:
    missing = str(ready.missing)
    reason = texts("readiness", get_settings().language)[missing].format(**ready.values)
    return {"tier": ready.tier, "missing": missing, "reason": reason}
