"""Store findings over several evaluations: sweeps, robustness probes, corpus analytics; one document each."""

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any, Literal

from sqlalchemy import ColumnElement, Engine, or_, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.engine import RowMapping

from yarus.db import journal
from yarus.db.engine import reporting_unreachable
from yarus.db.errors import InputError, resolve_id
from yarus.db.former_keys import replace_former_keys
from yarus.db.messages import Words
from yarus.db.tables import analysis

AnalysisKind = Literal["sweep", "robustness", "corpus"]
StoredDocument = dict[str, Any]
"""The findings, as `--json` prints them."""
AnalysisRow = Mapping[str, Any]
"""Row of an analysis; its `document` has the new names of keys."""


def save_analysis(engine: Engine, analysis_id: str, document: Mapping[str, Any], state: str) -> None:
    """Store the findings so far and the state; an analysis in state `running` has no end time."""
    finished_at = None if state == "running" else journal.time_not_before_start(analysis)
    values = {"document": dict(document), "state": state, "finished_at": finished_at}
    with reporting_unreachable(engine), engine.begin() as connection:
        connection.execute(update(analysis).where(analysis.c.id == analysis_id).values(**values))


@contextmanager
def open_analysis(
    engine: Engine, kind: AnalysisKind, source: str, parameters: Mapping[str, Any], *, resume: str | None = None
) -> Iterator[str]:
    """Start or resume an analysis and yield its id; if it ends early, store the state.

    Raises:
        InputError: there is nothing to resume under that id, or another process is running it.
    """
    analysis_id = resume or f"{kind}-{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
    # The lock comes before the row: without it, a running analysis would be marked as failed.
    with journal.hold_evaluation_lock(engine, analysis_id):
        insert_analysis(engine, analysis_id, kind, source, parameters)
        state = "cancelled"  # by a BaseException, such as Ctrl-C or SIGTERM
        try:
            yield analysis_id
            state = ""
        except Exception:
            state = "failed"
            raise
        finally:
            if state:
                _end(engine, analysis_id, state)


def find_analysis(engine: Engine, kind: AnalysisKind, name: str) -> AnalysisRow:
    """Return the analysis with that id, the only one whose id begins or ends so, or the `last` of its kind.

    Raises:
        InputError: no analysis matches, or several do; the message names the nearest.
    """
    _fail_orphaned(engine)
    query = select(analysis.c.id).where(analysis.c.kind == kind).order_by(analysis.c.started_at.desc(), analysis.c.id)
    with reporting_unreachable(engine), engine.connect() as connection:
        ids = connection.scalars(query).all()
        analysis_id = resolve_id(
            ids, name, none=Words("no {kind}", kind=kind), several=Words("several analyses ({kind})", kind=kind)
        )
        return _to_row(connection.execute(select(analysis).where(analysis.c.id == analysis_id)).mappings().one())


def list_analyses(
    engine: Engine, kind: AnalysisKind, *, source: str | None = None, limit: int | None = None
) -> list[AnalysisRow]:
    """Return the analyses of a kind, newest first; mark those whose process died as `failed`."""
    _fail_orphaned(engine)
    rows = select(analysis).where(analysis.c.kind == kind).order_by(analysis.c.started_at.desc(), analysis.c.id)
    if source is not None:
        rows = rows.where(concerns_source(source))
    with reporting_unreachable(engine), engine.connect() as connection:
        return list(map(_to_row, connection.execute(rows.limit(limit)).mappings()))


def _to_row(stored: RowMapping) -> AnalysisRow:
    return dict(stored) | {"document": replace_former_keys(stored["document"])}


def concerns_source(source: str) -> ColumnElement[bool]:
    """Return a condition for the analyses of a source: its own, and sweeps over several sources with it."""
    return or_(analysis.c.source == source, analysis.c.parameters["sources"].contains([source]))


def insert_analysis(
    engine: Engine, analysis_id: str, kind: AnalysisKind, source: str, parameters: Mapping[str, Any]
) -> None:
    """Insert the row of a new analysis, or set an existing one back to `running`."""
    row = {"id": analysis_id, "kind": kind, "source": source, "parameters": dict(parameters), "state": "running"}
    statement = insert(analysis).values(**row, started_at=datetime.now(UTC))
    upsert = statement.on_conflict_do_update(index_elements=["id"], set_={"state": "running", "finished_at": None})
    with reporting_unreachable(engine), engine.begin() as connection:
        connection.execute(upsert)


def _fail_orphaned(engine: Engine) -> None:
    running = select(analysis.c.id).where(analysis.c.state == "running")
    with reporting_unreachable(engine), engine.connect() as connection:
        ids = connection.scalars(running).all()
    for analysis_id in ids:
        # A process that holds the lock is alive.
        with suppress(InputError), journal.hold_evaluation_lock(engine, analysis_id):
            _end(engine, analysis_id, "failed")


def _end(engine: Engine, analysis_id: str, state: str) -> None:
    with reporting_unreachable(engine), engine.begin() as connection:
        statement = update(analysis).where(analysis.c.id == analysis_id, analysis.c.state == "running")
        connection.execute(statement.values(state=state, finished_at=journal.time_not_before_start(analysis)))
