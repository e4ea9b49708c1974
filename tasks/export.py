"""The cases or metrics of an evaluation as a file for other programs: CSV, Parquet, JSONL; whole or not at all."""

import csv
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO

import pyarrow as pa
import pyarrow.parquet as pq
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from db import journal
from db.errors import InputError
from tasks import shown
from tasks.files import make_folder
from tasks.report import cases_where, finite, summary
from tasks.settings import masked

PORTION = 2_000
"""Rows that are turned into Python objects at a time."""
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet takes for the beginning of a formula."""
METRIC: tuple[str, ...] = (
    "metric",
    "stratum",
    "value",
    "ci_low",
    "ci_high",
    "n_scored",
    "n_total",
    "grade",
    "direction",
    "reason",
)
METRIC += ("signature",)
Write = Callable[[pa.Table, Path], None]


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
    write = _writer(target)
    if target.exists() and not overwrite:
        raise InputError(f"{target} is there already; choose another name, or replace it by --overwrite")
    table = metric_rows(engine, evaluation_id) if metrics else cases_where(engine, evaluation_id, ())
    table = shown.cases(table, journal.find(engine, evaluation_id)["source"])
    make_folder(target.parent)
    partial = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        write(table, partial)
        partial.replace(target)
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
    return len(table)


def metric_rows(engine: Engine, evaluation_id: str) -> pa.Table:
    """The metrics of an evaluation with what they belong to, one row a metric and stratum.

    Raises:
        InputError: no such evaluation, or it has no metrics.
    """
    row = journal.find(engine, evaluation_id)
    found = journal.metrics_of(engine, row["id"])
    if not found:
        raise InputError(f"evaluation {row['id']} is {row['state']} and has no metrics; {row['error'] or ''}")
    of = {"evaluation_id": row["id"], **{name: row[name] for name in ("tier", "source", "started_at", "sut_label")}}
    of["comparability_key"] = row["comparability_key"]
    measured = sorted(found, key=lambda metric: (metric["stratum"], metric["metric"]))
    columns = {name: [metric[name] for metric in measured] for name in METRIC}
    return pa.table({**{name: [value] * len(measured) for name, value in of.items()}, **columns}, schema=_schema())


def to_mlflow(engine: Engine, evaluation_id: str, uri: str | None) -> dict[str, str]:
    """Logs an evaluation as a run of MLflow tracking, in the experiment `yarus/TIER`; the same one only once.

    Args:
        engine: of our own database.
        evaluation_id: or the beginning or end of it, or `last`.
        uri: of the tracking store; None: MLFLOW_TRACKING_URI, or what MLflow takes without it.

    Returns:
        tracking_uri, experiment and run_id.

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
        raise InputError(f"evaluation {found['evaluation_id']} is {found['state']} and has no metrics")
    place = uri or mlflow.get_tracking_uri()
    try:
        return {"tracking_uri": masked(place), **_log(mlflow.MlflowClient(tracking_uri=place), found)}
    except (MlflowException, SQLAlchemyError) as error:
        raise OSError(f"MLflow at {masked(place)}: {error}. Check --tracking-uri") from None


def mlflow_name(metric: str, stratum: str = "") -> str:
    """A metric's name as MLflow allows it: `hit_rate@10` is `hit_rate_at_10`, a stratum goes before it."""
    name = metric.replace("@", "_at_")
    return f"{stratum}/{name}" if stratum else name


def _log(client: Any, found: dict[str, Any]) -> dict[str, str]:
    """Experiment and run; the run is marked finished last, so that a half-logged one shows."""
    name, evaluation_id = f"yarus/{found['tier']}", found["evaluation_id"]
    known = client.get_experiment_by_name(name)
    experiment_id = known.experiment_id if known else client.create_experiment(name)
    query = f"tags.`yarus.evaluation_id` = '{evaluation_id}' and attributes.status = 'FINISHED'"
    if there := client.search_runs([experiment_id], query):
        raise InputError(f"evaluation {evaluation_id} is logged already: run {there[0].info.run_id} of {name}")
    begun, ended = (int(datetime.fromisoformat(found[key]).timestamp() * 1000) for key in ("started_at", "finished_at"))
    tags = {"yarus.evaluation_id": evaluation_id, **{f"yarus.{key}": str(found[key]) for key in TAGS if found[key]}}
    run_id = client.create_run(experiment_id, run_name=evaluation_id, start_time=begun, tags=tags).info.run_id
    for key, value in found["system"].items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        client.log_param(run_id, key, text[:LONGEST_PARAMETER])
    parts = {"": found["metrics"], **found.get("strata", {})}
    for stratum, metrics in parts.items():
        for metric, measured in metrics.items():
            for suffix, part in (("", "value"), ("_ci_low", "ci_low"), ("_ci_high", "ci_high")):
                if measured[part] is not None:
                    client.log_metric(run_id, mlflow_name(metric, stratum) + suffix, measured[part], timestamp=ended)
    client.set_terminated(run_id, end_time=ended)
    return {"experiment": name, "run_id": run_id}


TAGS = ("tier", "source", "state", "comparability_key", "case_set_hash", "sut_label", "parquet")
LONGEST_PARAMETER = 500  # characters; MLflow stores up to 6000, servers before 2.9 only 500


def _writer(target: Path) -> Write:
    known = {".csv": _csv, ".jsonl": _jsonl, ".parquet": _parquet}
    if target.suffix.lower() not in known:
        raise InputError(f"{target}: a file ends in {', '.join(known)}, which says of what kind it is to be")
    return known[target.suffix.lower()]


def _parquet(table: pa.Table, path: Path) -> None:
    pq.write_table(table, path, compression="zstd")


def _jsonl(table: pa.Table, path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for row in _rows(table):
            file.write(json.dumps(row, ensure_ascii=False, allow_nan=False, default=_plain) + "\n")


def _csv(table: pa.Table, path: Path) -> None:
    """As Excel opens it: UTF-8 with a mark, lists as JSON, texts that look like a formula begun by an apostrophe."""
    texts = [pa.types.is_string(field.type) for field in table.schema]
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        _write_csv(table, texts, file)


def _write_csv(table: pa.Table, texts: Sequence[bool], file: TextIO) -> None:
    writer = csv.writer(file)
    writer.writerow(table.column_names)
    for row in _rows(table):
        writer.writerow([_cell(value, text) for value, text in zip(row.values(), texts, strict=True)])


def _cell(value: Any, is_text: bool) -> Any:
    """One cell: nothing for NULL, so that an empty text is told from it only in the other formats."""
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False, default=_plain)
    if is_text and value is not None:
        value = value.replace("\0", "")  # which no spreadsheet reads
        return f"'{value}" if value.startswith(FORMULA) else value
    return _plain(value) if isinstance(value, datetime) else value


def _rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    """The rows; numbers that JSON and spreadsheets have not, such as an infinite distance, are NULL."""
    for batch in table.to_batches(max_chunksize=PORTION):
        yield from map(finite, batch.to_pylist())


def _plain(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _schema() -> pa.Schema:
    """The types of the rows of metrics, whatever is NULL in them."""
    numbers = {**dict.fromkeys(("value", "ci_low", "ci_high"), pa.float64())}
    numbers |= dict.fromkeys(("n_scored", "n_total"), pa.int64())
    names = ("evaluation_id", "tier", "source", "started_at", "sut_label", "comparability_key", *METRIC)
    moments = {"started_at": pa.timestamp("us", tz="UTC")}
    return pa.schema([(name, (numbers | moments).get(name, pa.string())) for name in names])
