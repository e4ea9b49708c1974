"""Cases or metrics of an evaluation for other programs: CSV, Parquet, JSONL, or a run of MLflow."""

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
from yarus.db.words import Words
from yarus.tasks.cases.privacy import pseudonyms
from yarus.tasks.config.redaction import quoted, redact_urls
from yarus.tasks.evaluation.numbers import finite
from yarus.tasks.evaluation.queries import cases_where
from yarus.tasks.evaluation.result_files import make_folder, open_partial
from yarus.tasks.evaluation.summary import EvaluationSummary, measured_metrics, summary

PORTION = 2_000
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
"""Of rows of metrics, whatever is NULL in them."""


def export(engine: Engine, evaluation_id: str, target: Path, *, metrics: bool = False, overwrite: bool = False) -> int:
    """Writes the cases of an evaluation, or its metrics, into a file whose suffix says of what kind.

    Args:
        engine: of our own database.
        evaluation_id: or the beginning or end of it, or `last`.
        target: ends in .csv, .jsonl or .parquet.
        metrics: one row a metric and stratum, instead of one row a case.
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
    with replacing(target, overwrite=overwrite) as partial:
        table = metric_rows(engine, evaluation_id) if metrics else cases_where(engine, evaluation_id, ())
        table = pseudonyms.cases(table, journal.find(engine, evaluation_id)["source"])
        write(table, partial)
    return len(table)


@contextmanager
def replacing(target: Path, *, overwrite: bool) -> Iterator[Path]:
    """Where a file is written until it is whole, and then in its place; nothing is left of one that fails.

    Raises:
        InputError: it is there already, and may not be replaced.
        OSError: it cannot be written.
    """
    if target.exists() and not overwrite:
        raise InputError("{target} already exists; choose another name, or replace it with --overwrite", target=target)
    make_folder(target.parent)
    with open_partial(target, durable=False) as partial:
        yield partial


def metric_rows(engine: Engine, evaluation_id: str) -> pa.Table:
    """The metrics of an evaluation with what they belong to, one row a metric and stratum.

    Raises:
        InputError: no such evaluation, or it has no metrics.
    """
    row = journal.find(engine, evaluation_id)
    found = measured_metrics(engine, row)
    if not found:
        raise InputError(
            "evaluation {id} is {state} and has no metrics; {error}",
            id=row["id"],
            state=row["state"],
            error=row["error"] or "",
        )
    in_order = sorted(found, key=lambda one: (one[0]["stratum"], one[0]["metric"]))
    rows = [{**row, **metric, **of_metric} for metric, of_metric in in_order]
    return pa.Table.from_pylist(rows, schema=METRIC_COLUMNS)


def write_jsonl(table: pa.Table, path: Path) -> None:
    """One JSON object a line."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for row in _rows(table):
            file.write(json.dumps(row, ensure_ascii=False, allow_nan=False, default=_plain) + "\n")


def write_csv(table: pa.Table, path: Path) -> None:
    """As Excel opens it: UTF-8 with a mark, lists as JSON, texts that look like a formula begun by an apostrophe."""
    texts = [pa.types.is_string(field.type) for field in table.schema]
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(table.column_names)
        for row in _rows(table):
            writer.writerow([_cell(value, text) for value, text in zip(row.values(), texts, strict=True)])


def _cell(value: Any, is_text: bool) -> Any:
    """One cell: nothing for NULL, so that an empty text is told from it only in the other formats."""
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False, default=_plain)
    if is_text and value is not None:
        return quoted(value.replace("\0", ""))  # which no spreadsheet reads
    return _plain(value) if isinstance(value, datetime) else value


def _rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    """The rows; numbers that JSON and spreadsheets have not, such as an infinite distance, are NULL."""
    for batch in table.to_batches(max_chunksize=PORTION):
        yield from map(finite, batch.to_pylist())


def _plain(value: Any) -> str:
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


def to_mlflow(engine: Engine, evaluation_id: str, uri: str | None) -> LoggedRun:
    """Logs an evaluation as a run of MLflow tracking, in the experiment `yarus/TIER`; the same one only once.

    Args:
        engine: of our own database.
        evaluation_id: or the beginning or end of it, or `last`.
        uri: of the tracking store; None: MLFLOW_TRACKING_URI, or what MLflow takes without it.

    Raises:
        InputError: MLflow is not installed, there is no such evaluation, it is not finished, or its run is there.
        OSError: the tracking store cannot be reached or refuses us.
    """
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # before the import, which looks at it
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")  # by itself it would wait four minutes for nobody
    try:
        import mlflow
        from mlflow.exceptions import MlflowException
    except ImportError:
        raise InputError("--mlflow needs the package mlflow: pip install 'yarus[mlflow]'") from None
    found = summary(engine, evaluation_id)
    if not found["metrics"]:
        raise InputError(
            "evaluation {evaluation} is {state} and has no metrics",
            evaluation=found["evaluation_id"],
            state=found["state"],
        )
    place = uri or mlflow.get_tracking_uri()
    try:
        experiment, run_id = _log(mlflow.MlflowClient(tracking_uri=place), found)
    except (MlflowException, SQLAlchemyError) as error:
        raise OSError(
            Words("MLflow at {place}: {error}. Check --tracking-uri", place=redact_urls(place), error=error)
        ) from None
    return {"tracking_uri": redact_urls(place), "experiment": experiment, "run_id": run_id}


def mlflow_name(metric: str, stratum: str = "") -> str:
    """A metric's name as MLflow allows it: `hit_rate@10` is `hit_rate_at_10`, a stratum goes before it."""
    name = metric.replace("@", "_at_")
    return f"{stratum}/{name}" if stratum else name


def _log(client: Any, found: EvaluationSummary) -> tuple[str, str]:
    """Experiment and run; the run is marked finished last, so that a half-logged one shows."""
    said: Mapping[str, Any] = found
    name, evaluation_id = f"yarus/{found['tier']}", found["evaluation_id"]
    known = client.get_experiment_by_name(name)
    experiment_id = known.experiment_id if known else client.create_experiment(name)
    query = f"tags.`yarus.evaluation_id` = '{evaluation_id}' and attributes.status = 'FINISHED'"
    if there := client.search_runs([experiment_id], query):
        raise InputError(
            "evaluation {evaluation} is logged already: run {run} of {name}",
            evaluation=evaluation_id,
            run=there[0].info.run_id,
            name=name,
        )
    begun, ended = (int(datetime.fromisoformat(said[key]).timestamp() * 1000) for key in ("started_at", "finished_at"))
    tags = {"yarus.evaluation_id": evaluation_id, **{f"yarus.{key}": str(said[key]) for key in TAGS if said[key]}}
    run_id = client.create_run(experiment_id, run_name=evaluation_id, start_time=begun, tags=tags).info.run_id
    for key, value in found["system"].items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        client.log_param(run_id, key, text[:LONGEST_PARAMETER])
    parts = {"": found["metrics"], **found.get("strata", {})}
    for stratum, metrics in parts.items():
        for metric, measured in metrics.items():
            parts_of = {"": measured["value"], "_ci_low": measured["ci_low"], "_ci_high": measured["ci_high"]}
            for suffix, number in parts_of.items():
                if number is not None:
                    client.log_metric(run_id, mlflow_name(metric, stratum) + suffix, number, timestamp=ended)
    client.set_terminated(run_id, end_time=ended)
    return name, run_id


TAGS = ("tier", "source", "state", "comparability_key", "case_set_hash", "sut_label", "parquet")
LONGEST_PARAMETER = 500  # characters; MLflow stores up to 6000, servers before 2.9 only 500
