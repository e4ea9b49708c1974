"""Begin or resume an evaluation, and close it however it ends."""

import asyncio
import logging
import secrets
import signal
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from platform import python_version
from typing import TypeVar

from prefect.runtime import flow_run
from sqlalchemy import Engine

from yarus.db import journal
from yarus.db.engine import reporting_unreachable
from yarus.db.errors import InputError, SourceChanged
from yarus.db.journal import NewEvaluation
from yarus.db.messages import Words
from yarus.db.stores.calls import share_budget
from yarus.metrics.selftest import self_test
from yarus.tasks.cases.privacy import pseudonyms
from yarus.tasks.comparison.gate_rules import configured_gate_rules
from yarus.tasks.config.checkout import find_commit
from yarus.tasks.config.connections import database
from yarus.tasks.config.parameters import Parameters
from yarus.tasks.config.redaction import escape_control_characters, redact_urls
from yarus.tasks.config.secrets import install_log_redaction
from yarus.tasks.config.settings import get_settings
from yarus.tasks.evaluation.config import EvaluationConfig
from yarus.tasks.evaluation.identity import require_same_settings
from yarus.tasks.evaluation.listing import fail_orphaned
from yarus.tasks.evaluation.process_exit import STOPPED_EXIT_CODE, force_exit_after, report_stops_as_cancelled
from yarus.tasks.evaluation.repeats import resolve_repeated_parameters
from yarus.tasks.evaluation.resources import Resources
from yarus.tasks.evaluation.result_files import make_folder
from yarus.tasks.evaluation.run import EvaluationRun
from yarus.tasks.evaluation.work_folder import download_files

P = TypeVar("P", bound=Parameters)
log = logging.getLogger("yarus")
RECORDED_PACKAGES = ("numpy", "scipy", "scikit-learn", "rapidfuzz", "sentence-transformers", "prefect", "pyarrow")
TERMINATED_S = 6.0
"""Time after SIGTERM to update the journal and Prefect's server."""


@asynccontextmanager
async def open_evaluation(tier: str, parameters: P) -> AsyncIterator[EvaluationRun[P]]:
    """Open or resume an evaluation; anything that ends it early is written into the journal.

    Prefect's retry of a flow run continues the evaluation that the run had begun.

    Raises:
        InputError: there is nothing to resume under that name, or the gate's rules are invalid.
        RuntimeError: the self-test of the metrics failed.
    """
    install_log_redaction()
    report_stops_as_cancelled()
    if problems := self_test():
        raise RuntimeError(
            f"the self-test of the metrics failed, no number can be trusted: {problems[0]}; reinstall Yarus"
        )
    configured_gate_rules()  # mistakes in it are found now, before any cost
    engine = await asyncio.to_thread(database)
    fail_orphaned(engine)
    flow_run_id = flow_run.get_id()
    resumed_id = parameters.resume or _find_unfinished(engine, flow_run_id)
    run = _resume(engine, tier, type(parameters), resumed_id) if resumed_id else _create(engine, tier, parameters)
    # The lock comes before the row: a running evaluation without it would count as dead.
    with closing(run.resources), reporting_unreachable(engine), journal.hold_evaluation_lock(engine, run.id):
        if resumed_id:
            row = journal.find_evaluation(engine, run.id)
            journal.require_unfinished(row)  # this error comes before that on changed settings
            require_same_settings(row)
            journal.resume_evaluation(engine, run.id, flow_run_id)
        else:
            journal.open_evaluation(engine, _journal_row(run, flow_run_id))
        if confirms := getattr(run.parameters, "recheck", None):
            share_budget(engine, run.id, confirms)
        advice = Words("continue with: yarus run {tier} --resume {id}", tier=tier, id=run.id)
        state, error = "cancelled", f"stopped; {advice}"  # default for ends that are not an Exception: Ctrl-C, SIGTERM
        try:
            make_folder(run.work)
            await asyncio.to_thread(download_files, run.id, run.work, batches=True)
            _stop_on_sigterm()
            with pseudonyms.mask_errors(run.parameters.source), reporting_unreachable(engine):
                yield run
            state = ""
        except Exception as problem:
            values = {"tier": tier, "source": run.parameters.source}
            if isinstance(problem, SourceChanged):  # it cannot be finished with its data
                advice = Words("run it anew: yarus run {tier} --source {source}", **values)
            elif isinstance(problem, InputError) and not journal.read_finished_batches(engine, run.id):
                advice = Words("when that is corrected, start it again: yarus run {tier} --source {source}", **values)
            # The database must accept the text whatever it contains, or the reason is lost.
            state, error = (
                "failed",
                escape_control_characters(redact_urls(f"{type(problem).__name__}: {problem}; {advice}")),
            )
            raise
        finally:
            if state:
                _end_early(engine, run, state, error, advice)


def _end_early(engine: Engine, run: EvaluationRun, state: str, error: str, advice: str) -> None:
    """Write the end into the journal, and log it; a stop may come after the evaluation has finished."""
    has_closed = True
    try:
        has_closed = journal.finish_evaluation(engine, run.id, state, error=error)
    finally:  # also if the journal cannot be reached
        if has_closed:
            log.warning("%s; %s", state, advice)
        else:
            log.warning("%s, but it was finished already: yarus show %s", state, run.id)


def _find_unfinished(engine: Engine, flow_run_id: str | None) -> str | None:
    """Return the unfinished evaluation of this flow run, if Prefect retries the run."""
    row = journal.find_by_flow_run(engine, flow_run_id) if flow_run_id else None
    return row["id"] if row is not None and row["state"] not in journal.FINISHED_STATES else None


def _stop_on_sigterm() -> None:
    """Make SIGTERM cancel the running task at an await.

    Prefect's handler raises wherever the program is, which code that catches everything may swallow. Only the main
    thread can set a handler. The process then ends even if a thread is waiting; Prefect would allow it half a minute.
    """
    task = asyncio.current_task()

    def stop() -> None:
        if task is not None:
            task.cancel()
            force_exit_after(TERMINATED_S, STOPPED_EXIT_CODE)

    if threading.current_thread() is threading.main_thread():
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop)


def _create(engine: Engine, tier: str, parameters: P) -> EvaluationRun[P]:
    parameters, repeated_row = resolve_repeated_parameters(engine, parameters)
    if repeated_row is not None:
        require_same_settings(repeated_row)
    return EvaluationRun(
        f"{tier}-{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}",
        tier,
        parameters,
        resources=Resources.take_over_checked(),
    )


def _journal_row(run: EvaluationRun, flow_run_id: str | None) -> NewEvaluation:
    """Return the journal row of a new evaluation."""
    configuration, code = get_settings(), find_commit()
    return {
        "id": run.id,
        "tier": run.tier,
        "source": run.parameters.source,
        "name": run.parameters.name,
        "tags": run.parameters.tags,
        "parameters": run.parameters.stored(),
        "settings": configuration.public(),
        "versions": _read_versions(),
        "sut_label": configuration.sut_label,
        "flow_run_id": flow_run_id,
        "git_commit": code and code.sha,
        "git_dirty": code and code.is_dirty,
    }


@cache
def _read_versions() -> dict[str, str]:
    """Return versions of Yarus, Python and the packages that influence numbers."""
    return {"yarus": version("yarus"), "python": python_version()} | {name: version(name) for name in RECORDED_PACKAGES}


def _resume(engine: Engine, tier: str, kind: type[P], name: str) -> EvaluationRun[P]:
    row = journal.find_evaluation(engine, name)
    if row["tier"] != tier:
        raise InputError(
            "evaluation {id} is of {tier}, not {other}: yarus run {tier} --resume …",
            id=row["id"],
            tier=row["tier"],
            other=tier,
        )
    return EvaluationRun(
        row["id"],
        tier,
        kind.model_validate(row["parameters"]),
        EvaluationConfig.of(row),
        row["n_cases"] or 0,
        Resources.take_over_checked(),
    )
