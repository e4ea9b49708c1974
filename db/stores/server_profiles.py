"""Store the parameters that model servers accept, as learnt by earlier evaluations."""

from datetime import timedelta

from sqlalchemy import Engine, func, select
from sqlalchemy.dialects.postgresql import insert

from yarus.db.engine import reporting_unreachable
from yarus.db.tables import JsonObject, server_profile

PROFILE_LIFETIME = timedelta(days=30)
"""Lifetime of a profile. Servers are upgraded, so Yarus tries every parameter again after it."""


def load_profile(engine: Engine, address: str, model: str) -> JsonObject | None:
    """Return the stored profile of a model at an address; None if it is missing or too old.

    Raises:
        DatabaseUnavailable: the database cannot be reached.
    """
    columns = server_profile.c
    with reporting_unreachable(engine), engine.connect() as connection:
        profile = select(columns.takes).where(columns.address == address, columns.model == model)
        return connection.scalar(profile.where(columns.learnt_at > func.now() - PROFILE_LIFETIME))


def save_profile(engine: Engine, address: str, model: str, takes: JsonObject) -> None:
    """Store a profile, in place of an earlier one.

    Raises:
        DatabaseUnavailable: the database cannot be reached.
    """
    row = insert(server_profile).values(address=address, model=model, takes=takes)
    statement = row.on_conflict_do_update(
        index_elements=["address", "model"], set_={"takes": row.excluded.takes, "learnt_at": func.now()}
    )
    with reporting_unreachable(engine), engine.begin() as connection:
        connection.execute(statement)
