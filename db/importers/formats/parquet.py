"""Rows of a Parquet file, one at a time; a value that cannot be said costs its row."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from db.errors import InputError

if TYPE_CHECKING:
    pass
from db.importers.formats import Read


def parquet_cells(path: Path, encoding: str) -> tuple[Sequence[str], Iterable[Read]]:
    """The names of the columns, and the rows as they are read."""
    with _reading(path):
        file = pq.ParquetFile(path)
    return file.schema_arrow.names, _parquet_rows(path, file)


def _parquet_rows(path: Path, file: pq.ParquetFile) -> Iterator[Read]:
    number = 0
    with _reading(path), file:
        for batch in file.iter_batches(batch_size=1_000):
            for cells in _cells(batch):
                number += 1
                yield f"{path.name}: row {number}", cells


def _cells(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """The rows; for a value that Python cannot say there are bytes, so that its row is refused and no other."""
    try:
        yield from batch.to_pylist()
    except (OverflowError, ValueError, LookupError):  # beyond the year 9999, or in no time zone that is known
        for number in range(len(batch)):
            yield {name: _cell(batch[name][number]) for name in batch.schema.names}


def _cell(value: "pa.Scalar[Any]") -> Any:
    try:
        return value.as_py()
    except (OverflowError, ValueError, LookupError):
        return f"{value.type} out of range".encode()  # which no column takes


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Says of what cannot be read which file it is."""
    try:
        yield
    except FileNotFoundError:
        raise InputError("{path}: there is no such file", path=path) from None
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            "{path}: not a complete Parquet file ({error}); nothing was loaded", path=path, error=error
        ) from None
    except (OverflowError, UnicodeDecodeError, LookupError) as error:  # a year above 9999, a damaged text, no such zone
        raise InputError(
            "{path}: a value that cannot be read ({error}); nothing was loaded", path=path, error=error
        ) from None
