"""Erase a user's texts in files that no row leads to: pages, logs, and what killed commands left."""

import glob
import html
import re
import shutil
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from yarus.db.home import DATABASE
from yarus.tasks.config.settings import settings
from yarus.tasks.evaluation.result_files import store
from yarus.tasks.evaluation.run import DRY_RUN

CUT = 40
"""Characters of a long text that are looked for: pages and messages cut what is longer."""
LONG, SHORT = 16, 4
"""Characters; a short text is looked for as a word of its own, one shorter still only by the id of its case."""
ESCAPED = re.compile(r"\\+u([0-9a-fA-F]{4})")
SPACE = re.compile(r"(?:\\+[nrt]|\s)+")


class Texts:
    """What is looked for.

    Args:
        case_ids: of the user's questions, as Prefect's pages name them.
        questions: their texts.
        others: texts beside them, such as answers; many people get the same short one, so short ones do not count.
    """

    def __init__(self, case_ids: Iterable[str], questions: Iterable[str], others: Iterable[str]) -> None:
        asked = {plain(text) for text in questions}
        beside = {plain(text) for text in others}
        self._marks = [f"`{plain(case_id)}`" for case_id in case_ids]
        self._long = sorted({text[:CUT] for text in asked | beside if len(text) >= LONG})
        short = "|".join(re.escape(text) for text in sorted(asked) if SHORT <= len(text) < LONG)
        self._short = re.compile(rf"(?<!\w)(?:{short})(?!\w)") if short else None

    def are_in(self, said: str) -> bool:
        """Whether a text that was written down has any of them in it, or names a case of theirs."""
        found = plain(said)
        named = any(mark in found for mark in self._marks) or self.are_whole_in(said)
        return named or bool(self._short and self._short.search(found))

    def are_whole_in(self, said: str) -> bool:
        """Whether a long one is in it: what is a word of Prefect's own, such as `deployment`, is none."""
        found = plain(said)
        return any(text in found for text in self._long)


def plain(text: str) -> str:
    """A text without what writing it down may have done to it."""
    said = ESCAPED.sub(lambda code: chr(int(code[1], 16)), html.unescape(text))
    said = said.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return SPACE.sub(" ", said).replace("\\", "").strip()


LOGS = ("postgres/server.log", "postgres/server.log.old", "prefect/server.log")
STORAGE = "prefect/storage"
"""Where Prefect keeps results of tasks; each is made again where it is missing."""
OURS = ("postgres", "prefect", "results", "work", "reports")
"""Folders at home that are seen to otherwise."""


def pages(texts: Texts, evaluation_ids: Collection[str]) -> list[Path]:
    """Files among the reports that tell of one of the evaluations or hold a text; they can be made again."""
    return [path for path in _files(settings().home.absolute() / "reports") if _tells(path, texts, evaluation_ids)]


def leftovers(case_ids: Collection[str]) -> list[Path]:
    """What nobody needs and may hold their texts: results that Prefect kept, working folders of killed commands."""
    home = settings().home.absolute()
    folders = sorted(folder for folder in (home / "work").glob("*") if folder.is_dir())
    return [*_files(home / STORAGE), *(folder for folder in folders if _abandoned(folder, case_ids))]


def remove(paths: Collection[Path]) -> None:
    """Removes files and folders, there or not."""
    for path in paths:
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def clean_logs(texts: Texts) -> None:
    """Takes the lines with a text out of the servers' logs. Their files stay, for a server adds to them."""
    for name in LOGS:
        path = settings().home.absolute() / name
        if path.is_file() and texts.are_in(said := path.read_text(encoding="utf-8", errors="replace")):
            left = [line for line in said.splitlines(keepends=True) if not texts.are_in(line)]
            with path.open("r+", encoding="utf-8") as file:
                file.truncate()
                file.writelines(left)


def halves(target: str) -> list[Path]:
    """What killed processes left half written of a file of the results."""
    if "://" in target:
        return []
    final = Path(store(target)[1])
    return sorted(final.parent.glob(f".{glob.escape(final.name)}.*.part"))


def elsewhere(texts: Texts) -> list[Path]:
    """Other files at home with a text of theirs: somebody put them there, and may want to see to them."""
    home = settings().home.absolute()
    others = [path for path in _files(home) if path.relative_to(home).parts[0] not in OURS]
    return [path for path in others if path != home / DATABASE and texts.are_in(_said(path))]


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def _tells(path: Path, texts: Texts, evaluation_ids: Collection[str]) -> bool:
    said = _said(path)
    return any(name in path.name or name in said for name in evaluation_ids) or texts.are_in(said)


def _said(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _abandoned(folder: Path, case_ids: Collection[str]) -> bool:
    """Whether a working folder has cases of theirs, or a half of a file whose evaluation nobody can go on with."""
    if folder.name.startswith(DRY_RUN) and any(folder.rglob(".*.part")):
        return True
    return any(not set(case_ids).isdisjoint(_cases(path)) for path in sorted(folder.rglob("*.parquet")))


def _cases(path: Path) -> list[str]:
    with suppress(OSError, pa.ArrowInvalid), pq.ParquetFile(path) as file:
        if "case_id" in file.schema_arrow.names:
            return list(file.read(["case_id"])["case_id"].to_pylist())
    return []
