"""The parameters that model servers take, as earlier evaluations have learnt them."""

from datetime import timedelta

from sqlalchemy import Engine, func, select
from sqlalchemy.dialects.postgresql import insert

from yarus.db.engine import reaching
from yarus.db.tables import Json, server_profile

VALID = timedelta(days=30)
"""Servers are upgraded: after this time everything is sent again."""


def load_profile(engine: Engine, address: str, model: str) -> Json | None:
    """Return the stored profile of a model at an address; None if there is none, or it is too old.

    Raises:
        DatabaseUnavailable: the database cannot be reached.
    """
    table = server_profile.c
    with reaching(engine), engine.connect() as connection:
        is_young = table.learnt_at > func.now() - VALID
        return connection.scalar(select(table.takes).where(table.address == address, table.model == model, is_young))


def save_profile(engine: Engine, address: str, model: str, takes: Json) -> None:
    """Store the latest profile.

    Raises:
        DatabaseUnavailable: the database cannot be reached.
    """
    row = insert(server_profile).values(address=address, model=model, takes=takes)
    kept = row.on_conflict_do_update(
        index_elements=["address", "model"], set_={"takes": row.excluded.takes, "learnt_at": func.now()}
    )
    with reaching(engine), engine.begin() as connection:
        connection.execute(kept)
