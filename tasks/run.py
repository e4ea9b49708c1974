"""An evaluation on its way: its parameters, its working folder, and its row in the journal from start to end."""

import asyncio
import logging
import secrets
import signal
import subprocess
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from platform import python_version
from typing import Any

from sqlalchemy import Engine
from sqlalchemy.engine import RowMapping

from db import journal
from db.engine import reaching
from db.errors import InputError, SourceChanged
from metrics.selftest import self_test
from metrics.table import Tier
from tasks import shown
from tasks.again import as_then
from tasks.confidential import keep_logs_clean
from tasks.connect import database
from tasks.files import make_folder, place, remove
from tasks.gate_rules import policy_set
from tasks.parameters import TIERS, Embedding, Parameters, Retrieval
from tasks.settings import masked, settings
from tasks.shared_work import fetch
from tasks.utf8 import harmless
from tasks.watch import STOPPED, leave_within

log = logging.getLogger("yarus")
STEADY: tuple[str, ...] = ("embedder", "embedder_backend", "query_prefix", "passage_prefix", "similarity_embedder")
STEADY += ("retriever", "retriever_service", "sut", "sut_service", "refusals", "rubrics", "language", "mask_calls")
STEADY_OF_ROLE = ("base_url", "model", "temperature", "max_tokens", "prompt")
DRY_RUN = "dry-run-"
"""What the working folder of an estimate is called, which no evaluation belongs to."""
TERMINATED_S = 6.0
"""How long after SIGTERM the journal and Prefect's server may take to be told."""
MEASURING = ("numpy", "scipy", "scikit-learn", "rapidfuzz", "sentence-transformers", "prefect", "pyarrow")


@dataclass(frozen=True)
class Run:
    """One evaluation; what `load` finds out is added by it."""

    id: str
    tier: Tier
    parameters: Parameters
    resolved: dict[str, Any] = field(default_factory=dict)
    """What the parameters came to: unit, retriever, embedder, fallbacks used, notes."""
    n_cases: int = 0

    @property
    def work(self) -> Path:
        """The folder of what is needed until the evaluation ends: its cases, its corpus, its finished batches."""
        configuration = settings()
        work = configuration.work
        root = Path(work) if work and "://" not in work else configuration.home / "work"
        return root.absolute() / self.id

    @property
    def embedding(self) -> Embedding:
        """The parameters of a tier that needs vectors."""
        if not isinstance(self.parameters, Embedding):
            raise TypeError(f"{self.tier} needs no vectors")
        return self.parameters

    @property
    def retrieval(self) -> Retrieval:
        """The parameters of a tier that asks a retriever."""
        if not isinstance(self.parameters, Retrieval):
            raise TypeError(f"{self.tier} asks no retriever")
        return self.parameters

    @property
    def batch_size(self) -> int:
        """Cases a batch: large enough for Prefect (at most 50 batches a flow), small enough to lose little."""
        return int(self.resolved["batch_size"])

    @property
    def n_batches(self) -> int:
        """How many batches the cases make."""
        return -(-self.n_cases // self.batch_size)


@asynccontextmanager
async def evaluation(tier: Tier, parameters: Parameters, *, flow_run_id: str | None) -> AsyncIterator[Run]:
    """Opens or resumes an evaluation; whatever ends it early is written into the journal.

    Prefect's retry of a flow run goes on with the evaluation that the run had begun.

    Raises:
        InputError: there is nothing to resume under that name, or the gate that it is to pass cannot be used.
        RuntimeError: the metrics do not compute what they should.
    """
    keep_logs_clean()
    if problems := self_test():
        raise RuntimeError(
            f"the self-test of the metrics failed, no number can be trusted: {problems[0]}; reinstall Yarus"
        )
    policy_set()  # a mistake in it is found now, not when everything has been paid for
    engine = await asyncio.to_thread(database)
    bury_the_dead(engine)
    begun = parameters.resume or _unfinished(engine, flow_run_id)
    run = _resumed(engine, tier, begun) if begun else _new(engine, tier, parameters)
    # The lock comes before the row: an evaluation in state running without it would be taken for dead.
    with reaching(engine), journal.alive(engine, run.id):
        if begun:
            journal.reopen(engine, run.id, flow_run_id)
        else:
            journal.open_evaluation(engine, _row(run, flow_run_id))
        make_folder(run.work)
        await asyncio.to_thread(fetch, run.id, run.work, batches=True)
        how = f"continue with: yarus run {tier} --resume {run.id}"
        state, error = "cancelled", f"stopped; {how}"  # by whatever is no Exception: Ctrl-C, SIGTERM
        _stop_on_sigterm()
        try:
            with shown.errors(run.parameters.source), reaching(engine):
                yield run
            state = ""
        except Exception as problem:
            if isinstance(problem, SourceChanged):  # what was begun can no longer be finished
                how = f"run it anew: yarus run {tier} --source {run.parameters.source}"
            # Whatever stands in it: the database must take it, or nobody learns why.
            state, error = "failed", harmless(masked(f"{type(problem).__name__}: {problem}; {how}"))
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
            leave_within(TERMINATED_S, STOPPED)

    if threading.current_thread() is threading.main_thread():
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop)


def bury_the_dead(engine: Engine) -> None:
    """Marks evaluations whose process died as failed, and removes files that they left without metrics."""

    def clear(tier: str, evaluation_id: str, started_at: datetime) -> None:
        remove(place(settings().results_root, tier, evaluation_id, started_at))

    for dead in journal.bury_the_dead(engine, clear):
        log.warning("evaluation %s had died; it can be resumed", dead)


def _new(engine: Engine, tier: Tier, parameters: Parameters) -> Run:
    parameters, repeated = as_then(engine, parameters)
    if repeated is not None:
        same_settings(repeated)
    return Run(f"{tier}-{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}", tier, parameters)


def _row(run: Run, flow_run_id: str | None) -> dict[str, Any]:
    """What the journal says of an evaluation from its start."""
    configuration = settings()
    return {
        "id": run.id,
        "tier": run.tier,
        "source": run.parameters.source,
        "parameters": run.parameters.model_dump(mode="json"),
        "settings": configuration.public(),
        "versions": versions(),
        "sut_label": configuration.sut_label,
        "flow_run_id": flow_run_id,
        **_commit(),
    }


def _resumed(engine: Engine, tier: Tier, name: str) -> Run:
    row = journal.find(engine, name)
    if row["tier"] != tier:
        raise InputError(f"evaluation {row['id']} is of {row['tier']}, not {tier}: yarus run {row['tier']} --resume …")
    same_settings(row)
    parameters = TIERS[tier].model_validate(row["parameters"])
    return Run(row["id"], tier, parameters, row["resolved"] or {}, row["n_cases"] or 0)


def same_settings(row: RowMapping) -> None:
    """Makes sure that what is measured is the same as when the evaluation was begun.

    Raises:
        InputError: a setting that changes it was changed.
    """
    before, now = (steady(given) for given in (row["settings"], settings().public()))
    for name in sorted(before.keys() | now.keys()):
        if before.get(name) != now.get(name):
            variable = f"YARUS_{name.upper().replace('.', '__')}"
            raise InputError(
                f"evaluation {row['id']} was begun with {variable}={before.get(name)!r}, now it is {now.get(name)!r}; "
                "set it as it was, or run it anew"
            )


def steady(public: dict[str, Any]) -> dict[str, Any]:
    """Those of an evaluation's settings that must stay while it lasts, because they change what it measures."""
    flat = {name: public[name] for name in STEADY if name in public}
    for role in ("generator", "judge", "gate"):
        flat |= {f"{role}.{name}": value for name, value in public.get(role, {}).items() if name in STEADY_OF_ROLE}
    return flat


@cache
def versions() -> dict[str, str]:
    """Of Yarus, Python and the packages that move numbers."""
    return {"yarus": version("yarus"), "python": python_version()} | {name: version(name) for name in MEASURING}


@cache
def _commit() -> dict[str, Any]:
    """The commit of the code that runs, if it is a git checkout."""
    try:
        commit = _git("rev-parse", "HEAD")
        return {"git_commit": commit, "git_dirty": bool(_git("status", "--porcelain", "--untracked-files=no"))}
    except (OSError, subprocess.CalledProcessError):
        return {}


def _git(*arguments: str) -> str:
    folder = Path(__file__).parents[1]
    done = subprocess.run(["git", "-C", folder, *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()
