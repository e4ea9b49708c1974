"""Incidents: what went bad in a night and is bad until a night in which it is not. One alert each way, not one a night.

Every evaluation of a night gets a verdict (`yarus.deployments.alarms.levels`). An incident begins with the
first bad verdict on a comparability key; if the level has fallen it ends with the next good one on the same key, else
with the next good one on any. So nothing has to be opened or closed. A night without a level is inconclusive.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from itertools import takewhile
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, Engine, FromClause, exists, func, not_, or_, select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.engine import RowMapping

from yarus.db import journal
from yarus.db.tables import config_at, evaluation, nightly_verdict
from yarus.deployments.alarms.alarms_schema import GOOD, Accepted, Incident
from yarus.deployments.alarms.levels import LevelVerdict, level_verdict
from yarus.deployments.alarms.night_message import TellsOf, incident_payload, moved, tell_incident
from yarus.tasks.cases.privacy import pseudonyms
from yarus.tasks.config.connections import database
from yarus.tasks.config.settings import settings
from yarus.tasks.evaluation.findings_schema import Persistence
from yarus.tasks.evaluation.repeats import persistence_of

if TYPE_CHECKING:
    from yarus.deployments.alarms.confirmation import Evaluate

log = logging.getLogger("yarus")
SILENT = ("failed", "inconclusive")
"""They say nothing of the level."""
Tells = Callable[[TellsOf], None]
FAILED = "failed"
"""Stands for the key of nights that failed, which have none."""
_NOT_GOOD = text("verdict NOT IN ('good', 'accepted')")
"""As in the index of bad nights, which are few."""


def _answers_of(of: FromClause) -> ColumnElement[Any]:
    """The evaluation whose stored answers another one judges; NULL where it asks the system: an anchor is no yesterday
    of that, nor that of an anchor."""
    first = evaluation.alias()
    reused = func.coalesce(of.c.parameters["anchor"].astext, of.c.parameters["reuse_answers"].astext)
    # One that failed before it had read them says only what it was to read; that may have had them from another.
    theirs = select(func.coalesce(config_at("answers_of", table=first).astext, first.c.id)).where(first.c.id == reused)
    return func.coalesce(config_at("answers_of", table=of).astext, theirs.scalar_subquery(), reused)


ANSWERS_OF = _answers_of(evaluation).label("answers_of")


class _Night(NamedTuple):
    """What a night says of an evaluation, before it is told."""

    row: RowMapping
    found: LevelVerdict
    was_open: Mapping[str | None, list[RowMapping]]

    @property
    def kind(self) -> str | None:
        """What its incident goes by."""
        return FAILED if self.found.verdict == "failed" else self.row["comparability_key"]

    @property
    def opens(self) -> bool:
        """Whether an incident begins with it."""
        return self.found.verdict not in (*GOOD, "inconclusive") and self.kind not in self.was_open


async def follow(flow_run_id: UUID | None, evaluate: "Evaluate", tells: Tells) -> None:
    """Judges what a flow run of a night has evaluated, and tells of an incident that begins or ends with it.

    Args:
        flow_run_id: of the evaluation.
        evaluate: the flow of its tier: before an alarm of a fallen level it is asked again what changed. Where it is
            stopped meanwhile, the alarm is raised without that.
        tells: takes what began or ended, for the message of the night.
    """
    if flow_run_id is None:
        return
    engine = database()
    night = await asyncio.to_thread(_judge, engine, str(flow_run_id))
    if night is None:
        await asyncio.to_thread(_tell_again, engine, str(flow_run_id), tells)
        return
    asked: Persistence | None = None
    try:
        if night.opens and night.found.verdict == "regressed":
            # Here, because it imports the network, which lists do not use.
            from yarus.deployments.alarms.confirmation import confirmed, to_confirm

            again = await asyncio.to_thread(to_confirm, engine, night.row, night.found)
            asked = await confirmed(engine, night.row, again, evaluate) if again else None
    finally:
        await asyncio.to_thread(_conclude, engine, night, asked, tells)


def follow_run(engine: Engine, flow_run_id: str) -> None:
    """The same without asking anything again."""
    if night := _judge(engine, flow_run_id):
        _conclude(engine, night, None, lambda told: None)


def _judge(engine: Engine, flow_run_id: str) -> _Night | None:
    """What that flow run has evaluated, or how it failed; None where that is no end, or has been judged."""
    row = journal.of_flow_run(engine, flow_run_id)
    if row is None or row["state"] in ("cancelled", "running"):
        return None
    answers_of, said = _judged(engine, row["id"])
    if said and (said != "failed" or row["state"] == "failed"):  # it has been judged, and a retry did not change it
        return None
    bad = bad_since(engine, row["tier"], row["source"], answers_of)
    return _Night(row, assess(engine, row), _open(bad))


def _conclude(engine: Engine, night: _Night, asked: Persistence | None, tells: Tells) -> None:
    """Keeps the verdict, and tells of the incident that begins or ends with it.

    Args:
        engine: of our own database.
        night: as judged.
        asked: what was found where the questions that changed were asked again.
        tells: see `follow`.
    """
    row, found, was_open = night
    key, kind = row["comparability_key"], night.kind
    if found.remark:
        log.log(logging.INFO if found.verdict == "good" else logging.WARNING, found.remark[settings().language])
    if not _keep(engine, row["id"], found):
        return
    told = []
    for open_kind, nights in was_open.items():
        # Whatever it came to, a night has been: those that failed are over. What is bad is over with a good night, and
        # a level with one that was measured in the same way.
        fell = any(night["verdict"] == "regressed" for night in nights)
        if (found.verdict in GOOD and (open_kind == key or not fell)) or (open_kind == FAILED != kind):
            told.append(incident_payload("closed", row, found, nights[-1]["evaluation_id"]))
    if night.opens:
        told.append(incident_payload("opened", row, found, row["id"], moved(engine, row, found), asked))
    for payload in told:
        tell_incident(payload, row["flow_run_id"])
        tells(payload)


def _tell_again(engine: Engine, flow_run_id: str, tells: Tells) -> None:
    """What an earlier try of the night has begun and goes on: that try may have ended before its message was sent."""
    row = journal.of_flow_run(engine, flow_run_id)
    if row is None:
        return
    answers_of, _ = _judged(engine, row["id"])
    for nights in _open(bad_since(engine, row["tier"], row["source"], answers_of)).values():
        if (first := nights[-1])["evaluation_id"] == row["id"]:
            found = LevelVerdict(first["verdict"], first["baseline"], first["changes"])
            asked = persistence_of(engine, row)
            tells(incident_payload("opened", row, found, row["id"], moved(engine, row, found), asked))


def assess(engine: Engine, row: RowMapping) -> LevelVerdict:
    """What a night says of an evaluation.

    Args:
        engine: of our own database.
        row: of the evaluation.
    """
    if row["state"] == "failed":
        return LevelVerdict("failed", None, [])
    if row["state"] == "invalid":
        return LevelVerdict("invalid", journal.baseline(engine, row["id"]), [])
    return level_verdict(engine, row)


def incidents(engine: Engine) -> list[Incident]:
    """The incidents that go on."""
    bad = select(evaluation.c.tier, evaluation.c.source, ANSWERS_OF).join(nightly_verdict).where(_NOT_GOOD)
    with engine.connect() as connection:
        places = connection.execute(bad.distinct().order_by(*bad.selected_columns)).all()
    return [
        _incident(engine, kind, nights)
        for place in places
        for kind, nights in _open(bad_since(engine, *place)).items()
        # What had failed in its night may have been brought to its end later.
        if nights[0]["verdict"] != "failed" or nights[0]["state"] not in journal.FINISHED
    ]


def accept(engine: Engine, name: str) -> Accepted:
    """Takes an evaluation for the new level: what comes next is judged against it; if a night has found it bad, that
    incident is over.

    Raises:
        InputError: no such evaluation, or one that cannot be a baseline.
    """
    accepted = journal.accept(engine, name)
    with engine.begin() as connection:
        judged = nightly_verdict.c.evaluation_id == accepted
        connection.execute(update(nightly_verdict).where(judged).values(verdict="accepted"))
    return {"evaluation_id": accepted, "verdict": "accepted"}


def _judged(engine: Engine, evaluation_id: str) -> tuple[str | None, str | None]:
    """The evaluation whose answers one judges, and what a night has said of it before."""
    known = select(ANSWERS_OF, nightly_verdict.c.verdict).select_from(evaluation.outerjoin(nightly_verdict))
    with engine.connect() as connection:
        answers_of, said = connection.execute(known.where(evaluation.c.id == evaluation_id)).one()
    return answers_of, said


def bad_since(engine: Engine, tier: str, source: str, answers_of: str | None) -> list[RowMapping]:
    """The bad verdicts on a tier over a source and of one kind of answers that no good one has ended, newest first.

    A good night ends what was bad before it, but of a level only what was measured in the same way; a level that a
    person accepts ends everything. Before it is also what was judged before it: a clock may have been ahead.
    """
    later, said = evaluation.alias(), nightly_verdict.alias()
    after = or_(later.c.started_at > evaluation.c.started_at, said.c.judged_at > nightly_verdict.c.judged_at)
    alike = later.c.tier == evaluation.c.tier, later.c.source == evaluation.c.source
    ended = (
        select(1)
        .select_from(later.join(said, said.c.evaluation_id == later.c.id))
        .where(*alike, after, said.c.verdict.in_(GOOD))
        .where(_answers_of(later).is_not_distinct_from(answers_of))
        .where(
            or_(
                nightly_verdict.c.verdict != "regressed",
                said.c.verdict == "accepted",
                later.c.comparability_key == evaluation.c.comparability_key,
            )
        )
    )
    kept = [evaluation.c[name] for name in ("comparability_key", "tier", "source", "state", "error")]
    wanted = (
        select(nightly_verdict, *kept)
        .join(evaluation)
        .where(_NOT_GOOD, evaluation.c.tier == tier, evaluation.c.source == source)
        .where(ANSWERS_OF.is_not_distinct_from(answers_of), not_(exists(ended)))
        .order_by(evaluation.c.started_at.desc())
    )
    with engine.connect() as connection:
        return list(connection.execute(wanted).mappings())


def _open(bad: list[RowMapping]) -> dict[str | None, list[RowMapping]]:
    """The incidents that go on: comparability key, or FAILED for nights that failed, -> their verdicts, newest first.

    Args:
        bad: as `bad_since` gives them; a night that has been at all ends those that failed before it.
    """
    found: dict[str | None, list[RowMapping]] = {}
    for row in bad:
        if row["verdict"] not in SILENT:  # one that failed was not measured, even where it was finished later
            found.setdefault(row["comparability_key"], []).append(row)
    failed = list(takewhile(lambda row: row["verdict"] == "failed", bad))
    return found | ({FAILED: failed} if failed else {})


def _incident(engine: Engine, kind: str | None, nights: list[RowMapping]) -> Incident:
    last, first = nights[0], journal.find(engine, nights[-1]["evaluation_id"])
    incident: Incident = {
        "incident": first["id"],
        "comparability_key": None if kind == FAILED else kind,
        "nights": len(nights),
        "last": last["evaluation_id"],
        "tier": last["tier"],
        "source": last["source"],
        "verdict": last["verdict"],
        "baseline": last["baseline"],
        "changes": last["changes"],
        "error": last["error"],
        "asked_again": persistence_of(engine, first),
    }
    shown: Incident = pseudonyms.document(incident, last["source"])
    return shown


def _keep(engine: Engine, evaluation_id: str, found: LevelVerdict) -> bool:
    """Writes the verdict down; False where a night has done so before, unless it had only failed."""
    said = {"verdict": found.verdict, "baseline": found.baseline, "changes": found.changes}
    write = insert(nightly_verdict).values(evaluation_id=evaluation_id, **said)
    unless_done = write.on_conflict_do_update(
        index_elements=["evaluation_id"], set_=said, where=nightly_verdict.c.verdict == "failed"
    )
    with engine.begin() as connection:
        return bool(connection.execute(unless_done).rowcount)
