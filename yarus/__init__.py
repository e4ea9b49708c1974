"""Flows, one file a tier; the command line; and for notebooks what it does: load, run, cases, metrics, compare.

What these import, they import when they are called: whoever wants a flow, or the help of a command, waits for no table.
"""

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from pandas import DataFrame
    from pyarrow import Table
    from sqlalchemy import Engine

    from yarus.db.loading.fill import LoadReport
    from yarus.tasks.comparison.documents import EvaluationComparison
    from yarus.tasks.explanation.documents import Explanation

# Before Prefect is imported anywhere: it reads its settings once. What the user has set stays.
for _name, _value in {
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "180",  # of a flow that is awaited without `start_prefect`
    "PREFECT_LOGGING_EXTRA_LOGGERS": "yarus",
    "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "30",  # s; deployments/automations.yaml waits for it
    "PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW": "ignore",
}.items():
    os.environ.setdefault(_name, _value)


async def run(tier: str, /, **parameters: Any) -> dict[str, Any]:
    """Evaluates a tier, as `yarus run TIER --json` does.

    Args:
        tier: tier0, tier1, …, or nightly for all.
        parameters: of the tier, by name, such as source="sample".

    Returns:
        The summary: evaluation_id, state, metrics and more.

    Raises:
        InputError: no such tier, parameter or source, or a value that it cannot have; the nearest is named.
        OSError: Prefect's server, the database or the results cannot be reached.
    """
    from yarus.flows.cli import runner

    chosen = runner.parameters(tier, parameters, (), ())
    runner.check(chosen)
    start_prefect()
    return await runner.evaluate(tier, chosen)


def load(*files: str | os.PathLike[str], into: str, language: str | None = None, **mapping: str) -> "list[LoadReport]":
    """Loads files of questions and pages into a source, all or none, as `yarus init` does.

    Args:
        files: tables of any tool, traces, retrieval sets, pages or folders of pages (docs/sources.md).
        into: name of the source.
        language: `ru` or `en`; default: that of the texts.
        mapping: our column -> theirs, where that is not told.

    Returns:
        A report for each file: how many rows were read, added, updated and skipped, and what could not be read.

    Raises:
        InputError: a file cannot be read, or nobody can tell what it holds; nothing was loaded.
        DatabaseUnavailable: our own database cannot be reached.
    """
    from pathlib import Path

    from yarus.flows.cli import own_database
    from yarus.flows.cli.load import checked_name
    from yarus.tasks.operations.setup.files import describe, language_of, load_files, recognise_all

    recognised = recognise_all([Path(file) for file in files], mapping)
    spoken = language or language_of(map(describe, recognised))
    return load_files(own_database(), checked_name(into, into), recognised, language=spoken)


def start_prefect() -> None:
    """Finds the Prefect server that PREFECT_API_URL or the profile names, or that of the home, or starts that.

    Raises:
        ServerUnavailable: there is none, and none can be started.
    """
    from yarus.tasks.orchestration.local_server import prepare_prefect, start_server

    os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "WARNING")
    prepare_prefect()
    start_server()


def cases(evaluation: str) -> "DataFrame":
    """The cases of an evaluation, one row a case, with every column that was stored; what is NULL there is NA.

    Args:
        evaluation: its id, the beginning or end of it, or `last`.

    Raises:
        InputError: there is no such evaluation, or it has no cases yet.
        ResultsUnavailable: its file cannot be read.
    """
    from yarus.tasks.results.queries import cases_where

    return _frame(evaluation, lambda engine, found: cases_where(engine, found, ()))


def scores(evaluation: str) -> "DataFrame":
    """The metrics of an evaluation, one row a metric and stratum: value, interval, counts, grade, and whose they are.

    Args:
        evaluation: its id, the beginning or end of it, or `last`.

    Raises:
        InputError: there is no such evaluation, or it has no metrics.
    """
    from yarus.tasks.results.exports.export import metric_rows

    return _frame(evaluation, metric_rows)


def compare(a: str, b: str, *, force: bool = False) -> "EvaluationComparison":
    """Compares two evaluations case by case, as `yarus compare A B --json` does.

    Args:
        a: the evaluation before: its id, the beginning or end of it, `last`, or `previous` (b's predecessor).
        b: the evaluation after.
        force: compare even what is not comparable.

    Returns:
        The comparison: `metrics` by name with difference, interval, p and verdict; `cases`, `slices` and more.

    Raises:
        InputError: no such evaluation, nothing in common, or not comparable and not forced.
    """
    from yarus.flows.cli import own_database
    from yarus.tasks.comparison import compare as comparison

    return comparison.compare(own_database(), a, b, force=force)


def explain(a: str, b: str, *, force: bool = False) -> "Explanation":
    """Explains what moved between two evaluations, as `yarus explain A B --json` does.

    Args:
        a: the evaluation before, named as in `compare`.
        b: the evaluation after.
        force: explain even what differs in more than its questions.

    Raises:
        InputError: no such evaluation, or not comparable and not forced.
    """
    from yarus.flows.cli import own_database
    from yarus.tasks.explanation import explain as explanation

    return explanation.explain(own_database(), a, b, force=force)


def _frame(evaluation: str, rows: "Callable[[Engine, str], Table]") -> "DataFrame":
    """Rows of an evaluation as people may see them, each column in the type that it is stored in."""
    import pandas as pd

    from yarus.db import journal
    from yarus.flows.cli import own_database
    from yarus.tasks.cases import pseudonyms

    engine = own_database()
    row = journal.find(engine, evaluation)
    shown = pseudonyms.cases(rows(engine, row["id"]), row["source"])
    frame: pd.DataFrame = shown.to_pandas(types_mapper=pd.ArrowDtype)
    return frame
