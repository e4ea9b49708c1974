"""Incidents: what went bad in a night and is bad until a night in which it is not. One alert each way, not one a night.

Every evaluation of a night gets a verdict against the accepted one of its comparability key. An incident begins with
the first bad verdict on a key and ends with the next good one on any, so nothing has to be opened or closed. A night
that cannot be compared is inconclusive: it says nothing of either.
"""

import asyncio
import logging
from itertools import takewhile
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Engine, Select, func, select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.engine import RowMapping

from db import journal
from db.tables import evaluation, nightly_verdict
from metrics.table import METRICS
from tasks.cases import pseudonyms
from tasks.comparison.documents import MetricComparison
from tasks.config.connections import database
from tasks.config.settings import settings
from tasks.orchestration.baselines import beside_baseline
from tasks.orchestration.documents import Accepted, Incident, MetricChange, NightlyVerdict
from tasks.orchestration.events import INCIDENT, tell
from tasks.texts import texts

log = logging.getLogger("yarus")
GOOD = ("good", "accepted")
SILENT = ("failed", "inconclusive")
"""They say nothing of the level."""
FAILED = "failed"
"""Stands for the key of nights that failed, which have none."""
_NOT_GOOD = text("verdict NOT IN ('good', 'accepted')")
"""As in the index of bad nights, which are few."""
READ = 20
"""Verdicts at once."""
ALPHA = 0.05
_FIRST = evaluation.alias()
_REUSED = func.coalesce(evaluation.c.parameters["anchor"].astext, evaluation.c.parameters["reuse_answers"].astext)
ANSWERS_OF = func.coalesce(
    evaluation.c.resolved["answers_of"].astext,
    # One that failed before it had read them says only what it was to read; that may have had them from another.
    select(func.coalesce(_FIRST.c.resolved["answers_of"].astext, _FIRST.c.id))
    .where(_FIRST.c.id == _REUSED)
    .scalar_subquery(),
    _REUSED,
).label("answers_of")
"""The evaluation whose stored answers another one judges; NULL where it asks the system: an anchor is no yesterday of
that, nor that of an anchor."""


class Assessment(NamedTuple):
    """What a night says of an evaluation."""

    verdict: NightlyVerdict
    baseline: str | None
    """The accepted evaluation, which it was compared with."""
    changes: list[MetricChange]
    """Headline metrics that are worse."""


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
    place = (row["tier"], row["source"], _answers_of(engine, row["id"]))
    was_open = _open(bad_since(engine, *place))
    key = row["comparability_key"]
    going_on = was_open[key][0]["verdict"] if key in was_open else None
    found = assess(engine, row, going_on)
    if not _keep(engine, row["id"], found):
        return
    kind = FAILED if found.verdict == "failed" else key
    for open_kind, nights in was_open.items():
        # Whatever it came to, a night has been: those that failed are over. What is bad is over with a good night.
        if found.verdict in GOOD or (open_kind == FAILED != kind):
            _tell("closed", row, found, nights[-1]["evaluation_id"])
    if found.verdict not in (*GOOD, "inconclusive") and kind not in was_open:
        _tell("opened", row, found, row["id"])


def assess(engine: Engine, row: RowMapping, going_on: NightlyVerdict | None) -> Assessment:
    """What a night says of an evaluation, given what nights have said of its like.

    An incident begins where a loss is shown (paired test, Holm over the tier's headline metrics), and goes on while
    one of these metrics alone is still shown to be worse: so an incident at the edge does not open and close nightly.

    Args:
        engine: of our own database.
        row: of the evaluation.
        going_on: the newest verdict on its comparability key, where it belongs to an incident that is not over.
    """
    if row["state"] == "failed":
        return Assessment("failed", None, [])
    if row["state"] == "invalid":
        return Assessment("invalid", journal.baseline(engine, row["id"]), [])
    found = beside_baseline(engine, row)
    changes: list[MetricChange] = [
        {
            "metric": name,
            "a": metric["a"],
            "b": metric["b"],
            "difference": metric["difference"],
            "p": metric["p"],
            "p_holm": metric["p_holm"],
        }
        for name, metric in found.metrics.items()
        if metric["verdict"] == "regressed" or (going_on and is_worse_alone(name, metric))
    ]
    if changes:
        return Assessment("regressed", found.baseline, changes)
    if found.problem:
        log.warning(found.problem[settings().language])
        return Assessment("inconclusive", found.baseline, [])
    return Assessment("good", found.baseline, [])


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


def _verdicts(tier: str, source: str, answers_of: str | None) -> Select[Any]:
    """What nights have said of a tier over a source and of one kind of answers, newest first, with what it was of."""
    kept = [evaluation.c[name] for name in ("comparability_key", "tier", "source", "state", "error")]
    wanted = select(nightly_verdict, *kept).join(evaluation).order_by(evaluation.c.started_at.desc())
    of = wanted.where(evaluation.c.tier == tier, evaluation.c.source == source)
    return of.where(ANSWERS_OF.is_not_distinct_from(answers_of))


def bad_since(engine: Engine, tier: str, source: str, answers_of: str | None) -> list[RowMapping]:
    """The verdicts since the last good one, newest first: no more is read of them."""
    wanted = _verdicts(tier, source, answers_of).execution_options(yield_per=READ)
    with engine.connect() as connection, connection.execute(wanted) as rows:
        return list(takewhile(lambda row: row["verdict"] not in GOOD, rows.mappings()))


def _answers_of(engine: Engine, evaluation_id: str) -> str | None:
    with engine.connect() as connection:
        found: str | None = connection.scalar(select(ANSWERS_OF).where(evaluation.c.id == evaluation_id))
    return found


def _of_key(rows: list[RowMapping], key: str | None) -> list[RowMapping]:
    """The verdicts on what was measured in that way; one that failed was not, even where it was finished later."""
    return [row for row in rows if row["comparability_key"] == key and row["verdict"] not in SILENT]


def _open(bad: list[RowMapping]) -> dict[str | None, list[RowMapping]]:
    """The incidents that go on: comparability key, or FAILED for nights that failed, -> their verdicts, newest first.

    A good night ends what was bad before it under any key; one that has been at all ends those that failed before it.

    Args:
        bad: verdicts on one tier, source and kind of answers since the last good one, newest first.
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


def is_worse_alone(name: str, metric: MetricComparison) -> bool:
    """Whether a metric alone is shown to be worse, whatever the others are."""
    if metric["p"] is None or metric["difference"] is None or metric["p"] >= ALPHA:
        return False
    return bool((metric["difference"] < 0) == (METRICS[name].better == "higher"))


def _keep(engine: Engine, evaluation_id: str, found: Assessment) -> bool:
    """Writes the verdict down; False where a night has done so before, unless it had only failed."""
    said = found._asdict()
    write = insert(nightly_verdict).values(evaluation_id=evaluation_id, **said)
    unless_done = write.on_conflict_do_update(
        index_elements=["evaluation_id"], set_=said, where=nightly_verdict.c.verdict == "failed"
    )
    with engine.begin() as connection:
        return bool(connection.execute(unless_done).rowcount)


def _tell(what: str, row: RowMapping, found: Assessment, incident: str) -> None:
    words = texts("incidents", settings().language)
    said = "; ".join(words["change"].format(**change) for change in found.changes)
    error = pseudonyms.text(row["error"] or "", row["source"])
    why = words[found.verdict].format(changes=said, error=error) if what == "opened" else ""
    text = words[what].format(tier=row["tier"], source=row["source"], what=why, id=incident)
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
        **{name: row[name] for name in ("tier", "source", "sut_label", "comparability_key")},
    }
    tell(f"{INCIDENT}.{what}", incident, payload, flow_run_id=row["flow_run_id"])
