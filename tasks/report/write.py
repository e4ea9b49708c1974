"""The report that people look at: one HTML file that needs no network, and an index over all evaluations."""

import os
import re
import secrets
from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import Engine

from yarus.db.errors import InputError
from yarus.tasks.config.settings import Language, settings
from yarus.tasks.evaluation.result_files import make_folder
from yarus.tasks.report.entries import Entry, entries, newest
from yarus.tasks.report.index import INDEX, NAME, index_page, listing
from yarus.tasks.report.render import render


def report(
    engine: Engine,
    evaluation_ids: Sequence[str] = (),
    target: Path | None = None,
    language: Language | None = None,
) -> Path:
    """Writes a report, and the index over all evaluations beside it where it stands in its usual folder.

    Args:
        engine: of our own database.
        evaluation_ids: which evaluations, by their ids, the beginnings or ends of them, or `last`; several of one tier
            are compared. Without any: the newest of every tier, of the source of the newest of all.
        target: the file to write; default: a name of its own in the folder `reports` at home.
        language: that it opens in; default: the setting.

    Returns:
        The path of the file.

    Raises:
        InputError: no such evaluation, none at all, or a target that cannot be written.
    """
    shown = entries(engine, list(evaluation_ids) or newest(engine))
    chosen = language or settings().language
    path = target or folder() / name_of(shown, asked=bool(evaluation_ids))
    write(path, render(engine, shown, chosen))
    if target is None:
        index(engine, language=chosen)
    return path


def index(engine: Engine, target: Path | None = None, language: Language | None = None) -> Path:
    """Writes the index over the evaluations and the reports, page by page, and removes pages that there are no more.

    Args:
        engine: of our own database.
        target: the folder of the reports; default: `reports` at home.
        language: that it opens in; default: the setting.

    Returns:
        The path of the first page.
    """
    place = target or folder()
    listed = listing(engine, place)
    for number, name in enumerate(listed.pages):
        write(place / name, index_page(engine, listed, number, language or settings().language))
    for old in place.glob("index-*.html"):
        if old.name not in listed.pages and INDEX.fullmatch(old.name):
            old.unlink(missing_ok=True)
    return place / NAME


def folder() -> Path:
    """Where reports are written that have no other target."""
    return settings().home.absolute() / "reports"


def name_of(shown: list[Entry], *, asked: bool) -> str:
    """The file name of a report: what it is about, so that the same report is written over the older one."""
    ids = [entry.row["id"] for entry in shown]
    if asked and len(ids) <= 2:
        name = "-vs-".join(reversed(ids))
    else:
        newest_of_all = max(entry.row["started_at"] for entry in shown)
        name = f"{shown[0].row['source']}-{newest_of_all:%Y%m%d-%H%M%S}"
    return re.sub(r"[^\w.-]", "_", name) + ".html"


def write(path: Path, page: str) -> None:
    """Writes a page whole or not at all.

    Raises:
        InputError: it cannot be written there.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.part")
    try:
        make_folder(path.parent)
        partial.write_text(page, encoding="utf-8", errors="replace")
        partial.replace(path)
    except (IsADirectoryError, NotADirectoryError, PermissionError, FileExistsError, FileNotFoundError) as error:
        raise InputError(
            "{path} cannot be written: {reason}; give a file with --out", path=path, reason=error.strerror
        ) from None
    finally:
        if partial.parent.is_dir():
            partial.unlink(missing_ok=True)
