"""The journal of evaluations: running, finished, and resumable ones."""

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

from yarus.db.errors import InputError, list_first_ids, resolve_id
from yarus.db.tables import FINISHED_STATES as FINISHED_STATES
from yarus.db.tables import JsonObject, MetricRow, config_value, evaluation, evaluation_batch, evaluation_metric

LIST_COLUMNS = (
    "id", "tier", "state", "error", "started_at", "finished_at", "source", "sut_label",
    "n_cases", "coverage", "comparability_key", "parquet", "name", "tags",
)  # fmt: skip
NON_LIVE_KEYS = ("again", "anchor", "answers_of", "part_of")
"""Keys in the configuration of evaluations that are not new evidence about the system: a repeat, judging of stored
answers, or a sweep variant."""
_MARKS = func.jsonb_strip_nulls(func.coalesce(evaluation.c.resolved, text("'{}'::jsonb")), type_=JSONB)
IS_LIVE = not_(_MARKS.has_any(array(NON_LIVE_KEYS)))
"""SQL condition for evaluations of the live system. In this form PostgreSQL estimates correctly that most match."""
MAX_CANDIDATES = 100
"""Largest number of ids that a name is compared with."""


def non_live_marks(row: RowMapping) -> dict[str, str]:
    """Return the keys of NON_LIVE_KEYS in an evaluation's configuration, with their values."""
    stored = row["resolved"] or {}
    return {mark: stored[mark] for mark in NON_LIVE_KEYS if stored.get(mark)}


@contextmanager
def hold_evaluation_lock(engine: Engine, evaluation_id: str) -> Iterator[None]:
    """Hold the lock that shows that an evaluation's process is alive. PostgreSQL frees it when the process dies.

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
        with suppress(DBAPIError):  # at once, if possible
            connection.scalar(select(func.pg_advisory_unlock(*lock_key(evaluation_id))))
        connection.invalidate()  # ends the session and so frees the lock, in whatever state the connection is
        connection.close()


class NewEvaluation(TypedDict):
    """Columns of an evaluation that are known at its start."""

    id: str
    tier: str
    source: str
    name: NotRequired[str | None]
    tags: NotRequired[list[str]]
    parameters: JsonObject
    resolved: NotRequired[JsonObject]
    settings: Mapping[str, object]
    versions: dict[str, str]
    sut_label: NotRequired[str | None]
    flow_run_id: NotRequired[str | None]
    git_commit: NotRequired[str | None]
    git_dirty: NotRequired[bool | None]


def open_evaluation(engine: Engine, row: NewEvaluation) -> None:
    """Insert the row of a new evaluation, in state `running`."""
    with engine.begin() as connection:
        connection.execute(insert(evaluation).values(**row, state="running", started_at=datetime.now(UTC)))


def resume_evaluation(engine: Engine, evaluation_id: str, flow_run_id: str | None) -> None:
    """Set an evaluation that did not finish back to `running`, in that flow run.

    Raises:
        InputError: it is finished; finished evaluations never change.
    """
    statement = update(evaluation).where(evaluation.c.id == evaluation_id, evaluation.c.state.not_in(FINISHED_STATES))
    values = {"state": "running", "error": None, "finished_at": None, "flow_run_id": flow_run_id}
    with engine.begin() as connection:
        if not connection.execute(statement.values(**values)).rowcount:
            raise _finished_error(evaluation_id)


def require_unfinished(row: RowMapping) -> None:
    """Check that an evaluation can be resumed.

    Raises:
        InputError: it is finished; finished evaluations never change.
    """
    if row["state"] in FINISHED_STATES:
        raise _finished_error(row["id"])


def _finished_error(evaluation_id: str) -> InputError:
    return InputError(
        "evaluation {evaluation} is finished, there is nothing to resume; run it anew", evaluation=evaluation_id
    )


def update_evaluation(engine: Engine, evaluation_id: str, **values: Any) -> None:
    """Store values that became known after the start: cases, key, configuration."""
    with engine.begin() as connection:
        connection.execute(update(evaluation).where(evaluation.c.id == evaluation_id).values(**values))


def record_batch(engine: Engine, evaluation_id: str, batch: int) -> None:
    """Record that a batch's file is complete; a batch that was repeated because its file was lost stays recorded."""
    statement = insert(evaluation_batch).values(evaluation_id=evaluation_id, batch=batch).on_conflict_do_nothing()
    with engine.begin() as connection:
        connection.execute(statement)


def read_finished_batches(engine: Engine, evaluation_id: str) -> set[int]:
    """Return the numbers of the batches whose files are complete."""
    query = select(evaluation_batch.c.batch).where(evaluation_batch.c.evaluation_id == evaluation_id)
    with engine.connect() as connection:
        return set(connection.scalars(query))


def finish_evaluation(
    engine: Engine, evaluation_id: str, state: str, metrics: Sequence[MetricRow] = (), **values: Any
) -> bool:
    """Store the metrics and the final state in one transaction.

    Returns:
        Whether the evaluation was running; otherwise it stays unchanged.
    """
    statement = update(evaluation).where(evaluation.c.id == evaluation_id, evaluation.c.state == "running")
    with engine.begin() as connection:
        n_updated = connection.execute(
            statement.values(state=state, finished_at=time_not_before_start(evaluation), **values)
        ).rowcount
        if n_updated and metrics:
            rows = [{"evaluation_id": evaluation_id, **row} for row in metrics]
            connection.execute(insert(evaluation_metric), rows)
        if n_updated:
            accept_if_first(connection, evaluation_id)
    return bool(n_updated)


def fail_orphaned(engine: Engine, clear: Callable[[str, str, datetime], None]) -> list[str]:
    """Mark evaluations whose process died as failed; wait for another process that does the same.

    Args:
        engine: the engine of Yarus's own database.
        clear: called with tier, id and start of each, to remove its partial results; it cannot be resumed meanwhile.

    Returns:
        Ids of the failed evaluations.
    """
    running = select(evaluation.c.id, evaluation.c.tier, evaluation.c.started_at).where(evaluation.c.state == "running")
    failed_ids = []
    with engine.begin() as connection:
        if connection.execute(running).first() is None:
            return []
        # One process at a time: while one holds an evaluation's lock here, it would look alive to another.
        connection.execute(select(func.pg_advisory_xact_lock(func.hashtext("yarus.orphaned"))))
        for evaluation_id, tier, started_at in connection.execute(running).all():
            if connection.scalar(select(func.pg_try_advisory_xact_lock(*lock_key(evaluation_id)))):
                still_running = and_(evaluation.c.id == evaluation_id, evaluation.c.state == "running")
                error = f"its process died; continue with: yarus run {tier} --resume {evaluation_id}"
                values = {"state": "failed", "error": error, "finished_at": time_not_before_start(evaluation)}
                # It may have finished since the query: only evaluations still running have died.
                if connection.execute(update(evaluation).where(still_running).values(**values)).rowcount:
                    clear(tier, evaluation_id, started_at)
                    failed_ids.append(evaluation_id)
    return failed_ids


def find_evaluation(engine: Engine, name: str) -> RowMapping:
    """Return the evaluation with that id or name, the only one whose id begins or ends so, or the `last`.

    Raises:
        InputError: no evaluation matches, or several do; the message names the nearest.
    """
    columns = evaluation.c
    with engine.connect() as connection:
        row = connection.execute(select(evaluation).where(columns.id == name)).mappings().first()
        if row is None:
            evaluation_id = _find_by_name(connection, name) or _find_by_id_part(connection, name)
            row = connection.execute(select(evaluation).where(columns.id == evaluation_id)).mappings().one()
    return row


def _find_by_name(connection: Connection, name: str) -> str | None:
    """Return the id of the only evaluation with that name; None if there is none."""
    columns = evaluation.c
    query = select(columns.id).where(columns.name == unicodedata.normalize("NFC", name).strip())
    ids = connection.scalars(query.order_by(columns.started_at.desc(), columns.id.desc()).limit(MAX_CANDIDATES)).all()
    if len(ids) > 1:
        raise InputError(
            "several evaluations are called {name!r}; there are: {ids}", name=name, ids=list_first_ids(ids)
        )
    return ids[0] if ids else None


def _find_by_id_part(connection: Connection, name: str) -> str:
    """Return the id of the only evaluation whose id begins or ends so, or of the `last`."""
    columns = evaluation.c
    id_query = select(columns.id, columns.started_at)
    # Two queries, because each has its own index.
    with_prefix = id_query.where(columns.id.startswith(name, autoescape=True)).limit(MAX_CANDIDATES)
    with_suffix = id_query.where(func.reverse(columns.id).startswith(name[::-1], autoescape=True)).limit(MAX_CANDIDATES)
    rows = [] if name == "last" else connection.execute(union(with_prefix, with_suffix)).all()
    rows = rows or connection.execute(id_query.order_by(columns.started_at.desc()).limit(MAX_CANDIDATES)).all()
    ids = [row.id for row in sorted(rows, key=lambda row: row.started_at, reverse=True)]
    return resolve_id(ids, name, none="no evaluation", several="several evaluations")


def find_by_flow_run(engine: Engine, flow_run_id: str) -> RowMapping | None:
    """Return the newest evaluation of a flow run."""
    query = select(evaluation).where(evaluation.c.flow_run_id == flow_run_id)
    with engine.connect() as connection:
        return connection.execute(query.order_by(evaluation.c.started_at.desc()).limit(1)).mappings().first()


def list_evaluations(
    engine: Engine, *, limit: int, name: str | None = None, tags: Sequence[str] = ()
) -> list[RowMapping]:
    """Return the newest evaluations, newest first; only those with that name and all these tags."""
    columns = [evaluation.c[column] for column in LIST_COLUMNS]
    conditions = [evaluation.c.tags.contains(list(tags)), *([evaluation.c.name == name] if name is not None else [])]
    query = (
        select(*columns)
        .where(*conditions)
        .order_by(evaluation.c.started_at.desc(), evaluation.c.id.desc())
        .limit(limit)
    )
    with engine.connect() as connection:
        return list(connection.execute(query).mappings())


def read_metrics(engine: Engine, evaluation_id: str) -> list[RowMapping]:
    """Return the metric rows of an evaluation, by name and stratum."""
    query = select(evaluation_metric).where(evaluation_metric.c.evaluation_id == evaluation_id)
    query = query.order_by(evaluation_metric.c.metric, evaluation_metric.c.stratum)
    with engine.connect() as connection:
        return list(connection.execute(query).mappings())


def find_baseline(engine: Engine, evaluation_id: str) -> str | None:
    """Return the id of the evaluation to judge this one against: the last accepted among those of `find_previous`.

    An evaluation must be accepted to be a baseline: it may be bad, or part of a slow decline.

    Args:
        engine: the engine of Yarus's own database.
        evaluation_id: the full id.

    Returns:
        Its id; None if none is accepted, or if this one has no key.
    """
    return _find_earlier(engine, evaluation_id, evaluation.c.accepted_at.desc(), evaluation.c.accepted_at.is_not(None))


def accept_baseline(engine: Engine, name: str) -> str:
    """Make an evaluation the baseline of its comparability key, for later evaluations.

    Returns:
        Its id.

    Raises:
        InputError: no such evaluation, or it cannot be a baseline: it is invalid, or part of another one.
    """
    row = find_evaluation(engine, name)
    if row["state"] != "completed":
        raise InputError("evaluation {id} is {state}: it cannot be a baseline", id=row["id"], state=row["state"])
    if part_of := non_live_marks(row).get("part_of"):
        raise InputError(
            "evaluation {id} is a part of {part_of}: it cannot be a baseline", id=row["id"], part_of=part_of
        )
    update_evaluation(engine, row["id"], accepted_at=datetime.now(UTC))
    return str(row["id"])


def accept_if_first(connection: Connection, evaluation_id: str) -> None:
    """Accept an evaluation that is the first valid one of its key; it is the baseline until a person accepts another.

    The first to finish counts, not the first to start: one that is resumed later may be as bad as later ones.
    """
    other = evaluation.alias()
    earlier = select(other.c.id).where(_same_history(other, evaluation), other.c.id != evaluation.c.id)
    statement = update(evaluation).where(
        evaluation.c.id == evaluation_id,
        evaluation.c.state == "completed",
        evaluation.c.comparability_key.is_not(None),
        config_value("part_of").astext.is_(None),
        not_(earlier.exists()),
    )
    connection.execute(statement.values(accepted_at=evaluation.c.finished_at))


def find_previous(engine: Engine, evaluation_id: str) -> str | None:
    """Return the id of the newest earlier completed evaluation with the same comparability key.

    Args:
        engine: the engine of Yarus's own database.
        evaluation_id: the full id.

    Returns:
        Its id; None if there is none, or if this one has no key.
    """
    return _find_earlier(engine, evaluation_id, evaluation.c.started_at.desc())


def _find_earlier(
    engine: Engine, evaluation_id: str, order: ColumnElement[Any], *conditions: ColumnElement[bool]
) -> str | None:
    this = evaluation.alias()
    earlier = (
        select(evaluation.c.id)
        .join(this, _same_history(evaluation, this))
        .where(this.c.id == evaluation_id, evaluation.c.started_at < this.c.started_at, *conditions)
        .order_by(order)
        .limit(1)
    )
    with engine.connect() as connection:
        return connection.scalar(earlier)


def _same_history(before: FromClause, this: FromClause) -> ColumnElement[bool]:
    """Return, as SQL, whether the evaluation `before` belongs to the history of `this`."""
    answers_of, these_answers_of = (config_value("answers_of", table=table).astext for table in (before, this))
    return and_(
        before.c.comparability_key == this.c.comparability_key,
        before.c.state == "completed",
        # An evaluation of stored answers follows those of the same answers, never those of the live system.
        answers_of.is_not_distinct_from(these_answers_of),
        config_value("part_of", table=before).astext.is_(None),  # a sweep variant is in no history
    )


def time_not_before_start(table: Table) -> ColumnElement[datetime]:
    """Return the current time, but at least the row's start, because the clock may have been set back."""
    return func.greatest(table.c.started_at, datetime.now(UTC))


def lock_key(evaluation_id: str) -> tuple[Any, Any]:
    """Return the key of the advisory lock that an evaluation's process holds."""
    return func.hashtext("yarus.evaluation"), func.hashtext(evaluation_id)
