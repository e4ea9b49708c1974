"""Rows of a delimited text: CSV and its like."""

import csv
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from db.errors import InputError
from db.importers.formats import Read
from db.importers.lines import lines
from db.loading.staging import Rejected
from db.words import Words

if TYPE_CHECKING:
    from _csv import Reader

DELIMITERS = ",;\t"
LONGEST_FIELD = 10_000_000
"""Characters: a text of a whole page, or the vector of a large model as JSON."""


def csv_cells(path: Path, encoding: str) -> tuple[Sequence[str], Iterable[Read]]:
    """The names of the columns, and the rows as they are read."""
    text = lines(path, encoding)
    header = next(text, "")
    if not header.strip():
        raise InputError("{path}: the first line is empty; expected the names of the columns", path=path)
    csv.field_size_limit(LONGEST_FIELD)
    delimiter = max(DELIMITERS, key=lambda sign: len(next(csv.reader([header], delimiter=sign))))
    reader = csv.reader(chain((header,), text), delimiter=delimiter, strict=True)
    try:
        names = [name.strip() for name in next(reader)]
    except csv.Error as error:
        raise InputError("{path}: line 1: {error}; nothing was loaded", path=path, error=error) from None
    return names, _csv_rows(path, names, reader)


def _csv_rows(path: Path, names: Sequence[str], reader: "Reader") -> Iterator[Read]:
    """Rows with the line that they begin in; a text may go over several."""
    line = reader.line_num + 1
    try:
        for fields in reader:
            place, line = f"{path.name}:{line}", reader.line_num + 1
            if len(fields) == len(names):
                yield place, dict(zip(names, fields, strict=True))
            elif fields:
                reason = Words(
                    "{n_fields} fields where the header has {n_names}; a text with the delimiter needs quotes",
                    n_fields=len(fields),
                    n_names=len(names),
                )
                yield place, Rejected(place, reason)
    except csv.Error as error:
        raise InputError(
            "{path}: the row at line {line}: {error}; nothing was loaded. A text with quotes in it needs quotes "
            'around it, and its own doubled: "the ""new"" one"',
            path=path,
            line=line,
            error=error,
        ) from None
