"""A table of questions or chunks: CSV, JSON Lines or Parquet, one row each, columns by our names or a mapping."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from db.errors import InputError, unknown
from db.importers.lines import UTF8, json_lines
from db.importers.recognise import REQUIRED, SAMPLED, Kind, propose, shell_word
from db.importers.values import KINDS, BadValue, parse
from db.loading.fill import Stream
from db.loading.recorded import PARTS, chunks, content_id, record
from db.loading.staging import Rejected, Row
from db.tables import ANNOTATION, source_tables
from db.words import Words, joined

if TYPE_CHECKING:
    pass
from db.importers.formats import Read
from db.importers.formats.delimited import csv_cells
from db.importers.formats.parquet import parquet_cells

# What makes a row the same row when it has no id: never its labels, so that relabelling keeps it.
IDENTITY = {
    "questions": ("question", "user_id", "created_at", "dialog_id", "turn"),
    "chunks": ("text", "confluence_url"),
}


@dataclass(frozen=True)
class Columns:
    """Our columns that a file has: their name there, and where they go."""

    main: dict[str, str]
    annotation: dict[str, str]
    recorded: dict[str, str]
    """Parts of the record of an answer."""


def read(
    path: Path, kind: Kind = "questions", mapping: Mapping[str, str] | None = None, encoding: str = UTF8
) -> Stream:
    """Reads a table while it is stored.

    A row without an id gets the hash of its content. Rows with a value of the wrong type, and rows of a CSV file with
    more or fewer fields than its header, are skipped with their place.

    Args:
        path: ends in .csv, .tsv, .jsonl or .parquet; the delimiter of a CSV file is the one that parts its header.
        kind: of the rows.
        mapping: our column name -> the file's.
        encoding: of a text file.

    Raises:
        InputError: unreadable, of another format or encoding, a column is missing, or the mapping names none.
    """
    names, rows = opened(path, encoding)
    stream = Stream()
    first, rows = _first(path, rows)
    columns = _columns(path, kind, names, mapping or {}, first, stream.problems)
    if kind == "chunks":
        stream.chunks = _rows(rows, kind, columns)
        return stream
    labels: list[Row] = []
    if "contexts" in columns.recorded:
        _, again = opened(path, encoding)
        stream.chunks, stream.new_chunks_only = chunks(_contexts(again, columns), stream.problems), True
    stream.questions = _rows(rows, kind, columns, labels)
    stream.annotations = labels
    return stream


def opened(path: Path, encoding: str = UTF8) -> tuple[Sequence[str], Iterable[Read]]:
    """The names of a table's columns, and its rows as they are read.

    Raises:
        InputError: unreadable, or of another format or encoding.
    """
    formats: dict[str, Callable[[Path, str], tuple[Sequence[str], Iterable[Read]]]] = {
        ".csv": csv_cells, ".tsv": csv_cells, ".jsonl": _jsonl, ".ndjson": _jsonl, ".parquet": parquet_cells,
    }  # fmt: skip
    if path.suffix.lower() not in formats:
        raise InputError(
            "{path}: expected a name that ends in {formats}; save a spreadsheet as CSV (UTF-8)",
            path=path,
            formats=", ".join(formats),
        )
    return formats[path.suffix.lower()](path, encoding)


def _first(path: Path, rows: Iterable[Read]) -> tuple[list[Mapping[str, Any]], Iterable[Read]]:
    """The first rows, by which columns are told, and all of them.

    Raises:
        InputError: there is none.
    """
    rows = iter(rows)
    head = list(islice(rows, SAMPLED))
    if not head:
        raise InputError("{path}: names of columns, and no row below them; nothing was loaded", path=path)
    return [cells for _, cells in head if not isinstance(cells, Rejected)], chain(head, rows)


def sample(path: Path, encoding: str = UTF8) -> tuple[Sequence[str], list[Mapping[str, Any]]]:
    """The names of a table's columns, and its first rows.

    Raises:
        InputError: as `opened`, or there is no row.
    """
    names, rows = opened(path, encoding)
    return names, _first(path, rows)[0]


def _columns(
    path: Path,
    kind: Kind,
    names: Sequence[str],
    mapping: Mapping[str, str],
    first: Sequence[Mapping[str, Any]],
    problems: list[str],
) -> Columns:
    """Which of our columns the file has; those that are not used are among the problems, with what they may be.

    Raises:
        InputError: the required one is missing, the mapping names a column that is not ours or not there, or a name
            appears twice in the header.
    """
    tables = source_tables(None)
    of_kind = tables["question_answer" if kind == "questions" else "chunk"]
    main = [key for key in of_kind.columns.keys() if key in KINDS]  # noqa: SIM118
    labels = [] if kind == "chunks" else [key for key in tables[ANNOTATION].columns.keys() if key in KINDS]  # noqa: SIM118
    labels += [] if kind == "chunks" else PARTS
    if repeated := sorted({name for name in names if name and names.count(name) > 1}):
        raise InputError(
            "{path}: the column {name!r} appears twice in the header; nothing was loaded", path=path, name=repeated[0]
        )
    for ours, theirs in mapping.items():
        if ours not in (*main, *labels):
            raise unknown(Words("column of {kind}:", kind=kind), ours, (*main, *labels), "(--map OURS=THEIRS)")
        if theirs not in names:
            raise unknown(Words("column in {path}:", path=path), theirs, names)
    found = {ours: mapping.get(ours, ours) for ours in (*main, *labels) if mapping.get(ours, ours) in names}
    proposed = propose([name for name in names if name not in found.values()], first, kind).mapping
    free = [ours for ours in (*main, *labels) if ours not in found and ours not in proposed]
    maps = {ours: theirs for ours, theirs in proposed.items() if ours not in found}
    unused = [name for name in names if name not in found.values()]
    for name in unused:
        if name not in maps.values() and (near := get_close_matches(name, free, n=1)):
            maps.setdefault(near[0], name)
    said = " ".join(f"--map {shell_word(f'{ours}={theirs}')}" for ours, theirs in maps.items())
    if (required := REQUIRED[kind]) not in found:
        how = said if required in maps else f"--map {required}=NAME {said}".strip()
        raise unknown(Words("column in {path}:", path=path), required, names, Words("Map it: {maps}", maps=how))
    if unused:
        told = Words(
            "{file}: {n} of {total} columns are not used: {names}",
            file=path.name,
            n=len(unused),
            total=len(names),
            names=", ".join(unused),
        )
        again = Words("if they are what they seem to be, load again with {maps}", maps=said)
        problems.append(joined((told, again)) if said else told)
    return Columns(
        {ours: theirs for ours, theirs in found.items() if ours in main},
        {ours: theirs for ours, theirs in found.items() if ours in labels and ours not in PARTS},
        {ours: theirs for ours, theirs in found.items() if ours in PARTS and ours not in main},
    )


def _rows(
    rows: Iterable[Read], kind: Kind, columns: Columns, labels: list[Row] | None = None
) -> Iterator[Row | Rejected]:
    """The rows for the main table; their annotations go to `labels`."""
    for place, cells in rows:
        if isinstance(cells, Rejected):
            yield cells
            continue
        values, faults = _parsed(cells, columns)
        if faults:
            yield Rejected(place, joined(faults))
            continue
        row_id = values.get("id") or content_id({name: values.get(name) for name in IDENTITY[kind]})
        kept = {"id": row_id, **{ours: values[ours] for ours in columns.main if ours != "id"}}
        yield Row(place, kept | ({"recorded": record(values)} if columns.recorded else {}))
        if labels is not None and columns.annotation:
            labels.append(Row(place, _annotation(row_id, {ours: values[ours] for ours in columns.annotation})))


def _contexts(rows: Iterable[Read], columns: Columns) -> Iterator[tuple[str, dict[str, Any] | None]]:
    """What is recorded in the rows that can be used."""
    for place, cells in rows:
        if not isinstance(cells, Rejected):
            values, faults = _parsed(cells, columns)
            yield place, None if faults else record(values)


def _parsed(cells: Mapping[str, Any], columns: Columns) -> tuple[dict[str, Any], list[str]]:
    """The values by our names, and what is wrong with those that cannot be used."""
    values: dict[str, Any] = {}
    faults: list[str] = []
    for ours, theirs in (columns.main | columns.annotation | columns.recorded).items():
        try:
            values[ours] = parse(ours, cells.get(theirs))
        except BadValue as error:
            faults.append(Words("{column} = {value}: {error}", column=theirs, value=_short(cells[theirs]), error=error))
    return values, faults


def _annotation(question_id: str, values: dict[str, Any]) -> dict[str, Any]:
    """A row of `annotation`; it has an origin only if somebody judged, for else the log's own page is the label."""
    judged = any(values.get(name) is not None for name in ("relevant_chunk_ids", "relevant_urls", "answerable"))
    origin = values.get("origin") or ("imported" if judged else None)
    return {"question_id": question_id, **values, "origin": origin}


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _jsonl(path: Path, encoding: str) -> tuple[Sequence[str], Iterable[Read]]:
    names = dict.fromkeys(key for _, values in json_lines(path, encoding) for key in values)
    return list(names), json_lines(path, encoding)
