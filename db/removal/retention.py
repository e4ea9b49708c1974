"""What may be removed from our own tables: old evaluations and stores, and everything of one user."""

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Engine, cast, delete, func, or_, select, update
from sqlalchemy import Text as SqlText
from sqlalchemy.engine import RowMapping

from yarus.db import case_sets, tables
from yarus.db.analyses import of_source
from yarus.db.engine import reaching
from yarus.db.journal import FINISHED, marks
from yarus.db.source_rows import Row
from yarus.db.sources import Source
from yarus.db.stores.labels import label
from yarus.db.tables import analysis, call, case_set, case_set_row, embedding, evaluation, spending

USED_VECTORS = ("embedder_identity", "similarity_embedder")
"""What of the configuration names the embedders whose vectors an evaluation used."""
PREFIXED = "|prefix:"
"""What stands in an embedder's identity behind the model: chunks have another prefix than questions."""
ERASED = "cases erased"
KEPT = (
    "id", "tier", "source", "state", "started_at", "n_cases", "comparability_key", "resolved", "parquet", "accepted_at",
)  # fmt: skip


def evaluations(engine: Engine, *, source: str | None = None) -> list[RowMapping]:
    """All evaluations, newest first; of one source where it is named. Without what retention does not ask."""
    kept = [evaluation.c[name] for name in KEPT]
    wanted = select(*kept).order_by(evaluation.c.started_at.desc(), evaluation.c.id.desc())
    with reaching(engine), engine.connect() as connection:
        return list(connection.execute(wanted.where(evaluation.c.source == source) if source else wanted).mappings())


def last_of_their_keys(rows: Sequence[RowMapping]) -> set[str]:
    """The ids of the newest completed evaluation of every comparability key: what `journal.previous` would look for.

    Args:
        rows: evaluations, newest first.
    """
    return {of_key[0]["id"] for of_key in _by_key(rows)}


def baselines(rows: Sequence[RowMapping]) -> set[str]:
    """The ids of what later evaluations would be judged against: what `journal.baseline` would look for.

    Args:
        rows: evaluations, newest first.
    """
    accepted = [[row for row in of_key if row["accepted_at"]] for of_key in _by_key(rows)]
    return {max(of_key, key=lambda row: row["accepted_at"])["id"] for of_key in accepted if of_key}


def _by_key(rows: Sequence[RowMapping]) -> Iterable[list[RowMapping]]:
    """The completed evaluations of every comparability key, in the order of the rows.

    What judges stored answers is no part of the live history, and an arm of a sweep of none.
    """
    of_key: dict[tuple[str, str | None], list[RowMapping]] = {}
    for row in rows:
        aside = marks(row)
        if row["state"] == "completed" and "part_of" not in aside:
            of_key.setdefault((row["comparability_key"], aside.get("answers_of")), []).append(row)
    return of_key.values()


def newest_of_their_kind(rows: Sequence[RowMapping], n: int) -> set[str]:
    """The ids of the n newest finished evaluations of every tier and source that say something new of the system.

    Args:
        rows: evaluations, newest first.
        n: how many of each.
    """
    kept: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        of = kept.setdefault((row["tier"], row["source"]), [])
        if row["state"] in FINISHED and not marks(row) and len(of) < n:
            of.append(row["id"])
    return {name for names in kept.values() for name in names}


def forget(engine: Engine, evaluation_id: str) -> None:
    """Removes the rows of an evaluation: itself, its metrics, its batches, what it spent."""
    with reaching(engine), engine.begin() as connection:
        connection.execute(delete(spending).where(spending.c.evaluation_id == evaluation_id))
        connection.execute(delete(evaluation).where(evaluation.c.id == evaluation_id))


def old_calls(engine: Engine, before: datetime, *, remove: bool) -> int:
    """How many replies of language models are older; they are removed if that is wanted."""
    return _counted(engine, call, call.c.created_at < before, remove=remove)


def unused_vectors(engine: Engine, kept: Collection[str], *, remove: bool) -> int:
    """How many stored vectors are of embedders that none of the kept evaluations used."""
    used: set[str] = set()
    for row in evaluations(engine):
        if row["id"] in kept:
            used |= {str((row["resolved"] or {}).get(name)).split(PREFIXED)[0] for name in USED_VECTORS}
    of_model = func.split_part(embedding.c.model, PREFIXED, 1)
    return _counted(engine, embedding, of_model.not_in(used), remove=remove)


def calls_of(engine: Engine, evaluation_ids: Collection[str], *, remove: bool) -> int:
    """How many replies those evaluations paid for, or evaluations that are gone or unknown.

    What a model was asked is not stored, only its hash: a reply cannot be told to be about one case.
    """
    known = select(evaluation.c.id)
    theirs = or_(
        call.c.evaluation_id.in_(evaluation_ids), call.c.evaluation_id.is_(None), call.c.evaluation_id.not_in(known)
    )
    return _counted(engine, call, theirs, remove=remove)


def vectors_of(engine: Engine, hashes: Collection[bytes], *, remove: bool) -> int:
    """How many stored vectors are of texts with those hashes."""
    return _counted(engine, embedding, embedding.c.text_hash.in_(hashes), remove=remove)


def labels_of(engine: Engine, source: str, case_ids: Collection[str], group: str, *, remove: bool) -> int:
    """How many labels people gave in a source to these cases, or to any of a group."""
    of = label.c
    theirs = (of.source == source) & (of.case_id.in_(case_ids) | (of.case_group == group))
    return _counted(engine, label, theirs, remove=remove)


def analyses_with(engine: Engine, source: str, told: Callable[[str], bool], *, remove: bool) -> int:
    """How many analyses of a source have a text in their documents of which that is told."""
    with reaching(engine), engine.connect() as connection:
        rows = connection.execute(select(analysis.c.id, analysis.c.document).where(of_source(source))).all()
    found = [row.id for row in rows if any(map(told, _strings(row.document)))]
    return _counted(engine, analysis, analysis.c.id.in_(found), remove=remove)


def clear_errors(engine: Engine, source: str, told: Callable[[str], bool]) -> None:
    """Takes away why evaluations of a source failed, where that is told of the reason: it may repeat a question."""
    this = (evaluation.c.source == source) & evaluation.c.error.is_not(None)
    with reaching(engine), engine.begin() as connection:
        for row in connection.execute(select(evaluation.c.id, evaluation.c.error).where(this)).all():
            if told(row.error):
                connection.execute(update(evaluation).where(evaluation.c.id == row.id).values(error="erased"))


def frozen_of(engine: Engine, source: str, user: str) -> dict[str, Row]:
    """A user's questions in case sets that were frozen from a source: id -> the question as it was frozen."""
    of = select(case_set.c.name).where(case_set.c.source == source)
    theirs = case_set_row.c.name.in_(of) & (case_set_row.c.content["user_id"].astext == user)
    with reaching(engine), engine.connect() as connection:
        rows = connection.execute(select(case_set_row.c.question_id, case_set_row.c.content).where(theirs))
        return {row.question_id: row.content for row in rows}


def frozen_with(engine: Engine, source: str, question_ids: Collection[str], *, remove: bool) -> int:
    """How many questions of case sets frozen from a source have those ids.

    A set that loses some is another set: its hash and number are made anew, and nothing before is comparable.
    """
    of = select(case_set.c.name).where(case_set.c.source == source)
    theirs = case_set_row.c.name.in_(of) & case_set_row.c.question_id.in_(question_ids)
    with reaching(engine), engine.begin() as connection:
        names = list(connection.scalars(select(case_set_row.c.name).where(theirs)))
        if remove:
            connection.execute(delete(case_set_row).where(theirs))
            for name in set(names):
                chosen = select(case_set_row.c.content).where(case_set_row.c.name == name)
                left: list[Row] = list(connection.scalars(chosen))
                values = {"sha256": case_sets.content_hash(left), "n_cases": len(left)}
                this = case_set.c.name == name
                connection.execute(
                    update(case_set).where(this).values(**values) if left else delete(case_set).where(this)
                )
    return len(names)


def note_erased(engine: Engine, evaluation_id: str, n: int, case_ids: Collection[str]) -> None:
    """Notes in a finished evaluation how many of its cases are erased, in place of an earlier such note."""
    this = evaluation.c.id == evaluation_id
    with reaching(engine), engine.begin() as connection:
        stored = dict(connection.scalar(select(evaluation.c.resolved).where(this).with_for_update()) or {})
        others = [note for note in stored.get("notes", []) if note["note"] != ERASED]
        stored["notes"] = [*others, {"note": ERASED, "n": n}]
        if "failures" in stored:
            first = [case_id for case_id in stored["failures"]["fix_first"] if case_id not in case_ids]
            stored["failures"] = stored["failures"] | {"fix_first": first}
        connection.execute(update(evaluation).where(this).values(resolved=stored))


def questions_of(source: Source, question_ids: Collection[str], *, remove: bool) -> dict[str, int]:
    """How many rows of a loaded source are those questions and their annotations; of production none: it is not ours.

    Returns:
        `annotations` and `questions`.
    """
    if source.kind != "loaded":
        return {"annotations": 0, "questions": 0}
    question, label = source.tables["question_answer"], source.tables[tables.ANNOTATION]
    keys = {"annotations": label.c.question_id, "questions": question.c.id}
    return {
        name: _counted(source.engine, key.table, cast(key, SqlText).in_(question_ids), remove=remove)
        for name, key in keys.items()
    }


def _counted(engine: Engine, table: Any, which: Any, *, remove: bool) -> int:
    with reaching(engine), engine.begin() as connection:
        if remove:
            return connection.execute(delete(table).where(which)).rowcount
        return connection.scalar(select(func.count()).select_from(table).where(which)) or 0


def _strings(document: Any) -> list[str]:
    """All texts in a document."""
    if isinstance(document, dict):
        return [text for value in document.values() for text in _strings(value)]
    if isinstance(document, list):
        return [text for value in document for text in _strings(value)]
    return [document] if isinstance(document, str) else []
