"""Export cases or metrics of an evaluation: CSV, Parquet, JSONL, or a run of MLflow."""

import csv
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError
from typing_extensions import TypedDict

from yarus.db import journal
from yarus.db.errors import InputError
from yarus.db.messages import Words
from yarus.tasks.cases.privacy import pseudonyms
from yarus.tasks.config.redaction import escape_formula, redact_urls
from yarus.tasks.evaluation.number_format import replace_non_finite
from yarus.tasks.evaluation.queries import filter_cases
from yarus.tasks.evaluation.result_files import make_folder, open_partial
from yarus.tasks.evaluation.summary import EvaluationSummary, measured_metrics, read_summary

ROWS_PER_PORTION = 2_000
"""Rows that are turned into Python objects at a time."""
METRIC_COLUMNS = pa.schema(
    [(name, pa.string()) for name in ("evaluation_id", "tier", "source")]
    + [("started_at", pa.timestamp("us", tz="UTC"))]
    + [(name, pa.string()) for name in ("sut_label", "comparability_key", "metric", "stratum")]
    + [(name, pa.float64()) for name in ("value", "ci_low", "ci_high")]
    + [(name, pa.int64()) for name in ("n_scored", "n_total")]
    + [(name, pa.float64()) for name in ("bound_low", "bound_high")]
    + [(name, pa.string()) for name in ("judge", "grade", "grade_high", "ungraded", "direction", "reason", "signature")]
)
"""Schema of metric rows, including columns that are all NULL."""


def export_file(
    engine: Engine, evaluation_id: str, target: Path, *, metrics: bool = False, overwrite: bool = False
) -> int:
    """Write the cases of an evaluation, or its metrics, into a file; its suffix decides the format.

    Args:
        engine: of our own database.
        evaluation_id: or the beginning or end of it, or `last`.
        target: ends in .csv, .jsonl or .parquet.
        metrics: one row per metric and stratum, instead of one row per case.
        overwrite: replace a file that is there.

    Returns:
        The number of rows written.

    Raises:
        InputError: no such evaluation, nothing to export, another suffix, or the file is there already.
        OSError: the file cannot be written; nothing of it is left.
    """
    write = WRITERS.get(target.suffix.lower())
    if write is None:
        raise InputError("{target}: expected a name that ends in {known}", target=target, known=", ".join(WRITERS))
    with open_replacement(target, overwrite=overwrite) as partial:
        table = read_metric_rows(engine, evaluation_id) if metrics else filter_cases(engine, evaluation_id, ())
        table = pseudonyms.mask_cases(table, journal.find_evaluation(engine, evaluation_id)["source"])
        write(table, partial)
    return len(table)


@contextmanager
def open_replacement(target: Path, *, overwrite: bool) -> Iterator[Path]:
    """Yield a temporary file that takes the target's place when complete; failed writes leave nothing.

    Raises:
        InputError: the target exists, and may not be replaced.
        OSError: it cannot be written.
    """
    if target.exists() and not overwrite:
        raise InputError("{target} already exists; choose another name, or replace it with --overwrite", target=target)
    make_folder(target.parent)
    with open_partial(target, durable=False) as partial:
        yield partial


def read_metric_rows(engine: Engine, evaluation_id: str) -> pa.Table:
    """Return the metrics of an evaluation with their evaluation's columns, one row per metric and stratum.

    Raises:
        InputError: no such evaluation, or it has no metrics.
    """
    row = journal.find_evaluation(engine, evaluation_id)
    metrics = measured_metrics(engine, row)
    if not metrics:
        raise InputError(
            "evaluation {id} is {state} and has no metrics; {error}",
            id=row["id"],
            state=row["state"],
            error=row["error"] or "",
        )
    ordered = sorted(metrics, key=lambda pair: (pair[0]["stratum"], pair[0]["metric"]))
    rows = [{**row, **metric, **summary} for metric, summary in ordered]
    return pa.Table.from_pylist(rows, schema=METRIC_COLUMNS)


def write_jsonl(table: pa.Table, path: Path) -> None:
    """Write one JSON object per line."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for row in _iterate_rows(table):
            file.write(json.dumps(row, ensure_ascii=False, allow_nan=False, default=_to_text) + "\n")


def write_csv(table: pa.Table, path: Path) -> None:
    """Write CSV for Excel: UTF-8 with a BOM, lists as JSON, an apostrophe before texts that look like formulas."""
    texts = [pa.types.is_string(field.type) for field in table.schema]
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(table.column_names)
        for row in _iterate_rows(table):
            writer.writerow([_format_cell(value, text) for value, text in zip(row.values(), texts, strict=True)])


def _format_cell(value: Any, is_text: bool) -> Any:
    """Format one cell; NULL and an empty text look the same, which only the other formats distinguish."""
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False, default=_to_text)
    if is_text and value is not None:
        return escape_formula(value.replace("\0", ""))  # NUL breaks spreadsheets
    return _to_text(value) if isinstance(value, datetime) else value


def _iterate_rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    """Yield the rows; numbers that JSON and spreadsheets lack, such as an infinite distance, become NULL."""
    for batch in table.to_batches(max_chunksize=ROWS_PER_PORTION):
        yield from map(replace_non_finite, batch.to_pylist())


def _to_text(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


WRITERS: dict[str, Callable[[pa.Table, Path], None]] = {
    ".csv": write_csv,
    ".jsonl": write_jsonl,
    ".parquet": partial(pq.write_table, compression="zstd"),
}


class LoggedRun(TypedDict):
    """A run of MLflow tracking."""

    tracking_uri: str
    experiment: str
    run_id: str


def log_to_mlflow(engine: Engine, evaluation_id: str, uri: str | None) -> LoggedRun:
    """Log an evaluation as a run of MLflow tracking, in the experiment `yarus/TIER`; at most once.

    Args:
        engine: of our own database.
        evaluation_id: or the beginning or end of it, or `last`.
        uri: of the tracking store; None for MLFLOW_TRACKING_URI, or MLflow's default.

    Raises:
        InputError: MLflow is not installed, there is no such evaluation, it is not finished, or it was logged before.
        OSError: the tracking store cannot be reached or refuses us.
    """
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # before the import, which reads it
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")  # its default waits four minutes for a missing server
    try:
        import mlflow
        from mlflow.exceptions import MlflowException
    except ImportError:
        raise InputError("--mlflow needs the package mlflow: pip install 'yarus[mlflow]'") from None
    evaluated = read_summary(engine, evaluation_id)
    if not evaluated["metrics"]:
        raise InputError(
            "evaluation {evaluation} is {state} and has no metrics",
            evaluation=evaluated["evaluation_id"],
            state=evaluated["state"],
        )
    tracking_uri = uri or mlflow.get_tracking_uri()
    try:
        experiment, run_id = _log_to_mlflow(mlflow.MlflowClient(tracking_uri=tracking_uri), evaluated)
    except (MlflowException, SQLAlchemyError) as error:
        raise OSError(
            Words("MLflow at {place}: {error}. Check --tracking-uri", place=redact_urls(tracking_uri), error=error)
        ) from None
    return {"tracking_uri": redact_urls(tracking_uri), "experiment": experiment, "run_id": run_id}


def mlflow_name(metric: str, stratum: str = "") -> str:
    """Return a metric's name as MLflow allows it: `hit_rate@10` is `hit_rate_at_10`, prefixed by the stratum."""
    name = metric.replace("@", "_at_")
    return f"{stratum}/{name}" if stratum else name


def _log_to_mlflow(client: Any, evaluated: EvaluationSummary) -> tuple[str, str]:
    """Log an evaluation, and return experiment and run; the run is finished last, so that incomplete ones show."""
    fields: Mapping[str, Any] = evaluated
    name, evaluation_id = f"yarus/{evaluated['tier']}", evaluated["evaluation_id"]
    experiment = client.get_experiment_by_name(name)
    experiment_id = experiment.experiment_id if experiment else client.create_experiment(name)
    query = f"tags.`yarus.evaluation_id` = '{evaluation_id}' and attributes.status = 'FINISHED'"
    if logged_runs := client.search_runs([experiment_id], query):
        raise InputError(
            "evaluation {evaluation} is logged already: run {run} of {name}",
            evaluation=evaluation_id,
            run=logged_runs[0].info.run_id,
            name=name,
        )
    started_ms, finished_ms = (
        int(datetime.fromisoformat(fields[key]).timestamp() * 1000) for key in ("started_at", "finished_at")
    )
    tags = {"yarus.evaluation_id": evaluation_id, **{f"yarus.{key}": str(fields[key]) for key in TAGS if fields[key]}}
    run_id = client.create_run(experiment_id, run_name=evaluation_id, start_time=started_ms, tags=tags).info.run_id
    for key, value in evaluated["system"].items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        client.log_param(run_id, key, text[:LONGEST_PARAMETER])
    strata = {"": evaluated["metrics"], **evaluated.get("strata", {})}
    for stratum, metrics in strata.items():
        for metric, measured in metrics.items():
            numbers = {"": measured["value"], "_ci_low": measured["ci_low"], "_ci_high": measured["ci_high"]}
            for suffix, number in numbers.items():
                if number is not None:
                    client.log_metric(run_id, mlflow_name(metric, stratum) + suffix, number, timestamp=finished_ms)
    client.set_terminated(run_id, end_time=finished_ms)
    return name, run_id


TAGS = ("tier", "source", "state", "comparability_key", "case_set_hash", "sut_label", "parquet")
LONGEST_PARAMETER = 500  # characters; MLflow stores up to 6000, servers before 2.9 only 500
