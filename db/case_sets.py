"""Frozen case sets: questions with their labels, kept as they were, under a name and a hash of their content."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Engine, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.engine import RowMapping

from yarus.db.engine import reaching
from yarus.db.errors import InputError, unknown
from yarus.db.source_rows import Row
from yarus.db.sources import checked_name
from yarus.db.tables import case_set, case_set_row

Rule = dict[str, Any]
"""How the questions of a set were chosen: limit, seed, since, until, or the set that was split."""
LABELS = (
    "ground_truth_answer", "relevant_chunk_ids", "relevant_urls", "ground_truth_show", "answerable", "nuggets",
    "cluster", "dialog_id", "turn", "origin", "confluence_url", "answer", "score",
)  # fmt: skip
"""What of a question labels it: what people said, else what the log knows."""


@dataclass(frozen=True)
class CaseSet:
    """A frozen set: what it is called, what it holds, and where that came from."""

    name: str
    sha256: str
    source: str
    n_cases: int
    rule: Rule

    @property
    def identity(self) -> dict[str, str]:
        """Name and hash, as they stand in a comparability key."""
        return {"name": self.name, "sha256": self.sha256}


def content_hash(rows: Sequence[Row]) -> str:
    """SHA-256 of the questions with everything that was read of them, whatever their order."""
    lines = sorted(json.dumps(_packed(row), ensure_ascii=False, sort_keys=True) for row in rows)
    return hashlib.sha256("\n".join(lines).encode(errors="surrogatepass")).hexdigest()


def keep(engine: Engine, name: str, source: str, rows: Sequence[Row], rule: Rule) -> CaseSet:
    """Freezes the rows under a name; freezing the same content under the same name again changes nothing.

    Args:
        engine: of our own database.
        name: of the set.
        source: where the rows are from.
        rows: questions with their annotations, as `yarus.db.source_rows.read_questions` gives them.
        rule: how they were chosen, as it is shown.

    Raises:
        InputError: the name cannot be used or stands for another content, or there are no rows.
    """
    (kept,) = keep_all(engine, source, [(name, rows, rule)])
    return kept


def keep_all(engine: Engine, source: str, sets: Sequence[tuple[str, Sequence[Row], Rule]]) -> list[CaseSet]:
    """Freezes several sets of one source, each with its name, rows and rule: all of them, or none where one fails.

    Raises:
        InputError: as `keep`.
    """
    for name, rows, rule in sets:
        checked_name(name)
        if not rows:
            raise InputError(
                "case set {name!r} would be empty: no question of source {source!r} is chosen by {rule}",
                name=name,
                source=source,
                rule=rule,
            )
    with reaching(engine), engine.begin() as connection:
        return [_keep(connection, source, *one) for one in sets]


def _keep(connection: Connection, source: str, name: str, rows: Sequence[Row], rule: Rule) -> CaseSet:
    kept = CaseSet(name, content_hash(rows), source, len(rows), rule)
    fresh = insert(case_set).values(**asdict(kept)).on_conflict_do_nothing().returning(case_set.c.name)
    if connection.scalar(fresh) is not None:
        packed = [{"name": name, "question_id": row["question_id"], "content": _packed(row)} for row in rows]
        connection.execute(insert(case_set_row), packed)
    elif (there := _find(connection, name)).identity != kept.identity or there.source != source:
        raise InputError(
            "case set {name!r} is frozen with other content ({n_cases} cases of {source!r}, hash {sha256}); a frozen "
            "set is never changed: choose another name",
            name=name,
            n_cases=there.n_cases,
            source=there.source,
            sha256=there.sha256[:12],
        )
    return kept


def find(engine: Engine, name: str) -> CaseSet:
    """The set of that name.

    Raises:
        InputError: there is none; the nearest is named.
    """
    with reaching(engine), engine.connect() as connection:
        return _find(connection, name)


def _find(connection: Connection, name: str) -> CaseSet:
    columns = (case_set.c[column.name] for column in fields(CaseSet))
    row = connection.execute(select(*columns).where(case_set.c.name == name)).one_or_none()
    if row is None:
        known = list(connection.scalars(select(case_set.c.name)))
        raise unknown("case set", name, known, "Freeze one: yarus dataset freeze NAME --source SOURCE")
    return CaseSet(*row)


def read(engine: Engine, name: str) -> list[Row]:
    """The questions of a set with their labels as they were frozen, in the order of the source's ids.

    Raises:
        InputError: there is no such set.
    """
    chosen = select(case_set_row.c.content).where(case_set_row.c.name == name).order_by(case_set_row.c.position)
    with reaching(engine), engine.connect() as connection:
        _find(connection, name)
        return [_unpacked(content) for content in connection.scalars(chosen)]


def listing(engine: Engine) -> list[RowMapping]:
    """All sets, newest first."""
    with reaching(engine), engine.connect() as connection:
        newest = select(case_set).order_by(case_set.c.frozen_at.desc(), case_set.c.name)
        return list(connection.execute(newest).mappings())


def difference(before: Sequence[Row], after: Sequence[Row]) -> dict[str, list[Any]]:
    """What changed between two sets.

    Returns:
        `added` and `removed`: ids; `reworded`: ids whose question has another text; `relabelled`: id and the labels
        that differ, with both values.
    """
    old, new = ({row["question_id"]: row for row in rows} for rows in (before, after))
    common = [name for name in old if name in new]
    changes = {name: _changes(old[name], new[name]) for name in common}
    return {
        "added": [name for name in new if name not in old],
        "removed": [name for name in old if name not in new],
        "reworded": [name for name in common if old[name]["question"] != new[name]["question"]],
        "relabelled": [{"question_id": name, "labels": changed} for name, changed in changes.items() if changed],
    }


def _changes(old: Row, new: Row) -> dict[str, dict[str, Any]]:
    pairs = {label: (old.get(label), new.get(label)) for label in LABELS}
    return {label: {"before": one, "after": two} for label, (one, two) in pairs.items() if one != two}


def _packed(row: Row) -> Row:
    """The row as JSON holds it: moments as text, in UTC where they have a zone; no word of nuggets or a record where
    there are none, as in sets that were frozen before there were any.
    """
    later = ("nuggets", "recorded")
    known = {name: value for name, value in row.items() if name not in later or value is not None}
    return {name: _moment(value) if isinstance(value, datetime) else value for name, value in known.items()}


def _moment(value: datetime) -> str:
    return (value.astimezone(UTC) if value.tzinfo else value).isoformat()


def _unpacked(content: Row) -> Row:
    asked_at = content.get("created_at")
    return content | {"created_at": datetime.fromisoformat(asked_at) if asked_at else None}
