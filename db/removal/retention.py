"""Find and delete data of Yarus's own tables: old evaluations and stores, and everything of one user."""

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Engine, cast, delete, func, or_, select, update
from sqlalchemy import Text as SqlText
from sqlalchemy.engine import RowMapping

from yarus.db import case_sets, tables
from yarus.db.analyses import concerns_source
from yarus.db.engine import reporting_unreachable
from yarus.db.journal import FINISHED_STATES, non_live_marks
from yarus.db.source_rows import QuestionRow
from yarus.db.sources import Source
from yarus.db.stores.labels import label
from yarus.db.tables import analysis, call, case_set, case_set_row, embedding, evaluation, spending

EMBEDDER_KEYS = ("embedder_identity", "similarity_embedder")
"""Keys of the configuration that name the embedders whose vectors an evaluation used."""
PREFIX_SEPARATOR = "|prefix:"
"""Separator of model and prefix in an embedder's identity; chunks and questions have different prefixes."""
ERASED_NOTE = "cases erased"
RETENTION_COLUMNS = (
    "id", "tier", "source", "state", "started_at", "n_cases", "comparability_key", "resolved", "parquet", "accepted_at",
)  # fmt: skip


def read_evaluations(engine: Engine, *, source: str | None = None) -> list[RowMapping]:
    """Return all evaluations, newest first, or those of one source; only the columns that retention needs."""
    columns = [evaluation.c[name] for name in RETENTION_COLUMNS]
    query = select(*columns).order_by(evaluation.c.started_at.desc(), evaluation.c.id.desc())
    with reporting_unreachable(engine), engine.connect() as connection:
        return list(connection.execute(query.where(evaluation.c.source == source) if source else query).mappings())


def newest_per_key(rows: Sequence[RowMapping]) -> set[str]:
    """Return the ids of the newest completed evaluation per comparability key, which `journal.find_previous` may need.

    Args:
        rows: evaluations, newest first.
    """
    return {group[0]["id"] for group in _group_by_key(rows)}


def find_baselines(rows: Sequence[RowMapping]) -> set[str]:
    """Return the ids of the baselines of later evaluations, which `journal.find_baseline` may need.

    Args:
        rows: evaluations, newest first.
    """
    accepted = [[row for row in group if row["accepted_at"]] for group in _group_by_key(rows)]
    return {max(group, key=lambda row: row["accepted_at"])["id"] for group in accepted if group}


def _group_by_key(rows: Sequence[RowMapping]) -> Iterable[list[RowMapping]]:
    """Return the completed evaluations per comparability key, in the order of the rows.

    Evaluations that judge stored answers have a history apart from live ones; sweep variants have none.
    """
    rows_by_key: dict[tuple[str, str | None], list[RowMapping]] = {}
    for row in rows:
        row_marks = non_live_marks(row)
        if row["state"] == "completed" and "part_of" not in row_marks:
            rows_by_key.setdefault((row["comparability_key"], row_marks.get("answers_of")), []).append(row)
    return rows_by_key.values()


def newest_per_tier_and_source(rows: Sequence[RowMapping], n: int) -> set[str]:
    """Return the ids of the n newest finished evaluations of the live system, per tier and source.

    Args:
        rows: evaluations, newest first.
        n: number per tier and source.
    """
    ids_by_kind: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        ids = ids_by_kind.setdefault((row["tier"], row["source"]), [])
        if row["state"] in FINISHED_STATES and not non_live_marks(row) and len(ids) < n:
            ids.append(row["id"])
    return {evaluation_id for ids_of_kind in ids_by_kind.values() for evaluation_id in ids_of_kind}


def delete_evaluation(engine: Engine, evaluation_id: str) -> None:
    """Delete the rows of an evaluation: itself, its metrics, its batches, its spending."""
    with reporting_unreachable(engine), engine.begin() as connection:
        connection.execute(delete(spending).where(spending.c.evaluation_id == evaluation_id))
        connection.execute(delete(evaluation).where(evaluation.c.id == evaluation_id))


def count_old_calls(engine: Engine, before: datetime, *, remove: bool) -> int:
    """Count the replies of language models older than a time; delete them on request."""
    return _count_rows(engine, call, call.c.created_at < before, remove=remove)


def count_unused_vectors(engine: Engine, kept: Collection[str], *, remove: bool) -> int:
    """Count the stored vectors of embedders that no kept evaluation used; delete them on request."""
    used_models: set[str] = set()
    for row in read_evaluations(engine):
        if row["id"] in kept:
            used_models |= {str((row["resolved"] or {}).get(name)).split(PREFIX_SEPARATOR)[0] for name in EMBEDDER_KEYS}
    model = func.split_part(embedding.c.model, PREFIX_SEPARATOR, 1)
    return _count_rows(engine, embedding, model.not_in(used_models), remove=remove)


def count_calls(engine: Engine, evaluation_ids: Collection[str], *, remove: bool) -> int:
    """Count the replies paid for by those evaluations, or by deleted or unknown ones; delete them on request.

    Prompts are stored as hashes only, so a reply cannot be assigned to one case.
    """
    existing = select(evaluation.c.id)
    condition = or_(
        call.c.evaluation_id.in_(evaluation_ids), call.c.evaluation_id.is_(None), call.c.evaluation_id.not_in(existing)
    )
    return _count_rows(engine, call, condition, remove=remove)


def count_vectors(engine: Engine, hashes: Collection[bytes], *, remove: bool) -> int:
    """Count the stored vectors of texts with those hashes; delete them on request."""
    return _count_rows(engine, embedding, embedding.c.text_hash.in_(hashes), remove=remove)


def count_labels(engine: Engine, source: str, case_ids: Collection[str], group: str, *, remove: bool) -> int:
    """Count people's labels of these cases, or of any case of a group, in a source; delete them on request."""
    columns = label.c
    condition = (columns.source == source) & (columns.case_id.in_(case_ids) | (columns.case_group == group))
    return _count_rows(engine, label, condition, remove=remove)


def count_analyses(engine: Engine, source: str, is_personal: Callable[[str], bool], *, remove: bool) -> int:
    """Count a source's analyses whose documents have a text that `is_personal` accepts; delete them on request."""
    with reporting_unreachable(engine), engine.connect() as connection:
        rows = connection.execute(select(analysis.c.id, analysis.c.document).where(concerns_source(source))).all()
    analysis_ids = [row.id for row in rows if any(map(is_personal, _collect_texts(row.document)))]
    return _count_rows(engine, analysis, analysis.c.id.in_(analysis_ids), remove=remove)


def clear_errors(engine: Engine, source: str, is_personal: Callable[[str], bool]) -> None:
    """Erase the errors of a source's evaluations that `is_personal` accepts: they may quote a question."""
    has_error = (evaluation.c.source == source) & evaluation.c.error.is_not(None)
    with reporting_unreachable(engine), engine.begin() as connection:
        for row in connection.execute(select(evaluation.c.id, evaluation.c.error).where(has_error)).all():
            if is_personal(row.error):
                connection.execute(update(evaluation).where(evaluation.c.id == row.id).values(error="erased"))


def read_frozen_questions_of_user(engine: Engine, source: str, user: str) -> dict[str, QuestionRow]:
    """Return a user's questions in case sets frozen from a source: id -> the question as frozen."""
    set_names = select(case_set.c.name).where(case_set.c.source == source)
    condition = case_set_row.c.name.in_(set_names) & (case_set_row.c.content["user_id"].astext == user)
    with reporting_unreachable(engine), engine.connect() as connection:
        rows = connection.execute(select(case_set_row.c.question_id, case_set_row.c.content).where(condition))
        return {row.question_id: row.content for row in rows}


def count_frozen_questions(engine: Engine, source: str, question_ids: Collection[str], *, remove: bool) -> int:
    """Count the questions with those ids in case sets frozen from a source; delete them on request.

    A set without them is another set: its hash and size are updated, and earlier results are not comparable.
    """
    set_names = select(case_set.c.name).where(case_set.c.source == source)
    condition = case_set_row.c.name.in_(set_names) & case_set_row.c.question_id.in_(question_ids)
    with reporting_unreachable(engine), engine.begin() as connection:
        names = list(connection.scalars(select(case_set_row.c.name).where(condition)))
        if remove:
            connection.execute(delete(case_set_row).where(condition))
            for name in set(names):
                content_query = select(case_set_row.c.content).where(case_set_row.c.name == name)
                remaining: list[QuestionRow] = list(connection.scalars(content_query))
                values = {"sha256": case_sets.content_hash(remaining), "n_cases": len(remaining)}
                is_set = case_set.c.name == name
                connection.execute(
                    update(case_set).where(is_set).values(**values) if remaining else delete(case_set).where(is_set)
                )
    return len(names)


def record_erasure(engine: Engine, evaluation_id: str, n: int, case_ids: Collection[str]) -> None:
    """Record in a finished evaluation how many of its cases are erased, in place of an earlier such note."""
    is_evaluation = evaluation.c.id == evaluation_id
    with reporting_unreachable(engine), engine.begin() as connection:
        stored = dict(connection.scalar(select(evaluation.c.resolved).where(is_evaluation).with_for_update()) or {})
        other_notes = [note for note in stored.get("notes", []) if note["note"] != ERASED_NOTE]
        stored["notes"] = [*other_notes, {"note": ERASED_NOTE, "n": n}]
        if "failures" in stored:
            fix_first = [case_id for case_id in stored["failures"]["fix_first"] if case_id not in case_ids]
            stored["failures"] = stored["failures"] | {"fix_first": fix_first}
        connection.execute(update(evaluation).where(is_evaluation).values(resolved=stored))


def count_questions(source: Source, question_ids: Collection[str], *, remove: bool) -> dict[str, int]:
    """Count a loaded source's rows of those questions and annotations; delete them on request. Production counts 0.

    Returns:
        `annotations` and `questions`.
    """
    if source.kind != "loaded":
        return {"annotations": 0, "questions": 0}
    question, label = source.tables["question_answer"], source.tables[tables.ANNOTATION_TABLE]
    keys = {"annotations": label.c.question_id, "questions": question.c.id}
    return {
        name: _count_rows(source.engine, key.table, cast(key, SqlText).in_(question_ids), remove=remove)
        for name, key in keys.items()
    }


def _count_rows(engine: Engine, table: Any, condition: Any, *, remove: bool) -> int:
    with reporting_unreachable(engine), engine.begin() as connection:
        if remove:
            return connection.execute(delete(table).where(condition)).rowcount
        return connection.scalar(select(func.count()).select_from(table).where(condition)) or 0


def _collect_texts(document: Any) -> list[str]:
    """Return all texts in a document."""
    if isinstance(document, dict):
        return [text for value in document.values() for text in _collect_texts(value)]
    if isinstance(document, list):
        return [text for value in document for text in _collect_texts(value)]
    return [document] if isinstance(document, str) else []
