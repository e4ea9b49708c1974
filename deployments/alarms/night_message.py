"""Compose the single message of a night: every incident that began or ended, each cause once, and a link."""

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
from yarus.deployments.prefect.events import INCIDENT, NIGHT, emit, report_page_url, run_page_url
from yarus.tasks.cases.privacy import pseudonyms
from yarus.tasks.comparison.explanation.explain import explain
from yarus.tasks.comparison.explanation.largest_changes import explanation_sentences
from yarus.tasks.config.settings import get_settings
from yarus.tasks.config.texts import TextSection, texts
from yarus.tasks.config.texts.messages import told
from yarus.tasks.evaluation.config import EvaluationConfig
from yarus.tasks.evaluation.findings.persistence import persistence_sentences
from yarus.tasks.evaluation.findings_schema import Persistence
from yarus.tasks.evaluation.guidance import tier_rank
from yarus.tasks.evaluation.judge_standing import find_stand_in_metrics

log = logging.getLogger("yarus")


def explain_loss(engine: Engine, row: RowMapping, verdict: LevelVerdict) -> list[str]:
    """Return why the level fell, in sentences; empty if that is unknown."""
    if verdict.verdict != "regressed" or verdict.baseline is None:
        return []
    try:
        causes = explain(engine, verdict.baseline, row["id"], only=[change["metric"] for change in verdict.changes])
    except (InputError, ResultsUnavailable) as error:
        log.warning("%s: %s", row["id"], error)
        return []
    return list(explanation_sentences(causes, get_settings().language))


IncidentPayload = Mapping[str, Any]
"""An incident that began or ended, as the payload of its event."""


def make_payload(
    what: str,
    row: RowMapping,
    verdict: LevelVerdict,
    incident: str,
    why_fell: Sequence[str] = (),
    persistence: Persistence | None = None,
) -> IncidentPayload:
    """Return the payload of an incident that begins or ends.

    Args:
        what: opened or closed.
        row: the row of the evaluation that begins or ends it.
        verdict: its verdict.
        incident: the evaluation that began it.
        why_fell: sentences from `explain_loss`.
        persistence: the result of asking the changed questions again.
    """
    words = texts("incidents", get_settings().language)
    changes_text = "; ".join(words["change"].format(**change) for change in verdict.changes)
    error = told(pseudonyms.mask_message(row["error"] or "", row["source"]), get_settings().language)
    cause = words[verdict.verdict].format(changes=changes_text, error=error) if what == "opened" else ""
    text = words[what].format(tier=row["tier"], source=row["source"], what=cause, id=incident)
    changed = [change["metric"] for change in verdict.changes]
    unjudged = sorted(find_stand_in_metrics(EvaluationConfig.of(row).document(), changed))
    remark = [words["not judged"].format(metrics=", ".join(unjudged))] if unjudged else []
    reasons = [
        *remark,
        *(sentence[get_settings().language] for sentence in persistence_sentences(persistence)),
        *why_fell,
    ]
    first = verdict.changes[0] if verdict.changes else None
    return {
        "what": what,
        "text": " ".join([text, *reasons]),
        "why": " ".join([f"{changes_text}.", *reasons]),
        "error": error,
        "evaluation_id": row["id"],
        "incident": incident,
        "verdict": verdict.verdict,
        "baseline": verdict.baseline,
        "metric": first and first["metric"],
        "change": first and first["difference"],
        "changes": verdict.changes,
        "moved": [*why_fell],
        "asked_again": persistence,
        "anchor": row["parameters"].get("anchor"),
        **{name: row[name] for name in ("tier", "source", "sut_label", "comparability_key")},
    }


def report_incident(payload: Mapping[str, Any], flow_run_id: str | None) -> None:
    """Report an incident that begins or ends to webhooks and the log.

    Args:
        payload: the payload from `make_payload`.
        flow_run_id: the flow run of the evaluation.
    """
    log.warning(payload["text"])
    emit(f"{INCIDENT}.{payload['what']}", payload["incident"], payload, flow_run_id=flow_run_id)


FIRST_FIELDS: tuple[str, ...] = ("incident", "evaluation_id", "tier", "verdict", "baseline", "metric", "change")
FIRST_FIELDS += ("changes", "moved", "asked_again", "sut_label", "comparability_key")
"""Fields of the first incident that a message also has outside of the list, for templates of one incident."""


class NightMessage:
    """The incidents to report when a night has ended."""

    def __init__(self, source: str) -> None:
        self._source = source
        self.incidents: list[IncidentPayload] = []
        self.report: Path | None = None
        """The night's page, if something was measured."""

    def add(self, incident: IncidentPayload) -> None:
        """Add an incident that began or ended."""
        self.incidents.append(incident)

    def send(self) -> None:
        """Emit `yarus.night.changed`, if anything began or ended."""
        from prefect.runtime import flow_run  # imported here because listing incidents sends nothing

        night = flow_run.get_id()
        if not self.incidents or night is None:
            return
        began_first = sort_incidents(self.incidents)
        run = run_page_url(night)
        payload = {
            **{name: began_first[0][name] for name in FIRST_FIELDS},
            "text": format_night(self._source, began_first, get_settings().language),
            "source": self._source,
            "incidents": began_first,
            "run": run,
            "link": (report_page_url(self.report.name) if self.report else None) or run,
        }
        emit(f"{NIGHT}.changed", night, payload, flow_run_id=night)


def sort_incidents(incidents: Sequence[IncidentPayload]) -> list[IncidentPayload]:
    """Return those that began before those that ended, and of each the tiers that users notice first."""
    return sorted(incidents, key=lambda incident: (incident["what"] != "opened", tier_rank(incident["tier"])))


@contextmanager
def open_message(source: str) -> Iterator[NightMessage]:
    """Collect the incidents of a night, and send the message when the block ends, even if it is stopped."""
    message = NightMessage(source)
    try:
        yield message
    finally:
        message.send()


def format_night(source: str, incidents: Sequence[IncidentPayload], language: str) -> str:
    """Return the text of a night: one line per cause of what began and what ended.

    The first line is about what users notice most directly, and names the source.

    Args:
        source: the source of the questions.
        incidents: the incidents.
        language: the language of the text.
    """
    words = texts("night_message", language)
    lines: dict[tuple[str, str], list[str]] = {}
    for incident in sort_incidents(incidents):
        tiers = lines.setdefault(_line_key(incident, words), [])
        name = texts(f"tiers.{incident['tier']}", language)["sentence"]
        name = words["anchor"].format(tier=name) if incident["anchor"] else name
        tiers.extend([name] if name not in tiers else [])
    line_texts = (words[kind].format(tiers=", ".join(tiers), why=why) for (kind, why), tiers in lines.items())
    return words["head"].format(source=source, lines="\n".join(line_texts))


def _line_key(incident: IncidentPayload, words: TextSection) -> tuple[str, str]:
    """Return the kind and cause of an incident's line; incidents with equal ones share a line."""
    if incident["what"] == "closed":
        return "closed", ""
    if incident["verdict"] != "regressed":
        # The command to resume differs per tier; a night is retried instead.
        return incident["verdict"], re.sub(rf"; [^;]*\byarus run {incident['tier']} --.*$", "", incident["error"])
    return "regressed", incident["why"]
