"""Store frozen case sets: questions with their labels, unchanged, under a name and a hash of their content."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Engine, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.engine import RowMapping

from yarus.db.engine import reporting_unreachable
from yarus.db.errors import InputError, unknown
from yarus.db.source_rows import QuestionRow
from yarus.db.sources import validate_source_name
from yarus.db.tables import case_set, case_set_row

SelectionRule = dict[str, Any]
"""How the questions of a set were selected: limit, seed, since, until, or the set that was split."""
LABEL_COLUMNS = (
    "ground_truth_answer", "relevant_chunk_ids", "relevant_urls", "ground_truth_show", "answerable", "nuggets",
    "cluster", "dialog_id", "turn", "origin", "confluence_url", "answer", "score",
)  # fmt: skip
"""Columns that label a question: people's annotations, then columns of the log."""


@dataclass(frozen=True)
class CaseSet:
    """A frozen set: its name, content hash, source, size and selection rule."""

    name: str
    sha256: str
    source: str
    n_cases: int
    rule: SelectionRule

    @property
    def identity(self) -> dict[str, str]:
        """Return name and hash, as in a comparability key."""
        return {"name": self.name, "sha256": self.sha256}


def content_hash(rows: Sequence[QuestionRow]) -> str:
    """Return the SHA-256 of the questions with all their values, independent of their order."""
    lines = sorted(json.dumps(_to_json(row), ensure_ascii=False, sort_keys=True) for row in rows)
    return hashlib.sha256("\n".join(lines).encode(errors="surrogatepass")).hexdigest()


def freeze_case_set(
    engine: Engine, name: str, source: str, rows: Sequence[QuestionRow], rule: SelectionRule
) -> CaseSet:
    """Freeze the rows under a name; to freeze the same content under the same name again changes nothing.

    Args:
        engine: the engine of Yarus's own database.
        name: name of the set.
        source: source of the rows.
        rows: questions with their annotations, as `yarus.db.source_rows.read_questions` returns them.
        rule: how they were selected, for display.

    Raises:
        InputError: the name is invalid or has another content, or there are no rows.
    """
    (new_set,) = freeze_case_sets(engine, source, [(name, rows, rule)])
    return new_set


def freeze_case_sets(
    engine: Engine, source: str, sets: Sequence[tuple[str, Sequence[QuestionRow], SelectionRule]]
) -> list[CaseSet]:
    """Freeze several sets of one source, each with its name, rows and rule: all of them, or none if one fails.

    Raises:
        InputError: as `freeze_case_set`.
    """
    for name, rows, rule in sets:
        validate_source_name(name)
        if not rows:
            raise InputError(
                "case set {name!r} would be empty: no question of source {source!r} is chosen by {rule}",
                name=name,
                source=source,
                rule=rule,
            )
    with reporting_unreachable(engine), engine.begin() as connection:
        return [_store(connection, source, *entry) for entry in sets]


def _store(connection: Connection, source: str, name: str, rows: Sequence[QuestionRow], rule: SelectionRule) -> CaseSet:
    new_set = CaseSet(name, content_hash(rows), source, len(rows), rule)
    insert_set = insert(case_set).values(**asdict(new_set)).on_conflict_do_nothing().returning(case_set.c.name)
    if connection.scalar(insert_set) is not None:
        content_rows = [{"name": name, "question_id": row["question_id"], "content": _to_json(row)} for row in rows]
        connection.execute(insert(case_set_row), content_rows)
    elif (existing := _find_case_set(connection, name)).identity != new_set.identity or existing.source != source:
        raise InputError(
            "case set {name!r} is frozen with other content ({n_cases} cases of {source!r}, hash {sha256}); a frozen "
            "set is never changed: choose another name",
            name=name,
            n_cases=existing.n_cases,
            source=existing.source,
            sha256=existing.sha256[:12],
        )
    return new_set


def find_case_set(engine: Engine, name: str) -> CaseSet:
    """Return the set of that name.

    Raises:
        InputError: no set has that name; the message names the nearest.
    """
    with reporting_unreachable(engine), engine.connect() as connection:
        return _find_case_set(connection, name)


def _find_case_set(connection: Connection, name: str) -> CaseSet:
    columns = (case_set.c[column.name] for column in fields(CaseSet))
    row = connection.execute(select(*columns).where(case_set.c.name == name)).one_or_none()
    if row is None:
        names = list(connection.scalars(select(case_set.c.name)))
        raise unknown("case set", name, names, "Freeze one: yarus dataset freeze NAME --source SOURCE")
    return CaseSet(*row)


def read_case_set(engine: Engine, name: str) -> list[QuestionRow]:
    """Return the questions of a set with their labels as frozen, ordered by the source's ids.

    Raises:
        InputError: no set has that name.
    """
    query = select(case_set_row.c.content).where(case_set_row.c.name == name).order_by(case_set_row.c.position)
    with reporting_unreachable(engine), engine.connect() as connection:
        _find_case_set(connection, name)
        return [_from_json(content) for content in connection.scalars(query)]


def list_case_sets(engine: Engine) -> list[RowMapping]:
    """Return all sets, newest first."""
    with reporting_unreachable(engine), engine.connect() as connection:
        query = select(case_set).order_by(case_set.c.frozen_at.desc(), case_set.c.name)
        return list(connection.execute(query).mappings())


def diff_case_sets(before: Sequence[QuestionRow], after: Sequence[QuestionRow]) -> dict[str, list[Any]]:
    """Return what changed between two sets.

    Returns:
        `added` and `removed`: ids; `reworded`: ids with another question text; `relabelled`: id and the labels that
        differ, with both values.
    """
    old, new = ({row["question_id"]: row for row in rows} for rows in (before, after))
    common = [key for key in old if key in new]
    changes = {key: _label_changes(old[key], new[key]) for key in common}
    return {
        "added": [key for key in new if key not in old],
        "removed": [key for key in old if key not in new],
        "reworded": [key for key in common if old[key]["question"] != new[key]["question"]],
        "relabelled": [{"question_id": key, "labels": labels} for key, labels in changes.items() if labels],
    }


def _label_changes(old: QuestionRow, new: QuestionRow) -> dict[str, dict[str, Any]]:
    pairs = {label: (old.get(label), new.get(label)) for label in LABEL_COLUMNS}
    return {label: {"before": before, "after": after} for label, (before, after) in pairs.items() if before != after}


def _to_json(row: QuestionRow) -> QuestionRow:
    """Return the row as stored in JSON: times as text, in UTC if they have a zone.

    Nuggets and record are left out if they are NULL, as in sets frozen before these columns existed.
    """
    optional = ("nuggets", "recorded")
    present = {name: value for name, value in row.items() if name not in optional or value is not None}
    return {name: _to_iso(value) if isinstance(value, datetime) else value for name, value in present.items()}


def _to_iso(value: datetime) -> str:
    return (value.astimezone(UTC) if value.tzinfo else value).isoformat()


def _from_json(content: QuestionRow) -> QuestionRow:
    asked_at = content.get("created_at")
    return content | {"created_at": datetime.fromisoformat(asked_at) if asked_at else None}
