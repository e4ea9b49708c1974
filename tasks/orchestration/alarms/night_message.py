"""The one message of a night: every incident that began or ended in it, each cause said once, and where to look."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from yarus.tasks.config.settings import settings
from yarus.tasks.orchestration.events import NIGHT, report_page, run_page, tell
from yarus.tasks.texts import Section, texts

TellsOf = Mapping[str, Any]
"""An incident that began or ended, as the payload of its event tells of it."""
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
