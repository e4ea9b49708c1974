"""The cases or metrics of an evaluation as a file for other programs: CSV, Parquet, JSONL; whole or not at all."""

import csv
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO

import pyarrow as pa
import pyarrow.parquet as pq
from sqlalchemy import Engine

from yarus.db import journal
from yarus.db.errors import InputError
from yarus.tasks.cases import pseudonyms
from yarus.tasks.config.utf8 import quoted
from yarus.tasks.results.exam.standings import exams_of, standings
from yarus.tasks.results.numbers import finite
from yarus.tasks.results.parquet_files import make_folder
from yarus.tasks.results.queries import cases_where
from yarus.tasks.results.summary import metric_summary, n_missing

PORTION = 2_000
"""Rows that are turned into Python objects at a time."""
METRIC: tuple[str, ...] = (
    "metric",
    "stratum",
    "value",
    "ci_low",
    "ci_high",
    "n_scored",
    "n_total",
    "bound_low",
    "bound_high",
    "judge",
    "grade",
    "grade_high",
    "ungraded",
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
    partial = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        yield partial
        partial.replace(target)
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def metric_rows(engine: Engine, evaluation_id: str) -> pa.Table:
    """The metrics of an evaluation with what they belong to, one row a metric and stratum.

    Raises:
        InputError: no such evaluation, or it has no metrics.
    """
    row = journal.find(engine, evaluation_id)
    found = journal.metrics_of(engine, row["id"])
    if not found:
        raise InputError(
            "evaluation {id} is {state} and has no metrics; {error}",
            id=row["id"],
            state=row["state"],
            error=row["error"] or "",
        )
    of = {"evaluation_id": row["id"], **{name: row[name] for name in ("tier", "source", "started_at", "sut_label")}}
    of["comparability_key"] = row["comparability_key"]
    in_order = sorted(found, key=lambda metric: (metric["stratum"], metric["metric"]))
    resolved: Any = row["resolved"] or {}
    by_prompt = standings(exams_of(engine, [resolved]), resolved, row["started_at"])
    measured = [{**metric, **metric_summary(metric, n_missing(metric, row), by_prompt)} for metric in in_order]
    columns = {name: [metric[name] for metric in measured] for name in METRIC}
    return pa.table({**{name: [value] * len(measured) for name, value in of.items()}, **columns}, schema=_schema())


def _writer(target: Path) -> Write:
    known = {".csv": write_csv, ".jsonl": write_jsonl, ".parquet": _parquet}
    if target.suffix.lower() not in known:
        raise InputError("{target}: expected a name that ends in {known}", target=target, known=", ".join(known))
    return known[target.suffix.lower()]


def _parquet(table: pa.Table, path: Path) -> None:
    pq.write_table(table, path, compression="zstd")


def write_jsonl(table: pa.Table, path: Path) -> None:
    """One JSON object a line."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for row in _rows(table):
            file.write(json.dumps(row, ensure_ascii=False, allow_nan=False, default=_plain) + "\n")


def write_csv(table: pa.Table, path: Path) -> None:
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
        return quoted(value.replace("\0", ""))  # which no spreadsheet reads
    return _plain(value) if isinstance(value, datetime) else value


def _rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    """The rows; numbers that JSON and spreadsheets have not, such as an infinite distance, are NULL."""
    for batch in table.to_batches(max_chunksize=PORTION):
        yield from map(finite, batch.to_pylist())


def _plain(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _schema() -> pa.Schema:
    """The types of the rows of metrics, whatever is NULL in them."""
    numbers = {**dict.fromkeys(("value", "ci_low", "ci_high", "bound_low", "bound_high"), pa.float64())}
    numbers |= dict.fromkeys(("n_scored", "n_total"), pa.int64())
    names = ("evaluation_id", "tier", "source", "started_at", "sut_label", "comparability_key", *METRIC)
    moments = {"started_at": pa.timestamp("us", tz="UTC")}
    return pa.schema([(name, (numbers | moments).get(name, pa.string())) for name in names])
