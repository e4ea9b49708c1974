"""Which tiers a night begins: those that its source can measure."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlalchemy import Engine, exists, select

from yarus.db.errors import DatabaseUnavailable, InputError
from yarus.db.sources import registered, snapshot
from yarus.db.tables import evaluation, nightly_verdict
from yarus.db.words import Words
from yarus.deployments.upkeep.readiness import ORDER, Ready, count_ready, read_holdings
from yarus.tasks.cases.frozen_sets import frozen_questions
from yarus.tasks.config.connections import database, source
from yarus.tasks.config.flow_parameters import Nightly
from yarus.tasks.config.settings import settings
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


def plan_night_or_all(parameters: Nightly) -> NightPlan:
    """Choose the tiers of a night; all of them where the source cannot be read.

    Each of them then fails and says why, as alerts expect it.

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
        log.warning("%s", told(error, settings().language))
        return NightPlan(list(parameters.tiers))


def plan_night(parameters: Nightly) -> NightPlan:
    """Choose the tiers that a night begins.

    A tier that can measure nothing is skipped, unless an earlier night of this source has measured it: what has gone
    missing since is then to be seen.

    Args:
        parameters: of the night.

    Raises:
        NothingToMeasureError: no tier can measure anything, and there is no anchor.
        InputError: the source cannot be read.
        DatabaseUnavailable: the source cannot be reached.
    """
    ready, has_corpus = _count(parameters)
    engine = database()
    lacking = {
        tier: found
        for tier, found in ready.items()
        if found.missing is not None and not _was_measured(engine, tier, parameters.source)
    }
    begun = [tier for tier in parameters.tiers if tier not in lacking]
    skipped = [_skip(found) for found in lacking.values()]
    if not begun and parameters.anchor is None:
        raise NothingToMeasureError(
            "source {source!r}: there is nothing to measure in {tiers}: {reasons}",
            source=parameters.source,
            tiers=", ".join(parameters.tiers),
            reasons="; ".join(dict.fromkeys(tier["reason"] for tier in skipped)),
        )
    return NightPlan(begun, skipped, has_corpus)


def describe_skipped(tier: SkippedTier) -> str:
    """Return the line that says why a tier is not begun."""
    return Words("{tier} is skipped: {reason}", tier=tier["tier"], reason=tier["reason"])


def _count(parameters: Nightly) -> tuple[Mapping[str, Ready], bool]:
    """What the tiers can measure, and whether there are questions and pages."""
    where = source(parameters.source)
    with snapshot(where) as connection:
        where = registered(connection, where)
        questions = frozen_questions(parameters.cases, where.name) if parameters.cases else None
        has = read_holdings(connection, where, questions=questions, nuggets=parameters.nuggets)
        known = [tier for tier in parameters.tiers if tier in ORDER]  # of a tier of the user's own nothing is known
        ready = {found.tier: found for found in count_ready(where.name, has, known, as_set=True)}
    return ready, bool(has.questions and has.corpus.ids)


def _was_measured(engine: Engine, tier: str, name: str) -> bool:
    """Whether a night has measured the tier over the source."""
    of = evaluation.c
    judged = exists().where(nightly_verdict.c.evaluation_id == of.id)
    known = select(of.id).where(of.tier == tier, of.source == name, of.state == "completed", judged).limit(1)
    with engine.connect() as connection:
        return connection.execute(known).first() is not None


def _skip(ready: Ready) -> SkippedTier:
    missing = str(ready.missing)
    reason = texts("readiness", settings().language)[missing].format(**ready.values)
    return {"tier": ready.tier, "missing": missing, "reason": reason}
