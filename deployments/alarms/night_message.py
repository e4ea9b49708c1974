"""The one message of a night: every incident that began or ended, each cause once, and where to look."""

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Engine
from sqlalchemy.engine import RowMapping

from yarus.db.errors import InputError, ResultsUnavailable
from yarus.deployments.alarms.levels import LevelVerdict
from yarus.deployments.prefect.events import INCIDENT, NIGHT, report_page, run_page, tell
from yarus.tasks.cases.privacy import pseudonyms
from yarus.tasks.comparison.explanation.explain import explain
from yarus.tasks.comparison.explanation.largest import sentences
from yarus.tasks.config.settings import settings
from yarus.tasks.config.texts import Section, texts
from yarus.tasks.config.texts.messages import told
from yarus.tasks.evaluation.findings.persistence import persistence_sentences
from yarus.tasks.evaluation.findings_schema import Persistence

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


TellsOf = Mapping[str, Any]
"""An incident that began or ended, as the payload of its event tells of it."""


def incident_payload(
    what: str,
    row: RowMapping,
    found: LevelVerdict,
    incident: str,
    why_fell: Sequence[str] = (),
    asked: Persistence | None = None,
) -> TellsOf:
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


ALSO: tuple[str, ...] = ("incident", "evaluation_id", "tier", "verdict", "baseline", "metric", "change", "changes")
ALSO += ("moved", "asked_again", "sut_label", "comparability_key")
"""What a message says of its first incident outside of the list, for templates that know one alone."""


class NightMessage:
    """What a night tells of when it has ended."""

    def __init__(self, source: str) -> None:
        self._source = source
        self.incidents: list[TellsOf] = []
        self.report: Path | None = None
        """The night's page, where something was measured."""

    def add(self, incident: TellsOf) -> None:
        """One more incident that began or ended."""
        self.incidents.append(incident)

    def send(self) -> None:
        """Emits `yarus.night.changed`, where anything began or ended."""
        from prefect.runtime import flow_run  # here, because whoever lists incidents sends none

        night = flow_run.get_id()
        if not self.incidents or night is None:
            return
        began_first = sorted(self.incidents, key=lambda one: one["what"] != "opened")
        run = run_page(night)
        payload = {
            **{name: began_first[0][name] for name in ALSO},
            "text": night_text(self._source, began_first, settings().language),
            "source": self._source,
            "incidents": began_first,
            "run": run,
            "link": (report_page(self.report.name) if self.report else None) or run,
        }
        tell(f"{NIGHT}.changed", night, payload, flow_run_id=night)


@contextmanager
def one_message(source: str) -> Iterator[NightMessage]:
    """Gathers what a night tells of, and sends it when the block ends, also where it is stopped."""
    message = NightMessage(source)
    try:
        yield message
    finally:
        message.send()


def night_text(source: str, incidents: Sequence[TellsOf], language: str) -> str:
    """What began and what ended, a line each; what has one cause is one line.

    Args:
        source: where the questions came from.
        incidents: those that began first.
        language: of the text.
    """
    words = texts("night_message", language)
    lines: dict[tuple[str, str], list[str]] = {}
    for one in incidents:
        tiers = lines.setdefault(_line(one, words), [])
        name = texts(f"tiers.{one['tier']}", language)["sentence"]
        name = words["anchor"].format(tier=name) if one["anchor"] else name
        tiers.extend([name] if name not in tiers else [])
    said = (words[kind].format(tiers=", ".join(tiers), why=why) for (kind, why), tiers in lines.items())
    return "\n".join([words["head"].format(source=source), *said])


def _line(one: TellsOf, words: Section) -> tuple[str, str]:
    """The kind of an incident's line and its cause; equal ones are said together."""
    if one["what"] == "closed":
        return "closed", ""
    if one["verdict"] != "regressed":
        # How to go on differs from tier to tier; that of the night is to retry it.
        return one["verdict"], re.sub(rf"; [^;]*\byarus run {one['tier']} --.*$", "", one["error"])
    return "regressed", one["why"]
