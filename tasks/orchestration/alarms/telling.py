"""What is told of an incident, and why its level fell."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Engine
from sqlalchemy.engine import RowMapping

from yarus.db.errors import InputError, ResultsUnavailable
from yarus.tasks.cases import pseudonyms
from yarus.tasks.config.settings import settings
from yarus.tasks.explanation.explain import explain
from yarus.tasks.explanation.sentences import sentences
from yarus.tasks.orchestration.alarms.levels import LevelVerdict
from yarus.tasks.orchestration.events import INCIDENT, tell
from yarus.tasks.results.persistence.documents import Persistence
from yarus.tasks.results.persistence.words import persistence_sentences
from yarus.tasks.texts import texts
from yarus.tasks.texts.messages import told

log = logging.getLogger("yarus")


def moved(engine: Engine, row: RowMapping, found: LevelVerdict) -> list[str]:
    """Why the level fell, in sentences; none where that cannot be told."""
    if found.verdict != "regressed" or found.baseline is None:
        return []
    try:
        why = explain(engine, found.baseline, row["id"], only=[change["metric"] for change in found.changes])
    except (InputError, ResultsUnavailable) as error:
        log.warning("%s: %s", row["id"], error)
        return []
    return list(sentences(why, settings().language))


def incident_payload(
    what: str,
    row: RowMapping,
    found: LevelVerdict,
    incident: str,
    why_fell: Sequence[str] = (),
    asked: Persistence | None = None,
) -> dict[str, Any]:
    """What is told of an incident that begins or ends.

    Args:
        what: opened or closed.
        row: of the evaluation with which it does.
        found: its verdict.
        incident: the evaluation that began it.
        why_fell: sentences, as `moved` gives them.
        asked: what was found where the questions that changed were asked again.
    """
    words = texts("incidents", settings().language)
    said = "; ".join(words["change"].format(**change) for change in found.changes)
    error = told(pseudonyms.text(row["error"] or "", row["source"]), settings().language)
    why = words[found.verdict].format(changes=said, error=error) if what == "opened" else ""
    text = words[what].format(tier=row["tier"], source=row["source"], what=why, id=incident)
    reasons = [*(of[settings().language] for of in persistence_sentences(asked)), *why_fell]
    first = found.changes[0] if found.changes else None
    return {
        "what": what,
        "text": " ".join([text, *reasons]),
        "why": " ".join([f"{said}.", *reasons]),
        "error": error,
        "evaluation_id": row["id"],
        "incident": incident,
        "verdict": found.verdict,
        "baseline": found.baseline,
        "metric": first and first["metric"],
        "change": first and first["difference"],
        "changes": found.changes,
        "moved": [*why_fell],
        "asked_again": asked,
        "anchor": row["parameters"].get("anchor"),
        **{name: row[name] for name in ("tier", "source", "sut_label", "comparability_key")},
    }


def tell_incident(payload: Mapping[str, Any], flow_run_id: str | None) -> None:
    """Tells whoever listens, and the log, of an incident that begins or ends.

    Args:
        payload: as `incident_payload` gives it.
        flow_run_id: of the evaluation.
    """
    log.warning(payload["text"])
    tell(f"{INCIDENT}.{payload['what']}", payload["incident"], payload, flow_run_id=flow_run_id)
