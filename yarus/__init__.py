"""Evaluate retrieval-augmented question answering tier by tier, from Python and notebooks (docs/python.md).

Each function imports what it needs when it is called, so that `import yarus` takes no time.
"""

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pandas import DataFrame
    from pyarrow import Table
    from sqlalchemy import Engine

    from yarus.db.loading.load_rows import LoadReport
    from yarus.tasks.comparison.comparison_schema import EvaluationComparison
    from yarus.tasks.comparison.explanation.explanation_schema import Explanation
    from yarus.tasks.comparison.gate_verdicts import GateResult
    from yarus.tasks.config.settings import Language

__all__ = ["cases", "compare", "explain", "gate", "load", "report", "run", "run_sync", "scores", "start_prefect"]


async def run(tier: str, /, **parameters: Any) -> dict[str, Any]:
    """Evaluate a tier, as `yarus run TIER --json` does.

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
    from yarus.tasks.evaluation.resources import open_for_checks

    chosen = runner.parse_parameters(tier, parameters, (), ())
    with open_for_checks() as opened:
        runner.check_evaluation(chosen, opened)
        start_prefect()
        return await runner.run_evaluation(tier, chosen)


def run_sync(tier: str, /, **parameters: Any) -> dict[str, Any]:
    """Evaluate a tier and wait for the summary, in a script; see `run`.

    Raises:
        RuntimeError: an event loop is running, as in a notebook; use `await yarus.run(…)` there.
    """
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        raise RuntimeError("yarus.run_sync: an event loop is running; use `await yarus.run(…)`")
    return asyncio.run(run(tier, **parameters))


def load(*files: str | os.PathLike[str], into: str, language: str | None = None, **mapping: str) -> "list[LoadReport]":
    """Load files of questions and pages into a source, all or none, as `yarus init` does.

    Args:
        files: tables of any tool, traces, retrieval sets, pages or folders of pages (docs/sources.md).
        into: name of the source.
        language: `ru` or `en`; default: that of the texts.
        mapping: Yarus's field -> the file's column, if names and values do not show it.

    Returns:
        One report per file: how many rows were read, added, updated and skipped, and what could not be read.

    Raises:
        InputError: a file cannot be read, or its content is not recognised; nothing was loaded.
        DatabaseUnavailable: the database of Yarus cannot be reached.
    """
    from pathlib import Path

    from yarus.deployments.upkeep.setup.files import describe_file, detect_language, load_files, recognise_all
    from yarus.flows.cli import open_database
    from yarus.flows.cli.load import choose_source_name
    from yarus.tasks.config.settings import get_settings

    recognised = recognise_all([Path(file) for file in files], mapping)
    texts_language = language or detect_language(describe_file(file).example for file in recognised)
    texts_language = texts_language or get_settings().text_language
    return load_files(open_database(), choose_source_name(into, into), recognised, language=texts_language)


def start_prefect() -> None:
    """Connect to the server of PREFECT_API_URL, the profile or the home; start the home's server if none runs.

    Raises:
        ServerUnavailable: no server runs, and none can be started.
    """
    from yarus import flows  # noqa: F401 - its defaults for Prefect come first
    from yarus.deployments.prefect.local_server import prepare_prefect, start_server

    os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "WARNING")
    prepare_prefect()
    start_server()


def cases(evaluation: str) -> "DataFrame":
    """Return the cases of an evaluation, one row per case, with every stored column; NULL becomes NA.

    Args:
        evaluation: its id, the beginning or end of it, its name, or `last`.

    Raises:
        InputError: there is no such evaluation, or it has no cases yet.
        ResultsUnavailable: its file cannot be read.
    """
    from yarus.tasks.evaluation.queries import filter_cases

    return _read_frame(evaluation, lambda engine, evaluation_id: filter_cases(engine, evaluation_id, ()))


def scores(evaluation: str) -> "DataFrame":
    """Return the metrics of an evaluation, one row per metric and stratum: value, interval, counts, grade, judge.

    Args:
        evaluation: its id, the beginning or end of it, its name, or `last`.

    Raises:
        InputError: there is no such evaluation, or it has no metrics.
    """
    from yarus.tasks.evaluation.export import read_metric_rows

    return _read_frame(evaluation, read_metric_rows)


def compare(a: str, b: str, *, force: bool = False) -> "EvaluationComparison":
    """Compare two evaluations case by case, as `yarus compare A B --json` does.

    Args:
        a: the evaluation before: as in `cases`, or `previous` (b's predecessor).
        b: the evaluation after.
        force: compare even what is not comparable.

    Returns:
        The comparison: `metrics` by name with difference, interval, p and verdict; `cases`, `slices` and more.

    Raises:
        InputError: no such evaluation, nothing in common, or not comparable and not forced.
    """
    from yarus.flows.cli import open_database
    from yarus.tasks.comparison import compare as comparison

    return comparison.compare(open_database(), a, b, force=force)


def explain(a: str, b: str, *, force: bool = False) -> "Explanation":
    """Explain what moved between two evaluations, as `yarus explain A B --json` does.

    Args:
        a: the evaluation before, named as in `compare`.
        b: the evaluation after.
        force: explain even what differs in more than its questions.

    Raises:
        InputError: no such evaluation, or not comparable and not forced.
    """
    from yarus.flows.cli import open_database
    from yarus.tasks.comparison.explanation import explain as explanation

    return explanation.explain(open_database(), a, b, force=force)


def gate(
    evaluation: str = "last", *, baseline: str | None = None, file: str | os.PathLike[str] | None = None
) -> "GateResult":
    """Check an evaluation against thresholds and a baseline, as `yarus gate EVALUATION --json` does.

    Args:
        evaluation: its id, the beginning or end of it, its name, or `last`.
        baseline: in place of the accepted one; `previous` for the evaluation before.
        file: with the rules; default: gate.toml in the current folder, else the rules that hold without one.

    Returns:
        `verdict` (pass, fail, inconclusive or invalid) and `rules` with their verdicts.

    Raises:
        InputError: no such evaluation, baseline or file, or no rule applies.
    """
    from pathlib import Path

    from yarus.flows.cli import open_database
    from yarus.tasks.comparison.gate import gate as check_gate
    from yarus.tasks.comparison.gate_rules import read_gate_rules

    return check_gate(open_database(), evaluation, read_gate_rules(Path(file) if file else None), baseline=baseline)


def report(*evaluations: str, out: str | os.PathLike[str] | None = None, language: "Language | None" = None) -> "Path":
    """Write a self-contained HTML report, as `yarus report` does, and return its path.

    Args:
        evaluations: those to show, named as in `compare`; default: the newest of every tier.
        out: the file to write; default: one in YARUS_HOME.
        language: in which it opens; default: YARUS_LANGUAGE.

    Raises:
        InputError: no such evaluation, or none at all.
        ResultsUnavailable: a file of results cannot be read.
        OSError: the file cannot be written.
    """
    from pathlib import Path

    from yarus.flows.cli import open_database
    from yarus.tasks.report.write import write_report

    return write_report(open_database(), evaluations, Path(out) if out else None, language).path


def _read_frame(evaluation: str, rows: "Callable[[Engine, str], Table]") -> "DataFrame":
    """Return rows of an evaluation as people may see them, each column in the type that it is stored in."""
    import pandas as pd

    from yarus.db import journal
    from yarus.flows.cli import open_database
    from yarus.tasks.cases.privacy import pseudonyms

    engine = open_database()
    row = journal.find_evaluation(engine, evaluation)
    visible = pseudonyms.mask_cases(rows(engine, row["id"]), row["source"])
    frame: pd.DataFrame = visible.to_pandas(types_mapper=pd.ArrowDtype)
    return frame
