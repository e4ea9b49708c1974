"""An evaluation from the command line: its parameters, Prefect's server, and what is said meanwhile."""

import asyncio
import logging
import os
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

import httpx
from pydantic import ValidationError

from yarus.db import analyses, journal
from yarus.db.errors import InputError, unknown
from yarus.db.source_rows import verify
from yarus.db.words import Words
from yarus.deployments.prefect.local_server import prepare_prefect, start_server
from yarus.flows import flow_of
from yarus.flows.before.preflight import check_code, check_rows, check_settings
from yarus.flows.before.reach import check_reach
from yarus.flows.cli import arrow_alone, begin
from yarus.flows.cli.shell import stopping
from yarus.flows.terminal.live import saying
from yarus.tasks.cases.frozen_sets import frozen
from yarus.tasks.config.connections import database, source
from yarus.tasks.config.flow_parameters import FLOWS, Nightly, Robustness, Sweep
from yarus.tasks.config.parameters import Parameters
from yarus.tasks.config.settings import settings
from yarus.tasks.config.tiers import TIERS
from yarus.tasks.config.validation import bad_value
from yarus.tasks.evaluation.repeats import anchored, parameters_of_repeated
from yarus.tasks.evaluation.resources import Resources, open_for_checks
from yarus.tasks.evaluation.result_files import require_writable

if TYPE_CHECKING:
    from yarus.flows.before.dry_run import Plans

T = TypeVar("T")
Summary = dict[str, Any]
"""What a flow returns, as `--json` prints it."""


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
        raise InputError(
            "--resume uses the parameters that the evaluation was started with; leave out: {others}", others=others
        )
    for name in values:
        if name not in fields:
            raise unknown(Words("parameter of {tier}:", tier=tier), name, fields)
    try:
        return FLOWS[tier].model_validate(values)
    except ValidationError as error:
        raise bad_value(error, tier) from None


def run_flow(name: str, chosen: Parameters, *, level: int) -> Summary:
    """Runs a flow here and now, on PREFECT_API_URL's server or one that lives as long as the run."""
    with saying(level), open_for_checks() as opened:
        check(chosen, opened)
        if not _runs_code_of_users(chosen):
            arrow_alone()
        return _in_prefect(lambda: evaluate(name, chosen), name)


def _runs_code_of_users(chosen: Parameters) -> bool:
    """Whether a `module:function` may run in this process, or Dask."""
    named = [*chosen.model_dump().values(), settings().retriever, settings().reranker, settings().sut]
    return chosen.runner == "dask" or any(":" in str(value) for value in named)


def run_other(work: Callable[[], Coroutine[Any, Any, T]], *, level: int) -> T:
    """Runs a flow that is no evaluation here and now, as `run_flow` does.

    Args:
        work: calls the flow with its parameters, when Prefect may be imported.
        level: of what is said on stderr meanwhile, as `logging` has it.
    """
    with saying(level):
        begin()
        return _in_prefect(work)


def _in_prefect(work: Callable[[], Coroutine[Any, Any, T]], flow: str | None = None) -> T:
    logging.getLogger("yarus").info("starting Prefect")
    prepare_prefect()
    if flow:
        flow_of(flow)  # imported while the server starts
    start_server()
    from prefect.exceptions import TerminationSignal

    try:
        with _stdout_kept():
            return stopping.run(work)
    except (TerminationSignal, asyncio.CancelledError):  # SIGTERM, in Prefect's words and in ours: a stop like Ctrl-C
        raise KeyboardInterrupt from None


def estimate(name: str, chosen: Parameters) -> "Plans":
    """What the calls of a flow's tiers, or of every probe, would take, without sending any; by tier, role."""
    from yarus.flows.before.dry_run import Plans, plan
    from yarus.flows.before.night_plan import plan_night
    from yarus.tasks.comparison.experiments.robustness import arms

    check_settings(chosen)
    with open_for_checks() as opened:
        _check_stored(chosen, opened)
        every = [(tier, tier, chosen) for tier in TIERS if tier == name]
        if isinstance(chosen, Nightly):
            every = [(tier, tier, chosen.of(tier)) for tier in plan_night(chosen).begun]
        elif isinstance(chosen, Robustness):
            every = [(arm.name, arm.tier, arm.parameters) for arm in arms(chosen)]
        with _stdout_kept():
            return Plans([replace(asyncio.run(plan(tier, given)), tier=called) for called, tier, given in every])


def check(chosen: Parameters, opened: Resources) -> None:
    """Finds what cannot work before an evaluation begins: first what needs neither Prefect's server nor a database.

    Args:
        chosen: what is to be evaluated.
        opened: what the evaluation will take over.

    Raises:
        InputError: what `check_settings` finds; no such source, or nothing in it, no store for results, no evaluation
            to resume, or sources that cannot be compared.
        DatabaseUnavailable: the database cannot be reached.
        ModelUnavailable: nothing answers where a model or the system under test should be.
        ResultsUnavailable: results cannot be written.
    """
    check_settings(chosen)
    check_reach(chosen)
    begin()
    logging.getLogger("yarus").info("starting the database")
    _check_stored(chosen, opened)


def _check_stored(chosen: Parameters, opened: Resources) -> None:
    """What the database and the store of results say; then, as it takes longest, whether users' code can be called."""
    require_writable(settings().results_root)
    if chosen.resume and isinstance(chosen, Sweep):
        analyses.find(database(), "sweep", chosen.resume)
    elif chosen.resume:
        row = journal.find(database(), chosen.resume)
        begun = FLOWS[row["tier"]].model_validate(row["parameters"])
        check_settings(begun)
        check_reach(begun)
    if chosen.resume:
        return
    if chosen.runner == "dask":
        from yarus.tasks.evaluation.dask import require_dask

        require_dask()
    verify(source(chosen.source))
    if isinstance(chosen, Sweep):
        from yarus.tasks.comparison.experiments.across_sources import require_common_questions

        require_common_questions(chosen)
    check_rows(chosen)
    if isinstance(chosen, Nightly):
        list(anchored(database(), chosen))
    else:
        parameters_of_repeated(database(), chosen)
    if chosen.cases:
        frozen(chosen.cases, chosen.source)
    check_code(chosen, opened)


def _pair(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign:
        raise InputError("--set {text!r}: expected PARAMETER=VALUE", text=text)
    return name.strip().replace("-", "_"), value


def _options(rest: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Pairs from `--name value` and `--name=value`."""
    words = iter(rest)
    for word in words:
        if not word.startswith("--"):
            raise InputError("{word!r}: expected --PARAMETER VALUE", word=word)
        name, sign, value = word.removeprefix("--").partition("=")
        if not sign and (following := next(words, None)) is not None:
            value = following
        elif not sign:
            raise InputError("{word}: a value is missing", word=word)
        yield name.replace("-", "_"), value


async def evaluate(name: str, chosen: Parameters) -> Summary:
    """Runs a flow, when Prefect's server is there."""
    from yarus.deployments.prefect.cancellation import begun, cancellable

    try:
        async with cancellable(flow_of(name)) as flow:
            state = await flow(chosen, return_state=True)
        summary = await state.aresult(raise_on_failure=False)  # of a failed gate, too: its summary is what we print
        if isinstance(summary, BaseException):
            raise summary
    except httpx.TransportError as error:  # Prefect's server is gone; the results are ours
        return _finished_alone(begun(), error)
    return dict(summary)


def _finished_alone(flow_run_id: UUID | None, error: httpx.TransportError) -> Summary:
    """The evaluation that was finished without Prefect's server, judged by its gate; where it was not, what is the
    matter.
    """
    from yarus.deployments.prefect.flow_states import with_gate
    from yarus.tasks.evaluation.summary import summary

    row = journal.of_flow_run(database(), str(flow_run_id))
    if row is None or row["state"] not in journal.FINISHED:
        how = row["error"] if row else Words("nothing was started")
        raise OSError(Words("Prefect's server does not answer ({error}); {how}", error=error, how=how))
    logging.getLogger("yarus").warning("Prefect's server does not answer (%s); the results are complete", error)
    return dict(with_gate(summary(database(), row["id"])))


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
