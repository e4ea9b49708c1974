"""An evaluation from the command line: its parameters, Prefect's server, and what is said meanwhile."""

import asyncio
import logging
import os
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any
from uuid import UUID

import httpx
from pydantic import ValidationError
from rich.console import Console
from rich.status import Status

from db import analyses, journal
from db.errors import InputError, unknown
from db.source_rows import verify
from flows import flow_of, stopping
from flows.cli import arrow_alone
from tasks.cases.frozen_sets import frozen
from tasks.comparison.gate_rules import policy_set
from tasks.config.connections import database, source
from tasks.config.flow_parameters import FLOWS, Nightly, Sweep
from tasks.config.parameters import Parameters, Retrieval, Tier3
from tasks.config.redaction import redact_urls
from tasks.config.settings import open_address, settings
from tasks.config.tiers import TIERS
from tasks.config.validation import bad_value
from tasks.evaluation.repeats import anchored, parameters_of_repeated
from tasks.orchestration.local_server import prepare_prefect, start_server
from tasks.results.parquet_files import require_writable
from tasks.retrievers.registry import retriever_kind

if TYPE_CHECKING:
    from prefect.client.orchestration import PrefectClient
    from prefect.client.schemas.filters import FlowRunFilter

    from tasks.operations.dry_run import Plans

Summary = dict[str, Any]
RECORDING_TRIES = 100


def parameters(tier: str, chosen: Mapping[str, Any], pairs: Sequence[str], rest: Sequence[str]) -> Parameters:
    """The parameters of a tier, from options of the command line.

    Args:
        tier: its name.
        chosen: by name.
        pairs: `parameter=value`, from `--set`.
        rest: `--parameter`, `value` or `--parameter=value`, as they were given.

    Raises:
        InputError: no such tier or parameter, or a value that it cannot have; the nearest is named.
    """
    if tier not in FLOWS:
        raise unknown("tier", tier, FLOWS)
    fields = FLOWS[tier].model_fields
    values = {**chosen, **dict(map(_pair, pairs)), **dict(_options(rest))}
    if "resume" in values and len(values) > 1:
        others = ", ".join(sorted(values.keys() - {"resume"}))
        raise InputError(f"--resume uses the parameters that the evaluation was started with; leave out: {others}")
    for name in values:
        if name not in fields:
            raise unknown(f"parameter of {tier}:", name, fields)
    try:
        return FLOWS[tier].model_validate(values)
    except ValidationError as error:
        raise bad_value(error, tier) from None


def run_flow(name: str, chosen: Parameters, *, quiet: bool) -> Summary:
    """Runs a flow here and now, on PREFECT_API_URL's server or one that lives as long as the run."""
    with _saying(quiet):
        logging.getLogger("yarus").info("starting the database")
        check(chosen)
        return _in_prefect(lambda: evaluate(name, chosen))


def run_other(work: Callable[[], Coroutine[Any, Any, Summary]], *, quiet: bool) -> Summary:
    """Runs a flow that is no evaluation here and now, as `run_flow` does.

    Args:
        work: calls the flow with its parameters, when Prefect may be imported.
        quiet: only warnings on stderr.
    """
    with _saying(quiet):
        return _in_prefect(work)


def _in_prefect(work: Callable[[], Coroutine[Any, Any, Summary]]) -> Summary:
    arrow_alone()
    logging.getLogger("yarus").info("starting Prefect")
    prepare_prefect()
    start_server()
    from prefect.exceptions import TerminationSignal

    try:
        with _stdout_kept():
            return stopping.run(work)
    except (TerminationSignal, asyncio.CancelledError):  # SIGTERM, in Prefect's words and in ours: a stop like Ctrl-C
        raise KeyboardInterrupt from None


def estimate(name: str, chosen: Parameters) -> "Plans":
    """What the calls of a flow's tiers would take, without sending any; by tier, role."""
    from tasks.operations.dry_run import Plans, plan

    check(chosen)
    tiers = (
        {tier: TIERS[tier].parameters(**chosen.shared()) for tier in chosen.tiers}
        if isinstance(chosen, Nightly)
        else {}
    )
    every = tiers or {tier: chosen for tier in TIERS if tier == name}
    with _stdout_kept():
        return Plans([asyncio.run(plan(tier, given)) for tier, given in every.items()])


def check(chosen: Parameters) -> None:
    """Finds what cannot work before Prefect is started, which takes seconds.

    Raises:
        InputError: no such source, retriever, store for results or evaluation to resume, a secret in an address, or a
            mistake in the file of YARUS_GATE_FILE.
        DatabaseUnavailable: the database cannot be reached.
        ResultsUnavailable: results cannot be written.
    """
    policy_set()
    configuration = settings()
    require_writable(configuration.results_root)
    if chosen.resume:
        if isinstance(chosen, Sweep):
            analyses.find(database(), "sweep", chosen.resume)
        else:
            journal.find(database(), chosen.resume)
        return
    if chosen.runner == "dask":
        from tasks.evaluation.dask import require_dask

        require_dask()
    verify(source(chosen.source))
    if isinstance(chosen, Nightly):
        list(anchored(database(), chosen))
    else:
        parameters_of_repeated(database(), chosen)
    if chosen.cases:
        frozen(chosen.cases, chosen.source)
    if isinstance(chosen, Retrieval):
        retriever_kind(chosen.retriever or configuration.retriever)
    if isinstance(chosen, Tier3):
        open_address(chosen.sut or configuration.sut, "YARUS_SUT_SERVICE")


def _pair(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign:
        raise InputError(f"--set {text!r}: expected PARAMETER=VALUE")
    return name.strip().replace("-", "_"), value


def _options(rest: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Pairs from `--name value` and `--name=value`."""
    words = iter(rest)
    for word in words:
        if not word.startswith("--"):
            raise InputError(f"{word!r}: expected --PARAMETER VALUE")
        name, sign, value = word.removeprefix("--").partition("=")
        if not sign and (following := next(words, None)) is not None:
            value = following
        elif not sign:
            raise InputError(f"{word}: a value is missing")
        yield name.replace("-", "_"), value


async def evaluate(name: str, chosen: Parameters) -> Summary:
    """Runs a flow, when Prefect's server is there, and waits until the server has recorded it."""
    from tasks.orchestration.cancellation import begun, cancellable

    try:
        async with cancellable(flow_of(name)) as flow:
            state = await flow(chosen, return_state=True)
        summary = await state.aresult(raise_on_failure=False)  # of a failed gate, too: its summary is what we print
        if isinstance(summary, BaseException):
            raise summary
    except httpx.TransportError as error:  # Prefect's server is gone; the results are ours
        return _finished_alone(begun(), error)
    evaluations = summary.get("evaluations", [summary])
    await until_recorded([done["flow_run_id"] for done in evaluations if done["state"] in journal.FINISHED])
    return dict(summary)


def _finished_alone(flow_run_id: UUID | None, error: httpx.TransportError) -> Summary:
    """The evaluation that was finished without Prefect's server, judged by its gate; where it was not, what is the
    matter.
    """
    from tasks.orchestration.flow_states import with_gate
    from tasks.results.summary import summary

    row = journal.of_flow_run(database(), str(flow_run_id))
    if row is None or row["state"] not in journal.FINISHED:
        raise OSError(f"Prefect's server does not answer ({error}); {row['error'] if row else 'nothing was started'}")
    logging.getLogger("yarus").warning("Prefect's server does not answer (%s); the results are complete", error)
    return dict(with_gate(summary(database(), row["id"])))


async def until_recorded(flow_run_ids: list[str]) -> None:
    """Waits until the server has recorded every task run: it is told by events, and those under way die with us."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId

    wanted = FlowRunFilter(id=FlowRunFilterId(any_=[UUID(run_id) for run_id in flow_run_ids]))
    with suppress(httpx.HTTPError):  # a server that is gone records nothing more
        async with get_client() as client:
            for _ in range(RECORDING_TRIES):
                if (await _ended(client, wanted)).count("finish") == len(flow_run_ids):
                    return
                await asyncio.sleep(0.1)
    logging.getLogger("yarus").warning("Prefect's server has not recorded all task runs; the results are complete")


async def _ended(client: "PrefectClient", wanted: "FlowRunFilter") -> list[str]:
    """The names of all task runs of those flow runs; none as soon as one has not ended, so that asking stays cheap."""
    names: dict[UUID, str] = {}
    offset = 0
    while page := await client.read_task_runs(flow_run_filter=wanted, offset=offset):  # as many as the server allows
        if not all(run.state is not None and run.state.is_final() for run in page):
            return []
        names |= {run.id: run.name for run in page}  # recorded meanwhile, one moves others to the next page
        offset += len(page)
    return list(names.values())


@contextmanager
def _stdout_kept() -> Iterator[None]:
    """While it lasts, stdout leads to stderr: what a user's function prints, or a program of its, is not our result."""
    try:
        ours = os.dup(1)
    except OSError:  # there is none
        yield
        return
    sys.stdout.flush()
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(ours, 1)
        os.close(ours)


@contextmanager
def _saying(quiet: bool) -> Iterator[None]:
    """Shows what the evaluation is doing on stderr: a line that changes, or lines where it is no terminal."""
    log = logging.getLogger("yarus")
    console = Console(stderr=True, highlight=False)
    with Status("", console=console) as status:
        handler = _Say(console, status if sys.stderr.isatty() else None)
        log.addHandler(handler)
        log.setLevel(logging.INFO)  # Prefect's log of the run has all words, whatever the screen shows
        handler.setLevel(logging.WARNING if quiet else logging.INFO)
        try:
            yield
        finally:
            log.removeHandler(handler)


class _Say(logging.Handler):
    """Hands what is logged to the status line; warnings stay on the screen."""

    def __init__(self, console: Console, status: Status | None) -> None:
        super().__init__()
        self._console, self._status = console, status

    def emit(self, record: logging.LogRecord) -> None:
        message = redact_urls(record.getMessage())
        if self._status is None or record.levelno > logging.INFO:
            self._console.print(message, markup=False)
        else:
            self._status.update(message)
