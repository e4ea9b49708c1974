"""What was found over several evaluations: sweeps, robustness probes, corpus analytics; one document each."""

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any, Literal

from sqlalchemy import ColumnElement, Engine, or_, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.engine import RowMapping

from yarus.db import journal
from yarus.db.engine import reaching
from yarus.db.errors import InputError, the_one
from yarus.db.tables import analysis
from yarus.db.words import Words

Kind = Literal["sweep", "robustness", "corpus"]
StoredDocument = dict[str, Any]
"""What was found, as `--json` printed it."""


def keep(engine: Engine, analysis_id: str, document: Mapping[str, Any], state: str) -> None:
    """Writes what has been found so far, and the state; `running` has no end."""
    ended = None if state == "running" else journal.now_after(analysis)
    values = {"document": dict(document), "state": state, "finished_at": ended}
    with reaching(engine), engine.begin() as connection:
        connection.execute(update(analysis).where(analysis.c.id == analysis_id).values(**values))


@contextmanager
def analysing(
    engine: Engine, kind: Kind, source: str, parameters: Mapping[str, Any], *, resume: str | None = None
) -> Iterator[str]:
    """Opens an analysis or goes on with one; yields its id. Whatever ends it early is written down.

    Raises:
        InputError: there is nothing to resume under that id, or another process is at it.
    """
    analysis_id = resume or f"{kind}-{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
    # The lock comes before the row: an analysis in state running without it would be taken for dead.
    with journal.alive(engine, analysis_id):
        open_row(engine, analysis_id, kind, source, parameters)
        state = "cancelled"  # by whatever is no Exception: Ctrl-C, SIGTERM
        try:
            yield analysis_id
            state = ""
        except Exception:
            state = "failed"
            raise
        finally:
            if state:
                _end(engine, analysis_id, state)


def find(engine: Engine, kind: Kind, name: str) -> RowMapping:
    """The analysis with that id, the only one whose id begins or ends so, or the `last` of its kind.

    Raises:
        InputError: none, or several; the nearest are named.
    """
    _fail_orphaned(engine)
    ids = select(analysis.c.id).where(analysis.c.kind == kind).order_by(analysis.c.started_at.desc(), analysis.c.id)
    with reaching(engine), engine.connect() as connection:
        known = connection.scalars(ids).all()
        one = the_one(
            known, name, none=Words("no {kind}", kind=kind), several=Words("several analyses ({kind})", kind=kind)
        )
        return connection.execute(select(analysis).where(analysis.c.id == one)).mappings().one()


def listing(engine: Engine, kind: Kind, *, source: str | None = None, limit: int | None = None) -> list[RowMapping]:
    """The analyses of a kind, newest first; those whose process died are `failed`."""
    _fail_orphaned(engine)
    rows = select(analysis).where(analysis.c.kind == kind).order_by(analysis.c.started_at.desc(), analysis.c.id)
    if source is not None:
        rows = rows.where(of_source(source))
    with reaching(engine), engine.connect() as connection:
        return list(connection.execute(rows.limit(limit)).mappings())


def of_source(source: str) -> ColumnElement[bool]:
    """Which analyses are of a source: its own, and the sweeps over several of which it is one."""
    return or_(analysis.c.source == source, analysis.c.parameters["sources"].contains([source]))


def open_row(engine: Engine, analysis_id: str, kind: Kind, source: str, parameters: Mapping[str, Any]) -> None:
    """Writes the row of an analysis that begins."""
    row = {"id": analysis_id, "kind": kind, "source": source, "parameters": dict(parameters), "state": "running"}
    fresh = insert(analysis).values(**row, started_at=datetime.now(UTC))
    again = fresh.on_conflict_do_update(index_elements=["id"], set_={"state": "running", "finished_at": None})
    with reaching(engine), engine.begin() as connection:
        connection.execute(again)


def _fail_orphaned(engine: Engine) -> None:
    running = select(analysis.c.id).where(analysis.c.state == "running")
    with reaching(engine), engine.connect() as connection:
        ids = connection.scalars(running).all()
    for analysis_id in ids:
        with suppress(InputError), journal.alive(engine, analysis_id):  # somebody holds it: it lives
            _end(engine, analysis_id, "failed")


def _end(engine: Engine, analysis_id: str, state: str) -> None:
    with reaching(engine), engine.begin() as connection:
        ended = update(analysis).where(analysis.c.id == analysis_id, analysis.c.state == "running")
        connection.execute(ended.values(state=state, finished_at=journal.now_after(analysis)))
