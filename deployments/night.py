"""What `yarus serve` will run at night, looked at when it starts: over which source, and whether that can be."""

import re
from typing import NamedTuple

from sqlalchemy import func, select

from yarus.db.errors import DatabaseUnavailable, InputError
from yarus.db.source_rows import verify
from yarus.db.sources import PRODUCTION, snapshot
from yarus.db.tables import Json
from yarus.tasks.config.connections import source as source_of
from yarus.tasks.config.redaction import redact_urls
from yarus.tasks.config.settings import settings
from yarus.tasks.config.texts import texts
from yarus.tasks.config.texts.messages import told

DAILY = re.compile(r"(\d{1,2}) (\d{1,2}) \* \* \*")
"""A cron of every day at an hour."""


class Night(NamedTuple):
    """The night as it is planned."""

    when: str
    source: str
    problem: str | None
    """Why it could not be run now, and the way out."""
    possible: bool
    """Whether it stays on the schedule: what cannot be reached now may be by night, what is not set up will not."""

    @property
    def sentence(self) -> str:
        """What people are told when `yarus serve` starts."""
        words = texts("night", settings().language)
        said = "planned" if self.problem is None else "doubtful" if self.possible else "off"
        return words[said].format(when=self.when, source=self.source, problem=self.problem)


def plan_night(deployments: list[Json], source: str | None) -> Night:
    """Looks at the source of the night, and takes the night from the schedule where there is none.

    Args:
        deployments: as prefect.yaml declares them; the night's is changed.
        source: of the night, in place of the one that is declared.
    """
    [nightly] = [found for found in deployments if found["name"] == "nightly"]
    given = nightly["parameters"]["parameters"]
    name = given["source"] = source or given["source"]
    problem, possible = _problem(name)
    for schedule in nightly["schedules"]:
        schedule["active"] = schedule["active"] and possible
    return Night(", ".join(map(_when, nightly["schedules"])), name, problem, possible)


def _problem(name: str) -> tuple[str | None, bool]:
    """What is the matter with a source, and whether it may be mended by itself until night."""
    words = texts("night", settings().language)
    if name == PRODUCTION and settings().source_url is None:
        return words["not configured"], False
    try:
        source = source_of(name)
    except InputError as error:
        return redact_urls(told(error, settings().language)), False
    try:
        verify(source)
        with snapshot(source) as connection:
            questions = connection.scalar(select(func.count()).select_from(source.tables["question_answer"]))
    except (InputError, DatabaseUnavailable) as error:
        return redact_urls(told(error, settings().language)), True
    return (None if questions else words["empty"].format(source=name)), True


def _when(schedule: Json) -> str:
    daily = DAILY.fullmatch(schedule["cron"])
    return f"{f'{daily[2]:0>2}:{daily[1]:0>2}' if daily else schedule['cron']}, {schedule['timezone']}"
