"""Track incidents: a metric that went bad stays one incident until a good night. One alert per change, not per night.

Every evaluation of a night gets a verdict (`yarus.deployments.alarms.levels`). An incident begins with the first bad
verdict on a comparability key. If the level has fallen, it ends with the next good verdict on the same key, else with
the next good one on any key. So incidents are not stored as open or closed. A night without a level is inconclusive.
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
from yarus.db.tables import config_value, evaluation, nightly_verdict
from yarus.deployments.alarms.alarms_schema import GOOD_VERDICTS, Accepted, Incident
from yarus.deployments.alarms.levels import LevelVerdict, judge_level
from yarus.deployments.alarms.night_message import IncidentPayload, explain_loss, make_payload, report_incident
from yarus.tasks.cases.privacy import pseudonyms
from yarus.tasks.config.connections import database
from yarus.tasks.config.settings import get_settings
from yarus.tasks.evaluation.findings_schema import Persistence
from yarus.tasks.evaluation.repeats import read_persistence

if TYPE_CHECKING:
    from yarus.deployments.alarms.confirmation import Evaluate

log = logging.getLogger("yarus")
UNMEASURED_VERDICTS = ("failed", "inconclusive")
"""Verdicts that contain nothing about the level."""
ReportIncident = Callable[[IncidentPayload], None]
FAILED = "failed"
"""Replaces the key of nights that failed, which do not have one."""
_NOT_GOOD = text("verdict NOT IN ('good', 'accepted')")
"""The same condition as in the index of bad nights, which are few."""


def _answers_source(table: FromClause) -> ColumnElement[Any]:
    """Return the evaluation whose stored answers another one judges; NULL if it asks the system.

    The histories of anchors and of the system are separate.
    """
    reused_evaluation = evaluation.alias()
    reused_id = func.coalesce(table.c.parameters["anchor"].astext, table.c.parameters["reuse_answers"].astext)
    # One that failed before reading them has only the name of its source, which may have reused answers itself.
    answers_of = config_value("answers_of", table=reused_evaluation).astext
    origin = select(func.coalesce(answers_of, reused_evaluation.c.id)).where(reused_evaluation.c.id == reused_id)
    return func.coalesce(config_value("answers_of", table=table).astext, origin.scalar_subquery(), reused_id)


ANSWERS_OF = _answers_source(evaluation).label("answers_of")


class _JudgedNight(NamedTuple):
    """A night's verdict on an evaluation, before it is reported."""

    row: RowMapping
    verdict: LevelVerdict
    was_open: Mapping[str | None, list[RowMapping]]

    @property
    def kind(self) -> str | None:
        """Return the key of its incident."""
        return FAILED if self.verdict.verdict == "failed" else self.row["comparability_key"]

    @property
    def opens(self) -> bool:
        """Return whether an incident begins with it."""
        return self.verdict.verdict not in (*GOOD_VERDICTS, "inconclusive") and self.kind not in self.was_open


async def follow_flow_run(flow_run_id: UUID | None, evaluate: "Evaluate", notify: ReportIncident) -> None:
    """Judge what a flow run of a night has evaluated, and report an incident that begins or ends with it.

    Args:
        flow_run_id: the flow run of the evaluation.
        evaluate: the flow of its tier: before an alarm of a fallen level it asks the changed questions again. If it is
            stopped meanwhile, the alarm is raised without their result.
        notify: receives incidents that began or ended, for the message of the night.
    """
    if flow_run_id is None:
        return
    engine = database()
    night = await asyncio.to_thread(_judge, engine, str(flow_run_id))
    if night is None:
        await asyncio.to_thread(_report_again, engine, str(flow_run_id), notify)
        return
    persistence: Persistence | None = None
    try:
        if night.opens and night.verdict.verdict == "regressed":
            # Imported here because it loads network modules, which lists of incidents do not need.
            from yarus.deployments.alarms.confirmation import ask_again, confirmation_parameters

            parameters = await asyncio.to_thread(confirmation_parameters, engine, night.row, night.verdict)
            persistence = await ask_again(engine, night.row, parameters, evaluate) if parameters else None
    finally:
        await asyncio.to_thread(_conclude, engine, night, persistence, notify)


def follow_run(engine: Engine, flow_run_id: str) -> None:
    """Judge and report a flow run of a night without asking anything again."""
    if night := _judge(engine, flow_run_id):
        _conclude(engine, night, None, lambda payload: None)


def _judge(engine: Engine, flow_run_id: str) -> _JudgedNight | None:
    """Judge what the flow run has evaluated, or how it failed; None if it has not ended or has been judged."""
    row = journal.find_by_flow_run(engine, flow_run_id)
    if row is None or row["state"] in ("cancelled", "running"):
        return None
    answers_of, verdict = _read_verdict(engine, row["id"])
    if verdict and (verdict != "failed" or row["state"] == "failed"):  # already judged, and no retry changed it
        return None
    bad = read_bad_verdicts(engine, row["tier"], row["source"], answers_of)
    return _JudgedNight(row, assess_evaluation(engine, row), _open_incidents(bad))


def _conclude(engine: Engine, night: _JudgedNight, persistence: Persistence | None, notify: ReportIncident) -> None:
    """Store the verdict, and report the incident that begins or ends with it.

    Args:
        engine: the engine of Yarus's database.
        night: the judged night.
        persistence: the result of asking the changed questions again.
        notify: see `follow_flow_run`.
    """
    row, verdict, was_open = night
    key, kind = row["comparability_key"], night.kind
    if verdict.remark:
        log.log(logging.INFO if verdict.verdict == "good" else logging.WARNING, verdict.remark[get_settings().language])
    if not _store_verdict(engine, row["id"], verdict):
        return
    events = []
    for open_kind, nights in was_open.items():
        # Any night that did not fail ends an incident of failed nights. A good night ends other incidents, but a
        # fallen level only if it was measured in the same way.
        has_fallen = any(night["verdict"] == "regressed" for night in nights)
        if (verdict.verdict in GOOD_VERDICTS and (open_kind == key or not has_fallen)) or (open_kind == FAILED != kind):
            events.append(make_payload("closed", row, verdict, nights[-1]["evaluation_id"]))
    if night.opens:
        events.append(make_payload("opened", row, verdict, row["id"], explain_loss(engine, row, verdict), persistence))
    for event in events:
        report_incident(event, row["flow_run_id"])
        notify(event)


def _report_again(engine: Engine, flow_run_id: str, notify: ReportIncident) -> None:
    """Report again an open incident that an earlier try began: that try may have ended before its message was sent."""
    row = journal.find_by_flow_run(engine, flow_run_id)
    if row is None:
        return
    answers_of, _ = _read_verdict(engine, row["id"])
    for nights in _open_incidents(read_bad_verdicts(engine, row["tier"], row["source"], answers_of)).values():
        if (first := nights[-1])["evaluation_id"] == row["id"]:
            verdict = LevelVerdict(first["verdict"], first["baseline"], first["changes"])
            persistence = read_persistence(engine, row)
            notify(make_payload("opened", row, verdict, row["id"], explain_loss(engine, row, verdict), persistence))


def assess_evaluation(engine: Engine, row: RowMapping) -> LevelVerdict:
    """Return a night's verdict on an evaluation.

    Args:
        engine: the engine of Yarus's database.
        row: the row of the evaluation.
    """
    if row["state"] == "failed":
        return LevelVerdict("failed", None, [])
    if row["state"] == "invalid":
        return LevelVerdict("invalid", journal.find_baseline(engine, row["id"]), [])
    return judge_level(engine, row)


def list_incidents(engine: Engine) -> list[Incident]:
    """Return the open incidents."""
    bad = select(evaluation.c.tier, evaluation.c.source, ANSWERS_OF).join(nightly_verdict).where(_NOT_GOOD)
    with engine.connect() as connection:
        series_rows = connection.execute(bad.distinct().order_by(*bad.selected_columns)).all()
    return [
        _describe_incident(engine, kind, nights)
        for series in series_rows
        for kind, nights in _open_incidents(read_bad_verdicts(engine, *series)).items()
        # An evaluation that failed in its night may have been finished later.
        if nights[0]["verdict"] != "failed" or nights[0]["state"] not in journal.FINISHED_STATES
    ]


def accept_evaluation(engine: Engine, name: str) -> Accepted:
    """Accept an evaluation as the new level: later ones are judged against it, and its incident ends.

    Raises:
        InputError: the evaluation does not exist or cannot be a baseline.
    """
    accepted = journal.accept_baseline(engine, name)
    with engine.begin() as connection:
        is_accepted = nightly_verdict.c.evaluation_id == accepted
        connection.execute(update(nightly_verdict).where(is_accepted).values(verdict="accepted"))
    return {"evaluation_id": accepted, "verdict": "accepted"}


def _read_verdict(engine: Engine, evaluation_id: str) -> tuple[str | None, str | None]:
    """Return the evaluation whose answers this one judges, and its earlier verdict."""
    statement = select(ANSWERS_OF, nightly_verdict.c.verdict).select_from(evaluation.outerjoin(nightly_verdict))
    with engine.connect() as connection:
        answers_of, verdict = connection.execute(statement.where(evaluation.c.id == evaluation_id)).one()
    return answers_of, verdict


def read_bad_verdicts(engine: Engine, tier: str, source: str, answers_of: str | None) -> list[RowMapping]:
    """Return the bad verdicts of a tier, source and kind of answers that no good verdict has ended, newest first.

    A good night ends what was bad before it, but a fallen level only if it was measured in the same way. A level that a
    person accepts ends everything. Evaluations judged before it also count as before it: a clock may have been ahead.
    """
    later, later_verdict = evaluation.alias(), nightly_verdict.alias()
    after = or_(later.c.started_at > evaluation.c.started_at, later_verdict.c.judged_at > nightly_verdict.c.judged_at)
    same_series = later.c.tier == evaluation.c.tier, later.c.source == evaluation.c.source
    ended = (
        select(1)
        .select_from(later.join(later_verdict, later_verdict.c.evaluation_id == later.c.id))
        .where(*same_series, after, later_verdict.c.verdict.in_(GOOD_VERDICTS))
        .where(_answers_source(later).is_not_distinct_from(answers_of))
        .where(
            or_(
                nightly_verdict.c.verdict != "regressed",
                later_verdict.c.verdict == "accepted",
                later.c.comparability_key == evaluation.c.comparability_key,
            )
        )
    )
    evaluation_columns = [evaluation.c[name] for name in ("comparability_key", "tier", "source", "state", "error")]
    statement = (
        select(nightly_verdict, *evaluation_columns)
        .join(evaluation)
        .where(_NOT_GOOD, evaluation.c.tier == tier, evaluation.c.source == source)
        .where(ANSWERS_OF.is_not_distinct_from(answers_of), not_(exists(ended)))
        .order_by(evaluation.c.started_at.desc())
    )
    with engine.connect() as connection:
        return list(connection.execute(statement).mappings())


def _open_incidents(bad: list[RowMapping]) -> dict[str | None, list[RowMapping]]:
    """Return the open incidents: comparability key, or FAILED for failed nights, -> their verdicts, newest first.

    Args:
        bad: the verdicts from `read_bad_verdicts`; a night that did not fail ends the failed ones before it.
    """
    rows_by_key: dict[str | None, list[RowMapping]] = {}
    for row in bad:
        if row["verdict"] not in UNMEASURED_VERDICTS:  # a failed one was not measured, even if it was finished later
            rows_by_key.setdefault(row["comparability_key"], []).append(row)
    failed = list(takewhile(lambda row: row["verdict"] == "failed", bad))
    return rows_by_key | ({FAILED: failed} if failed else {})


def _describe_incident(engine: Engine, kind: str | None, nights: list[RowMapping]) -> Incident:
    last, first = nights[0], journal.find_evaluation(engine, nights[-1]["evaluation_id"])
    incident: Incident = {
        "incident_id": first["id"],
        "comparability_key": None if kind == FAILED else kind,
        "nights": len(nights),
        "latest_evaluation_id": last["evaluation_id"],
        "tier": last["tier"],
        "source": last["source"],
        "verdict": last["verdict"],
        "baseline": last["baseline"],
        "changes": last["changes"],
        "error": last["error"],
        "asked_again": read_persistence(engine, first),
    }
    pseudonymised: Incident = pseudonyms.mask_document(incident, last["source"])
    return pseudonymised


def _store_verdict(engine: Engine, evaluation_id: str, verdict: LevelVerdict) -> bool:
    """Store the verdict; False if it was judged before, unless it had only failed."""
    values = {"verdict": verdict.verdict, "baseline": verdict.baseline, "changes": verdict.changes}
    write = insert(nightly_verdict).values(evaluation_id=evaluation_id, **values)
    unless_done = write.on_conflict_do_update(
        index_elements=["evaluation_id"], set_=values, where=nightly_verdict.c.verdict == "failed"
    )
    with engine.begin() as connection:
        return bool(connection.execute(unless_done).rowcount)
