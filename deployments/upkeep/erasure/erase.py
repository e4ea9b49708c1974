"""Erase everything that Yarus stores of one user's questions."""

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
from yarus.db.messages import Words
from yarus.db.removal import retention
from yarus.db.removal.wipe import unerasable_copies, wipe_tables
from yarus.db.source_rows import read_questions
from yarus.db.sources import Source, open_snapshot
from yarus.db.stores.labels import label
from yarus.db.tables import analysis, call, case_set, case_set_row, embedding, evaluation
from yarus.deployments.upkeep.erasure import erase_files
from yarus.deployments.upkeep.erasure.erase_files import UserTexts
from yarus.deployments.upkeep.prune import evaluation_file, is_in_results, list_work_folders
from yarus.tasks.cases.table import column_values
from yarus.tasks.config.connections import open_source
from yarus.tasks.config.settings import get_settings
from yarus.tasks.evaluation import result_files
from yarus.tasks.evaluation.listing import fail_orphaned
from yarus.tasks.evaluation.result_files import make_folder
from yarus.tasks.evaluation.work_folder import delete_upload

TEXT_COLUMNS = ("question", "answer", "ground_truth_answer")
"""Columns of the log whose texts may also be stored elsewhere."""
WIPED_TABLES = {table.name for table in (analysis, call, case_set, case_set_row, embedding, evaluation, label)}
"""Our tables from which rows are deleted here."""
EMBEDDED_COLUMNS = ("question", "asked", "text", "answer", "reference")
"""Columns of the table of cases whose texts are embedded."""


class Erasure(TypedDict):
    """Data of a user that was removed, or would be."""

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
    outside_results: dict[str, str | None]
    """Evaluation -> its file outside YARUS_RESULTS, which keeps the rows; then the questions stay, too."""
    dry_run: bool
    case_set_rows: int
    annotations: int
    labels: int
    """People's labels of the judge's scores of the user's answers."""
    questions: int
    not_erased: list[str]
    """Other data that is not removed, in sentences."""


@dataclass(frozen=True)
class UserData:
    """The data of a user."""

    user: str
    source: Source
    question_ids: set[str]
    texts: set[str]
    """Their questions, with the answers and references to them."""
    questions: set[str]
    """The questions among the texts."""
    rows: dict[str, int]
    """Evaluation -> rows of its file that are theirs."""
    evaluations: list[RowMapping]
    """All evaluations of the source."""

    @property
    def is_empty(self) -> bool:
        """Return whether the user has no data."""
        return not (self.question_ids or self.rows)

    @property
    def search_texts(self) -> UserTexts:
        """Return their texts, to search for them where no row refers to the user."""
        return UserTexts(self.case_ids, self.questions, self.texts - self.questions)

    @property
    def case_ids(self) -> set[str]:
        """Return the ids of their questions as cases of any tier."""
        name = self.source.name
        return {f"{name}:{part}{key}" for key in self.question_ids for part in ("", "questions:")}


def find_user_data(engine: Engine, user: str, name: str) -> UserData:
    """Find the data of a user: their questions in the source, and their rows of its evaluations.

    A row belongs to the user by the id of the question, or by the evaluation's data if the source has lost it.

    Raises:
        InputError: the source does not exist, or an evaluation of it is running.
        OSError: the file of an evaluation cannot be read, so it may still contain their questions.
    """
    source = open_source(name)
    fail_orphaned(engine)
    rows = retention.read_evaluations(engine, source=name)
    if running := [row["id"] for row in rows if row["state"] == "running"]:
        raise InputError(
            "evaluation {evaluation} is running over {name}; wait for it or stop it, then erase",
            evaluation=running[0],
            name=name,
        )
    with open_snapshot(source) as connection:
        logged = read_questions(connection, source, all_rows=True)
    own_rows = [row for row in logged if row["user_id"] is not None and str(row["user_id"]) == user]
    frozen = retention.read_frozen_questions_of_user(engine, name, user)
    ids = {row["question_id"] for row in own_rows} | frozen.keys()
    all_rows = [*own_rows, *frozen.values()]
    texts = {row[column] for row in all_rows for column in TEXT_COLUMNS if row.get(column)}
    data = UserData(user, source, set(ids), texts, {row["question"] for row in all_rows if row["question"]}, {}, rows)
    for row in rows:
        _search_file(row, data)
    if data.question_ids > ids:  # ids of the user from one file lead to rows in others
        for row in rows:
            _search_file(row, data)
    return data


def erase_user_data(engine: Engine, data: UserData, *, dry_run: bool) -> Erasure:
    """Erase the data of a user, the questions last, so that after a kill the same command finds them and continues.

    Then the tables are wiped of the bytes of deleted rows, even if nothing was found: an earlier command may have been
    killed. Production itself is never written. Metrics stay: they are figures over many users.
    """
    name, own, remove = data.source.name, set(data.rows), not dry_run
    outside = {row["id"]: row["parquet"] for row in data.evaluations if row["id"] in own and not is_in_results(row)}
    is_empty, texts, group = data.is_empty, data.search_texts, f"user {data.user}"
    ids = set() if is_empty else own | {row["id"] for row in data.evaluations if row["parquet"] is None}
    hashes = {hashlib.sha256(text.encode("utf-8", "replace")).digest() for text in data.texts}
    work_folders = [] if is_empty else [folder for row in data.evaluations for folder in list_work_folders(row["id"])]
    folders = [folder for folder in work_folders if folder.exists()]
    folders += [path for path in ([] if is_empty else erase_files.find_leftovers(data.case_ids)) if path not in folders]
    reports = [] if is_empty else erase_files.find_report_pages(texts, own)
    document: Erasure = {
        "user": data.user,
        "source": name,
        "evaluations": data.rows,
        "calls": 0 if is_empty else retention.count_calls(engine, ids, remove=remove),
        "vectors": retention.count_vectors(engine, hashes, remove=remove),
        "analyses": retention.count_analyses(engine, name, texts.are_in, remove=remove),
        "folders": len(folders),
        "reports": [str(path) for path in reports],
        "outside_results": outside,
        "dry_run": dry_run,
        "case_set_rows": 0,
        "annotations": 0,
        "labels": 0 if is_empty else retention.count_labels(engine, name, data.case_ids, group, remove=remove),
        "questions": 0,
        "not_erased": [],
    }
    if remove:
        for row in [] if is_empty else data.evaluations:
            delete_upload(row["id"])
            folders += erase_files.find_partial_files(evaluation_file(row))
        erase_files.remove_paths([*folders, *reports])
        erase_files.clean_logs(texts)
        retention.clear_errors(engine, name, texts.are_in)
        for row in data.evaluations:
            if row["id"] in data.rows and is_in_results(row):
                _rewrite(engine, row, data)
    last = set() if outside else data.question_ids  # the ids stay if rows outside are to be found by them
    document["case_set_rows"] = retention.count_frozen_questions(engine, name, last, remove=remove)
    removed = retention.count_questions(data.source, last, remove=remove)
    document["annotations"], document["questions"] = removed["annotations"], removed["questions"]
    embedded = get_settings().database_url is None
    document["not_erased"] = [str(path) for path in erase_files.find_other_files(texts)] + (
        [] if embedded else unerasable_copies(engine)
    )
    if remove:
        document["not_erased"] += _wipe(engine, data.source, embedded=embedded)
    return document


def _wipe(engine: Engine, source: Source, *, embedded: bool) -> list[str]:
    """Wipe the bytes of deleted rows from our tables and the source's; return what cannot be wiped, in words."""
    remaining = wipe_tables(engine, tables.SCHEMA, sorted(WIPED_TABLES), embedded=embedded)
    if source.kind == "loaded":
        schema = source.tables["question_answer"].schema
        remaining += wipe_tables(engine, schema, ("question_answer", tables.ANNOTATION_TABLE), embedded=embedded)
    return list(dict.fromkeys(remaining))


def _search_file(row: RowMapping, data: UserData) -> None:
    """Add the user's data in the file of an evaluation."""
    if row["parquet"] is None:
        return
    try:
        cases = result_files.read_results(row["parquet"])
    except ResultsUnavailable as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return  # its file is gone
        raise OSError(
            Words(
                "{error}: nobody knows whose questions it holds; or remove the file, then erase again. Nothing was "
                "erased",
                error=error,
            )
        ) from None
    own_cases = cases.filter(_own_mask(cases, data))
    data.question_ids.update(_column_values(own_cases, "question_id"))
    if n_rows := pc.sum(_affected_mask(cases, data)).as_py():
        data.rows[row["id"]] = n_rows
    data.questions.update(_column_values(own_cases, "question"))
    data.texts.update(text for column in EMBEDDED_COLUMNS for text in _column_values(own_cases, column))


def _column_values(cases: pa.Table, column: str) -> list[str]:
    return [text for text in cases[column].to_pylist() if text] if column in cases.column_names else []


def _own_mask(cases: pa.Table, data: UserData) -> pa.ChunkedArray:
    """Return which cases belong to the user."""
    by_id = pc.is_in(cases["case_id"], value_set=pa.array(sorted(data.case_ids), pa.string()))
    by_user = pc.equal(cases["group"], f"user {data.user}") if "group" in cases.column_names else by_id
    return pc.or_(by_id, pc.fill_null(by_user, False))


def _affected_mask(cases: pa.Table, data: UserData) -> pa.ChunkedArray:
    """Return the user's cases, their dialogs, and cases whose judge was examined with answers to their questions."""
    mask = _own_mask(cases, data)
    if "history_use" in cases.column_names:  # later turns were answered and judged with the user's words
        dialogs = cases.filter(mask)["dialog"].drop_null().unique()
        mask = pc.or_(mask, pc.is_in(cases["dialog"], value_set=dialogs))
    if "exam" not in cases.column_names:
        return mask
    borrowed = [any(item["of"] in data.question_ids for item in items or ()) for items in column_values(cases, "exam")]
    return pc.or_(mask, pa.array(borrowed, pa.bool_()))


def _rewrite(engine: Engine, row: RowMapping, data: UserData) -> None:
    """Replace a file by one without the user's rows; the journal is updated first.

    The note is computed from the number of cases asked, so that after a kill between the two steps it is the same
    again.
    """
    with journal.hold_evaluation_lock(engine, row["id"]), _open_work_folder(row["id"]) as folder:
        cases = result_files.read_results(row["parquet"])
        remaining = cases.filter(pc.invert(_affected_mask(cases, data)))
        retention.record_erasure(engine, row["id"], (row["n_cases"] or len(cases)) - len(remaining), data.case_ids)
        file = folder / "cases.parquet"
        result_files.write_batches([remaining], file, evaluation_id=row["id"])
        result_files.publish_file(file, evaluation_file(row))


@contextmanager
def _open_work_folder(evaluation_id: str) -> Iterator[Path]:
    """Open the working folder of an evaluation during the block; a leftover is removed by any erasure or prune."""
    folder = list_work_folders(evaluation_id)[0]
    make_folder(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)
