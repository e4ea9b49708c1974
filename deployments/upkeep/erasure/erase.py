"""Erasure: everything that Yarus keeps of one user's questions."""

import hashlib
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Engine
from sqlalchemy.engine import RowMapping
from typing_extensions import TypedDict

from yarus.db import journal, tables
from yarus.db.errors import InputError, ResultsUnavailable
from yarus.db.removal import retention
from yarus.db.removal.wipe import beyond, wipe
from yarus.db.source_rows import read_questions
from yarus.db.sources import Source, snapshot
from yarus.db.stores.labels import label
from yarus.db.tables import analysis, call, case_set, case_set_row, embedding, evaluation
from yarus.db.words import Words
from yarus.deployments.upkeep.erasure import erase_files
from yarus.deployments.upkeep.erasure.erase_files import Texts
from yarus.deployments.upkeep.prune import file_of, in_results, work_folders
from yarus.tasks.cases.table import values_of
from yarus.tasks.config.connections import source as source_of
from yarus.tasks.config.settings import settings
from yarus.tasks.evaluation import result_files
from yarus.tasks.evaluation.listing import fail_orphaned
from yarus.tasks.evaluation.result_files import make_folder
from yarus.tasks.evaluation.work_folder import delete

WRITTEN = ("question", "answer", "ground_truth_answer")
"""Columns of the log whose texts may stand elsewhere."""
WIPED = {table.name for table in (analysis, call, case_set, case_set_row, embedding, evaluation, label)}
"""Our tables that rows are deleted from here."""
EMBEDDED = ("question", "asked", "text", "answer", "reference")
"""Columns of the table of cases whose texts are embedded."""


class Erasure(TypedDict):
    """What of a user went, or would go."""

    user: str
    source: str
    evaluations: dict[str, int]
    """Evaluation -> rows of its file."""
    calls: int
    """Replies of language models."""
    vectors: int
    analyses: int
    """Stored sweeps, probes and corpus analytics."""
    folders: int
    reports: list[str]
    """Pages that are removed."""
    elsewhere: dict[str, str | None]
    """Evaluation -> its file, which is not in YARUS_RESULTS and keeps the rows; the questions then stay too."""
    dry_run: bool
    case_set_rows: int
    annotations: int
    labels: int
    """What people have said of a judge's scores of their answers."""
    questions: int
    beyond: list[str]
    """What is left otherwise, in words."""


@dataclass(frozen=True)
class Found:
    """What there is of a user."""

    user: str
    source: Source
    question_ids: set[str]
    texts: set[str]
    """Their questions, and the answers and references beside them."""
    questions: set[str]
    """Of the texts, their questions."""
    rows: dict[str, int]
    """Evaluation -> rows of its file that are theirs."""
    evaluations: list[RowMapping]
    """All of the source."""

    @property
    def nothing(self) -> bool:
        """Whether there is nothing of them."""
        return not (self.question_ids or self.rows)

    @property
    def looked_for(self) -> Texts:
        """Their texts, to be found where nobody's row leads to."""
        return Texts(self.case_ids, self.questions, self.texts - self.questions)

    @property
    def case_ids(self) -> set[str]:
        """Their questions as cases of any tier."""
        name = self.source.name
        return {f"{name}:{part}{key}" for key in self.question_ids for part in ("", "questions:")}


def find(engine: Engine, user: str, name: str) -> Found:
    """What there is of a user: their questions in the source, and rows of its evaluations that are theirs.

    A row is theirs by the id of the question, or because the evaluation says so where the source has lost it.

    Raises:
        InputError: no such source, or an evaluation of it is running.
        OSError: the file of an evaluation cannot be read, so that nobody knows whether it holds their questions.
    """
    where = source_of(name)
    fail_orphaned(engine)
    rows = retention.evaluations(engine, source=name)
    if running := [row["id"] for row in rows if row["state"] == "running"]:
        raise InputError(
            "evaluation {evaluation} is running over {name}; wait for it or stop it, then erase",
            evaluation=running[0],
            name=name,
        )
    with snapshot(where) as connection:
        logged = read_questions(connection, where, all_rows=True)
    asked = [row for row in logged if row["user_id"] is not None and str(row["user_id"]) == user]
    frozen = retention.frozen_of(engine, name, user)
    ids = {row["question_id"] for row in asked} | frozen.keys()
    said = [*asked, *frozen.values()]
    texts = {row[column] for row in said for column in WRITTEN if row.get(column)}
    found = Found(user, where, set(ids), texts, {row["question"] for row in said if row["question"]}, {}, rows)
    for row in rows:
        _search(row, found)
    if found.question_ids > ids:  # what one file knows of the user's ids leads to rows of another
        for row in rows:
            _search(row, found)
    return found


def erase(engine: Engine, found: Found, *, dry_run: bool) -> Erasure:
    """Erases it: the questions themselves last, so that after a kill the same command finds them and goes on.

    Then the tables are wiped of the bytes that deleted rows leave, also where nothing was found: a command that was
    killed may have left them. Production itself is never written. Metrics stay: they are figures over many.

    """
    name, theirs, remove = found.source.name, set(found.rows), not dry_run
    away = {row["id"]: row["parquet"] for row in found.evaluations if row["id"] in theirs and not in_results(row)}
    nothing, texts, group = found.nothing, found.looked_for, f"user {found.user}"
    paying = set() if nothing else theirs | {row["id"] for row in found.evaluations if row["parquet"] is None}
    hashes = {hashlib.sha256(text.encode("utf-8", "replace")).digest() for text in found.texts}
    places = [] if nothing else [folder for row in found.evaluations for folder in work_folders(row["id"])]
    folders = [folder for folder in places if folder.exists()]
    folders += [path for path in ([] if nothing else erase_files.leftovers(found.case_ids)) if path not in folders]
    reports = [] if nothing else erase_files.pages(texts, theirs)
    document: Erasure = {
        "user": found.user,
        "source": name,
        "evaluations": found.rows,
        "calls": 0 if nothing else retention.calls_of(engine, paying, remove=remove),
        "vectors": retention.vectors_of(engine, hashes, remove=remove),
        "analyses": retention.analyses_with(engine, name, texts.are_in, remove=remove),
        "folders": len(folders),
        "reports": [str(path) for path in reports],
        "elsewhere": away,
        "dry_run": dry_run,
        "case_set_rows": 0,
        "annotations": 0,
        "labels": 0 if nothing else retention.labels_of(engine, name, found.case_ids, group, remove=remove),
        "questions": 0,
        "beyond": [],
    }
    if remove:
        for row in [] if nothing else found.evaluations:
            delete(row["id"])
            folders += erase_files.halves(file_of(row))
        erase_files.remove([*folders, *reports])
        erase_files.clean_logs(texts)
        retention.clear_errors(engine, name, texts.are_in)
        for row in found.evaluations:
            if row["id"] in found.rows and in_results(row):
                _rewrite(engine, row, found)
    last = set() if away else found.question_ids  # what the rows elsewhere will be found by stays
    document["case_set_rows"] = retention.frozen_with(engine, name, last, remove=remove)
    asked = retention.questions_of(found.source, last, remove=remove)
    document["annotations"], document["questions"] = asked["annotations"], asked["questions"]
    embedded = settings().database_url is None
    document["beyond"] = [str(path) for path in erase_files.elsewhere(texts)] + ([] if embedded else beyond(engine))
    if remove:
        document["beyond"] += _wipe(engine, found.source, embedded=embedded)
    return document


def _wipe(engine: Engine, source: Source, *, embedded: bool) -> list[str]:
    """Takes the bytes of deleted rows out of our tables, and of the source's; what cannot be wiped, in words."""
    left = wipe(engine, tables.SCHEMA, sorted(WIPED), embedded=embedded)
    if source.kind == "loaded":
        schema = source.tables["question_answer"].schema
        left += wipe(engine, schema, ("question_answer", tables.ANNOTATION), embedded=embedded)
    return list(dict.fromkeys(left))


def _search(row: RowMapping, found: Found) -> None:
    """Adds what the file of an evaluation holds of the user."""
    if row["parquet"] is None:
        return
    try:
        cases = result_files.read(row["parquet"])
    except ResultsUnavailable as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return  # nothing is kept of it
        raise OSError(
            Words(
                "{error}: nobody knows whose questions it holds; or remove the file, then erase again. Nothing was "
                "erased",
                error=error,
            )
        ) from None
    theirs = cases.filter(_mask(cases, found))
    found.question_ids.update(_texts(theirs, "question_id"))
    if n_rows := pc.sum(_with_theirs(cases, found)).as_py():
        found.rows[row["id"]] = n_rows
    found.questions.update(_texts(theirs, "question"))
    found.texts.update(text for column in EMBEDDED for text in _texts(theirs, column))


def _texts(cases: pa.Table, column: str) -> list[str]:
    return [text for text in cases[column].to_pylist() if text] if column in cases.column_names else []


def _mask(cases: pa.Table, found: Found) -> pa.ChunkedArray:
    """Which cases are theirs."""
    by_id = pc.is_in(cases["case_id"], value_set=pa.array(sorted(found.case_ids), pa.string()))
    by_user = pc.equal(cases["group"], f"user {found.user}") if "group" in cases.column_names else by_id
    return pc.or_(by_id, pc.fill_null(by_user, False))


def _with_theirs(cases: pa.Table, found: Found) -> pa.ChunkedArray:
    """Theirs, the dialogs that they spoke in, and others' whose judge was examined with an answer to their question."""
    mask = _mask(cases, found)
    if "history_use" in cases.column_names:  # what others asked after them was answered, and judged, with their words
        dialogs = cases.filter(mask)["dialog"].drop_null().unique()
        mask = pc.or_(mask, pc.is_in(cases["dialog"], value_set=dialogs))
    if "exam" not in cases.column_names:
        return mask
    borrowed = [any(item["of"] in found.question_ids for item in items or ()) for items in values_of(cases, "exam")]
    return pc.or_(mask, pa.array(borrowed, pa.bool_()))


def _rewrite(engine: Engine, row: RowMapping, found: Found) -> None:
    """Puts the file without their rows in place of the one with them; the journal is told first.

    The note counts from the number of cases asked, so that after a kill between the two it is made the same again.
    """
    with journal.alive(engine, row["id"]), _working(row["id"]) as folder:
        cases = result_files.read(row["parquet"])
        left = cases.filter(pc.invert(_with_theirs(cases, found)))
        retention.note_erased(engine, row["id"], (row["n_cases"] or len(cases)) - len(left), found.case_ids)
        file = folder / "cases.parquet"
        result_files.write_batches([left], file, evaluation_id=row["id"])
        result_files.publish(file, file_of(row))


@contextmanager
def _working(evaluation_id: str) -> Iterator[Path]:
    """The working folder of an evaluation while the block lasts; where it is left, any erasure or prune removes it."""
    folder = work_folders(evaluation_id)[0]
    make_folder(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)
