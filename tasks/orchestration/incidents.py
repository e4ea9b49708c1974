"""Incidents: what went bad in a night and is bad until a night in which it is not. One alert each way, not one a night.

Every evaluation of a night gets a verdict (`tasks.orchestration.alarms.levels`). An incident begins with the first bad
verdict on a comparability key; where the level has fallen it ends with the next good one on the same key, else with the
next good one on any. So nothing has to be opened or closed. A night that says nothing of the level is inconclusive.
"""

import asyncio
import logging
from itertools import takewhile
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Engine, FromClause, exists, func, not_, or_, select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.engine import RowMapping

from db import journal
from db.errors import InputError, ResultsUnavailable
from db.tables import evaluation, nightly_verdict
from tasks.cases import pseudonyms
from tasks.config.connections import database
from tasks.config.settings import settings
from tasks.explanation.explain import explain
from tasks.explanation.sentences import sentences
from tasks.orchestration.alarms.levels import LevelVerdict, level_verdict
from tasks.orchestration.documents import GOOD, Accepted, Incident
from tasks.orchestration.events import INCIDENT, tell
from tasks.texts import texts

log = logging.getLogger("yarus")
SILENT = ("failed", "inconclusive")
"""They say nothing of the level."""
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
    theirs = select(func.coalesce(first.c.resolved["answers_of"].astext, first.c.id)).where(first.c.id == reused)
    return func.coalesce(of.c.resolved["answers_of"].astext, theirs.scalar_subquery(), reused)


ANSWERS_OF = _answers_of(evaluation).label("answers_of")


async def follow(flow_run_id: UUID | None) -> None:
    """Judges what a flow run of a night has evaluated, and tells of an incident that begins or ends with it."""
    if flow_run_id is not None:
        await asyncio.to_thread(follow_run, database(), str(flow_run_id))


def follow_run(engine: Engine, flow_run_id: str) -> None:
    """Judges what that flow run has evaluated, or how it failed, and keeps the incident that begins or ends with it."""
    row = journal.of_flow_run(engine, flow_run_id)
    if row is None or row["state"] in ("cancelled", "running"):
        return
    said = _said(engine, row["id"])
    if said and (said != "failed" or row["state"] == "failed"):  # it has been judged, and a retry did not change it
        return
    place = (row["tier"], row["source"], _kind_of(engine, row["id"]))
    was_open = _open(bad_since(engine, *place))
    key = row["comparability_key"]
    found = assess(engine, row)
    if not _keep(engine, row["id"], found):
        return
    kind = FAILED if found.verdict == "failed" else key
    for open_kind, nights in was_open.items():
        # Whatever it came to, a night has been: those that failed are over. What is bad is over with a good night, and
        # a level with one that was measured in the same way.
        fell = any(night["verdict"] == "regressed" for night in nights)
        if (found.verdict in GOOD and (open_kind == key or not fell)) or (open_kind == FAILED != kind):
            _tell("closed", row, found, nights[-1]["evaluation_id"], [])
    if found.verdict not in (*GOOD, "inconclusive") and kind not in was_open:
        _tell("opened", row, found, row["id"], _moved(engine, row, found))


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
    found = level_verdict(engine, row)
    if found.problem:
        log.warning(found.problem[settings().language])
    return found


def incidents(engine: Engine) -> list[Incident]:
    """The incidents that go on."""
    bad = select(evaluation.c.tier, evaluation.c.source, ANSWERS_OF).join(nightly_verdict).where(_NOT_GOOD)
    with engine.connect() as connection:
        places = connection.execute(bad.distinct().order_by(*bad.selected_columns)).all()
    return [
        _incident(kind, nights)
        for place in places
        for kind, nights in _open(bad_since(engine, *place)).items()
        if not _finished_since(nights[0])
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


def _said(engine: Engine, evaluation_id: str) -> str | None:
    """What a night has said of it before."""
    said = select(nightly_verdict.c.verdict).where(nightly_verdict.c.evaluation_id == evaluation_id)
    with engine.connect() as connection:
        found: str | None = connection.scalar(said)
    return found


def bad_since(engine: Engine, tier: str, source: str, answers_of: str | None) -> list[RowMapping]:
    """The bad verdicts on a tier over a source and of one kind of answers that no good one has ended, newest first.

    A good night ends what was bad before it, but of a level only what was measured in the same way; a level that a
    person accepts ends everything.
    """
    later, said = evaluation.alias(), nightly_verdict.alias()
    alike = later.c.tier == evaluation.c.tier, later.c.source == evaluation.c.source
    ended = (
        select(1)
        .select_from(later.join(said, said.c.evaluation_id == later.c.id))
        .where(*alike, later.c.started_at > evaluation.c.started_at, said.c.verdict.in_(GOOD))
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


def _kind_of(engine: Engine, evaluation_id: str) -> str | None:
    with engine.connect() as connection:
        found: str | None = connection.scalar(select(ANSWERS_OF).where(evaluation.c.id == evaluation_id))
    return found


def _of_key(rows: list[RowMapping], key: str | None) -> list[RowMapping]:
    """The verdicts on what was measured in that way; one that failed was not, even where it was finished later."""
    return [row for row in rows if row["comparability_key"] == key and row["verdict"] not in SILENT]


def _open(bad: list[RowMapping]) -> dict[str | None, list[RowMapping]]:
    """The incidents that go on: comparability key, or FAILED for nights that failed, -> their verdicts, newest first.

    Args:
        bad: as `bad_since` gives them; a night that has been at all ends those that failed before it.
    """
    failed = list(takewhile(lambda row: row["verdict"] == "failed", bad))
    keys = dict.fromkeys(row["comparability_key"] for row in bad if row["verdict"] not in SILENT)
    return {key: _of_key(bad, key) for key in keys} | ({FAILED: failed} if failed else {})


def _finished_since(row: RowMapping) -> bool:
    """Whether what had failed in its night was brought to its end later."""
    return bool(row["verdict"] == "failed" and row["state"] in journal.FINISHED)


def _incident(kind: str | None, nights: list[RowMapping]) -> Incident:
    last = nights[0]
    incident: Incident = {
        "incident": nights[-1]["evaluation_id"],
        "comparability_key": None if kind == FAILED else kind,
        "nights": len(nights),
        "last": last["evaluation_id"],
        "tier": last["tier"],
        "source": last["source"],
        "verdict": last["verdict"],
        "baseline": last["baseline"],
        "changes": last["changes"],
        "error": last["error"],
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


def _moved(engine: Engine, row: RowMapping, found: LevelVerdict) -> list[str]:
    """Why the level fell, in sentences; none where that cannot be told."""
    if found.verdict != "regressed" or found.baseline is None:
        return []
    try:
        why = explain(engine, found.baseline, row["id"], only=[change["metric"] for change in found.changes])
    except (InputError, ResultsUnavailable) as error:
        log.warning("%s: %s", row["id"], error)
        return []
    return list(sentences(why, settings().language))


def _tell(what: str, row: RowMapping, found: LevelVerdict, incident: str, moved: list[str]) -> None:
    words = texts("incidents", settings().language)
    said = "; ".join(words["change"].format(**change) for change in found.changes)
    error = pseudonyms.text(row["error"] or "", row["source"])
    why = words[found.verdict].format(changes=said, error=error) if what == "opened" else ""
    text = words[what].format(tier=row["tier"], source=row["source"], what=why, id=incident)
    text = " ".join([text, *moved])
    log.warning(text)
    first = found.changes[0] if found.changes else None
    payload = {
        "text": text,
        "evaluation_id": row["id"],
        "incident": incident,
        "verdict": found.verdict,
        "baseline": found.baseline,
        "metric": first and first["metric"],
        "change": first and first["difference"],
        "changes": found.changes,
        "moved": moved,
        **{name: row[name] for name in ("tier", "source", "sut_label", "comparability_key")},
    }
    tell(f"{INCIDENT}.{what}", incident, payload, flow_run_id=row["flow_run_id"])
