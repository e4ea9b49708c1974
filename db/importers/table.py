"""Read a file of questions or passages, in any format, shape and columns, as rows for a source.

A file is examined as a whole before anything is loaded: the meaning of its columns, its unreadable cells, and the
number of usable rows. An unreadable cell never costs a row: it becomes NULL and is counted per column, with examples.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

from yarus.db.errors import InputError, unknown
from yarus.db.importers.cells import (
    LIST_COLUMNS,
    CellStyle,
    detect_style,
    extract_text,
    is_nothing,
    parse_history,
    parse_id,
    parse_labels,
    parse_mark,
    parse_page_names,
    parse_passages,
)
from yarus.db.importers.column_parsers import BadValue, parse_value
from yarus.db.importers.containers import Cells, Container, PlacedRow, open_container
from yarus.db.importers.corpus_names import CorpusNames, add_label
from yarus.db.importers.recognise import (
    COLUMN_ALIASES,
    INVERTED_NAMES,
    MAP_ALIASES,
    MISSING_TEXTS,
    N_SAMPLE_ROWS,
    REQUIRED_COLUMNS,
    RowKind,
    accepts_values,
    as_object,
    detect_columns,
    explain_unused_columns,
    get_value,
    is_empty,
    iter_values,
    normalize_name,
    quote_for_shell,
)
from yarus.db.importers.shapes import ASSERTION_REFERENCE, SEVERAL_REFERENCES, Shape
from yarus.db.importers.votes import BAD
from yarus.db.loading.load_rows import RowStream
from yarus.db.loading.recorded import RECORD_KEYS, Record, content_id, iter_chunks, make_record
from yarus.db.loading.staging import IncomingRow, Rejected, RowValues, find_defect
from yarus.db.messages import Words, join_messages
from yarus.db.tables import source_tables

IDENTITY_COLUMNS = {
    "questions": ("question", "history", "user_id", "created_at", "dialog_id", "turn"),
    "chunks": ("text", "confluence_url"),
}
"""Columns that identify a row without an id; never its labels, so that relabelling keeps its identity."""
LABELS = ("ground_truth_answer", "ground_truth_show", "answerable", "relevant_chunk_ids", "relevant_urls", "nuggets")
"""Labels of a question; a row with any of them was labelled."""
TEXT_COLUMNS = ("question", "answer", "text", "ground_truth_answer")
ID_COLUMNS = ("id", "user_id", "dialog_id")
OTHER_LABELS = ("cluster", "dialog_id", "turn", "origin", "made_by")
OTHER_PASSAGES = ("irrelevant_passages", "other_passages")
SPECIAL_COLUMNS = ("made_by", "passage_url", "page_title", *OTHER_PASSAGES)
"""Columns of known shapes that are not ours."""
MAX_FAULT_SHARE, MIN_FAULTS = 0.2, 3
"""Share and number of unreadable cells from which a column is not used; a column without readable cells never is."""
MAX_DEPTH, MAX_NAMES = 3, 400
"""Maximum depth and number of nested names that are examined."""
OFF_SCALE = frozenset({*map(str, range(6, 101)), *(f"{mark}.0" for mark in range(6, 101)), "0", "0.0", "-1", "-1.0"})
"""Marks that are not on a scale from 1 to 5."""
TOTAL_WORDS = ("итого", "всего", "total", "sum", "average", "среднее", "итог")
VARIANT_WORDS = (
    "variant", "provider_label", "provider", "model", "bot", "system", "version", "prompt",
    "вариант", "модель", "бот", "версия",
)  # fmt: skip
MAX_VARIANTS, MAX_COUNTED_QUESTIONS = 50, 1_000_000
"""Limits for the values of a column that distinguishes variants, and for the counted questions."""
MAX_SHOWN_LENGTH = 60
MAX_EXAMPLES, MAX_LENGTHS = 2, 10_000
"""Limits for the reported unreadable cells, and for the texts whose length is recorded."""
SPECIAL_STARTS = frozenset('[{" \t\r\n\u00a0')
"""First characters of texts that may be JSON, quoted or blank."""
MAX_CACHED_VALUES = 10_000
"""Limit for the cached values of a column."""
MAX_CACHED_CHARACTERS, MAX_CACHED_ROWS, CELL_LENGTH = 64 << 20, 150_000, 100
"""Limits in characters and rows for a file that is read once and cached; characters counted for a cell without text."""


@dataclass
class ColumnFaults:
    """The unreadable cells of a column."""

    n_cells: int = 0
    examples: list[str] = field(default_factory=list)
    reason: str = ""
    places: list[str] = field(default_factory=list)
    other_scale: bool = False
    """Whether a mark is not on our scale: then all marks are on another one."""


@dataclass
class RemarkedRows:
    """Rows that are used differently than their tool means them."""

    n_rows: int = 0
    examples: list[str] = field(default_factory=list)


@dataclass
class RowSurvey:
    """Counts over the rows of a file."""

    rows: int = 0
    usable: int = 0
    rejected: int = 0
    filled: Counter[str] = field(default_factory=Counter)
    """Number of cells with a value per column of ours, readable or not."""
    faults: dict[str, ColumnFaults] = field(default_factory=dict)
    remarks: dict[Words, RemarkedRows] = field(default_factory=dict)
    marks: set[int] = field(default_factory=set)
    """The scores given by users."""
    left_out: int = 0
    several_pages: int = 0
    """Rows whose answer refers to several pages."""
    lengths: list[int] = field(default_factory=list)
    example: str = ""
    question_counts: Counter[int] = field(default_factory=Counter)
    """Hash of a question -> number of its rows."""


@dataclass
class ImportedTable:
    """A file with rows, and the meaning of its columns."""

    path: Path
    container: Container
    kind: RowKind
    shape: Shape | None
    mapping: dict[str, str]
    """Our column -> its name in the file."""
    doubtful: dict[str, list[str]]
    """Our column -> several candidates, or one whose values do not fit; not used until `--map` chooses one."""
    unused: dict[str, str]
    """Unused columns, each with one value."""
    notes: list[str]
    styles: dict[str, CellStyle]
    survey: RowSurvey
    where: Mapping[str, str]
    cached_rows: list[tuple[str, RowValues | Rejected]] | None = None
    """The parsed rows of a file that is small enough to be read once."""

    def stream(self, corpus: CorpusNames | None = None) -> RowStream:
        """Return the rows as a stream, read while they are stored.

        Args:
            corpus: the names that labels may use; None if there are no pages.
        """
        stream = RowStream(problems=[*self.notes, *self.problems()])
        if self.kind == "chunks":
            stream.chunks = self._chunks()
            return stream
        if self._labels_are_texts or any(name in self.mapping for name in ("contexts", *OTHER_PASSAGES)):
            stream.chunks = iter_chunks(self._iter_passages(corpus), stream.problems)
            stream.new_chunks_only = True
        stream.questions = self._question_rows(corpus)
        stream.annotations = self._annotation_rows(corpus)
        return stream

    def problems(self) -> list[str]:
        """Describe the cells and rows that cannot be used."""
        problems: list[str] = []
        for target, faults in self.survey.faults.items():
            problems.append(
                Words(
                    "{column}: {n} of {total} not read ({examples}): {reason}; left empty",
                    column=self.mapping[target], n=faults.n_cells, total=self.survey.filled[target],
                    examples=_format_faults(faults), reason=faults.reason,
                )
            )  # fmt: skip
        for remark, remarked in self.survey.remarks.items():
            problems.append(Words(remark.template, n=remarked.n_rows, examples=", ".join(remarked.examples)))
        if self.survey.marks == {BAD} and "score" in self.mapping and self.styles["score"].votes is None:
            column = self.mapping["score"]
            problems.append(
                Words(
                    "{column}: every value is 1 and is read as the worst mark; if 1 is good, rename the column to vote",
                    column=column,
                )
            )
        if self.survey.left_out:
            problems.append(Words("archived items that are left out: {n}", n=self.survey.left_out))
        return problems

    def missing(self) -> Iterator[str]:
        """Describe missing ids and references."""
        survey = self.survey
        if self.kind != "questions":
            return
        if "id" in self.mapping and (n_without_id := survey.usable - survey.filled["id"]) > 0:
            yield Words("rows without an id: {n}; they get the hash of their content", n=n_without_id)
        references = survey.filled["ground_truth_answer"]
        if references < survey.usable and ("answer" in self.mapping or references):
            yield Words(
                "questions without a reference: {n} of {total}", n=survey.usable - references, total=survey.usable
            )

    def left_aside(self) -> Iterator[str]:
        """Describe the columns that are not used, ambiguous and unknown ones, each with a value."""
        notes = " ".join(self.notes)
        for target, candidates in self.doubtful.items():
            if len(candidates) > 1 or f"--map {quote_for_shell(f'{target}={candidates[0]}')}" not in notes:
                yield explain_unused_columns(target, candidates)
        if not self.unused:
            return
        unused_examples = [
            f"{name or '(no name)'} ({value})" if value else name or "(no name)" for name, value in self.unused.items()
        ]
        unmapped = [target for target in COLUMN_ALIASES[self.kind] if target not in self.mapping]
        similar = {
            matches[0]: name
            for name in self.unused
            if (matches := get_close_matches(normalize_name(name), unmapped, n=1, cutoff=0.75))
        }
        similar = {target: name for target, name in similar.items() if self._has_fitting_values(target, name)}
        unused = Words(
            "{file}: {n} of {total} columns are not used: {names}",
            file=self.path.name, n=len(self.unused), total=len({*self.unused, *self.mapping.values()}),
            names=", ".join(unused_examples[:20]) + (", …" if len(unused_examples) > 20 else ""),
        )  # fmt: skip
        if not similar:
            yield unused
            return
        maps = " ".join(f"--map {quote_for_shell(f'{target}={column}')}" for target, column in similar.items())
        yield join_messages((unused, Words("if they are what they seem to be, load again with {maps}", maps=maps)))

    def _has_fitting_values(self, target: str, name: str) -> bool:
        """Return whether the values of a column fit a column of ours."""
        values = list(iter_values(read_first_rows(self.container), name))
        return bool(values) and accepts_values(target, values, name=name)

    def passages(self) -> Iterator[tuple[str, str | None, str, Sequence[str]]]:
        """Yield id, address, text and further names of each passage in a file of passages."""
        titles = (values.get("page_title") for _, values in self.values() if not isinstance(values, Rejected))
        rows = (row for row in self._chunks() if isinstance(row, IncomingRow))
        for row, title in zip(rows, titles, strict=True):
            if row.values.get("text"):
                yield row.values["id"], row.values.get("confluence_url"), row.values["text"], (title,) if title else ()

    def labels(self) -> Iterator[tuple[str, str]]:
        """Yield the labels that refer to pages or chunks by name: our column, and the name."""
        for name in ("relevant_urls", "relevant_chunk_ids"):
            if name in self.mapping and not self.styles[name].by_text:
                for _, values in self.values():
                    for label in () if isinstance(values, Rejected) else values.get(name) or ():
                        yield name, label

    @property
    def _labels_are_texts(self) -> bool:
        """Return whether rows identify their relevant passages by text."""
        return "relevant_chunk_ids" in self.mapping and self.styles["relevant_chunk_ids"].by_text

    def rows(self) -> Iterator[PlacedRow]:
        """Yield the rows of the file, without those that are skipped."""
        for place, cells in self.container.rows():
            if isinstance(cells, Rejected):
                yield place, cells
                continue
            if self.shape is not None:
                if self.shape.is_skipped is not None and self.shape.is_skipped(cells):
                    continue
                if self.shape.prepare is not None:
                    cells = self.shape.prepare(cells)
            if self.where and any(str(get_value(cells, name)) != value for name, value in self.where.items()):
                continue
            yield place, cells

    def values(self) -> Iterator[tuple[str, RowValues | Rejected]]:
        """Yield the values of each row by our names."""
        if self.cached_rows is not None:
            yield from self.cached_rows
            return
        parse_row = self.make_row_parser(lambda target, cell, error: None)
        for place, cells in self.rows():
            yield place, cells if isinstance(cells, Rejected) else _reject_total(place, parse_row(cells))

    def make_row_parser(self, on_fault: Callable[[str, Any, BadValue], None]) -> Callable[[Cells], RowValues]:
        """Return a function that parses a row to values by our names; `on_fault` is called for each unreadable cell."""
        columns = [(target, column, self._make_cell_parser(target, column)) for target, column in self.mapping.items()]

        def parse_row(cells: Cells) -> RowValues:
            values: RowValues = {}
            for target, column, parse_cell in columns:
                cell = cells[column] if column in cells else get_value(cells, column)
                if cell is None or cell == "":
                    values[target] = None
                    continue
                try:
                    values[target] = parse_cell(cell)
                except BadValue as error:
                    values[target] = None
                    on_fault(target, cell, error)
            return values

        return parse_row

    def _make_cell_parser(self, target: str, column: str) -> Callable[[Any], Any]:
        """Return a function that parses a cell of a column; it parses equal short cells only once."""
        style, is_required = self.styles[target], target == REQUIRED_COLUMNS[self.kind]
        cache: dict[str, Any] = {}

        def parse_text_cell(cell: Any) -> Any:
            is_plain = type(cell) is str and cell[0] not in SPECIAL_STARTS and cell not in MISSING_TEXTS
            if is_plain and (is_required or find_defect((cell,)) is None):
                return cell
            return None if is_empty(cell) else self._parse_value(target, column, style, cell)

        def parse_cell(cell: Any) -> Any:
            if type(cell) is not str or len(cell) > MAX_SHOWN_LENGTH:
                return None if is_empty(cell) else self._parse_value(target, column, style, cell)
            if cell in cache:
                return cache[cell]
            value = None if is_empty(cell) or is_nothing(cell) else self._parse_value(target, column, style, cell)
            if len(cache) < MAX_CACHED_VALUES:
                cache[cell] = value
            return value

        return parse_text_cell if target in TEXT_COLUMNS and not style.quoted else parse_cell

    def _parse_value(self, target: str, column: str, style: CellStyle, cell: Any) -> Any:
        if target in TEXT_COLUMNS:
            return self._parse_text(target, style, cell)
        if target == "answerable" and normalize_name(column.rpartition(".")[2]) in INVERTED_NAMES:
            return not parse_value(target, cell)
        if target in ("relevant_urls", "confluence_url"):
            return parse_page_names(cell) if not _is_graded(cell) else parse_labels(cell, style)
        if target == "relevant_chunk_ids":
            return parse_passages(cell, style) if style.by_text else parse_labels(cell, style)
        if target == "further_chunk_ids":
            return list(parse_labels(cell, style))
        if target in LIST_COLUMNS:
            return parse_passages(cell, style)
        if target == "score":
            return parse_mark(cell, style)
        if target == "history":
            return parse_history(cell, with_question=column == self.mapping.get("question"))
        if target in ID_COLUMNS:
            return parse_id(cell, integer_ids=style.integer_ids)
        return cell if target in SPECIAL_COLUMNS else parse_value(target, cell)

    def _parse_text(self, target: str, style: CellStyle, cell: Any) -> str | None:
        text = extract_text(target, cell, quoted=style.quoted)[0]
        if target != REQUIRED_COLUMNS[self.kind] and find_defect((text,)):
            raise BadValue("a NUL character or half of a surrogate pair, which PostgreSQL cannot store")
        return text if text.strip() else None

    def _chunks(self) -> Iterator[IncomingRow | Rejected]:
        columns = self._columns_of_table("chunk")
        for place, row_values in self.values():
            if isinstance(row_values, Rejected):
                yield row_values
                continue
            values = dict(row_values)
            values["confluence_url"] = _first_or_only(values.get("confluence_url"))
            row_id = values.get("id") or content_id({name: values.get(name) for name in IDENTITY_COLUMNS["chunks"]})
            yield IncomingRow(place, {"id": row_id, **{name: values[name] for name in columns}})

    def _columns_of_table(self, table: str) -> list[str]:
        """Return our columns of a database table that the file has, without the id."""
        columns = source_tables(None)[table].columns
        return [name for name in self.mapping if name in columns and name != "id"]

    def _iter_questions(self) -> Iterator[tuple[str, str, RowValues] | Rejected]:
        """Yield place, id and values of each row with a question."""
        for place, values in self.values():
            if isinstance(values, Rejected):
                yield values
                continue
            row_id = values.get("id") or content_id({name: values.get(name) for name in IDENTITY_COLUMNS["questions"]})
            yield place, row_id, values

    def _question_rows(self, corpus: CorpusNames | None) -> Iterator[IncomingRow | Rejected]:
        """Yield the rows of the log."""
        log_columns = self._columns_of_table("question_answer")
        has_recorded = self.survey.several_pages > 0 or any(name in self.mapping for name in RECORD_KEYS)
        for question_row in self._iter_questions():
            if isinstance(question_row, Rejected):
                yield question_row
                continue
            place, row_id, values = question_row
            pages = values.get("confluence_url")
            row_values = {"id": row_id, **{name: values[name] for name in log_columns}}
            if "confluence_url" in row_values:
                row_values["confluence_url"] = _first_or_only(pages)
            if has_recorded:
                several_pages = pages if isinstance(pages, list) and len(pages) > 1 else None
                row_values["recorded"] = make_record(self._resolve_contexts(values, corpus) | {"urls": several_pages})
            yield IncomingRow(place, row_values)

    def _annotation_rows(self, corpus: CorpusNames | None) -> Iterator[IncomingRow]:
        """Yield the labels of the questions."""
        label_columns = [name for name in (*LABELS, *OTHER_LABELS) if name in self.mapping]
        for question_row in self._iter_questions() if label_columns else ():
            if not isinstance(question_row, Rejected):
                place, row_id, values = question_row
                yield IncomingRow(place, self._annotation_row(row_id, values, label_columns, corpus))

    def _resolve_contexts(self, values: RowValues, corpus: CorpusNames | None) -> RowValues:
        """Return the values, with the contexts by the ids of the corpus."""
        contexts = values.get("contexts")
        if corpus is None or not contexts:
            return values
        return values | {"contexts": [corpus.with_corpus_id(passage) for passage in contexts]}

    def _annotation_row(
        self, question_id: str, values: RowValues, names: Sequence[str], corpus: CorpusNames | None
    ) -> RowValues:
        """Return a row of `annotation`; without an origin, labels count as imported."""
        annotation = {name: values.get(name) for name in names if name != "made_by"}
        if "relevant_chunk_ids" in names or "relevant_urls" in names:
            annotation["relevant_chunk_ids"], annotation["relevant_urls"] = self._resolve_labels(values, corpus)
        if "made_by" in names:
            annotation["review"] = {"made_by": str(values["made_by"])} if values.get("made_by") else None
        is_labelled = any(annotation.get(name) is not None for name in LABELS)
        origin = values.get("origin") or ("imported" if is_labelled else None)
        return {"question_id": question_id, **annotation, "origin": origin}

    def _resolve_labels(self, values: RowValues, corpus: CorpusNames | None) -> tuple[Any, Any]:
        """Return the relevant chunks and pages, by their names in the corpus."""
        chunk_labels, urls = values.get("relevant_chunk_ids"), values.get("relevant_urls")
        if self._labels_are_texts:
            chunk_labels = None if chunk_labels is None else self._labels_by_text(values, corpus)
        for label in values.get("further_chunk_ids") or ():
            chunk_labels = add_label(chunk_labels, label, 1)
        if corpus is None:
            return chunk_labels, urls
        return corpus.resolve(chunk_labels, urls)

    def _labels_by_text(self, values: Mapping[str, Any], corpus: CorpusNames | None) -> list[str] | dict[str, int]:
        """Return the ids of the relevant passages; with grades if others were judged not relevant."""
        ids = list(dict.fromkeys(passage["id"] for passage in self._relevant_passages(values, corpus)))
        irrelevant = values.get("irrelevant_passages")
        if not irrelevant:
            return ids
        irrelevant_ids = [(corpus.with_corpus_id(passage) if corpus else passage)["id"] for passage in irrelevant]
        return dict.fromkeys(irrelevant_ids, 0) | dict.fromkeys(ids, 1)

    def _relevant_passages(self, values: Mapping[str, Any], corpus: CorpusNames | None) -> list[Record]:
        """Return the relevant passages of a row, with their ids in the corpus."""
        url = values.get("passage_url")
        passages = [
            passage | {"url": passage["url"] or (str(url) if url else None)}
            for passage in values.get("relevant_chunk_ids") or ()
        ]
        return [corpus.with_corpus_id(passage) for passage in passages] if corpus else passages

    def _iter_passages(self, corpus: CorpusNames | None) -> Iterator[tuple[str, Record | None]]:
        """Yield the passages that rows identify by text; those with the address of their page come first."""
        for place, values in self.values():
            if isinstance(values, Rejected) or not values.get("question"):
                continue
            passages = self._relevant_passages(values, corpus) if self._labels_are_texts else []
            for name in OTHER_PASSAGES:
                passages += values.get(name) or []
            passages += self._resolve_contexts(values, corpus).get("contexts") or []
            if corpus is not None:
                passages = [passage for passage in passages if corpus.find_chunk(passage["id"]) is None]
            yield place, {"contexts": passages}


def _first_or_only(value: Any) -> str | None:
    return (value[0] if value else None) if isinstance(value, list) else value


def _is_graded(cell: Any) -> bool:
    text = cell.lstrip() if isinstance(cell, str) else ""
    is_map = isinstance(cell, Mapping) and all(isinstance(grade, int | float) for grade in cell.values())
    return is_map or text.startswith("{") or (isinstance(cell, list) and any(isinstance(item, tuple) for item in cell))


def inspect_table(
    path: Path,
    *,
    kind: RowKind | None = None,
    mapping: Mapping[str, str] | None = None,
    encoding: str | None = None,
    where: Mapping[str, str] | None = None,
    container: Container | None = None,
) -> ImportedTable:
    """Examine a file as a whole, and check that it can be loaded.

    Args:
        path: of the file.
        kind: of its rows; None to detect it by the columns.
        mapping: our column -> its name in the file, if known.
        encoding: of a text file; None to detect it.
        where: column of the file -> the value that a row must have to be read.
        container: of the file, if it is already open.

    Raises:
        InputError: the file cannot be read or recognised; two columns fit the question; each question has several rows;
            or less than half of the rows can be used. Nothing is loaded then.
    """
    container = container or open_container(path, encoding)
    mapping = {MAP_ALIASES.get(target, target): column for target, column in (mapping or {}).items()}
    sample = read_first_rows(container)
    if not sample and next(iter(container.rows()), None) is None:
        raise InputError(
            "{path}: no row; expected names of columns with rows below them; nothing was loaded", path=path
        )
    table = _detect_table(path, container, sample, kind, mapping)
    table.where = _check_conditions(table, where or {}, sample)
    table.survey = _survey_rows(table)
    _drop_unreadable_columns(table, mapping)
    _require_usable(table)
    if not table.where:
        _require_one_row_per_question(table)
    return table


def read_table(
    path: Path,
    kind: RowKind | None = None,
    mapping: Mapping[str, str] | None = None,
    encoding: str | None = None,
    corpus: CorpusNames | None = None,
) -> RowStream:
    """Read the rows of a file while they are stored; arguments and errors are those of `inspect_table`."""
    table = inspect_table(path, kind=kind, mapping=mapping, encoding=encoding)
    stream = table.stream(corpus)
    stream.problems += table.left_aside()
    return stream


def read_first_rows(container: Container) -> list[Cells]:
    """Return the first rows, up to a total length."""
    sample: list[Cells] = []
    size = 0
    for _, cells in islice(container.rows(), N_SAMPLE_ROWS):
        if not isinstance(cells, Rejected):
            sample.append(cells)
            size += sum(len(value) for value in cells.values() if isinstance(value, str))
        if size > MAX_CACHED_CHARACTERS:
            break
    return sample


def column_names(container: Container, sample: Sequence[Mapping[str, Any]], shape: Shape | None = None) -> list[str]:
    """Return the names of columns and of fields in nested objects, with dots."""
    names = dict.fromkeys(container.names)
    for cells in sample:
        prepared = shape.prepare(cells) if shape is not None and shape.prepare is not None else cells
        names |= dict.fromkeys(islice(_iter_names(prepared), MAX_NAMES))
    return list(names)


def _iter_names(cells: Mapping[str, Any], prefix: str = "", depth: int = MAX_DEPTH) -> Iterator[str]:
    for name, value in cells.items():
        yield f"{prefix}{name}"
        if depth > 1 and (inner_object := as_object(value)) is not None:
            yield from _iter_names(inner_object, f"{prefix}{name}.", depth - 1)


def _detect_table(
    path: Path,
    container: Container,
    sample: Sequence[Mapping[str, Any]],
    kind: RowKind | None,
    mapping: Mapping[str, str],
) -> ImportedTable:
    names = column_names(container, sample)
    _check_mapping(path, mapping, names, kind)
    kind = kind or next((row_kind for row_kind, target in REQUIRED_COLUMNS.items() if target in mapping), None)
    proposal = detect_columns(names, sample, kind, mapping)
    if proposal.shape is not None and proposal.shape.prepare is not None:
        sample = [proposal.shape.prepare(cells) for cells in sample]
        names = column_names(container, sample)
        proposal = detect_columns(names, sample, kind, mapping)
    kind = kind or proposal.kind
    if kind is None:
        raise InputError(
            "{path}: neither questions nor texts of pages by its columns: {names}. Say what they are: "
            "--map question=NAME for a log, --map text=NAME for pages; nothing was loaded",
            path=path, names=_with_examples(names, sample),
        )  # fmt: skip
    mapped = {target: column for target, column in mapping.items() if target in COLUMN_ALIASES[kind]}
    mapped_columns = set(mapped.values())
    columns = {
        target: column
        for target, column in proposal.mapping.items()
        if target not in mapped and (column not in mapped_columns or target == "history")
    } | mapped
    columns = {target: column for target, column in columns.items() if column}  # `--map FIELD=` maps no column
    doubtful = {target: candidates for target, candidates in proposal.doubtful.items() if target not in mapped}
    if (needed := REQUIRED_COLUMNS[kind]) not in columns:
        candidates = doubtful.get(needed)
        if candidates:
            raise InputError(
                "{path}: which column is the {needed}: {several}? Say so: --map {needed}=NAME; nothing was loaded",
                path=path, needed=needed, several=_with_examples(candidates, sample),
            )  # fmt: skip
        raise unknown(
            Words("column in {path}:", path=path), needed, names, Words("Map it: {maps}", maps=f"--map {needed}=NAME")
        )
    unused = {
        name: _format_example(name, sample) for name in proposal.unused
        if name not in (*mapped_columns, ASSERTION_REFERENCE) and not name.startswith(
            ("__expected", *(f"{column}." for column in columns.values()))
        )
    }  # fmt: skip
    all_rows = (cells for _, cells in container.rows() if not isinstance(cells, Rejected))
    # The last row may decide the scale of votes. An unmapped `score` holds marks, and a 0 in any row excludes it.
    needs_all_rows = "score" in mapped or columns.get("score") != "score"
    styles = {
        target: detect_style(
            target, iter_values(all_rows if target == "score" and needs_all_rows else sample, column), column
        )
        for target, column in columns.items()
    }
    notes = [*container.notes, *proposal.notes]
    for target in ("contexts", "relevant_chunk_ids"):
        has_passages = target in styles and (target == "contexts" or styles[target].by_text)
        if has_passages and styles[target].separator != "":
            notes.append(_describe_separator(columns[target], styles[target].separator))
    return ImportedTable(
        path, container, kind, proposal.shape, columns, doubtful, unused, notes, styles, RowSurvey(), {}
    )


def _describe_separator(name: str, separator: str | None) -> str:
    if separator is None:
        return Words("{column}: each cell is one passage", column=name)
    return Words("{column}: passages are divided by {separator!r}", column=name, separator=separator)


def _check_mapping(path: Path, mapping: Mapping[str, str], names: Sequence[str], kind: RowKind | None) -> None:
    targets = {*COLUMN_ALIASES["questions"], *COLUMN_ALIASES["chunks"]} if kind is None else set(COLUMN_ALIASES[kind])
    for target, column in mapping.items():
        if target not in targets and kind:
            raise unknown(Words("column of {kind}:", kind=kind), target, targets, "(--map FIELD=COLUMN)")
        if target not in targets:
            raise unknown("column", target, targets, "(--map FIELD=COLUMN)")
        if column and column not in names:
            raise unknown(Words("column in {path}:", path=path), column, names)


def _with_examples(names: Iterable[str], sample: Sequence[Mapping[str, Any]]) -> str:
    columns = [f"{name or '(no name)'} ({_format_example(name, sample)})" for name in names if "." not in name]
    return ", ".join(columns[:20]) + (", …" if len(columns) > 20 else "")


def _format_example(name: str, sample: Sequence[Mapping[str, Any]]) -> str:
    value = next(iter_values(sample, name), None)
    return "" if value is None else short(value)


def short(value: Any) -> str:
    """Shorten a value for a message."""
    text = value if isinstance(value, str) else repr(value)
    text = " ".join(text[: 2 * MAX_SHOWN_LENGTH].split())
    return text if len(text) <= MAX_SHOWN_LENGTH else f"{text[:MAX_SHOWN_LENGTH]}…"


def _check_conditions(
    table: ImportedTable, where: Mapping[str, str], sample: Sequence[Mapping[str, Any]]
) -> Mapping[str, str]:
    names = column_names(table.container, sample, table.shape)
    for name in where:
        if name not in names:
            raise unknown(Words("column in {path}:", path=table.path), name, names, "(--where COLUMN=VALUE)")
    return where


class _Surveyor:
    """Counts what the rows hold, one after another."""

    def __init__(self, table: ImportedTable) -> None:
        self.table, self.survey, self.place = table, RowSurvey(), ""
        self.reference = table.mapping.get("ground_truth_answer")
        self.required = REQUIRED_COLUMNS[table.kind]
        self.remarks_on = table.shape.remarks if table.shape else None
        self.size = 0

    def add_fault(self, target: str, cell: Any, error: BadValue) -> None:
        """Count an unreadable cell."""
        faults = self.survey.faults.setdefault(target, ColumnFaults(reason=error.args[0]))
        faults.n_cells += 1
        faults.other_scale |= isinstance(cell, int | float | str) and str(cell).strip() in OFF_SCALE
        if len(faults.examples) < MAX_EXAMPLES and short(cell) not in faults.examples:
            faults.examples.append(short(cell))
            faults.places.append(self.place)

    def add_remark(self, remark: Words, example: str | None) -> None:
        """Count a row that is used differently than its tool means it; `example` is None for the row's place."""
        remarked = self.survey.remarks.setdefault(remark, RemarkedRows())
        remarked.n_rows += 1
        if len(remarked.examples) < MAX_EXAMPLES and (text := short(example or self.place)) not in remarked.examples:
            remarked.examples.append(text)

    def add_row(self, cells: Cells, values: Mapping[str, Any]) -> None:
        """Count a row, by its cells in the file and its parsed values."""
        survey = self.survey
        for target, value in values.items():
            if value is not None:
                survey.filled[target] += 1
                self.size += len(value) if type(value) is str else CELL_LENGTH
        if self.reference and _has_several(get_value(cells, self.reference)):
            self.add_remark(SEVERAL_REFERENCES, values.get("id"))
        if self.remarks_on is not None:
            for remark, example in self.remarks_on(cells).items():
                self.add_remark(remark, example or values.get("id"))
        if (mark := values.get("score")) is not None:
            survey.marks.add(mark)
        pages = values.get("confluence_url")
        survey.several_pages += isinstance(pages, list) and len(pages) > 1
        if text := values.get(self.required):
            survey.usable += 1
            survey.example = survey.example or text.strip()
            if len(survey.lengths) < MAX_LENGTHS:
                survey.lengths.append(len(text.strip()))
            if self.table.kind == "questions" and len(survey.question_counts) < MAX_COUNTED_QUESTIONS:
                survey.question_counts[hash(text.strip())] += 1


def _survey_rows(table: ImportedTable) -> RowSurvey:
    """Read all rows once, and cache those of a small file."""
    surveyor = _Surveyor(table)
    faults_of_row: list[tuple[str, Any, BadValue]] = []
    survey, parse_row = surveyor.survey, table.make_row_parser(lambda *fault: faults_of_row.append(fault))
    cache: list[tuple[str, RowValues | Rejected]] | None = (
        [] if table.path.stat().st_size <= MAX_CACHED_CHARACTERS else None
    )
    for surveyor.place, cells in table.rows():
        survey.rows += 1
        values = cells if isinstance(cells, Rejected) else _reject_total(surveyor.place, parse_row(cells))
        if isinstance(cells, Rejected) or isinstance(values, Rejected):
            survey.rejected += 1
        else:
            surveyor.add_row(cells, values)
            for fault in faults_of_row:
                surveyor.add_fault(*fault)
        faults_of_row.clear()
        if cache is not None:
            cache.append((surveyor.place, values))
            cache = None if len(cache) > MAX_CACHED_ROWS or surveyor.size > MAX_CACHED_CHARACTERS else cache
    table.cached_rows = cache
    for target, faults in survey.faults.items():
        survey.filled[target] += faults.n_cells
    if table.shape is not None and (is_skipped := table.shape.is_skipped) is not None:
        survey.left_out = sum(
            not isinstance(cells, Rejected) and is_skipped(cells) for _, cells in table.container.rows()
        )
    return survey


def _reject_total(place: str, values: RowValues) -> RowValues | Rejected:
    """Return the values of a row, or a rejection if the row is a total of those above it."""
    question = values.get("question") or ""
    is_alone = not any(values.get(name) for name in ("answer", "ground_truth_answer", "id"))
    if is_alone and question.strip(" .:").casefold() in TOTAL_WORDS:
        return Rejected(place, Words("{question!r} is a total, not a question", question=question))
    return values


def _has_several(reference: Any) -> bool:
    try:
        may_be_several = not isinstance(reference, str) or reference.lstrip().startswith("[")
        return reference is not None and may_be_several and extract_text("ground_truth_answer", reference)[1] > 1
    except BadValue:
        return False


def _format_faults(faults: ColumnFaults) -> str:
    pairs = zip(faults.examples, faults.places, strict=True)
    return join_messages((Words("{example!r} at {place}", example=text, place=place) for text, place in pairs), ", ")


def _drop_unreadable_columns(table: ImportedTable, mapping: Mapping[str, str]) -> None:
    """Leave out unmapped columns with too many unreadable cells."""
    for target, faults in list(table.survey.faults.items()):
        filled = table.survey.filled[target]
        has_many_faults = faults.n_cells == filled or (
            faults.n_cells >= MIN_FAULTS and faults.n_cells >= MAX_FAULT_SHARE * filled
        )
        has_many_faults |= target == "score" and faults.other_scale  # readable marks are on that scale, too
        if target in mapping or target == REQUIRED_COLUMNS[table.kind] or not has_many_faults:
            continue
        column = table.mapping.pop(target)
        for _, values in table.cached_rows or ():
            if not isinstance(values, Rejected):
                values.pop(target, None)
        del table.survey.faults[target]
        table.doubtful[target] = [column]
        table.notes.append(
            Words(
                "{column}: {n} of {total} cannot be read as {ours} ({examples}): {reason}. The column is not used; if "
                "it is: --map {map}",
                column=column, n=faults.n_cells, total=filled, ours=target, reason=faults.reason,
                examples=_format_faults(faults), map=quote_for_shell(f"{target}={column}"),
            )
        )  # fmt: skip


def _require_usable(table: ImportedTable) -> None:
    survey, required = table.survey, REQUIRED_COLUMNS[table.kind]
    if not survey.rows:
        conditions = ", ".join(f"{name}={value}" for name, value in table.where.items()) or "archived"
        raise InputError(
            "{path}: no row is left ({conditions}); nothing was loaded", path=table.path, conditions=conditions
        )
    if 2 * survey.usable < survey.rows:
        faults = survey.faults.get(required)
        reason = f": {faults.reason} ({', '.join(faults.examples)})" if faults else ""
        raise InputError(
            "{path}: {usable} of {rows} rows have a {required} that can be read ({column}){why}; nothing was loaded. "
            "Name another column: --map {required}=NAME",
            path=table.path, usable=survey.usable, rows=survey.rows, required=required,
            column=table.mapping[required], why=reason,
        )  # fmt: skip


def _require_one_row_per_question(table: ImportedTable) -> None:
    """Refuse a table whose column distinguishes several answers to each question, for example by provider."""
    row_counts, log_columns = table.survey.question_counts, ("user_id", "created_at", "dialog_id", "score")
    is_log = any(name in table.mapping for name in log_columns)
    repeated_questions = {question_hash for question_hash, count in row_counts.items() if count > 1}
    if table.kind != "questions" or not repeated_questions or 2 * len(repeated_questions) < len(row_counts):
        return
    columns: dict[str, dict[int, list[str]]] = {
        name: {} for name in table.unused if name and not (is_log and _rank_variant_name(name) == len(VARIANT_WORDS))
    }
    parse_row = table.make_row_parser(lambda target, cell, error: None)
    for _, cells in table.rows():
        if isinstance(cells, Rejected):
            continue
        question = parse_row(cells).get("question")
        if question and hash(question.strip()) in repeated_questions:
            for name, groups in columns.items():
                groups.setdefault(hash(question.strip()), []).append(str(get_value(cells, name)))
    variants = {name: values for name, groups in columns.items() if (values := _find_variants(list(groups.values())))}
    if not variants or (is_log and len({*row_counts.values()}) > 1):
        return
    name = min(variants, key=lambda name: (variants[name][0].isdigit(), _rank_variant_name(name), len(variants[name])))
    raise InputError(
        "{path}: each question stands {n} times, told apart by {column!r} ({values}). Choose one: --where {where}, or "
        "load each into a source of its own; nothing was loaded",
        path=table.path, n=max(row_counts.values()), column=name,
        values=", ".join(map(short, variants[name][:5])),
        where=quote_for_shell(f"{name}={variants[name][0]}"),
    )  # fmt: skip


def _find_variants(values_by_question: list[list[str]]) -> list[str]:
    """Return the values of a column that distinguishes the rows of each question; [] if it does not."""
    values = sorted({value for question_values in values_by_question for value in question_values})
    n_distinct = sum(len(set(question_values)) == len(question_values) for question_values in values_by_question)
    return (
        values
        if 1 < len(values) <= MAX_VARIANTS
        and 10 * n_distinct >= 9 * len(values_by_question)
        and len(values) < 2 + len(values_by_question)
        else []
    )


def _rank_variant_name(name: str) -> int:
    """Rank a column name by how likely the column distinguishes variants, the likeliest first."""
    return next((rank for rank, word in enumerate(VARIANT_WORDS) if word in normalize_name(name)), len(VARIANT_WORDS))


def median_text_length(table: ImportedTable) -> int:
    """Return the median length of a question or passage in characters."""
    return round(median(table.survey.lengths)) if table.survey.lengths else 0
