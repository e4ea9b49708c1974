"""The index: the evaluations with their main numbers, newest first, page by page, and the reports that show them."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Engine, Row, select
from sqlalchemy.engine import RowMapping

from yarus.db import journal
from yarus.db.stores.exams import Sat
from yarus.db.tables import config_at, evaluation, evaluation_metric
from yarus.tasks.cases.vocabulary import HEADLINE_STRATUM
from yarus.tasks.config.texts import LANGUAGES, Text, texts
from yarus.tasks.config.tiers import TIERS
from yarus.tasks.evaluation.config import EvaluationConfig
from yarus.tasks.evaluation.numbers import grade_text, shown
from yarus.tasks.evaluation.standings import exams_of, standings
from yarus.tasks.evaluation.summary import metric_summary
from yarus.tasks.report.embedded_data import Document, as_script
from yarus.tasks.report.render import Live, rendered, script

MOST = 2_000
"""Evaluations listed, the newest."""
PAGE = 50
"""Evaluations on a page."""
REPORTS = 2_000
"""Reports that are linked, the newest."""
HEAD = 4_096
"""Bytes of a report in which its evaluations are named."""
NAME = "index.html"
INDEX = re.compile(r"index(-\d+)?\.html")
"""The names of its pages."""
NEWEST = "newest.html"
"""Where a server shows the newest evaluation of every tier."""


class Listing(NamedTuple):
    """What the index lists, and where the report of each is."""

    rows: list[RowMapping]
    reports: dict[str, str]
    """Evaluation -> the file of the newest report that shows it."""

    @property
    def pages(self) -> list[str]:
        """The file names of its pages, at least one: `index.html`, `index-2.html` and so on."""
        return [NAME, *(f"index-{place // PAGE + 1}.html" for place in range(PAGE, len(self.rows), PAGE))]


def listing(engine: Engine, folder: Path) -> Listing:
    """The newest evaluations, and the reports in a folder."""
    # Of a tier that is no more (a contributor's, that was taken out), nobody knows what it is judged by.
    rows = [row for row in journal.listing(engine, limit=MOST) if row["tier"] in TIERS]
    return Listing(rows, _reports(folder))


def index_page(engine: Engine, listed: Listing, number: int, language: str, live: Live | None = None) -> str:
    """A page of the index.

    Args:
        engine: of our own database.
        listed: all that is to be listed.
        number: of the page, from 0.
        language: that it opens in.
        live: what a server says of the pages that it makes: of every finished evaluation it has a report.
    """
    rows = listed.rows[number * PAGE : (number + 1) * PAGE]
    main = _main_numbers(engine, [row["id"] for row in rows])
    linked = (listed.reports[row["id"]] for row in listed.rows if row["id"] in listed.reports)
    return rendered(
        "index.html",
        language,
        live=live,
        title=f"{texts('report.page', language)['index title']} · Yarus",
        newest=NEWEST if live and listed.rows else next(linked, None),
        script=script(("page.js", "live.js", "tables.js", "index.js")),
        data=as_script({"words": {name: texts("report.live", name) for name in LANGUAGES}}),
        n=len(listed.rows),
        most=MOST,
        pages=listed.pages,
        evaluations=[_listed(row, main.get(row["id"]), listed.reports.get(row["id"]), live) for row in rows],
        here=number,
        first=number * PAGE + 1,
    )


def _listed(row: RowMapping, main: Document | None, saved: str | None, live: Live | None) -> Document:
    kept = {name: row[name] for name in ("id", "tier", "source", "state", "sut_label", "n_cases", "name", "tags")}
    finished = row["state"] in journal.FINISHED
    told = {
        "started": f"{row['started_at']:%Y-%m-%d %H:%M}",
        "metric": TIERS[row["tier"]].headlines[0],
        "report": f"{row['id']}.html" if live and finished else saved,
        "saved": saved if live and saved != f"{row['id']}.html" else None,
        "finished": finished,
    }
    return kept | told | (main or {"value": "—", "grade": None})


def _reports(folder: Path) -> dict[str, str]:
    """Evaluation -> the file name of the newest report that shows it."""
    found: dict[str, str] = {}
    paths = sorted(folder.glob("*.html"), key=lambda path: path.stat().st_mtime)
    for path in [path for path in paths if not INDEX.fullmatch(path.name)][-REPORTS:]:
        with path.open("rb") as file:
            head = file.read(HEAD).decode("utf-8", errors="replace")
        named = re.search(r'name="yarus-evaluations" content="([^"]*)"', head)
        found |= dict.fromkeys(named[1].split() if named else [], path.name)
    return found


def _main_numbers(engine: Engine, evaluation_ids: list[str]) -> dict[str, Document]:
    """Evaluation -> its first headline metric."""
    of = evaluation_metric.c
    first = {tier.headlines[0] for tier in TIERS.values()}
    found = (
        select(
            of.evaluation_id, of.metric, of.value, of.reason, of.ci_low, of.ci_high, of.n_scored, of.n_total, of.labels,
            config_at("judge").label("judge"), evaluation.c.started_at, evaluation.c.tier,
        )
        .join(evaluation)
        .where(of.evaluation_id.in_(evaluation_ids), of.metric.in_(first), of.stratum.in_(["", HEADLINE_STRATUM]))
    )  # fmt: skip
    with engine.connect() as connection:
        rows = connection.execute(found).all()
    sat = exams_of(engine, [EvaluationConfig.model_construct(judge=row.judge) for row in rows if row.judge])
    return {
        row.evaluation_id: {"value": shown(row.metric, row.value), "grade": _grade(row, sat)}
        for row in rows
        if row.metric == TIERS[row.tier].headlines[0]
    }


def _grade(row: Row[Any], sat: Mapping[str, Sat]) -> Text | None:
    by_prompt = standings(sat, EvaluationConfig.model_construct(judge=row.judge), row.started_at) if row.judge else {}
    return grade_text(metric_summary(row._mapping, 0, by_prompt))
