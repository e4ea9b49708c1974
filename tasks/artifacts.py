"""What Prefect's UI shows of an evaluation: its name with its size, its progress, its metrics, and what they say.

Nothing here may harm an evaluation: where there is no flow run there is nothing to show, and a server that does not
answer is passed over.
"""

import asyncio
import logging
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
from prefect.artifacts import (
    acreate_markdown_artifact,
    acreate_progress_artifact,
    acreate_table_artifact,
    aupdate_progress_artifact,
)
from prefect.client.orchestration import PrefectClient
from prefect.context import FlowRunContext
from prefect.exceptions import PrefectException

from db.errors import InputError
from tasks.artifact_texts import changes_since, gate_markdown, metric_rows, night_text, tier_rows, verdict_text
from tasks.connect import database
from tasks.events import tell_finished
from tasks.run import Run
from tasks.settings import settings

log = logging.getLogger("yarus")
Document = dict[str, Any]
LONG = 4
"""Batches; a shorter evaluation is over before anybody has looked at its progress."""
EVERY_S = 1.0
PATIENCE_S = 10.0


@asynccontextmanager
async def progress(run: Run, done: int) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Puts the size into the flow run's name, and shows how far a long evaluation is.

    Args:
        run: with its cases loaded.
        done: batches that an earlier try has finished.

    Yields:
        What to call after every batch.
    """
    shown: UUID | None = None
    if run.n_batches > LONG:
        await show_size(run)
        key = _key(run.tier, run.parameters.source, "progress")
        shown = await _told(acreate_progress_artifact(progress=_percent(done, run), key=key))
    said = time.monotonic()

    async def advance() -> None:
        nonlocal done, said
        done += 1
        if shown is not None and (time.monotonic() - said >= EVERY_S or done == run.n_batches):
            said = time.monotonic()
            await _told(aupdate_progress_artifact(shown, progress=_percent(done, run)))

    yield advance


async def show_size(run: Run) -> None:
    """Names the flow run by tier, source and number of cases, which is known only now."""
    context = FlowRunContext.get()
    if context is not None and context.flow_run is not None and isinstance(context.client, PrefectClient):
        name = f"{run.tier} {run.parameters.source} · {run.n_cases}"
        await _told(context.client.update_flow_run(context.flow_run.id, name=name))


async def show_results(run: Run, summary: Document) -> None:
    """Shows the metrics as a table, and the verdict with the worst cases as a text.

    Args:
        run: a finished evaluation.
        summary: of it.
    """
    if FlowRunContext.get() is None:
        return
    if run.n_batches <= LONG:
        await show_size(run)
    language, tier, source = settings().language, summary["tier"], summary["source"]
    changes = await asyncio.to_thread(changes_since, database(), summary)
    tell_finished(summary, changes)
    table = metric_rows(summary, changes, language)
    text = await asyncio.to_thread(verdict_text, summary, changes, language, settings().report_url)
    name = summary["evaluation_id"]
    await _told(acreate_table_artifact(table, key=_key(tier, source, "metrics"), description=name))
    await _told(acreate_markdown_artifact(text, key=_key(tier, source, "verdict"), description=name))


async def show_gate(summary: Document) -> None:
    """Shows what the gate of YARUS_GATE_FILE says of an evaluation, where it has a rule for its tier."""
    if "gate" in summary and FlowRunContext.get() is not None:
        text, name = gate_markdown(summary, settings().language), summary["evaluation_id"]
        key = _key(summary["tier"], summary["source"], "gate")
        await _told(acreate_markdown_artifact(text, key=key, description=name))


async def report_of(night: Document) -> Path | None:
    """Writes the report of a night; None where nothing was measured, or it cannot be written: the night is whole."""
    from tasks.pages import report

    names = [summary["evaluation_id"] for summary in night["evaluations"] if summary.get("metrics")]
    try:
        return await asyncio.to_thread(report, database(), names) if names else None
    except (InputError, OSError) as error:
        log.warning("the report of the night could not be written: %s", error)
        return None


async def show_night(night: Document, source: str, page: Path | None) -> None:
    """Shows what every tier of a night came to, in one text.

    Args:
        night: the state and the summaries.
        source: where the questions came from.
        page: its report.
    """
    if FlowRunContext.get() is not None:
        language = settings().language
        rows = await asyncio.to_thread(tier_rows, database(), night, language)
        text = night_text(night, rows, language, _address(page))
        await _told(acreate_markdown_artifact(text, key=_key("nightly", source, "summary"), description=source))


def _address(page: Path | None) -> str:
    """Where the report is: served, or a file."""
    served = settings().report_url
    if page is None:
        return "—"
    return f"{served.rstrip('/')}/{page.name}" if served else str(page)


async def _told(request: Awaitable[Any]) -> Any:
    """What Prefect's server answered; None where it did not, for the record is ours."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            return await request
    except (httpx.HTTPError, PrefectException, TimeoutError) as error:
        log.warning("Prefect's server could not be shown the results (%s); they are whole", type(error).__name__)
        return None


def _percent(done: int, run: Run) -> float:
    return 100.0 * done / run.n_batches


def _key(*parts: str) -> str:
    """A key as Prefect allows it: small letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", "-".join(parts).lower()).strip("-")
