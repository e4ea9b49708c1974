"""An evaluation is begun or resumed, and closed however it ends."""

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
from yarus.db.engine import reaching
from yarus.db.errors import InputError, SourceChanged
from yarus.db.journal import NewEvaluation
from yarus.db.stores.calls import share_budget
from yarus.db.words import Words
from yarus.metrics.selftest import self_test
from yarus.tasks.cases.privacy import pseudonyms
from yarus.tasks.comparison.gate_rules import policy_set
from yarus.tasks.config.checkout import commit
from yarus.tasks.config.connections import database
from yarus.tasks.config.parameters import Parameters
from yarus.tasks.config.redaction import harmless, redact_urls
from yarus.tasks.config.secrets import keep_logs_clean
from yarus.tasks.config.settings import settings
from yarus.tasks.evaluation.config import EvaluationConfig
from yarus.tasks.evaluation.identity import same_settings
from yarus.tasks.evaluation.listing import fail_orphaned
from yarus.tasks.evaluation.process_exit import STOPPED, exit_within, stops_are_cancelled
from yarus.tasks.evaluation.repeats import parameters_of_repeated
from yarus.tasks.evaluation.resources import Resources
from yarus.tasks.evaluation.result_files import make_folder
from yarus.tasks.evaluation.run import Run
from yarus.tasks.evaluation.work_folder import download

P = TypeVar("P", bound=Parameters)
log = logging.getLogger("yarus")
RECORDED_PACKAGES = ("numpy", "scipy", "scikit-learn", "rapidfuzz", "sentence-transformers", "prefect", "pyarrow")
TERMINATED_S = 6.0
"""How long after SIGTERM the journal and Prefect's server may take to be told."""


@asynccontextmanager
async def evaluation(tier: str, parameters: P) -> AsyncIterator[Run[P]]:
    """Opens or resumes an evaluation; whatever ends it early is written into the journal.

    Prefect's retry of a flow run goes on with the evaluation that the run had begun.

    Raises:
        InputError: there is nothing to resume under that name, or the gate that it is to pass cannot be used.
        RuntimeError: the metrics do not compute what they should.
    """
    keep_logs_clean()
    stops_are_cancelled()
    if problems := self_test():
        raise RuntimeError(
            f"the self-test of the metrics failed, no number can be trusted: {problems[0]}; reinstall Yarus"
        )
    policy_set()  # a mistake in it is found now, not when everything has been paid for
    engine = await asyncio.to_thread(database)
    fail_orphaned(engine)
    flow_run_id = flow_run.get_id()
    begun = parameters.resume or _unfinished(engine, flow_run_id)
    run = _resumed(engine, tier, type(parameters), begun) if begun else _new(engine, tier, parameters)
    # The lock comes before the row: an evaluation in state running without it would be taken for dead.
    with closing(run.resources), reaching(engine), journal.alive(engine, run.id):
        if begun:
            row = journal.find(engine, run.id)
            journal.unfinished(row)  # nor can it be resumed as it was begun: that is said before what differs
            same_settings(row)
            journal.reopen(engine, run.id, flow_run_id)
        else:
            journal.open_evaluation(engine, _row(run, flow_run_id))
        if confirms := getattr(run.parameters, "confirms", None):
            share_budget(engine, run.id, confirms)
        how = Words("continue with: yarus run {tier} --resume {id}", tier=tier, id=run.id)
        state, error = "cancelled", f"stopped; {how}"  # by whatever is no Exception: Ctrl-C, SIGTERM
        try:
            make_folder(run.work)
            await asyncio.to_thread(download, run.id, run.work, batches=True)
            _stop_on_sigterm()
            with pseudonyms.errors(run.parameters.source), reaching(engine):
                yield run
            state = ""
        except Exception as problem:
            anew = {"tier": tier, "source": run.parameters.source}
            if isinstance(problem, SourceChanged):  # it cannot be finished as it was begun
                how = Words("run it anew: yarus run {tier} --source {source}", **anew)
            elif isinstance(problem, InputError) and not journal.batches_done(engine, run.id):  # nothing is done
                how = Words("when that is corrected, start it again: yarus run {tier} --source {source}", **anew)
            # Whatever stands in it: the database must take it, or nobody learns why.
            state, error = "failed", harmless(redact_urls(f"{type(problem).__name__}: {problem}; {how}"))
            raise
        finally:
            if state:
                _end_early(engine, run, state, error, how)


def _end_early(engine: Engine, run: Run, state: str, error: str, how: str) -> None:
    """Writes how it ended into the journal, and says so; a stop may come when the last word is written already."""
    ended = True
    try:
        ended = journal.close(engine, run.id, state, error=error)
    finally:  # also where the journal cannot be reached
        if ended:
            log.warning("%s; %s", state, how)
        else:
            log.warning("%s, but it was finished already: yarus show %s", state, run.id)


def _unfinished(engine: Engine, flow_run_id: str | None) -> str | None:
    """The evaluation that this flow run has begun before and not finished: Prefect retries the run."""
    row = journal.of_flow_run(engine, flow_run_id) if flow_run_id else None
    return row["id"] if row is not None and row["state"] not in journal.FINISHED else None


def _stop_on_sigterm() -> None:
    """Makes SIGTERM cancel the running task, at an await: Prefect's handler raises wherever the program is, which code
    that catches everything may swallow. Only the main thread can be told so. Then the process ends, whatever a thread
    waits for: Prefect would give it half a minute.
    """
    task = asyncio.current_task()

    def stop() -> None:
        if task is not None:
            task.cancel()
            exit_within(TERMINATED_S, STOPPED)

    if threading.current_thread() is threading.main_thread():
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop)


def _new(engine: Engine, tier: str, parameters: P) -> Run[P]:
    parameters, repeated = parameters_of_repeated(engine, parameters)
    if repeated is not None:
        same_settings(repeated)
    return Run(
        f"{tier}-{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}",
        tier,
        parameters,
        resources=Resources.take_over_checked(),
    )


def _row(run: Run, flow_run_id: str | None) -> NewEvaluation:
    """What the journal says of an evaluation from its start."""
    configuration, code = settings(), commit()
    return {
        "id": run.id,
        "tier": run.tier,
        "source": run.parameters.source,
        "name": run.parameters.name,
        "tags": run.parameters.tags,
        "parameters": run.parameters.model_dump(mode="json"),
        "settings": configuration.public(),
        "versions": _versions(),
        "sut_label": configuration.sut_label,
        "flow_run_id": flow_run_id,
        "git_commit": code and code.sha,
        "git_dirty": code and code.is_dirty,
    }


@cache
def _versions() -> dict[str, str]:
    """Of Yarus, Python and the packages that move numbers."""
    return {"yarus": version("yarus"), "python": python_version()} | {name: version(name) for name in RECORDED_PACKAGES}


def _resumed(engine: Engine, tier: str, kind: type[P], name: str) -> Run[P]:
    row = journal.find(engine, name)
    if row["tier"] != tier:
        raise InputError(
            "evaluation {id} is of {tier}, not {other}: yarus run {tier} --resume …",
            id=row["id"],
            tier=row["tier"],
            other=tier,
        )
    return Run(
        row["id"],
        tier,
        kind.model_validate(row["parameters"]),
        EvaluationConfig.of(row),
        row["n_cases"] or 0,
        Resources.take_over_checked(),
    )
