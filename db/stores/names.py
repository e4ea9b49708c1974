"""The evaluation that is meant by a name, or by a part of an id."""

import unicodedata

from sqlalchemy import Connection, func, select, union

from yarus.db.errors import InputError, named_ids, the_one
from yarus.db.tables import evaluation

NEAR = 100
"""Ids that what was given is compared with."""


def the_one_called(connection: Connection, name: str) -> str | None:
    """The id of the only evaluation that people call so; None where none is.

    Raises:
        InputError: several are called so.
    """
    of = evaluation.c
    alike = select(of.id).where(of.name == unicodedata.normalize("NFC", name).strip())
    ids = connection.scalars(alike.order_by(of.started_at.desc(), of.id.desc()).limit(NEAR)).all()
    if len(ids) > 1:
        raise InputError("several evaluations are called {name!r}; there are: {ids}", name=name, ids=named_ids(ids))
    return ids[0] if ids else None


def the_one_like(connection: Connection, name: str) -> str:
    """The id of the only evaluation whose id begins or ends so, or of the `last`.

    Raises:
        InputError: none, or several; the nearest are named.
    """
    of = evaluation.c
    known = select(of.id, of.started_at)
    # Apart: each has an index of its own.
    begins = known.where(of.id.startswith(name, autoescape=True)).limit(NEAR)
    ends = known.where(func.reverse(of.id).startswith(name[::-1], autoescape=True)).limit(NEAR)
    rows = [] if name == "last" else connection.execute(union(begins, ends)).all()
    rows = rows or connection.execute(known.order_by(of.started_at.desc()).limit(NEAR)).all()
    ids = [row.id for row in sorted(rows, key=lambda row: row.started_at, reverse=True)]
    return the_one(ids, name, none="no evaluation", several="several evaluations")
