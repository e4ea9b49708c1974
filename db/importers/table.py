"""Somebody's file of questions or passages, whatever its container, shape and columns, as rows for a source.

A file is looked at as a whole before anything is loaded: what its columns are, what of its cells cannot be read, how
many rows can be used. A cell never costs a row: what cannot be read is NULL and counted, by column, with examples.
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
    LIST_STYLES,
    Style,
    history_in,
    id_text,
    is_nothing,
    labels_in,
    mark_in,
    pages_in,
    passages_in,
    style_of,
    text_in,
)
from yarus.db.importers.containers import Cells, Container, Read, open_container
from yarus.db.importers.corpus_names import CorpusNames, with_label
from yarus.db.importers.recognise import (
    INVERTED,
    MISSING,
    NAMES,
    PLAIN_NAMES,
    REQUIRED,
    SAMPLED,
    Kind,
    advise,
    fits,
    is_empty,
    iterate_values,
    object_in,
    plain,
    propose,
    shell_word,
    value_at,
)
from yarus.db.importers.shapes import REFERENCE, SEVERAL_REFERENCES, Shape
from yarus.db.importers.values import BadValue, parse
from yarus.db.importers.votes import BAD
from yarus.db.loading.fill import Stream
from yarus.db.loading.recorded import PARTS, Record, chunks, content_id, record
from yarus.db.loading.staging import Rejected, Row, Values, find_defect
from yarus.db.tables import source_tables
from yarus.db.words import Words, joined

IDENTITY = {
    "questions": ("question", "history", "user_id", "created_at", "dialog_id", "turn"),
    "chunks": ("text", "confluence_url"),
}
"""What makes a row the same row when it has no id: never its labels, so that relabelling keeps it."""
LABELS = ("ground_truth_answer", "ground_truth_show", "answerable", "relevant_chunk_ids", "relevant_urls", "nuggets")
"""What people say of a question; a row that has any was labelled by somebody."""
TEXTS = ("question", "answer", "text", "ground_truth_answer")
IDS = ("id", "user_id", "dialog_id")
LABELS_BESIDE = ("cluster", "dialog_id", "turn", "origin", "made_by")
OTHER_PASSAGES = ("irrelevant_passages", "other_passages")
SPECIAL = ("made_by", "passage_url", "page_title", *OTHER_PASSAGES)
"""Columns of known shapes beside ours."""
TOO_MANY, LEAST = 0.2, 3
"""A column is not taken from this share of cells on that cannot be read, if they are so many, or all."""
DEPTH, MOST_NAMES = 3, 400
"""How deep names within objects are looked at, and how many there may be."""
BEYOND = frozenset({*map(str, range(6, 101)), *(f"{mark}.0" for mark in range(6, 101)), "0", "0.0", "-1", "-1.0"})
"""Marks that no scale from 1 to 5 has."""
TOTALS = ("итого", "всего", "total", "sum", "average", "среднее", "итог")
VARIANTS = (
    "variant", "provider_label", "provider", "model", "bot", "system", "version", "prompt",
    "вариант", "модель", "бот", "версия",
)  # fmt: skip
MOST_VARIANTS, MOST_ASKED = 50, 1_000_000
"""Values of a column that tells variants apart, and questions that are counted, at the most."""
SHOWN = 60
EXAMPLES, LENGTHS = 2, 10_000
"""Cells that are shown of those that cannot be read, and texts whose length is noted."""
MARKED = frozenset('[{" \t\r\n\u00a0')
"""What a text begins with that may be more than a text, or blank."""
MOST_KNOWN = 10_000
"""Values of a column that are remembered as they were read."""
SMALL, MOST_KEPT, CELL = 64 << 20, 150_000, 100
"""Characters of a file, and rows, up to which it is read once and kept; characters that a cell of no text counts as."""


@dataclass
class Faults:
    """Cells of a column that cannot be read."""

    n: int = 0
    examples: list[str] = field(default_factory=list)
    reason: str = ""
    places: list[str] = field(default_factory=list)
    other_scale: bool = False
    """Whether a mark is beyond ours: then all are of another scale."""


@dataclass
class Remarked:
    """Rows of which something is not used as their tool means it."""

    n: int = 0
    examples: list[str] = field(default_factory=list)


@dataclass
class Survey:
    """What a file holds, counted row by row."""

    rows: int = 0
    usable: int = 0
    rejected: int = 0
    filled: Counter[str] = field(default_factory=Counter)
    """Cells of each of our columns that have a value, readable or not."""
    faults: dict[str, Faults] = field(default_factory=dict)
    remarks: dict[Words, Remarked] = field(default_factory=dict)
    marks: set[int] = field(default_factory=set)
    """The scores that users gave."""
    left_out: int = 0
    several_pages: int = 0
    """Rows whose answer names several pages."""
    lengths: list[int] = field(default_factory=list)
    example: str = ""
    askings: Counter[int] = field(default_factory=Counter)
    """Hash of a question -> how often it stands."""


@dataclass
class Table:
    """A file with rows, and what its columns are."""

    path: Path
    container: Container
    kind: Kind
    shape: Shape | None
    mapping: dict[str, str]
    """Our column -> theirs."""
    doubtful: dict[str, list[str]]
    """Our column -> several of theirs, or one whose values it cannot take; not used until `--map` says which."""
    unused: dict[str, str]
    """Columns that are not used, with one value of each."""
    notes: list[str]
    styles: dict[str, Style]
    survey: Survey
    where: Mapping[str, str]
    kept: list[tuple[str, Values | Rejected]] | None = None
    """The rows as they were read, of a file that is small enough to be read once."""

    def stream(self, corpus: CorpusNames | None = None) -> Stream:
        """The rows, read while they are stored.

        Args:
            corpus: what labels may name; None where there are no pages.
        """
        stream = Stream(problems=[*self.notes, *self.problems()])
        if self.kind == "chunks":
            stream.chunks = self._chunks()
            return stream
        if self._by_text or any(name in self.mapping for name in ("contexts", *OTHER_PASSAGES)):
            stream.chunks = chunks(self._passages(corpus), stream.problems)
            stream.new_chunks_only = True
        stream.questions = self._questions(corpus)
        stream.annotations = self._annotations(corpus)
        return stream

    def problems(self) -> list[str]:
        """What of the cells and rows cannot be used."""
        problems: list[str] = []
        for ours, faults in self.survey.faults.items():
            problems.append(
                Words(
                    "{column}: {n} of {total} not read ({examples}): {reason}; left empty",
                    column=self.mapping[ours], n=faults.n, total=self.survey.filled[ours],
                    examples=_examples(faults), reason=faults.reason,
                )
            )  # fmt: skip
        for remark, remarked in self.survey.remarks.items():
            problems.append(Words(remark.template, n=remarked.n, examples=", ".join(remarked.examples)))
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
        """What the rows lack that people may miss: ids and references."""
        survey = self.survey
        if self.kind != "questions":
            return
        if "id" in self.mapping and (n := survey.usable - survey.filled["id"]) > 0:
            yield Words("rows without an id: {n}; they get the hash of their content", n=n)
        references = survey.filled["ground_truth_answer"]
        if references < survey.usable and ("answer" in self.mapping or references):
            yield Words(
                "questions without a reference: {n} of {total}", n=survey.usable - references, total=survey.usable
            )

    def left_aside(self) -> Iterator[str]:
        """The columns that are not used: those that are doubtful, and those that nobody knows, each with a value."""
        notes = " ".join(self.notes)
        for ours, several in self.doubtful.items():
            if len(several) > 1 or f"--map {shell_word(f'{ours}={several[0]}')}" not in notes:
                yield advise(ours, several)
        if not self.unused:
            return
        named = [
            f"{name or '(no name)'} ({value})" if value else name or "(no name)" for name, value in self.unused.items()
        ]
        free = [ours for ours in NAMES[self.kind] if ours not in self.mapping]
        near = {
            alike[0]: name for name in self.unused if (alike := get_close_matches(plain(name), free, n=1, cutoff=0.75))
        }
        near = {ours: name for ours, name in near.items() if self._is_alike(ours, name)}
        unused = Words(
            "{file}: {n} of {total} columns are not used: {names}",
            file=self.path.name, n=len(self.unused), total=len({*self.unused, *self.mapping.values()}),
            names=", ".join(named[:20]) + (", …" if len(named) > 20 else ""),
        )  # fmt: skip
        if not near:
            yield unused
            return
        maps = " ".join(f"--map {shell_word(f'{ours}={theirs}')}" for ours, theirs in near.items())
        yield joined((unused, Words("if they are what they seem to be, load again with {maps}", maps=maps)))

    def _is_alike(self, ours: str, name: str) -> bool:
        """Whether values of a column are of the kind that one of ours has."""
        values = list(iterate_values(sample_of(self.container), name))
        return bool(values) and fits(ours, values, name=name)

    def passages(self) -> Iterator[tuple[str, str | None, str, Sequence[str]]]:
        """Of a file of passages: id, address, text and further names of each."""
        titles = (values.get("page_title") for _, values in self.values() if not isinstance(values, Rejected))
        rows = (row for row in self._chunks() if isinstance(row, Row))
        for row, title in zip(rows, titles, strict=True):
            if row.values.get("text"):
                yield row.values["id"], row.values.get("confluence_url"), row.values["text"], (title,) if title else ()

    def labels(self) -> Iterator[tuple[str, str]]:
        """The labels that name pages or chunks by a name: our column, and the name."""
        for name in ("relevant_urls", "relevant_chunk_ids"):
            if name in self.mapping and not self.styles[name].by_text:
                for _, values in self.values():
                    for label in () if isinstance(values, Rejected) else values.get(name) or ():
                        yield name, label

    @property
    def _by_text(self) -> bool:
        """Whether rows name their relevant passages by the texts of these."""
        return "relevant_chunk_ids" in self.mapping and self.styles["relevant_chunk_ids"].by_text

    def rows(self) -> Iterator[Read]:
        """The rows as they stand in the file, but for those that are not to be used."""
        for place, cells in self.container.rows():
            if isinstance(cells, Rejected):
                yield place, cells
                continue
            if self.shape is not None:
                if self.shape.leaves_out is not None and self.shape.leaves_out(cells):
                    continue
                if self.shape.prepare is not None:
                    cells = self.shape.prepare(cells)
            if self.where and any(str(value_at(cells, name)) != value for name, value in self.where.items()):
                continue
            yield place, cells

    def values(self) -> Iterator[tuple[str, Values | Rejected]]:
        """The values of each row by our names."""
        if self.kept is not None:
            yield from self.kept
            return
        read = self.row_reader(lambda ours, cell, error: None)
        for place, cells in self.rows():
            yield place, cells if isinstance(cells, Rejected) else _reject_total(place, read(cells))

    def row_reader(self, fault: Callable[[str, Any, BadValue], None]) -> Callable[[Cells], Values]:
        """Make what reads the values of a row by our names; of a cell that cannot be read `fault` is told."""
        columns = [(ours, theirs, self._cell_reader(ours, theirs)) for ours, theirs in self.mapping.items()]

        def read(cells: Cells) -> Values:
            values: Values = {}
            for ours, theirs, read_cell in columns:
                cell = cells[theirs] if theirs in cells else value_at(cells, theirs)
                if cell is None or cell == "":
                    values[ours] = None
                    continue
                try:
                    values[ours] = read_cell(cell)
                except BadValue as error:
                    values[ours] = None
                    fault(ours, cell, error)
            return values

        return read

    def _cell_reader(self, ours: str, theirs: str) -> Callable[[Any], Any]:
        """Make what reads a cell of a column; what is short is read once for all cells that are alike."""
        style, needed = self.styles[ours], ours == REQUIRED[self.kind]
        read_before: dict[str, Any] = {}

        def read_text(cell: Any) -> Any:
            is_plain = type(cell) is str and cell[0] not in MARKED and cell not in MISSING
            if is_plain and (needed or find_defect((cell,)) is None):
                return cell
            return None if is_empty(cell) else self._value(ours, theirs, style, cell)

        def read(cell: Any) -> Any:
            if type(cell) is not str or len(cell) > SHOWN:
                return None if is_empty(cell) else self._value(ours, theirs, style, cell)
            if cell in read_before:
                return read_before[cell]
            value = None if is_empty(cell) or is_nothing(cell) else self._value(ours, theirs, style, cell)
            if len(read_before) < MOST_KNOWN:
                read_before[cell] = value
            return value

        return read_text if ours in TEXTS and not style.quoted else read

    def _value(self, ours: str, theirs: str, style: Style, cell: Any) -> Any:
        if ours in TEXTS:
            return self._text(ours, style, cell)
        if ours == "answerable" and plain(theirs.rpartition(".")[2]) in INVERTED:
            return not parse(ours, cell)
        if ours in ("relevant_urls", "confluence_url"):
            return pages_in(cell) if not _is_graded(cell) else labels_in(cell, style)
        if ours == "relevant_chunk_ids":
            return passages_in(cell, style) if style.by_text else labels_in(cell, style)
        if ours == "further_chunk_ids":
            return list(labels_in(cell, style))
        if ours in LIST_STYLES:
            return passages_in(cell, style)
        if ours == "score":
            return mark_in(cell, style)
        if ours == "history":
            return history_in(cell, with_question=theirs == self.mapping.get("question"))
        if ours in IDS:
            return id_text(cell, whole=style.whole)
        return cell if ours in SPECIAL else parse(ours, cell)

    def _text(self, ours: str, style: Style, cell: Any) -> str | None:
        text = text_in(ours, cell, quoted=style.quoted)[0]
        if ours != REQUIRED[self.kind] and find_defect((text,)):
            raise BadValue("a NUL character or half of a surrogate pair, which PostgreSQL cannot store")
        return text if text.strip() else None

    def _chunks(self) -> Iterator[Row | Rejected]:
        main = self._main("chunk")
        for place, read in self.values():
            if isinstance(read, Rejected):
                yield read
                continue
            values = dict(read)
            values["confluence_url"] = _first(values.get("confluence_url"))
            row_id = values.get("id") or content_id({name: values.get(name) for name in IDENTITY["chunks"]})
            yield Row(place, {"id": row_id, **{name: values[name] for name in main}})

    def _main(self, table: str) -> list[str]:
        """Our columns of a table that the file has, but for the id."""
        columns = source_tables(None)[table].columns
        return [name for name in self.mapping if name in columns and name != "id"]

    def _asked(self) -> Iterator[tuple[str, str, Values] | Rejected]:
        """Place, id and values of each row with a question."""
        for place, read in self.values():
            if isinstance(read, Rejected):
                yield read
                continue
            row_id = read.get("id") or content_id({name: read.get(name) for name in IDENTITY["questions"]})
            yield place, row_id, read

    def _questions(self, corpus: CorpusNames | None) -> Iterator[Row | Rejected]:
        """The rows of the log."""
        main = self._main("question_answer")
        recorded = self.survey.several_pages > 0 or any(name in self.mapping for name in PARTS)
        for asked in self._asked():
            if isinstance(asked, Rejected):
                yield asked
                continue
            place, row_id, values = asked
            pages = values.get("confluence_url")
            kept = {"id": row_id, **{name: values[name] for name in main}}
            if "confluence_url" in kept:
                kept["confluence_url"] = _first(pages)
            if recorded:
                several = pages if isinstance(pages, list) and len(pages) > 1 else None
                kept["recorded"] = record(self._resolved(values, corpus) | {"urls": several})
            yield Row(place, kept)

    def _annotations(self, corpus: CorpusNames | None) -> Iterator[Row]:
        """The labels of the questions."""
        labelled = [name for name in (*LABELS, *LABELS_BESIDE) if name in self.mapping]
        for asked in self._asked() if labelled else ():
            if not isinstance(asked, Rejected):
                place, row_id, values = asked
                yield Row(place, self._annotation(row_id, values, labelled, corpus))

    def _resolved(self, values: Values, corpus: CorpusNames | None) -> Values:
        """The values, their contexts by the ids that the corpus has."""
        contexts = values.get("contexts")
        if corpus is None or not contexts:
            return values
        return values | {"contexts": [corpus.known(passage) for passage in contexts]}

    def _annotation(self, question_id: str, values: Values, names: Sequence[str], corpus: CorpusNames | None) -> Values:
        """A row of `annotation`; its origin says that somebody labelled it: else what the log has is the label."""
        kept = {name: values.get(name) for name in names if name != "made_by"}
        if "relevant_chunk_ids" in names or "relevant_urls" in names:
            kept["relevant_chunk_ids"], kept["relevant_urls"] = self._relevant(values, corpus)
        if "made_by" in names:
            kept["review"] = {"made_by": str(values["made_by"])} if values.get("made_by") else None
        judged = any(kept.get(name) is not None for name in LABELS)
        origin = values.get("origin") or ("imported" if judged else None)
        return {"question_id": question_id, **kept, "origin": origin}

    def _relevant(self, values: Values, corpus: CorpusNames | None) -> tuple[Any, Any]:
        """Chunks and pages that are relevant, by the names that the corpus has for them."""
        named, urls = values.get("relevant_chunk_ids"), values.get("relevant_urls")
        if self._by_text:
            named = None if named is None else self._labels_by_text(values, corpus)
        for label in values.get("further_chunk_ids") or ():
            named = with_label(named, label, 1)
        if corpus is None:
            return named, urls
        return corpus.resolve(named, urls)

    def _labels_by_text(self, values: Mapping[str, Any], corpus: CorpusNames | None) -> list[str] | dict[str, int]:
        """Ids of the relevant passages; with grades where others were judged not relevant."""
        ids = list(dict.fromkeys(passage["id"] for passage in self._passages_of(values, corpus)))
        rejected = values.get("irrelevant_passages")
        if not rejected:
            return ids
        ids_rejected = [(corpus.known(passage) if corpus else passage)["id"] for passage in rejected]
        return dict.fromkeys(ids_rejected, 0) | dict.fromkeys(ids, 1)

    def _passages_of(self, values: Mapping[str, Any], corpus: CorpusNames | None) -> list[Record]:
        """The relevant passages of a row, under the names that the corpus has for them."""
        url = values.get("passage_url")
        passages = [
            passage | {"url": passage["url"] or (str(url) if url else None)}
            for passage in values.get("relevant_chunk_ids") or ()
        ]
        return [corpus.known(passage) for passage in passages] if corpus else passages

    def _passages(self, corpus: CorpusNames | None) -> Iterator[tuple[str, Record | None]]:
        """The passages that rows name by their text, those first that have the address of their page."""
        for place, values in self.values():
            if isinstance(values, Rejected) or not values.get("question"):
                continue
            passages = self._passages_of(values, corpus) if self._by_text else []
            for name in OTHER_PASSAGES:
                passages += values.get(name) or []
            passages += self._resolved(values, corpus).get("contexts") or []
            if corpus is not None:
                passages = [passage for passage in passages if corpus.chunk(passage["id"]) is None]
            yield place, {"contexts": passages}


def _first(value: Any) -> str | None:
    return (value[0] if value else None) if isinstance(value, list) else value


def _is_graded(cell: Any) -> bool:
    text = cell.lstrip() if isinstance(cell, str) else ""
    graded = isinstance(cell, Mapping) and all(isinstance(grade, int | float) for grade in cell.values())
    return graded or text.startswith("{") or (isinstance(cell, list) and any(isinstance(item, tuple) for item in cell))


def look(
    path: Path,
    *,
    kind: Kind | None = None,
    mapping: Mapping[str, str] | None = None,
    encoding: str | None = None,
    where: Mapping[str, str] | None = None,
    container: Container | None = None,
) -> Table:
    """Look at a file as a whole: what it holds, and whether it can be loaded.

    Args:
        path: of the file.
        kind: of its rows; None for what its columns say.
        mapping: our column -> theirs, where somebody knows it.
        encoding: of a text file; None for what its bytes say.
        where: their column -> the value that a row must have to be read.
        container: of the file, where it is open.

    Raises:
        InputError: it cannot be read, or nobody can tell what it holds; two columns fit the question; each question
            stands several times; or less than half of the rows can be used. Nothing is loaded then.
    """
    container = container or open_container(path, encoding)
    mapping = {PLAIN_NAMES.get(ours, ours): theirs for ours, theirs in (mapping or {}).items()}
    sample = sample_of(container)
    if not sample and next(iter(container.rows()), None) is None:
        raise InputError(
            "{path}: no row; expected names of columns with rows below them; nothing was loaded", path=path
        )
    table = _proposed(path, container, sample, kind, mapping)
    table.where = _conditions(table, where or {}, sample)
    table.survey = _survey(table)
    _leave_out(table, mapping)
    _require_usable(table)
    if not table.where:
        _require_one_row_a_question(table)
    return table


def read(
    path: Path,
    kind: Kind | None = None,
    mapping: Mapping[str, str] | None = None,
    encoding: str | None = None,
    corpus: CorpusNames | None = None,
) -> Stream:
    """The rows of a file, read while they are stored; arguments and errors as `look` has them."""
    table = look(path, kind=kind, mapping=mapping, encoding=encoding)
    stream = table.stream(corpus)
    stream.problems += table.left_aside()
    return stream


def sample_of(container: Container) -> list[Cells]:
    """The first rows, as far as they are not too long together."""
    sample: list[Cells] = []
    size = 0
    for _, cells in islice(container.rows(), SAMPLED):
        if not isinstance(cells, Rejected):
            sample.append(cells)
            size += sum(len(value) for value in cells.values() if isinstance(value, str))
        if size > SMALL:
            break
    return sample


def names_of(container: Container, sample: Sequence[Mapping[str, Any]], shape: Shape | None = None) -> list[str]:
    """The names of columns, and those within objects, with dots."""
    names = dict.fromkeys(container.names)
    for cells in sample:
        prepared = shape.prepare(cells) if shape is not None and shape.prepare is not None else cells
        names |= dict.fromkeys(islice(_inner(prepared), MOST_NAMES))
    return list(names)


def _inner(cells: Mapping[str, Any], prefix: str = "", depth: int = DEPTH) -> Iterator[str]:
    for name, value in cells.items():
        yield f"{prefix}{name}"
        if depth > 1 and (within := object_in(value)) is not None:
            yield from _inner(within, f"{prefix}{name}.", depth - 1)


def _proposed(
    path: Path, container: Container, sample: Sequence[Mapping[str, Any]], kind: Kind | None, mapping: Mapping[str, str]
) -> Table:
    names = names_of(container, sample)
    _check_mapping(path, mapping, names, kind)
    kind = kind or next((known_kind for known_kind, ours in REQUIRED.items() if ours in mapping), None)
    proposal = propose(names, sample, kind, mapping)
    if proposal.shape is not None and proposal.shape.prepare is not None:
        sample = [proposal.shape.prepare(cells) for cells in sample]
        names = names_of(container, sample)
        proposal = propose(names, sample, kind, mapping)
    kind = kind or proposal.kind
    if kind is None:
        raise InputError(
            "{path}: neither questions nor texts of pages by its columns: {names}. Say what they are: "
            "--map question=NAME for a log, --map text=NAME for pages; nothing was loaded",
            path=path, names=_with_examples(names, sample),
        )  # fmt: skip
    mapped = {ours: theirs for ours, theirs in mapping.items() if ours in NAMES[kind]}
    taken = set(mapped.values())
    merged = {
        ours: theirs
        for ours, theirs in proposal.mapping.items()
        if ours not in mapped and (theirs not in taken or ours == "history")
    } | mapped
    merged = {ours: theirs for ours, theirs in merged.items() if theirs}  # `--map OURS=`: no column is it
    doubtful = {ours: several for ours, several in proposal.doubtful.items() if ours not in mapped}
    if (needed := REQUIRED[kind]) not in merged:
        several = doubtful.get(needed)
        if several:
            raise InputError(
                "{path}: which column is the {needed}: {several}? Say so: --map {needed}=NAME; nothing was loaded",
                path=path, needed=needed, several=_with_examples(several, sample),
            )  # fmt: skip
        raise unknown(
            Words("column in {path}:", path=path), needed, names, Words("Map it: {maps}", maps=f"--map {needed}=NAME")
        )
    unused = {
        name: _example(name, sample) for name in proposal.unused
        if name not in (*taken, REFERENCE) and not name.startswith(
            ("__expected", *(f"{theirs}." for theirs in merged.values()))
        )
    }  # fmt: skip
    all_rows = (cells for _, cells in container.rows() if not isinstance(cells, Rejected))
    # The last row may set the scale of votes. If nobody mapped `score`, it holds marks, and a 0 in any row excludes it.
    needs_all_rows = "score" in mapped or merged.get("score") != "score"
    styles = {
        ours: style_of(ours, iterate_values(all_rows if ours == "score" and needs_all_rows else sample, theirs), theirs)
        for ours, theirs in merged.items()
    }
    notes = [*container.notes, *proposal.notes]
    for ours in ("contexts", "relevant_chunk_ids"):
        passages = ours in styles and (ours == "contexts" or styles[ours].by_text)
        if passages and styles[ours].separator != "":
            notes.append(_parted(merged[ours], styles[ours].separator))
    return Table(path, container, kind, proposal.shape, merged, doubtful, unused, notes, styles, Survey(), {})


def _parted(name: str, separator: str | None) -> str:
    if separator is None:
        return Words("{column}: each cell is one passage", column=name)
    return Words("{column}: passages are divided by {separator!r}", column=name, separator=separator)


def _check_mapping(path: Path, mapping: Mapping[str, str], names: Sequence[str], kind: Kind | None) -> None:
    names_of_ours = {*NAMES["questions"], *NAMES["chunks"]} if kind is None else set(NAMES[kind])
    for ours, theirs in mapping.items():
        if ours not in names_of_ours and kind:
            raise unknown(Words("column of {kind}:", kind=kind), ours, names_of_ours, "(--map OURS=THEIRS)")
        if ours not in names_of_ours:
            raise unknown("column", ours, names_of_ours, "(--map OURS=THEIRS)")
        if theirs and theirs not in names:
            raise unknown(Words("column in {path}:", path=path), theirs, names)


def _with_examples(names: Iterable[str], sample: Sequence[Mapping[str, Any]]) -> str:
    columns = [f"{name or '(no name)'} ({_example(name, sample)})" for name in names if "." not in name]
    return ", ".join(columns[:20]) + (", …" if len(columns) > 20 else "")


def _example(name: str, sample: Sequence[Mapping[str, Any]]) -> str:
    value = next(iterate_values(sample, name), None)
    return "" if value is None else short(value)


def short(value: Any) -> str:
    """A value as a message shows it."""
    text = value if isinstance(value, str) else repr(value)
    text = " ".join(text[: 2 * SHOWN].split())
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def _conditions(table: Table, where: Mapping[str, str], sample: Sequence[Mapping[str, Any]]) -> Mapping[str, str]:
    names = names_of(table.container, sample, table.shape)
    for name in where:
        if name not in names:
            raise unknown(Words("column in {path}:", path=table.path), name, names, "(--where COLUMN=VALUE)")
    return where


class _Surveyor:
    """Counts what rows hold, one after the other."""

    def __init__(self, table: Table) -> None:
        self.table, self.survey, self.place = table, Survey(), ""
        self.reference = table.mapping.get("ground_truth_answer")
        self.required = REQUIRED[table.kind]
        self.remarks_on = table.shape.remarks if table.shape else None
        self.size = 0

    def fault(self, ours: str, cell: Any, error: BadValue) -> None:
        """Count a cell that cannot be read."""
        faults = self.survey.faults.setdefault(ours, Faults(reason=error.args[0]))
        faults.n += 1
        faults.other_scale |= isinstance(cell, int | float | str) and str(cell).strip() in BEYOND
        if len(faults.examples) < EXAMPLES and short(cell) not in faults.examples:
            faults.examples.append(short(cell))
            faults.places.append(self.place)

    def remark(self, remark: Words, example: str | None) -> None:
        """Count a row that is not used as its tool means it; `example` is None for the row's place."""
        remarked = self.survey.remarks.setdefault(remark, Remarked())
        remarked.n += 1
        if len(remarked.examples) < EXAMPLES and (shown := short(example or self.place)) not in remarked.examples:
            remarked.examples.append(shown)

    def count(self, cells: Cells, values: Mapping[str, Any]) -> None:
        """Count a row: as it stands in the file, and as it was read."""
        survey = self.survey
        for ours, value in values.items():
            if value is not None:
                survey.filled[ours] += 1
                self.size += len(value) if type(value) is str else CELL
        if self.reference and _several(value_at(cells, self.reference)):
            self.remark(SEVERAL_REFERENCES, values.get("id"))
        if self.remarks_on is not None:
            for remark, example in self.remarks_on(cells).items():
                self.remark(remark, example or values.get("id"))
        if (mark := values.get("score")) is not None:
            survey.marks.add(mark)
        pages = values.get("confluence_url")
        survey.several_pages += isinstance(pages, list) and len(pages) > 1
        if text := values.get(self.required):
            survey.usable += 1
            survey.example = survey.example or text.strip()
            if len(survey.lengths) < LENGTHS:
                survey.lengths.append(len(text.strip()))
            if self.table.kind == "questions" and len(survey.askings) < MOST_ASKED:
                survey.askings[hash(text.strip())] += 1


def _survey(table: Table) -> Survey:
    """Read all rows once; those of a small file are kept."""
    surveyor = _Surveyor(table)
    faults_of_row: list[tuple[str, Any, BadValue]] = []
    survey, read = surveyor.survey, table.row_reader(lambda *fault: faults_of_row.append(fault))
    kept: list[tuple[str, Values | Rejected]] | None = [] if table.path.stat().st_size <= SMALL else None
    for surveyor.place, cells in table.rows():
        survey.rows += 1
        values = cells if isinstance(cells, Rejected) else _reject_total(surveyor.place, read(cells))
        if isinstance(cells, Rejected) or isinstance(values, Rejected):
            survey.rejected += 1
        else:
            surveyor.count(cells, values)
            for fault in faults_of_row:
                surveyor.fault(*fault)
        faults_of_row.clear()
        if kept is not None:
            kept.append((surveyor.place, values))
            kept = None if len(kept) > MOST_KEPT or surveyor.size > SMALL else kept
    table.kept = kept
    for ours, faults in survey.faults.items():
        survey.filled[ours] += faults.n
    if table.shape is not None and (leaves_out := table.shape.leaves_out) is not None:
        survey.left_out = sum(
            not isinstance(cells, Rejected) and leaves_out(cells) for _, cells in table.container.rows()
        )
    return survey


def _reject_total(place: str, values: Values) -> Values | Rejected:
    """Return the values of a row, or a rejection if the row is a total of those above it."""
    question = values.get("question") or ""
    is_alone = not any(values.get(name) for name in ("answer", "ground_truth_answer", "id"))
    if is_alone and question.strip(" .:").casefold() in TOTALS:
        return Rejected(place, Words("{question!r} is a total, not a question", question=question))
    return values


def _several(reference: Any) -> bool:
    try:
        may_be_several = not isinstance(reference, str) or reference.lstrip().startswith("[")
        return reference is not None and may_be_several and text_in("ground_truth_answer", reference)[1] > 1
    except BadValue:
        return False


def _examples(faults: Faults) -> str:
    pairs = zip(faults.examples, faults.places, strict=True)
    return joined((Words("{example!r} at {place}", example=example, place=place) for example, place in pairs), ", ")


def _leave_out(table: Table, mapping: Mapping[str, str]) -> None:
    """Leave out the columns of which too much cannot be read, where nobody said what they are."""
    for ours, faults in list(table.survey.faults.items()):
        filled = table.survey.filled[ours]
        many = faults.n == filled or (faults.n >= LEAST and faults.n >= TOO_MANY * filled)
        many |= ours == "score" and faults.other_scale  # marks that can be read are of that scale, too
        if ours in mapping or ours == REQUIRED[table.kind] or not many:
            continue
        theirs = table.mapping.pop(ours)
        for _, values in table.kept or ():
            if not isinstance(values, Rejected):
                values.pop(ours, None)
        del table.survey.faults[ours]
        table.doubtful[ours] = [theirs]
        table.notes.append(
            Words(
                "{column}: {n} of {total} cannot be read as {ours} ({examples}): {reason}. The column is not used; if "
                "it is: --map {map}",
                column=theirs, n=faults.n, total=filled, ours=ours, reason=faults.reason,
                examples=_examples(faults), map=shell_word(f"{ours}={theirs}"),
            )
        )  # fmt: skip


def _require_usable(table: Table) -> None:
    survey, required = table.survey, REQUIRED[table.kind]
    if not survey.rows:
        conditions = ", ".join(f"{name}={value}" for name, value in table.where.items()) or "archived"
        raise InputError(
            "{path}: no row is left ({conditions}); nothing was loaded", path=table.path, conditions=conditions
        )
    if 2 * survey.usable < survey.rows:
        faults = survey.faults.get(required)
        why = f": {faults.reason} ({', '.join(faults.examples)})" if faults else ""
        raise InputError(
            "{path}: {usable} of {rows} rows have a {required} that can be read ({column}){why}; nothing was loaded. "
            "Name another column: --map {required}=NAME",
            path=table.path, usable=survey.usable, rows=survey.rows, required=required,
            column=table.mapping[required], why=why,
        )  # fmt: skip


def _require_one_row_a_question(table: Table) -> None:
    """That no column tells variants of an answer to each question apart, as of several providers."""
    times, of_a_log = table.survey.askings, ("user_id", "created_at", "dialog_id", "score")
    is_log = any(name in table.mapping for name in of_a_log)
    repeated = {asked for asked, n in times.items() if n > 1}
    if table.kind != "questions" or not repeated or 2 * len(repeated) < len(times):
        return
    groups: dict[str, dict[int, list[str]]] = {
        name: {} for name in table.unused if name and not (is_log and _rank(name) == len(VARIANTS))
    }
    read = table.row_reader(lambda ours, cell, error: None)
    for _, cells in table.rows():
        if isinstance(cells, Rejected):
            continue
        question = read(cells).get("question")
        if question and hash(question.strip()) in repeated:
            for name, of_each in groups.items():
                of_each.setdefault(hash(question.strip()), []).append(str(value_at(cells, name)))
    apart = {name: values for name, of_each in groups.items() if (values := _variants(list(of_each.values())))}
    if not apart or (is_log and len({*times.values()}) > 1):
        return
    name = min(apart, key=lambda name: (apart[name][0].isdigit(), _rank(name), len(apart[name])))
    raise InputError(
        "{path}: each question stands {n} times, told apart by {column!r} ({values}). Choose one: --where {where}, or "
        "load each into a source of its own; nothing was loaded",
        path=table.path, n=max(times.values()), column=name, values=", ".join(map(short, apart[name][:5])),
        where=shell_word(f"{name}={apart[name][0]}"),
    )  # fmt: skip


def _variants(of_each: list[list[str]]) -> list[str]:
    """The values of a column that tells the rows of each question apart; none where it does not."""
    values = sorted({value for several in of_each for value in several})
    apart = sum(len(set(several)) == len(several) for several in of_each)
    return (
        values
        if 1 < len(values) <= MOST_VARIANTS and 10 * apart >= 9 * len(of_each) and len(values) < 2 + len(of_each)
        else []
    )


def _rank(name: str) -> int:
    """How likely a column of that name tells variants apart: first those that are called so."""
    return next((number for number, word in enumerate(VARIANTS) if word in plain(name)), len(VARIANTS))


def characters(table: Table) -> int:
    """Of a text in the middle: of a question, or of a passage."""
    return round(median(table.survey.lengths)) if table.survey.lengths else 0
