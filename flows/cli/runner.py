"""Run an evaluation from the command line: parameters, Prefect's server, and progress."""

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
from yarus.db.messages import Words
from yarus.db.source_rows import require_source_tables
from yarus.deployments.prefect.local_server import prepare_prefect, start_server
from yarus.flows import get_flow
from yarus.flows.cli import block_pandas_import, start_prefect_early
from yarus.flows.cli.framework import stopping
from yarus.flows.preflight.checks import check_code, check_rows, check_settings
from yarus.flows.preflight.reachability import check_reach
from yarus.flows.terminal.status_line import show_progress
from yarus.tasks.cases.frozen_sets import find_frozen_set
from yarus.tasks.config.connections import database, open_source
from yarus.tasks.config.flow_parameters import FLOWS, NightlyParameters, RobustnessParameters, SweepParameters
from yarus.tasks.config.former_names import FORMER_PARAMETERS, FORMER_VALUES
from yarus.tasks.config.parameters import Parameters
from yarus.tasks.config.settings import get_settings
from yarus.tasks.config.tiers import TIERS
from yarus.tasks.config.validation import invalid_value_error
from yarus.tasks.evaluation.repeats import anchor_evaluations, resolve_repeated_parameters
from yarus.tasks.evaluation.resources import Resources, open_for_checks
from yarus.tasks.evaluation.result_files import require_writable

if TYPE_CHECKING:
    from yarus.flows.preflight.dry_run import CallEstimates

T = TypeVar("T")
Summary = dict[str, Any]
"""Result of a flow, as `--json` prints it."""


def parse_parameters(tier: str, chosen: Mapping[str, Any], pairs: Sequence[str], rest: Sequence[str]) -> Parameters:
    """Return the parameters of a tier, from options of the command line.

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
    values = {**chosen, **dict(map(_parse_pair, pairs)), **dict(_parse_options(rest))}
    if "resume" in values and len(values) > 1:
        other_names = ", ".join(sorted(values.keys() - {"resume"}))
        raise InputError(
            "--resume uses the parameters that the evaluation was started with; leave out: {others}", others=other_names
        )
    for name, value in values.items():
        if FORMER_PARAMETERS.get(name) in fields:
            raise InputError("'{old}' was renamed; use {new}", old=name, new=FORMER_PARAMETERS[name])
        if present := FORMER_VALUES.get((name, str(value))):
            raise InputError("'{old}' was renamed; use {new}", old=f"{name}={value}", new=f"{name}={present}")
        if name not in fields:
            raise unknown(Words("parameter of {tier}:", tier=tier), name, fields)
    try:
        return FLOWS[tier].model_validate(values)
    except ValidationError as error:
        raise invalid_value_error(error, tier) from None


def run_flow(name: str, chosen: Parameters, *, level: int) -> Summary:
    """Run a flow now, on the server of PREFECT_API_URL or on one that lives as long as the run."""
    with show_progress(level), open_for_checks() as opened:
        check_evaluation(chosen, opened)
        if not _runs_user_code(chosen):
            block_pandas_import()
        return _run_in_prefect(lambda: run_evaluation(name, chosen), name)


def _runs_user_code(chosen: Parameters) -> bool:
    """Return whether a `module:function` may run in this process, or Dask is used."""
    values = [*chosen.model_dump().values(), get_settings().retriever, get_settings().reranker, get_settings().sut]
    return chosen.runner == "dask" or any(":" in str(value) for value in values)


def run_analysis_flow(work: Callable[[], Coroutine[Any, Any, T]], *, level: int) -> T:
    """Run a flow that is not an evaluation, as `run_flow` does.

    Args:
        work: calls the flow with its parameters; it runs after Prefect may be imported.
        level: log level of the progress on stderr.
    """
    with show_progress(level):
        start_prefect_early()
        return _run_in_prefect(work)


def _run_in_prefect(work: Callable[[], Coroutine[Any, Any, T]], flow: str | None = None) -> T:
    logging.getLogger("yarus").info("starting Prefect")
    prepare_prefect()
    if flow:
        get_flow(flow)  # imported while the server starts
    start_server()
    from prefect.exceptions import TerminationSignal

    try:
        with _redirect_stdout():
            return stopping.run_cancellable(work)
    except (TerminationSignal, asyncio.CancelledError):  # SIGTERM, as Prefect and asyncio report it: like Ctrl-C
        raise KeyboardInterrupt from None


def estimate_calls(name: str, chosen: Parameters) -> "CallEstimates":
    """Estimate the calls of a flow's tiers, or of every probe, by tier and role, without sending any."""
    from yarus.flows.preflight.dry_run import CallEstimates, plan_calls
    from yarus.flows.preflight.night_plan import plan_night
    from yarus.tasks.comparison.experiments.robustness import plan_arms

    check_settings(chosen)
    with open_for_checks() as opened:
        _check_stored(chosen, opened)
        parts = [(tier, tier, chosen) for tier in TIERS if tier == name]
        if isinstance(chosen, NightlyParameters):
            parts = [(tier, tier, chosen.of(tier)) for tier in plan_night(chosen).begun]
        elif isinstance(chosen, RobustnessParameters):
            parts = [(arm.name, arm.tier, arm.parameters) for arm in plan_arms(chosen)]
        with _redirect_stdout():
            return CallEstimates(
                [replace(asyncio.run(plan_calls(tier, parameters)), tier=label) for label, tier, parameters in parts]
            )


def check_evaluation(chosen: Parameters, opened: Resources) -> None:
    """Check before an evaluation begins; first what needs neither Prefect's server nor a database.

    Args:
        chosen: parameters of the evaluation.
        opened: resources that the evaluation will take over.

    Raises:
        InputError: what `check_settings` finds; no such source, or nothing in it, no store for results, no evaluation
            to resume, or sources that cannot be compared.
        DatabaseUnavailable: the database cannot be reached.
        ModelUnavailable: nothing answers where a model or the system under test should be.
        ResultsUnavailable: results cannot be written.
    """
    check_settings(chosen)
    check_reach(chosen)
    start_prefect_early()
    logging.getLogger("yarus").info("starting the database")
    _check_stored(chosen, opened)


def _check_stored(chosen: Parameters, opened: Resources) -> None:
    """Check the database and the result store; then, since it takes longest, whether users' code can be called."""
    require_writable(get_settings().results_root)
    if chosen.resume and isinstance(chosen, SweepParameters):
        analyses.find_analysis(database(), "sweep", chosen.resume)
    elif chosen.resume:
        row = journal.find_evaluation(database(), chosen.resume)
        resumed = FLOWS[row["tier"]].model_validate(row["parameters"])
        check_settings(resumed)
        check_reach(resumed)
    if chosen.resume:
        return
    if chosen.runner == "dask":
        from yarus.tasks.evaluation.dask import require_dask

        require_dask()
    require_source_tables(open_source(chosen.source))
    if isinstance(chosen, SweepParameters):
        from yarus.tasks.comparison.experiments.across_sources import require_common_questions

        require_common_questions(chosen)
    check_rows(chosen)
    if isinstance(chosen, NightlyParameters):
        list(anchor_evaluations(database(), chosen))
    else:
        resolve_repeated_parameters(database(), chosen)
    if chosen.cases:
        find_frozen_set(chosen.cases, chosen.source)
    check_code(chosen, opened)


def _parse_pair(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator:
        raise InputError("--set {text!r}: expected PARAMETER=VALUE", text=text)
    return name.strip().replace("-", "_"), value


def _parse_options(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield pairs from `--name value` and `--name=value`."""
    words = iter(arguments)
    for word in words:
        if not word.startswith("--"):
            raise InputError("{word!r}: expected --PARAMETER VALUE", word=word)
        name, separator, value = word.removeprefix("--").partition("=")
        if not separator and (next_word := next(words, None)) is not None:
            value = next_word
        elif not separator:
            raise InputError("{word}: a value is missing", word=word)
        yield name.replace("-", "_"), value


async def run_evaluation(name: str, chosen: Parameters) -> Summary:
    """Run a flow after Prefect's server has started."""
    from yarus.deployments.prefect.cancellation import make_cancellable, started_flow_run

    try:
        async with make_cancellable(get_flow(name)) as flow:
            state = await flow(chosen, return_state=True)
        summary = await state.aresult(raise_on_failure=False)  # also if a gate failed: its summary is printed
        if isinstance(summary, BaseException):
            raise summary
    except httpx.TransportError as error:  # Prefect's server is gone, but Yarus stores the results
        return _recover_summary(started_flow_run(), error)
    return dict(summary)


def _recover_summary(flow_run_id: UUID | None, error: httpx.TransportError) -> Summary:
    """Return the summary of an evaluation that finished without Prefect's server, after its gate check.

    Raises an error if it did not finish.
    """
    from yarus.deployments.prefect.flow_states import add_gate_outcome
    from yarus.tasks.evaluation.summary import read_summary

    row = journal.find_by_flow_run(database(), str(flow_run_id))
    if row is None or row["state"] not in journal.FINISHED_STATES:
        reason = row["error"] if row else Words("nothing was started")
        raise OSError(Words("Prefect's server does not answer ({error}); {how}", error=error, how=reason))
    logging.getLogger("yarus").warning("Prefect's server does not answer (%s); the results are complete", error)
    return dict(add_gate_outcome(read_summary(database(), row["id"])))


@contextmanager
def _redirect_stdout() -> Iterator[None]:
    """Redirect stdout to stderr, because the output of a user's function or program is not part of the result."""
    try:
        saved_fd = os.dup(1)
    except OSError:  # stdout is closed
        yield
        return
    sys.stdout.flush()
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(saved_fd, 1)
        os.close(saved_fd)
