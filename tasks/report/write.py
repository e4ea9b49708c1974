"""Write reports: one HTML file that needs no network, and an index of all evaluations."""

import os
import re
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Engine

from yarus.db.errors import InputError
from yarus.tasks.config.settings import Language, get_settings
from yarus.tasks.config.texts import TranslatedText
from yarus.tasks.evaluation.result_files import make_folder
from yarus.tasks.report.entries import ReportEntry, find_newest, load_entries
from yarus.tasks.report.index import INDEX_NAME, INDEX_PATTERN, list_evaluations, render_index_page
from yarus.tasks.report.render import compose_lead, render_report


class WrittenReport(NamedTuple):
    """A report that was written."""

    path: Path
    lead: TranslatedText
    """The first sentence of the report."""


def write_report(
    engine: Engine,
    evaluation_ids: Sequence[str] = (),
    target: Path | None = None,
    language: Language | None = None,
) -> WrittenReport:
    """Write a report, and update the index if the report is in its default folder.

    Args:
        engine: engine of Yarus's own database.
        evaluation_ids: evaluation ids, their beginnings or ends, or `last`; evaluations of one tier are compared. By
            default the newest of every tier of the most recent source.
        target: file to write; by default a file in the folder `reports` in the home folder.
        language: language in which it opens; by default the setting.

    Returns:
        The path of the file and the report's first sentence.

    Raises:
        InputError: an evaluation does not exist, there are none, or the target cannot be written.
    """
    report_entries = load_entries(engine, list(evaluation_ids) or find_newest(engine))
    chosen_language = language or get_settings().language
    path = target or reports_folder() / report_file_name(report_entries, is_requested=bool(evaluation_ids))
    write_page(path, render_report(engine, report_entries, chosen_language))
    if target is None:
        write_index(engine, language=chosen_language)
    return WrittenReport(path, compose_lead(report_entries))


def write_index(engine: Engine, target: Path | None = None, language: Language | None = None) -> Path:
    """Write the index of evaluations and reports, page by page, and remove outdated pages.

    Args:
        engine: engine of Yarus's own database.
        target: folder of the reports; by default `reports` in the home folder.
        language: language in which it opens; by default the setting.

    Returns:
        The path of the first page.
    """
    index_folder = target or reports_folder()
    listed = list_evaluations(engine, index_folder)
    for number, name in enumerate(listed.pages):
        write_page(index_folder / name, render_index_page(engine, listed, number, language or get_settings().language))
    for old_page in index_folder.glob("index-*.html"):
        if old_page.name not in listed.pages and INDEX_PATTERN.fullmatch(old_page.name):
            old_page.unlink(missing_ok=True)
    return index_folder / INDEX_NAME


def reports_folder() -> Path:
    """Return the default folder of reports."""
    return get_settings().home.absolute() / "reports"


def report_file_name(report_entries: list[ReportEntry], *, is_requested: bool) -> str:
    """Return the file name of a report; an equal report overwrites the older one."""
    ids = [entry.row["id"] for entry in report_entries]
    if is_requested and len(ids) <= 2:
        name = "-vs-".join(reversed(ids))
    else:
        newest_of_all = max(entry.row["started_at"] for entry in report_entries)
        name = f"{report_entries[0].row['source']}-{newest_of_all:%Y%m%d-%H%M%S}"
    return re.sub(r"[^\w.-]", "_", name) + ".html"


def write_page(path: Path, page: str) -> None:
    """Write a page completely or not at all.

    Raises:
        InputError: the page cannot be written there.
    """
    partial_path = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.part")
    try:
        make_folder(path.parent)
        partial_path.write_text(page, encoding="utf-8", errors="replace")
        partial_path.replace(path)
    except (IsADirectoryError, NotADirectoryError, PermissionError, FileExistsError, FileNotFoundError) as error:
        raise InputError(
            "{path} cannot be written: {reason}; give a file with --out", path=path, reason=error.strerror
        ) from None
    finally:
        if partial_path.parent.is_dir():
            partial_path.unlink(missing_ok=True)
