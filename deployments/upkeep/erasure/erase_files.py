"""Erase a user's texts in files that no row refers to: pages, logs, and leftovers of killed commands."""

import glob
import html
import re
import shutil
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from yarus.db.home import PREFECT_DATABASE
from yarus.tasks.config.settings import get_settings
from yarus.tasks.evaluation.result_files import open_filesystem
from yarus.tasks.evaluation.run import DRY_RUN_PREFIX

MAX_MARK_LENGTH = 40
"""Characters of a long text that are searched for: pages and messages cut longer texts."""
LONG, SHORT = 16, 4
"""Characters; a short text is searched for as a separate word, an even shorter one only by the id of its case."""
ESCAPED = re.compile(r"\\+u([0-9a-fA-F]{4})")
WHITE_SPACE = re.compile(r"(?:\\+[nrt]|\s)+")


class UserTexts:
    """The texts to search for.

    Args:
        case_ids: the ids of the user's questions, as in Prefect's pages.
        questions: the texts of the questions.
        others: related texts such as answers; short ones are not used, because many people get the same ones.
    """

    def __init__(self, case_ids: Iterable[str], questions: Iterable[str], others: Iterable[str]) -> None:
        question_texts = {normalise_text(text) for text in questions}
        other_texts = {normalise_text(text) for text in others}
        self._marks = [f"`{normalise_text(case_id)}`" for case_id in case_ids]
        self._long = sorted({text[:MAX_MARK_LENGTH] for text in question_texts | other_texts if len(text) >= LONG})
        short = "|".join(re.escape(text) for text in sorted(question_texts) if SHORT <= len(text) < LONG)
        self._short = re.compile(rf"(?<!\w)(?:{short})(?!\w)") if short else None

    def are_in(self, stored: str) -> bool:
        """Return whether a stored text contains any of the texts, or the id of a case."""
        normalised = normalise_text(stored)
        is_found = any(mark in normalised for mark in self._marks) or self.are_whole_in(stored)
        return is_found or bool(self._short and self._short.search(normalised))

    def are_whole_in(self, stored: str) -> bool:
        """Return whether it contains a long text; a word of Prefect's own, such as `deployment`, is too short."""
        normalised = normalise_text(stored)
        return any(text in normalised for text in self._long)


def normalise_text(text: str) -> str:
    """Return a text without the escapes of formats in which it may be stored."""
    unescaped = ESCAPED.sub(lambda code: chr(int(code[1], 16)), html.unescape(text))
    unescaped = unescaped.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return WHITE_SPACE.sub(" ", unescaped).replace("\\", "").strip()


LOGS = ("postgres/server.log", "postgres/server.log.old", "prefect/server.log")
PREFECT_STORAGE = "prefect/storage"
"""Folder of Prefect's task results, which are made again if missing."""
HANDLED_FOLDERS = ("postgres", "prefect", "results", "work", "reports")
"""Folders of the home that are handled separately."""


def find_report_pages(texts: UserTexts, ids: Collection[str]) -> list[Path]:
    """Return files among the reports that mention an evaluation or contain a text; they can be made again."""
    return [path for path in _list_files(get_settings().home.absolute() / "reports") if _mentions(path, texts, ids)]


def find_leftovers(case_ids: Collection[str]) -> list[Path]:
    """Return unneeded files that may hold the texts: results stored by Prefect, working folders of killed commands."""
    home = get_settings().home.absolute()
    folders = sorted(folder for folder in (home / "work").glob("*") if folder.is_dir())
    return [*_list_files(home / PREFECT_STORAGE), *(folder for folder in folders if _is_abandoned(folder, case_ids))]


def remove_paths(paths: Collection[Path]) -> None:
    """Remove files and folders, whether they exist or not."""
    for path in paths:
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def clean_logs(texts: UserTexts) -> None:
    """Remove lines with a text from the servers' logs, in place because a server appends to them."""
    for name in LOGS:
        path = get_settings().home.absolute() / name
        if path.is_file() and texts.are_in(content := path.read_text(encoding="utf-8", errors="replace")):
            remaining = [line for line in content.splitlines(keepends=True) if not texts.are_in(line)]
            with path.open("r+", encoding="utf-8") as file:
                file.truncate()
                file.writelines(remaining)


def find_partial_files(target: str) -> list[Path]:
    """Return partial result files that killed processes left."""
    if "://" in target:
        return []
    final = Path(open_filesystem(target)[1])
    return sorted(final.parent.glob(f".{glob.escape(final.name)}.*.part"))


def find_other_files(texts: UserTexts) -> list[Path]:
    """Return other files of the home that contain a text, for the user to check."""
    home = get_settings().home.absolute()
    other_files = [path for path in _list_files(home) if path.relative_to(home).parts[0] not in HANDLED_FOLDERS]
    return [path for path in other_files if path != home / PREFECT_DATABASE and texts.are_in(_read_text(path))]


def _list_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def _mentions(path: Path, texts: UserTexts, evaluation_ids: Collection[str]) -> bool:
    content = _read_text(path)
    return any(name in path.name or name in content for name in evaluation_ids) or texts.are_in(content)


def _read_text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _is_abandoned(folder: Path, case_ids: Collection[str]) -> bool:
    """Return whether a working folder has the user's cases, or a partial file that cannot be resumed."""
    if folder.name.startswith(DRY_RUN_PREFIX) and any(folder.rglob(".*.part")):
        return True
    return any(not set(case_ids).isdisjoint(_read_case_ids(path)) for path in sorted(folder.rglob("*.parquet")))


def _read_case_ids(path: Path) -> list[str]:
    with suppress(OSError, pa.ArrowInvalid), pq.ParquetFile(path) as file:
        if "case_id" in file.schema_arrow.names:
            return list(file.read(["case_id"])["case_id"].to_pylist())
    return []
