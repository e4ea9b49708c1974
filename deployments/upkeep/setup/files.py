"""Files that `yarus init` recognises and loads, all or none; and the settings that it adds to `.env`."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dotenv import dotenv_values
from sqlalchemy import Engine

from yarus.db.engine import reaching
from yarus.db.errors import InputError, unknown
from yarus.db.importers.containers import open_container
from yarus.db.importers.corpus_names import CorpusNames, names_of_source, resolve_stored_labels
from yarus.db.importers.lines import UTF8
from yarus.db.importers.pages import is_page
from yarus.db.importers.reader import Recognised, expand, match_labels, recognise
from yarus.db.importers.recognise import NAMES, PLAIN_NAMES, shell_word
from yarus.db.importers.table import characters, names_of, sample_of
from yarus.db.loading.fill import LoadReport, fill_within, lock
from yarus.db.words import Words
from yarus.tasks.config.redaction import redact_urls


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file, and what its columns seem to be."""

    file: str
    kind: str
    """questions, chunks, or a set of both."""
    shape: str
    """Whose shape it has, such as `ragas results`; '' for a table of nobody's."""
    encoding: str
    mapping: dict[str, str]
    """Our column -> the file's."""
    doubtful: dict[str, list[str]]
    """Our column -> several of the file's, or one whose values it cannot take: not used until `--map` says which."""
    unused: dict[str, str]
    """The file's columns that are not used, with one value of each."""
    rows: int | None
    """Rows in the file; null where they are counted only when they are loaded."""
    usable: int | None
    """Rows with a question, or a text."""
    characters: int
    """Of a text in the middle: of a question, or of a passage."""
    example: str
    options: dict[str, str] = field(default_factory=dict)
    """Conditions on rows: column -> value."""
    notes: list[str] = field(default_factory=list)
    """What was decided, left out or not read, with places and values."""

    def command(self, source: str) -> str:
        """What loads it by itself, as a shell takes it."""
        words = ["yarus", "load", "table", self.file, "--into", source]
        words += ["--kind", "chunks"] if self.kind == "chunks" and self.shape != "pages" else []
        words += ["--encoding", self.encoding] if self.encoding != UTF8 else []
        if not self.shape:
            words += [f"--map={ours}={theirs}" for ours, theirs in self.mapping.items() if ours != theirs]
        words += [f"--where={name}={value}" for name, value in self.options.items()]
        return " ".join(map(shell_word, words))


def recognise_all(
    paths: Sequence[Path],
    mapping: Mapping[str, str],
    encoding: str | None = None,
    where: Mapping[str, str] | None = None,
) -> list[Recognised]:
    """Look at all files; a log first.

    Args:
        paths: of tables, traces, pages, folders.
        mapping: our column -> theirs where somebody knows it; each for the files that have it.
        encoding: of text files; None for what their bytes say.
        where: their column -> the value that a row must have.

    Raises:
        InputError: unreadable, or without rows; nobody can tell what it holds; the mapping names what is not there; or
            labels are there and none matches a page.
    """
    paths, where = expand(paths), where or {}
    names = [_names(path, encoding) if mapping or where else [] for path in paths]
    there = [name for some in names for name in some]
    files = ", ".join(map(str, paths))
    for column in where:
        if column not in there:
            raise unknown(Words("column in {files}:", files=files), column, there, "(--where COLUMN=VALUE)")
    names_of_ours = {*PLAIN_NAMES, *(name for kind in NAMES.values() for name in kind)}
    for ours, theirs in mapping.items():
        if ours not in names_of_ours:
            raise unknown("column", ours, names_of_ours, "(--map OURS=THEIRS)")
        if theirs and theirs not in there:
            raise unknown(Words("column in {files}:", files=files), theirs, there)
    looked_at = [
        recognise(
            path, mapping={ours: theirs for ours, theirs in mapping.items() if theirs in some or not theirs},
            encoding=encoding, where={column: value for column, value in where.items() if column in some},
        )
        for path, some in zip(paths, names, strict=True)
    ]  # fmt: skip
    return sorted(looked_at, key=lambda file: file.kind == "chunks")


def _names(path: Path, encoding: str | None) -> list[str]:
    if path.is_dir() or is_page(path):
        return []
    container = open_container(path, encoding)
    return names_of(container, sample_of(container))


def corpus_of(files: Iterable[Recognised]) -> CorpusNames:
    """The names of the pages and passages that the files have."""
    corpus = CorpusNames()
    for file in files:
        file.add_names(corpus)
    return corpus


def describe(file: Recognised) -> FoundFile:
    """What is shown of a file."""
    table = file.table
    if table is None:
        return FoundFile(
            str(file.path), file.kind, file.shape, file.encoding, {}, {}, {}, None, None, len(file.example),
            file.example, notes=list(file.notes),
        )  # fmt: skip
    return FoundFile(
        str(file.path), file.kind, file.shape, file.encoding, table.mapping, table.doubtful, table.unused,
        table.survey.rows, table.survey.usable, characters(table), file.example, dict(table.where),
        [*file.notes, *table.notes, *table.problems(), *table.missing()],
    )  # fmt: skip


def load_files(engine: Engine, name: str, files: Sequence[Recognised], *, language: str) -> list[LoadReport]:
    """Load files into a source, all or none: pages first, so that labels find them.

    Args:
        engine: of our own database.
        name: of the source.
        files: as they were looked at.
        language: of the texts.

    Returns:
        A report for each file, in their order.

    Raises:
        InputError: labels are there and none matches a page; nothing was loaded then.
    """
    reports: dict[int, LoadReport] = {}
    with reaching(engine), engine.begin() as connection:
        lock(connection, name)
        corpus = corpus_of(files)
        has_questions = any(file.table is not None and file.kind == "questions" for file in files)
        has_pages = len(corpus) > 0
        names_of_source(connection, name, corpus)
        notes = match_labels(files, corpus) if len(corpus) else []
        for number, file in sorted(enumerate(files), key=lambda pair: pair[1].kind != "chunks"):
            rows = file.open(corpus if len(corpus) else None)
            if file.kind == "questions":
                rows.problems += notes
                notes = []
            reports[number] = fill_within(connection, name, rows, language=language, origin=file.path.name)
        if has_pages and not has_questions:
            resolve_stored_labels(connection, name, corpus)
    return [reports[number] for number in range(len(files))]


def language_of(files: Iterable[FoundFile]) -> str:
    """Russian where texts have as many Cyrillic letters as others."""
    letters = [sign for file in files for sign in file.example.casefold() if sign.isalpha()]
    return "ru" if 2 * sum("а" <= sign <= "ё" for sign in letters) >= len(letters) else "en"


@dataclass(frozen=True, slots=True)
class Written:
    """What became of a file `.env`."""

    file: str
    added: list[str]
    """Lines, without passwords."""
    kept: list[str]
    """Settings that have another value there, or in the environment, which stays."""


def planned(path: Path, wanted: Mapping[str, str]) -> Written:
    """What would be added to the file."""
    there = {**dotenv_values(path), **os.environ} if path.exists() else dict(os.environ)
    added = [f"{name}={redact_urls(value)}" for name, value in wanted.items() if name not in there]
    kept = [name for name, value in wanted.items() if name in there and there[name] != value]
    return Written(str(path), added, kept)


def write(path: Path, wanted: Mapping[str, str], remarks: Sequence[str] = ()) -> Written:
    """Adds what is missing; a file that is made is the owner's alone, for it may hold passwords.

    Args:
        path: of the file.
        wanted: settings and their values.
        remarks: lines to be added as comments, each once.

    Raises:
        InputError: it cannot be written.
    """
    found = planned(path, wanted)
    there = path.read_text(encoding="utf-8") if path.exists() else ""
    names = {line.partition("=")[0] for line in found.added}
    lines = [f"# {remark}" for remark in remarks if f"# {remark}" not in there.splitlines()]
    lines += [f"{name}={quoted(value)}" for name, value in wanted.items() if name in names]
    if not lines:
        return found
    gap = "" if not there or there.endswith("\n") else "\n"
    try:
        with open(path, "a", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.write(gap + "\n".join(lines) + "\n")
    except OSError as error:
        raise InputError("{path}: {reason}", path=path, reason=error.strerror or error) from None
    return found


def quoted(value: str) -> str:
    """A value as the file takes it."""
    if re.fullmatch(r"[^\s'\"#$\\`]+", value):
        return value
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
