"""Recognise and load the files of `yarus init`, all or none, and add settings to `.env`."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dotenv import dotenv_values
from sqlalchemy import Engine

from yarus.db.engine import reporting_unreachable
from yarus.db.errors import InputError, unknown
from yarus.db.importers.containers import open_container
from yarus.db.importers.corpus_names import CorpusNames, add_source_names, resolve_stored_labels
from yarus.db.importers.lines import UTF8_WITH_OPTIONAL_BOM
from yarus.db.importers.pages import is_page
from yarus.db.importers.reader import (
    RecognisedSource,
    expand_autorag_folders,
    recognise_source,
    report_unmatched_labels,
)
from yarus.db.importers.recognise import COLUMN_ALIASES, MAP_ALIASES, quote_for_shell
from yarus.db.importers.table import column_names, median_text_length, read_first_rows
from yarus.db.loading.load_rows import LoadReport, load_rows_in_transaction, lock_source
from yarus.db.messages import Words
from yarus.tasks.config.redaction import redact_urls
from yarus.tasks.config.settings import Language


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file with the recognised meaning of its columns."""

    file: str
    kind: str
    """`questions`, `chunks`, or a set of both."""
    shape: str
    """Known format, such as `ragas results`; '' for other tables."""
    encoding: str
    mapping: dict[str, str]
    """Yarus's column -> the file's column."""
    ambiguous_columns: dict[str, list[str]]
    """Yarus's column -> several columns of the file, or one with unsuitable values: not used unless `--map` names
    one."""
    unused: dict[str, str]
    """Unused columns of the file, with one value of each."""
    rows: int | None
    """Rows in the file; null if they are only counted when they are loaded."""
    usable: int | None
    """Rows with a question or a text."""
    characters: int
    """Median length of a question or passage."""
    example: str
    options: dict[str, str] = field(default_factory=dict)
    """Conditions on rows: column -> value."""
    notes: list[str] = field(default_factory=list)
    """Decisions, and omitted or unreadable content, with places and values."""

    def command(self, source: str) -> str:
        """Return the shell command that loads only this file."""
        words = ["yarus", "load", "table", self.file, "--into", source]
        words += ["--kind", "chunks"] if self.kind == "chunks" and self.shape != "pages" else []
        words += ["--encoding", self.encoding] if self.encoding != UTF8_WITH_OPTIONAL_BOM else []
        if not self.shape:
            words += [f"--map={column}={name}" for column, name in self.mapping.items() if column != name]
        words += [f"--where={name}={value}" for name, value in self.options.items()]
        return " ".join(map(quote_for_shell, words))


def recognise_all(
    paths: Sequence[Path],
    mapping: Mapping[str, str],
    encoding: str | None = None,
    where: Mapping[str, str] | None = None,
) -> list[RecognisedSource]:
    """Recognise all files, logs first.

    Args:
        paths: paths of tables, traces, pages, folders.
        mapping: our column -> the file's, if known; each applies to the files that have it.
        encoding: the encoding of text files; None: detected from their bytes.
        where: the file's column -> the value that a row must have.

    Raises:
        InputError: a file is unreadable, has no rows or has unknown content; the mapping names an unknown column; or
            there are labels and none matches a page.
    """
    paths, where = expand_autorag_folders(paths), where or {}
    columns_by_file = [_read_column_names(path, encoding) if mapping or where else [] for path in paths]
    all_columns = [name for file_columns in columns_by_file for name in file_columns]
    files = ", ".join(map(str, paths))
    for column in where:
        if column not in all_columns:
            raise unknown(Words("column in {files}:", files=files), column, all_columns, "(--where COLUMN=VALUE)")
    known_columns = {*MAP_ALIASES, *(name for kind in COLUMN_ALIASES.values() for name in kind)}
    for own_column, file_column in mapping.items():
        if own_column not in known_columns:
            raise unknown("column", own_column, known_columns, "(--map FIELD=COLUMN)")
        if file_column and file_column not in all_columns:
            raise unknown(Words("column in {files}:", files=files), file_column, all_columns)
    recognised = [
        recognise_source(
            path,
            mapping={own: their for own, their in mapping.items() if their in file_columns or not their},
            encoding=encoding, where={column: value for column, value in where.items() if column in file_columns},
        )
        for path, file_columns in zip(paths, columns_by_file, strict=True)
    ]  # fmt: skip
    return sorted(recognised, key=lambda file: file.kind == "chunks")


def _read_column_names(path: Path, encoding: str | None) -> list[str]:
    if path.is_dir() or is_page(path):
        return []
    container = open_container(path, encoding)
    return column_names(container, read_first_rows(container))


def read_corpus_names(files: Iterable[RecognisedSource]) -> CorpusNames:
    """Return the names of the pages and passages in the files."""
    corpus = CorpusNames()
    for file in files:
        file.add_names(corpus)
    return corpus


def describe_file(file: RecognisedSource) -> FoundFile:
    """Return the description of a file for display."""
    table = file.table
    if table is None:
        return FoundFile(
            str(file.path), file.kind, file.shape, file.encoding, {}, {}, {}, None, None, len(file.example),
            file.example, notes=list(file.notes),
        )  # fmt: skip
    return FoundFile(
        str(file.path), file.kind, file.shape, file.encoding, table.mapping, table.doubtful, table.unused,
        table.survey.rows, table.survey.usable, median_text_length(table), file.example, dict(table.where),
        [*file.notes, *table.notes, *table.problems(), *table.missing()],
    )  # fmt: skip


def load_files(engine: Engine, name: str, files: Sequence[RecognisedSource], *, language: str) -> list[LoadReport]:
    """Load files into a source, all or none: pages first, so that labels find them.

    Args:
        engine: the engine of Yarus's database.
        name: the name of the source.
        files: the recognised files.
        language: the language of the texts.

    Returns:
        One report per file, in their order.

    Raises:
        InputError: there are labels and none matches a page; then nothing was loaded.
    """
    reports: dict[int, LoadReport] = {}
    with reporting_unreachable(engine), engine.begin() as connection:
        lock_source(connection, name)
        corpus = read_corpus_names(files)
        has_questions = any(file.table is not None and file.kind == "questions" for file in files)
        has_pages = len(corpus) > 0
        add_source_names(connection, name, corpus)
        notes = report_unmatched_labels(files, corpus) if len(corpus) else []
        for index, file in sorted(enumerate(files), key=lambda pair: pair[1].kind != "chunks"):
            rows = file.open(corpus if len(corpus) else None)
            if file.kind == "questions":
                rows.problems += notes
                notes = []
            reports[index] = load_rows_in_transaction(connection, name, rows, language=language, origin=file.path.name)
        if has_pages and not has_questions:
            resolve_stored_labels(connection, name, corpus)
    return [reports[index] for index in range(len(files))]


def detect_language(texts: Iterable[str]) -> Language | None:
    """Return Russian if at least half of the letters are Cyrillic, else English; None if there are no letters."""
    letters = [letter for text in texts for letter in text.casefold() if letter.isalpha()]
    if not letters:
        return None
    return "ru" if 2 * sum("а" <= letter <= "ё" for letter in letters) >= len(letters) else "en"


@dataclass(frozen=True, slots=True)
class EnvChanges:
    """Changes of a file `.env`."""

    file: str
    added: list[str]
    """Added lines, without passwords."""
    kept: list[str]
    """Settings that keep another value in the file or the environment."""


def plan_settings(path: Path, settings: Mapping[str, str]) -> EnvChanges:
    """Return what would be added to the file."""
    existing = {**dotenv_values(path), **os.environ} if path.exists() else dict(os.environ)
    added = [f"{name}={redact_urls(value)}" for name, value in settings.items() if name not in existing]
    kept = [name for name, value in settings.items() if name in existing and existing[name] != value]
    return EnvChanges(str(path), added, kept)


def write_settings(path: Path, wanted: Mapping[str, str], remarks: Sequence[str] = ()) -> EnvChanges:
    """Add missing settings; a new file is readable by its owner only, because it may hold passwords.

    Args:
        path: the path of the file.
        wanted: settings and their values.
        remarks: lines to add as comments, each once.

    Raises:
        InputError: the file cannot be written.
    """
    changes = plan_settings(path, wanted)
    content = path.read_text(encoding="utf-8") if path.exists() else ""
    names = {line.partition("=")[0] for line in changes.added}
    lines = [f"# {remark}" for remark in remarks if f"# {remark}" not in content.splitlines()]
    lines += [f"{name}={quote_value(value)}" for name, value in wanted.items() if name in names]
    if not lines:
        return changes
    line_break = "" if not content or content.endswith("\n") else "\n"
    try:
        with open(path, "a", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.write(line_break + "\n".join(lines) + "\n")
    except OSError as error:
        raise InputError("{path}: {reason}", path=path, reason=error.strerror or error) from None
    return changes


def quote_value(value: str) -> str:
    """Return a value in the quotes that the file needs."""
    if re.fullmatch(r"[^\s'\"#$\\`]+", value):
        return value
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
