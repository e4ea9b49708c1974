"""Index of evaluations with their headline numbers, newest first, paginated, with links to reports."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Engine, Row, select
from sqlalchemy.engine import RowMapping

from yarus.db import journal
from yarus.db.stores.exams import ExamRecord
from yarus.db.tables import config_value, evaluation, evaluation_metric
from yarus.tasks.cases.vocabulary import HEADLINE_STRATUM
from yarus.tasks.config.texts import LANGUAGES, TranslatedText, texts
from yarus.tasks.config.tiers import TIERS
from yarus.tasks.evaluation.config import EvaluationConfig
from yarus.tasks.evaluation.judge_standing import judge_standings, read_newest_exams
from yarus.tasks.evaluation.number_format import format_grade, format_metric
from yarus.tasks.evaluation.summary import metric_summary
from yarus.tasks.report.embedded_data import Document, to_script_json
from yarus.tasks.report.render import LivePageState, join_scripts, render_template

MAX_EVALUATIONS = 2_000
"""Maximum number of listed evaluations, the newest ones."""
PAGE_SIZE = 50
"""Evaluations per page."""
MAX_REPORTS = 2_000
"""Maximum number of linked reports, the newest ones."""
HEAD_BYTES = 4_096
"""Bytes at the start of a report that name its evaluations."""
INDEX_NAME = "index.html"
INDEX_PATTERN = re.compile(r"index(-\d+)?\.html")
"""Pattern of file names of index pages."""
NEWEST_NAME = "newest.html"
"""Page of a server with the newest evaluation of every tier."""


class Listing(NamedTuple):
    """Evaluations in the index, and the reports of each."""

    rows: list[RowMapping]
    reports: dict[str, str]
    """Evaluation -> file of the newest report that shows it."""

    @property
    def pages(self) -> list[str]:
        """Return the file names of the pages, at least one: `index.html`, `index-2.html` and so on."""
        return [
            INDEX_NAME,
            *(f"index-{start // PAGE_SIZE + 1}.html" for start in range(PAGE_SIZE, len(self.rows), PAGE_SIZE)),
        ]


def list_evaluations(engine: Engine, folder: Path) -> Listing:
    """Return the newest evaluations, and the reports in a folder."""
    # Evaluations of removed tiers are skipped, because their headline metrics are unknown.
    rows = [row for row in journal.list_evaluations(engine, limit=MAX_EVALUATIONS) if row["tier"] in TIERS]
    return Listing(rows, _find_reports(folder))


def render_index_page(
    engine: Engine, listed: Listing, number: int, language: str, live: LivePageState | None = None
) -> str:
    """Return a page of the index.

    Args:
        engine: engine of Yarus's own database.
        listed: evaluations and reports to list.
        number: number of the page, from 0.
        language: language in which the page opens.
        live: state of a server's page; a server has a report of every finished evaluation.
    """
    rows = listed.rows[number * PAGE_SIZE : (number + 1) * PAGE_SIZE]
    main = _headline_numbers(engine, [row["id"] for row in rows])
    linked = (listed.reports[row["id"]] for row in listed.rows if row["id"] in listed.reports)
    return render_template(
        "index.html",
        language,
        live=live,
        title=f"{texts('report.page', language)['index title']} · Yarus",
        newest=NEWEST_NAME if live and listed.rows else next(linked, None),
        script=join_scripts(("page.js", "live.js", "tables.js", "index.js")),
        data=to_script_json({"words": {name: texts("report.live", name) for name in LANGUAGES}}),
        n=len(listed.rows),
        most=MAX_EVALUATIONS,
        pages=listed.pages,
        evaluations=[_listed_view(row, main.get(row["id"]), listed.reports.get(row["id"]), live) for row in rows],
        here=number,
        first=number * PAGE_SIZE + 1,
    )


def _listed_view(row: RowMapping, main: Document | None, saved: str | None, live: LivePageState | None) -> Document:
    row_values = {name: row[name] for name in ("id", "tier", "source", "state", "sut_label", "n_cases", "name", "tags")}
    finished = row["state"] in journal.FINISHED_STATES
    view = {
        "started": f"{row['started_at']:%Y-%m-%d %H:%M}",
        "metric": TIERS[row["tier"]].headlines[0],
        "report": f"{row['id']}.html" if live and finished else saved,
        "saved": saved if live and saved != f"{row['id']}.html" else None,
        "finished": finished,
    }
    return row_values | view | (main or {"value": "—", "grade": None})


def _find_reports(folder: Path) -> dict[str, str]:
    """Return evaluation -> file name of the newest report that shows it."""
    reports: dict[str, str] = {}
    paths = sorted(folder.glob("*.html"), key=lambda path: path.stat().st_mtime)
    for path in [path for path in paths if not INDEX_PATTERN.fullmatch(path.name)][-MAX_REPORTS:]:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES).decode("utf-8", errors="replace")
        match = re.search(r'name="yarus-evaluations" content="([^"]*)"', head)
        reports |= dict.fromkeys(match[1].split() if match else [], path.name)
    return reports


def _headline_numbers(engine: Engine, evaluation_ids: list[str]) -> dict[str, Document]:
    """Return evaluation -> its first headline metric."""
    columns = evaluation_metric.c
    headlines = {tier.headlines[0] for tier in TIERS.values()}
    statement = (
        select(
            columns.evaluation_id, columns.metric, columns.value, columns.reason, columns.ci_low, columns.ci_high,
            columns.n_scored, columns.n_total, columns.labels, config_value("judge").label("judge"),
            evaluation.c.started_at, evaluation.c.tier,
        )
        .join(evaluation)
        .where(
            columns.evaluation_id.in_(evaluation_ids), columns.metric.in_(headlines),
            columns.stratum.in_(["", HEADLINE_STRATUM]),
        )
    )  # fmt: skip
    with engine.connect() as connection:
        rows = connection.execute(statement).all()
    exams = read_newest_exams(engine, [EvaluationConfig.model_construct(judge=row.judge) for row in rows if row.judge])
    return {
        row.evaluation_id: {"value": format_metric(row.metric, row.value), "grade": _format_row_grade(row, exams)}
        for row in rows
        if row.metric == TIERS[row.tier].headlines[0]
    }


def _format_row_grade(row: Row[Any], exams: Mapping[str, ExamRecord]) -> TranslatedText | None:
    by_prompt = (
        judge_standings(exams, EvaluationConfig.model_construct(judge=row.judge), row.started_at) if row.judge else {}
    )
    return format_grade(metric_summary(row._mapping, 0, by_prompt))
