"""Check at the start of `yarus serve` what runs at night: from which source, and whether that is possible."""

import re
from typing import NamedTuple

from sqlalchemy import func, select

from yarus.db.errors import DatabaseUnavailable, InputError
from yarus.db.source_rows import require_source_tables
from yarus.db.sources import PRODUCTION, open_snapshot
from yarus.db.tables import JsonObject
from yarus.tasks.config.connections import open_source
from yarus.tasks.config.redaction import redact_urls
from yarus.tasks.config.settings import get_settings
from yarus.tasks.config.texts import texts
from yarus.tasks.config.texts.messages import told

DAILY = re.compile(r"(\d{1,2}) (\d{1,2}) \* \* \*")
"""A cron expression of a daily time."""


class NightlyPlan(NamedTuple):
    """The planned night."""

    when: str
    source: str
    problem: str | None
    """Why it could not run now, and how to fix it."""
    possible: bool
    """Whether it stays on the schedule: an unreachable source may recover by night, a missing setting will not."""

    @property
    def sentence(self) -> str:
        """Return the message about the night when `yarus serve` starts."""
        words = texts("night", get_settings().language)
        key = "planned" if self.problem is None else "doubtful" if self.possible else "off"
        return words[key].format(when=self.when, source=self.source, problem=self.problem)


def plan_night(deployments: list[JsonObject], source: str | None) -> NightlyPlan:
    """Check the source of the night, and deactivate the night's schedule if it does not exist.

    Args:
        deployments: the deployments of prefect.yaml; the night's is changed.
        source: the source of the night, instead of the declared one.
    """
    [nightly] = [deployment for deployment in deployments if deployment["name"] == "nightly"]
    parameters = nightly["parameters"]["parameters"]
    name = parameters["source"] = source or parameters["source"]
    problem, possible = _find_problem(name)
    for schedule in nightly["schedules"]:
        schedule["active"] = schedule["active"] and possible
    return NightlyPlan(", ".join(map(_format_schedule, nightly["schedules"])), name, problem, possible)


def _find_problem(name: str) -> tuple[str | None, bool]:
    """Return the problem of a source, and whether it may disappear by itself until night."""
    words = texts("night", get_settings().language)
    if name == PRODUCTION and get_settings().source_url is None:
        return words["not configured"], False
    try:
        source = open_source(name)
    except InputError as error:
        return redact_urls(told(error, get_settings().language)), False
    try:
        require_source_tables(source)
        with open_snapshot(source) as connection:
            questions = connection.scalar(select(func.count()).select_from(source.tables["question_answer"]))
    except (InputError, DatabaseUnavailable) as error:
        return redact_urls(told(error, get_settings().language)), True
    return (None if questions else words["empty"].format(source=name)), True


def _format_schedule(schedule: JsonObject) -> str:
    daily = DAILY.fullmatch(schedule["cron"])
    return f"{f'{daily[2]:0>2}:{daily[1]:0>2}' if daily else schedule['cron']}, {schedule['timezone']}"
