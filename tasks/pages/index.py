"""The index: every evaluation with its main number, and the reports that show it."""

import re
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, select

from db import journal
from db.tables import evaluation_metric
from metrics.table import GRADE_LABELS
from tasks.guidance import HEADLINES
from tasks.pages import words
from tasks.pages.numbers import shown
from tasks.pages.page import rendered, script
from tasks.report import HEADLINE

Document = dict[str, Any]
MOST = 2_000
"""Evaluations listed, the newest."""
HEAD = 4_096
"""Bytes of a report in which its evaluations are named."""


def render_index(engine: Engine, folder: Path, language: str) -> str:
    """The index over the newest evaluations, with links to the reports in a folder."""
    rows = journal.listing(engine, limit=MOST)
    reports = _reports(folder)
    main = _main_numbers(engine)
    listed = [
        {
            "id": row["id"],
            "tier": row["tier"],
            "source": row["source"],
            "state": row["state"],
            "started": f"{row['started_at']:%Y-%m-%d %H:%M}",
            "sut_label": row["sut_label"],
            "n_cases": row["n_cases"],
            "metric": HEADLINES[row["tier"]][0],
            **main.get(row["id"], {"value": "—", "grade": None}),
            "report": reports.get(row["id"]),
        }
        for row in rows
    ]
    newest = next((one["report"] for one in listed if one["report"]), None)
    return rendered(
        "index.html",
        language,
        title=f"{words.WORDS['index title'][language]} · Yarus",
        evaluations=listed,
        newest=newest,
        script=script(("base.js", "index.js")),
    )


def _reports(folder: Path) -> dict[str, str]:
    """Evaluation -> the file name of the newest report that shows it."""
    found: dict[str, str] = {}
    for path in sorted(folder.glob("*.html"), key=lambda path: path.stat().st_mtime):
        with path.open("rb") as file:
            head = file.read(HEAD).decode("utf-8", errors="replace")
        named = re.search(r'name="yarus-evaluations" content="([^"]*)"', head)
        found |= dict.fromkeys(named[1].split() if named else [], path.name)
    return found


def _main_numbers(engine: Engine) -> dict[str, Document]:
    """Evaluation -> its first headline metric."""
    of = evaluation_metric.c
    first = {names[0] for names in HEADLINES.values()}
    found = select(of.evaluation_id, of.metric, of.value, of.grade).where(
        of.metric.in_(first), of.stratum.in_(["", HEADLINE])
    )
    with engine.connect() as connection:
        rows = connection.execute(found).all()
    return {
        row.evaluation_id: {"value": shown(row.metric, row.value), "grade": GRADE_LABELS.get(row.grade)}
        for row in rows
        if row.metric == HEADLINES[_tier(row.evaluation_id)][0]
    }


def _tier(evaluation_id: str) -> str:
    return evaluation_id.split("-")[0]
