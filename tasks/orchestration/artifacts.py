"""What Prefect's UI shows of a finished evaluation or night: its metrics, what they say, and its gate.

Nothing here may harm an evaluation: where there is no flow run there is nothing to show, and a server that does not
answer is passed over.
"""

import asyncio
import logging
from pathlib import Path

from prefect.artifacts import acreate_link_artifact, acreate_markdown_artifact, acreate_table_artifact
from prefect.context import FlowRunContext

from yarus.db.errors import InputError
from yarus.tasks.config.connections import database
from yarus.tasks.config.settings import settings
from yarus.tasks.evaluation.progress import artifact_key, best_effort, show_size
from yarus.tasks.orchestration.artifact_tables import (
    changes_since,
    gate_markdown,
    metric_rows,
    night_changes,
    night_text,
    verdict_text,
)
from yarus.tasks.orchestration.events import report_page, tell_finished
from yarus.tasks.results.summary import EvaluationSummary, Night, measured
from yarus.tasks.texts import texts

log = logging.getLogger("yarus")


async def show_results(summary: EvaluationSummary) -> None:
    """Shows the metrics of a finished evaluation as a table, and the verdict with the worst cases as a text."""
    if FlowRunContext.get() is None:
        return
    language, tier, source = settings().language, summary["tier"], summary["source"]
    await show_size(tier, source, summary["n_cases"] or 0)
    changes = await asyncio.to_thread(changes_since, database(), summary)
    tell_finished(summary, changes)
    table = metric_rows(summary, changes, language)
    text = await asyncio.to_thread(verdict_text, summary, changes, language, settings().report_url)
    name = summary["evaluation_id"]
    await best_effort(acreate_table_artifact(table, key=artifact_key(tier, source, "metrics"), description=name))
    await best_effort(acreate_markdown_artifact(text, key=artifact_key(tier, source, "verdict"), description=name))
    await _link(report_page(f"{name}.html"), tier, source, name)


async def show_gate(summary: EvaluationSummary) -> None:
    """Shows what the gate of YARUS_GATE_FILE says of an evaluation, where it has a rule for its tier."""
    if "gate" in summary and FlowRunContext.get() is not None:
        text, name = gate_markdown(summary, settings().language), summary["evaluation_id"]
        key = artifact_key(summary["tier"], summary["source"], "gate")
        await best_effort(acreate_markdown_artifact(text, key=key, description=name))


async def report_of(night: Night) -> Path | None:
    """Writes the report of a night; None where nothing was measured, or it cannot be written: the night is whole."""
    from yarus.tasks.report.write import report

    names = [summary["evaluation_id"] for summary in measured(night)]
    try:
        return await asyncio.to_thread(report, database(), names) if names else None
    except (InputError, OSError) as error:
        log.warning("the report of the night could not be written: %s", error)
        return None


async def show_night(night: Night, source: str, page: Path | None) -> None:
    """Shows what every tier of a night came to, in one text.

    Args:
        night: the state and the summaries.
        source: where the questions came from.
        page: its report.
    """
    if FlowRunContext.get() is not None:
        language = settings().language
        changes = await asyncio.to_thread(night_changes, database(), night)
        text = night_text(night, changes, language, _address(page))
        await best_effort(
            acreate_markdown_artifact(text, key=artifact_key("nightly", source, "summary"), description=source)
        )
        await _link(report_page(page.name) if page else None, "nightly", source, source)


async def _link(address: str | None, flow: str, source: str, of: str) -> None:
    """Shows where the report of a run is read, where it is served."""
    if address:
        text = texts("artifacts", settings().language)["report"]
        key = artifact_key(flow, source, "report")
        await best_effort(acreate_link_artifact(address, link_text=text, key=key, description=of))


def _address(page: Path | None) -> str:
    """Where the report is: served, or a file."""
    return "—" if page is None else report_page(page.name) or str(page)
