"""The journal of evaluations: what runs, what is finished, what died and can be resumed."""

import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any, NotRequired

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    FromClause,
    Table,
    and_,
    func,
    not_,
    select,
    text,
    union,
    update,
)
from sqlalchemy.dialects.postgresql import JSONB, array, insert
from sqlalchemy.engine import RowMapping
from sqlalchemy.exc import DBAPIError
from typing_extensions import TypedDict

from yarus.db.errors import InputError, named_ids, the_one
from yarus.db.tables import FINISHED as FINISHED
from yarus.db.tables import Json, MetricRow, config_at, evaluation, evaluation_batch, evaluation_metric

LISTED = (
    "id", "tier", "state", "error", "started_at", "finished_at", "source", "sut_label",
    "n_cases", "coverage", "comparability_key", "parquet", "name", "tags",
)  # fmt: skip
ASIDE = ("again", "anchor", "answers_of", "part_of")
"""What in the configuration marks an evaluation that says nothing new of the system: repeated, judged anew, or an
arm of a sweep."""
_MARKS = func.jsonb_strip_nulls(func.coalesce(evaluation.c.resolved, text("'{}'::jsonb")), type_=JSONB)
LIVE = not_(_MARKS.has_any(array(ASIDE)))
"""Says something new of the system. Written so, PostgreSQL expects what is so: nearly every evaluation does."""
NEAR = 100
"""Ids that what was given is compared with."""


def marks(row: RowMapping) -> dict[str, str]:
    """What an evaluation has of ASIDE."""
    stored = row["resolved"] or {}
    return {mark: stored[mark] for mark in ASIDE if stored.get(mark)}


@contextmanager
def alive(engine: Engine, evaluation_id: str) -> Iterator[None]:
    """Holds the lock that says: the process of this evaluation lives. PostgreSQL frees it when the process dies.

    Raises:
        InputError: another process is running this evaluation.
    """
    connection = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
    try:
        if not connection.scalar(select(func.pg_try_advisory_lock(*lock_key(evaluation_id)))):
            raise InputError(
                "evaluation {evaluation} is running in another process; wait for it or stop it",
                evaluation=evaluation_id,
            )
        yield
    finally:
        with suppress(DBAPIError):  # at once where that is possible
            connection.scalar(select(func.pg_advisory_unlock(*lock_key(evaluation_id))))
        connection.invalidate()  # closes the session and with it the lock, whatever state the connection is in
        connection.close()


class NewEvaluation(TypedDict):
    """What the journal says of an evaluation from its start."""

    id: str
    tier: str
    source: str
    name: NotRequired[str | None]
    tags: NotRequired[list[str]]
    parameters: Json
    resolved: NotRequired[Json]
    settings: Mapping[str, object]
    versions: dict[str, str]
    sut_label: NotRequired[str | None]
    flow_run_id: NotRequired[str | None]
    git_commit: NotRequired[str | None]
    git_dirty: NotRequired[bool | None]


def open_evaluation(engine: Engine, row: NewEvaluation) -> None:
    """Writes the row of a new evaluation, in state `running`."""
    with engine.begin() as connection:
        connection.execute(insert(evaluation).values(**row, state="running", started_at=datetime.now(UTC)))


def reopen(engine: Engine, evaluation_id: str, flow_run_id: str | None) -> None:
    """Puts an evaluation that did not finish back into state `running`, in that flow run.

    Raises:
        InputError: it is finished, and a finished evaluation is never changed.
    """
    statement = update(evaluation).where(evaluation.c.id == evaluation_id, evaluation.c.state.not_in(FINISHED))
    begun = {"state": "running", "error": None, "finished_at": None, "flow_run_id": flow_run_id}
    with engine.begin() as connection:
        if not connection.execute(statement.values(**begun)).rowcount:
            raise _finished(evaluation_id)


def unfinished(row: RowMapping) -> None:
    """Makes sure that an evaluation can be resumed.

    Raises:
        InputError: it is finished, and a finished evaluation is never changed.
    """
    if row["state"] in FINISHED:
        raise _finished(row["id"])


def _finished(evaluation_id: str) -> InputError:
    return InputError(
        "evaluation {evaluation} is finished, there is nothing to resume; run it anew", evaluation=evaluation_id
    )


def describe(engine: Engine, evaluation_id: str, **values: Any) -> None:
    """Adds what became known after the start: cases, key, configuration."""
    with engine.begin() as connection:
        connection.execute(update(evaluation).where(evaluation.c.id == evaluation_id).values(**values))


def batch_done(engine: Engine, evaluation_id: str, batch: int) -> None:
    """Notes that the file of a batch is whole; one that was done again, because its file was lost, is noted already."""
    note = insert(evaluation_batch).values(evaluation_id=evaluation_id, batch=batch).on_conflict_do_nothing()
    with engine.begin() as connection:
        connection.execute(note)


def batches_done(engine: Engine, evaluation_id: str) -> set[int]:
    """The numbers of the batches whose files are whole."""
    done = select(evaluation_batch.c.batch).where(evaluation_batch.c.evaluation_id == evaluation_id)
    with engine.connect() as connection:
        return set(connection.scalars(done))


def close(engine: Engine, evaluation_id: str, state: str, metrics: Sequence[MetricRow] = (), **values: Any) -> bool:
    """Writes the metrics and the final state in one transaction.

    Returns:
        Whether it did: an evaluation that is not running stays as it is.
    """
    statement = update(evaluation).where(evaluation.c.id == evaluation_id, evaluation.c.state == "running")
    with engine.begin() as connection:
        changed = connection.execute(
            statement.values(state=state, finished_at=now_after(evaluation), **values)
        ).rowcount
        if changed and metrics:
            rows = [{"evaluation_id": evaluation_id, **row} for row in metrics]
            connection.execute(insert(evaluation_metric), rows)
        if changed:
            accept_first(connection, evaluation_id)
    return bool(changed)


def fail_orphaned(engine: Engine, clear: Callable[[str, str, datetime], None]) -> list[str]:
    """Marks evaluations whose process died without a word as failed; waits for another process that does so just now.

    Args:
        engine: of our own database.
        clear: gets tier, id and start of each, to remove what it left half done; nobody can resume it meanwhile.

    Returns:
        Their ids.
    """
    running = select(evaluation.c.id, evaluation.c.tier, evaluation.c.started_at).where(evaluation.c.state == "running")
    buried = []
    with engine.begin() as connection:
        if connection.execute(running).first() is None:
            return []
        # One at a time: to a second one, what the first holds while it buries it would look alive.
        connection.execute(select(func.pg_advisory_xact_lock(func.hashtext("yarus.orphaned"))))
        for evaluation_id, tier, started_at in connection.execute(running).all():
            if connection.scalar(select(func.pg_try_advisory_xact_lock(*lock_key(evaluation_id)))):
                dead = and_(evaluation.c.id == evaluation_id, evaluation.c.state == "running")
                error = f"its process died; continue with: yarus run {tier} --resume {evaluation_id}"
                values = {"state": "failed", "error": error, "finished_at": now_after(evaluation)}
                # It may have finished since it was listed: only what is still running has died.
                if connection.execute(update(evaluation).where(dead).values(**values)).rowcount:
                    clear(tier, evaluation_id, started_at)
                    buried.append(evaluation_id)
    return buried


def find(engine: Engine, name: str) -> RowMapping:
    """The evaluation with that id, or else that name, or the only one whose id begins or ends so, or the `last`.

    Raises:
        InputError: none, or several; the nearest are named.
    """
    of = evaluation.c
    with engine.connect() as connection:
        row = connection.execute(select(evaluation).where(of.id == name)).mappings().first()
        if row is None:
            one = _find_called(connection, name) or _find_like(connection, name)
            row = connection.execute(select(evaluation).where(of.id == one)).mappings().one()
    return row


def _find_called(connection: Connection, name: str) -> str | None:
    """The id of the only evaluation that people call so; None where none is."""
    of = evaluation.c
    alike = select(of.id).where(of.name == unicodedata.normalize("NFC", name).strip())
    ids = connection.scalars(alike.order_by(of.started_at.desc(), of.id.desc()).limit(NEAR)).all()
    if len(ids) > 1:
        raise InputError("several evaluations are called {name!r}; there are: {ids}", name=name, ids=named_ids(ids))
    return ids[0] if ids else None


def _find_like(connection: Connection, name: str) -> str:
    """The id of the only evaluation whose id begins or ends so, or of the `last`."""
    of = evaluation.c
    known = select(of.id, of.started_at)
    # Apart: each has an index of its own.
    begins = known.where(of.id.startswith(name, autoescape=True)).limit(NEAR)
    ends = known.where(func.reverse(of.id).startswith(name[::-1], autoescape=True)).limit(NEAR)
    rows = [] if name == "last" else connection.execute(union(begins, ends)).all()
    rows = rows or connection.execute(known.order_by(of.started_at.desc()).limit(NEAR)).all()
    ids = [row.id for row in sorted(rows, key=lambda row: row.started_at, reverse=True)]
    return the_one(ids, name, none="no evaluation", several="several evaluations")


def of_flow_run(engine: Engine, flow_run_id: str) -> RowMapping | None:
    """The newest evaluation that a flow run has begun."""
    begun = select(evaluation).where(evaluation.c.flow_run_id == flow_run_id)
    with engine.connect() as connection:
        return connection.execute(begun.order_by(evaluation.c.started_at.desc()).limit(1)).mappings().first()


def listing(engine: Engine, *, limit: int, name: str | None = None, tags: Sequence[str] = ()) -> list[RowMapping]:
    """What a list tells of the newest evaluations, newest first; only those of that name, with all of these tags."""
    listed = [evaluation.c[column] for column in LISTED]
    wanted = [evaluation.c.tags.contains(list(tags)), *([evaluation.c.name == name] if name is not None else [])]
    newest = (
        select(*listed).where(*wanted).order_by(evaluation.c.started_at.desc(), evaluation.c.id.desc()).limit(limit)
    )
    with engine.connect() as connection:
        return list(connection.execute(newest).mappings())


def metrics_of(engine: Engine, evaluation_id: str) -> list[RowMapping]:
    """The metric rows of an evaluation, by name and stratum."""
    rows = select(evaluation_metric).where(evaluation_metric.c.evaluation_id == evaluation_id)
    rows = rows.order_by(evaluation_metric.c.metric, evaluation_metric.c.stratum)
    with engine.connect() as connection:
        return list(connection.execute(rows).mappings())


def baseline(engine: Engine, evaluation_id: str) -> str | None:
    """What this one is judged against: of those that `previous` looks through the one that was accepted last.

    None is a baseline merely for being there: it may be a bad one, or one of a slow decline.

    Args:
        engine: of our own database.
        evaluation_id: the whole id.

    Returns:
        Its id; None where none is accepted, or where this one has no key.
    """
    return _earlier(engine, evaluation_id, evaluation.c.accepted_at.desc(), evaluation.c.accepted_at.is_not(None))


def accept(engine: Engine, name: str) -> str:
    """Makes an evaluation the baseline of its comparability key, for those that come after it.

    Returns:
        Its id.

    Raises:
        InputError: no such evaluation, or one that nothing is judged against: not valid, or a part of another one.
    """
    row = find(engine, name)
    if row["state"] != "completed":
        raise InputError("evaluation {id} is {state}: it cannot be a baseline", id=row["id"], state=row["state"])
    if part_of := marks(row).get("part_of"):
        raise InputError(
            "evaluation {id} is a part of {part_of}: it cannot be a baseline", id=row["id"], part_of=part_of
        )
    describe(engine, row["id"], accepted_at=datetime.now(UTC))
    return str(row["id"])


def accept_first(connection: Connection, evaluation_id: str) -> None:
    """Accepts an evaluation that is the first valid one of its key: until a person accepts another it is the baseline.

    Not the one that began first: what is resumed later may be as bad as what comes later.
    """
    other = evaluation.alias()
    before = select(other.c.id).where(_alike(other, evaluation), other.c.id != evaluation.c.id)
    first = update(evaluation).where(
        evaluation.c.id == evaluation_id,
        evaluation.c.state == "completed",
        evaluation.c.comparability_key.is_not(None),
        config_at("part_of").astext.is_(None),
        not_(before.exists()),
    )
    connection.execute(first.values(accepted_at=evaluation.c.finished_at))


def previous(engine: Engine, evaluation_id: str) -> str | None:
    """The newest earlier completed evaluation with the same comparability key: what this one can be compared with.

    Args:
        engine: of our own database.
        evaluation_id: the whole id.

    Returns:
        Its id; None where there is none, or where this one has no key.
    """
    return _earlier(engine, evaluation_id, evaluation.c.started_at.desc())


def _earlier(engine: Engine, evaluation_id: str, order: ColumnElement[Any], *wanted: ColumnElement[bool]) -> str | None:
    this = evaluation.alias()
    earlier = (
        select(evaluation.c.id)
        .join(this, _alike(evaluation, this))
        .where(this.c.id == evaluation_id, evaluation.c.started_at < this.c.started_at, *wanted)
        .order_by(order)
        .limit(1)
    )
    with engine.connect() as connection:
        return connection.scalar(earlier)


def _alike(before: FromClause, this: FromClause) -> ColumnElement[bool]:
    """Whether one is of the history of the other."""
    answers_of, its = (config_at("answers_of", table=table).astext for table in (before, this))
    return and_(
        before.c.comparability_key == this.c.comparability_key,
        before.c.state == "completed",
        # What judges stored answers follows what judged the same answers, not the live system, and the other way round.
        answers_of.is_not_distinct_from(its),
        config_at("part_of", table=before).astext.is_(None),  # an arm of a sweep is nobody's yesterday
    )


def now_after(table: Table) -> ColumnElement[datetime]:
    """This moment, or when the row's work started: the clock may have been set back meanwhile."""
    return func.greatest(table.c.started_at, datetime.now(UTC))


def lock_key(evaluation_id: str) -> tuple[Any, Any]:
    """The key of the advisory lock that the process of an evaluation holds."""
    return func.hashtext("yarus.evaluation"), func.hashtext(evaluation_id)
