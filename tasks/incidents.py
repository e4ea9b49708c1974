"""Incidents: what went bad in a night and is bad until a night in which it is not. One alert each way, not one a night.

Every evaluation of a night gets a verdict against the last good one of its tier, source and comparability key. An
incident begins with the first bad verdict and ends with the next good one, so nothing has to be opened or closed.
"""

import asyncio
import logging
from itertools import takewhile
from typing import Any, Literal, NamedTuple
from uuid import UUID

from sqlalchemy import Engine, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.engine import RowMapping

from db import journal
from db.errors import InputError, ResultsUnavailable
from db.tables import evaluation, nightly_verdict
from metrics.table import METRICS
from tasks.compare import compare
from tasks.connect import database
from tasks.events import INCIDENT, tell
from tasks.guidance import HEADLINES
from tasks.settings import settings

log = logging.getLogger("yarus")
Verdict = Literal["good", "accepted", "regressed", "invalid", "failed"]
GOOD = ("good", "accepted")
ALPHA = 0.05
Document = dict[str, Any]
TEXTS = {
    "ru": {
        "opened": "Ночь {tier} ({source}): {what}.",
        "closed": "Ночь {tier} ({source}): снова в порядке, после {id}.",
        "regressed": "стало хуже, чем в последнем хорошем прогоне: {changes}",
        "invalid": "прогон недействителен: {error}",
        "failed": "прогон не удался: {error}",
        "change": "{metric} {a:.3f} → {b:.3f}",
    },
    "en": {
        "opened": "Night of {tier} ({source}): {what}.",
        "closed": "Night of {tier} ({source}): well again, after {id}.",
        "regressed": "worse than the last good evaluation: {changes}",
        "invalid": "the evaluation is invalid: {error}",
        "failed": "the evaluation failed: {error}",
        "change": "{metric} {a:.3f} → {b:.3f}",
    },
}


class Judged(NamedTuple):
    """What a night says of an evaluation."""

    verdict: Verdict
    baseline: str | None
    """The last good evaluation, which it was compared with."""
    changes: list[Document]
    """Headline metrics that are worse."""


async def follow(flow_run_id: UUID | None) -> None:
    """Judges what a flow run of a night has evaluated, and tells of an incident that begins or ends with it."""
    if flow_run_id is not None:
        await asyncio.to_thread(_follow, database(), str(flow_run_id))


def _follow(engine: Engine, flow_run_id: str) -> None:
    row = journal.of_flow_run(engine, flow_run_id)
    if row is None or row["state"] in ("cancelled", "running"):
        return
    before = verdicts(engine, row["tier"], row["source"])
    said = {known["evaluation_id"]: known["verdict"] for known in before}.get(row["id"])
    if said and (said != "failed" or row["state"] == "failed"):  # it has been judged, and a retry did not change it
        return
    answers_of = (row["resolved"] or {}).get("answers_of")
    before = [known for known in before if known["answers_of"] == answers_of]  # an anchor is no yesterday of the system
    same = _of_key(before, row["comparability_key"])
    judged = judge(engine, row, same)
    if not _keep(engine, row["id"], judged):
        return
    bad = judged.verdict not in GOOD
    was_bad = bool(same) and same[0]["verdict"] not in GOOD
    failed = _just_failed(before)
    if failed and judged.verdict != "failed":  # whatever it came to, a night has been
        _tell("closed", row, judged, _first_bad(failed))
    if bad and not was_bad and not (failed and judged.verdict == "failed"):
        _tell("opened", row, judged, row["id"])
    elif not bad and was_bad:
        _tell("closed", row, judged, _first_bad(same))


def judge(engine: Engine, row: RowMapping, same: list[RowMapping]) -> Judged:
    """What a night says of an evaluation, given what nights have said of its like.

    An incident begins where a loss is shown (paired test, Holm over the tier's headline metrics), and goes on while
    one of these metrics alone is still shown to be worse: so an incident at the edge does not open and close nightly.

    Args:
        engine: of our own database.
        row: of the evaluation.
        same: earlier verdicts on the same tier, source and comparability key, newest first.
    """
    baseline = next((known["evaluation_id"] for known in same if known["verdict"] in GOOD), None)
    if row["state"] == "failed":
        return Judged("failed", baseline, [])
    if row["state"] == "invalid":
        return Judged("invalid", baseline, [])
    if baseline is None:
        return Judged("good", None, [])
    going_on = same[0]["verdict"] not in GOOD
    try:
        found = compare(engine, baseline, row["id"], only=HEADLINES.get(row["tier"], ()))
    except (InputError, ResultsUnavailable) as error:
        log.warning("%s; accept the new level with: yarus alerts accept %s", error, row["id"])
        return Judged(same[0]["verdict"] if going_on else "good", baseline, [])
    changes = [
        {"metric": name, **{part: metric[part] for part in ("a", "b", "difference", "p", "p_holm")}}
        for name, metric in found["metrics"].items()
        if metric["verdict"] == "regressed" or (going_on and _worse(name, metric))
    ]
    return Judged("regressed" if changes else "good", baseline, changes)


def verdicts(engine: Engine, tier: str, source: str) -> list[RowMapping]:
    """What nights have said of a tier over a source, newest first, with each evaluation's comparability key."""
    kept = (nightly_verdict, evaluation.c.comparability_key, evaluation.c.tier, evaluation.c.source)
    answers_of = evaluation.c.resolved["answers_of"].astext.label("answers_of")
    wanted = select(*kept, answers_of, evaluation.c.error).join(evaluation).order_by(evaluation.c.started_at.desc())
    with engine.connect() as connection:
        rows = connection.execute(wanted.where(evaluation.c.tier == tier, evaluation.c.source == source))
        return list(rows.mappings())


def incidents(engine: Engine) -> list[Document]:
    """The incidents that go on: the evaluation that began each, its tier, source, verdict and what is worse now."""
    kept = (evaluation.c.tier, evaluation.c.source)
    with engine.connect() as connection:
        places = connection.execute(select(*kept).join(nightly_verdict).distinct().order_by(*kept)).all()
    found = []
    for tier, source in places:
        every = verdicts(engine, tier, source)
        for key, answers_of in dict.fromkeys((row["comparability_key"], row["answers_of"]) for row in every):
            rows = [row for row in every if row["answers_of"] == answers_of]
            # A night that fails has no key, and any other ends it; another key ends an incident by being good.
            same = _of_key(rows, key) if key else _just_failed(rows)
            over = rows[0]["comparability_key"] != key and rows[0]["verdict"] in GOOD
            if same and same[0]["verdict"] not in GOOD and not over:
                last = same[0]
                first = _first_bad(same)
                found.append(
                    {"incident": first, "tier": tier, "source": source, "comparability_key": key}
                    | {"verdict": last["verdict"], "nights": _bad_nights(same), "last": last["evaluation_id"]}
                    | {"baseline": last["baseline"], "changes": last["changes"], "error": last["error"]}
                )
    return found


def accept(engine: Engine, name: str) -> Document:
    """Takes the level of a night's evaluation for good: its incident is over, the next nights are compared with it.

    Raises:
        InputError: no such evaluation, no night has judged it, or it has nothing to be compared with.
    """
    row = journal.find(engine, name)
    if row["state"] != "completed":
        raise InputError(
            f"evaluation {row['id']} is {row['state']}: nothing can be compared with it, so it is no level"
        )
    judged = nightly_verdict.c.evaluation_id == row["id"]
    with engine.begin() as connection:
        if not connection.execute(update(nightly_verdict).where(judged).values(verdict="accepted")).rowcount:
            raise InputError(f"evaluation {row['id']} is of no night; `yarus alerts list` shows what is open")
    return {"evaluation_id": row["id"], "verdict": "accepted"}


def _of_key(rows: list[RowMapping], key: str | None) -> list[RowMapping]:
    """The verdicts on what was measured in that way; one that failed was not, even where it was finished later."""
    return [row for row in rows if row["comparability_key"] == key and row["verdict"] != "failed"]


def _just_failed(rows: list[RowMapping]) -> list[RowMapping]:
    """The verdicts of the last nights, newest first, as far back as all of them failed."""
    return list(takewhile(lambda row: row["verdict"] == "failed", rows))


def _worse(name: str, metric: Document) -> bool:
    """Whether a metric alone is shown to be worse, whatever the others are."""
    if metric["p"] is None or metric["difference"] is None or metric["p"] >= ALPHA:
        return False
    return bool((metric["difference"] < 0) == (METRICS[name].better == "higher"))


def _keep(engine: Engine, evaluation_id: str, judged: Judged) -> bool:
    """Writes the verdict down; False where a night has done so before, unless it had only failed."""
    said = judged._asdict()
    write = insert(nightly_verdict).values(evaluation_id=evaluation_id, **said)
    unless_done = write.on_conflict_do_update(
        index_elements=["evaluation_id"], set_=said, where=nightly_verdict.c.verdict == "failed"
    )
    with engine.begin() as connection:
        return bool(connection.execute(unless_done).rowcount)


def _bad_nights(same: list[RowMapping]) -> int:
    return next((n for n, row in enumerate(same) if row["verdict"] in GOOD), len(same))


def _first_bad(same: list[RowMapping]) -> str:
    return str(same[max(_bad_nights(same) - 1, 0)]["evaluation_id"])


def _tell(what: str, row: RowMapping, judged: Judged, incident: str) -> None:
    words = TEXTS[settings().language]
    said = "; ".join(words["change"].format(**change) for change in judged.changes)
    why = "" if judged.verdict in GOOD else words[judged.verdict].format(changes=said, error=row["error"])
    text = words[what].format(tier=row["tier"], source=row["source"], what=why, id=incident)
    log.warning(text)
    first: Document = judged.changes[0] if judged.changes else {}
    payload = {
        "text": text,
        "evaluation_id": row["id"],
        "incident": incident,
        "verdict": judged.verdict,
        "baseline": judged.baseline,
        "metric": first.get("metric"),
        "change": first.get("difference"),
        "changes": judged.changes,
        **{name: row[name] for name in ("tier", "source", "sut_label", "comparability_key")},
    }
    tell(f"{INCIDENT}.{what}", incident, payload, flow_run_id=row["flow_run_id"])
