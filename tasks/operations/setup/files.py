"""What somebody's files hold, looked at before they are loaded."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from db.errors import InputError, unknown
from db.importers import table
from db.importers.lines import UTF8, encoding_of
from db.importers.recognise import NAMES, REQUIRED, Kind, propose, shell_word
from db.words import Words


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file, and what its columns seem to be."""

    file: str
    kind: Kind
    encoding: str
    mapping: dict[str, str]
    """Our column -> the file's."""
    doubtful: dict[str, list[str]]
    """Our column -> several of the file's, or one whose values it cannot take: not used until `--map` says which."""
    unused: list[str]
    characters: int
    """Of a text in the middle: of a question, or of a passage."""
    example: str

    def command(self, source: str) -> str:
        """What loads it by itself, as a shell takes it."""
        words = ["yarus", "load", "table", self.file, "--into", source]
        words += ["--kind", "chunks"] if self.kind == "chunks" else []
        words += ["--encoding", self.encoding] if self.encoding != UTF8 else []
        words += [f"--map={ours}={theirs}" for ours, theirs in self.mapping.items() if ours != theirs]
        return " ".join(map(shell_word, words))


def look_at(paths: Sequence[Path], mapping: Mapping[str, str]) -> list[FoundFile]:
    """What the files hold; a log first.

    Args:
        paths: .csv, .tsv, .jsonl or .parquet.
        mapping: our column -> theirs where somebody knows it; each for the files that have it.

    Raises:
        InputError: unreadable, or without rows; nobody can tell what it holds; or the mapping names what is not there.
    """
    sampled = [(path, encoding_of(path)) for path in paths]
    tables = [(path, encoding, *table.sample(path, encoding)) for path, encoding in sampled]
    for ours, theirs in mapping.items():
        known = {name for kind in NAMES.values() for name in kind}
        if ours not in known:
            raise unknown("column", ours, known, "(--map OURS=THEIRS)")
        names = {name for _, _, names, _ in tables for name in names}
        if theirs not in names:
            raise unknown(Words("column in {files}:", files=", ".join(map(str, paths))), theirs, names)
    found = [_found(*one, mapping) for one in tables]
    return sorted(found, key=lambda one: one.kind != "questions")


def language_of(found: Iterable[FoundFile]) -> str:
    """Russian where texts have as many Cyrillic letters as others."""
    letters = [sign for one in found for sign in one.example.casefold() if sign.isalpha()]
    return "ru" if 2 * sum("а" <= sign <= "ё" for sign in letters) >= len(letters) else "en"


def _found(
    path: Path, encoding: str, names: Sequence[str], rows: Sequence[Mapping[str, Any]], mapping: Mapping[str, str]
) -> FoundFile:
    given = {ours: theirs for ours, theirs in mapping.items() if theirs in names}
    kind = next((kind for kind, ours in REQUIRED.items() if ours in given), None)
    free = [name for name in names if name not in given.values()]
    proposed = propose(free, rows, kind or propose(names, rows).kind)
    kind = kind or proposed.kind
    if kind is None:
        raise InputError(
            "{path}: neither questions nor texts of pages by its columns ({names}); say what they are: "
            "--map question=NAME for a log, --map text=NAME for pages",
            path=path, names=", ".join(names),
        )  # fmt: skip
    given = {ours: theirs for ours, theirs in given.items() if ours in NAMES[kind]}
    found = {ours: theirs for ours, theirs in proposed.mapping.items() if ours not in given} | given
    doubtful = {ours: several for ours, several in proposed.doubtful.items() if ours not in given}
    if (needed := REQUIRED[kind]) not in found:
        raise InputError(
            "{path}: which column is the {needed}: {several}? Say so: --map {needed}=NAME",
            path=path, needed=needed, several=", ".join(doubtful.get(needed, names)),
        )  # fmt: skip
    texts = [str(row[found[needed]]).strip() for row in rows if row.get(found[needed])]
    return FoundFile(
        str(path),
        kind,
        encoding,
        found,
        doubtful,
        proposed.unused,
        round(median(map(len, texts))) if texts else 0,
        next((text for text in texts if text), ""),
    )
