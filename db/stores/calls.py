"""The call store: what language models have replied, so that no reply is bought twice."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import Double, Engine, case, func, select, update
from sqlalchemy.dialects.postgresql import insert

from yarus.db.engine import autocommitting, reaching
from yarus.db.tables import call, spending


@dataclass(frozen=True, slots=True)
class StoredCall:
    """One row; see the comments of the table `call`."""

    key: bytes
    role: str
    model: str
    served_model: str | None
    prompt: str
    evaluation_id: str | None
    reply: str
    finish_reason: str | None
    tokens_in: int | None
    tokens_out: int | None
    cost_usd: float | None
    latency_ms: float
    logprobs: list[float] | None


NAMES = StoredCall.__slots__
COLUMNS = ", ".join(NAMES)
FIND = f"SELECT {COLUMNS} FROM {call.fullname} WHERE key = ANY(%s::bytea[])"  # noqa: S608
KEEP = (
    f"INSERT INTO {call.fullname} ({COLUMNS}) "  # noqa: S608
    f"SELECT {COLUMNS} FROM json_populate_recordset(NULL::{call.fullname}, %s) ON CONFLICT DO NOTHING"
)
"""Both as text and with one parameter: compiling a statement and converting each value costs more than the rows."""


class History(NamedTuple):
    """What earlier calls of one kind took, on average."""

    n: int
    tokens_in: float | None
    tokens_out: float | None
    latency_ms: float


def stored_calls(engine: Engine, keys: Sequence[bytes]) -> list[StoredCall | None]:
    """The stored replies of those keys, in their order; None where there is none.

    Raises:
        DatabaseUnavailable: the database cannot be reached.
    """
    asked = ",".join(rf'"\\x{key.hex()}"' for key in keys)
    with reaching(engine), autocommitting(engine).connect() as connection:
        found = {row[0]: StoredCall(*row) for row in connection.exec_driver_sql(FIND, (f"{{{asked}}}",))}
    return [found.get(key) for key in keys]


def store_calls(engine: Engine, calls: Iterable[StoredCall]) -> None:
    """Keeps replies, all or none of them; a key that is there already keeps its first reply.

    Raises:
        DatabaseUnavailable: the database cannot be reached.
    """
    rows = [{name: getattr(one, name) for name in NAMES} for one in calls]
    for row in rows:
        row["key"] = rf"\x{row['key'].hex()}"
        if row["logprobs"] is not None:  # as PostgreSQL reads an array: JSON knows no infinity
            row["logprobs"] = f"{{{','.join(map(str, row['logprobs']))}}}"
    with reaching(engine), autocommitting(engine).connect() as connection:
        connection.exec_driver_sql(KEEP, (json.dumps(rows, ensure_ascii=False),))


def bought(engine: Engine, evaluation_id: str) -> dict[str, int | float | None]:
    """Tokens and money of the replies that an evaluation has bought; None without any, or where one was not counted.

    Also None is a sum that the journal's columns do not hold.
    """
    sums = [
        case((func.bool_and(column.is_not(None)) & (func.sum(column) < most), func.sum(column))).label(column.name)
        for column, most in ((call.c.tokens_in, 1e18), (call.c.tokens_out, 1e18), (call.c.cost_usd, 999_999))
    ]
    with reaching(engine), engine.connect() as connection:
        return dict(connection.execute(select(*sums).where(call.c.evaluation_id == evaluation_id)).mappings().one())


def booked_usd(engine: Engine, evaluation_id: str) -> float:
    """What the calls of an evaluation can have cost so far, at most: also those that brought no reply."""
    with reaching(engine), engine.connect() as connection:
        booked = connection.scalar(select(spending.c.booked_usd).where(spending.c.evaluation_id == evaluation_id))
    return booked or 0.0


def draw_usd(engine: Engine, evaluation_id: str, least: float, wanted: float, limit: float) -> float:
    """Books money of an evaluation before it is spent, for one of the processes that work on it.

    A process that is killed has booked what its calls in flight can cost; at most a quarter of what was left beside.

    Args:
        engine: of our own database.
        evaluation_id: who pays.
        least: USD that are needed.
        wanted: USD that would do for a while.
        limit: USD that may be booked in all; infinite without a budget.

    Returns:
        The USD that were booked, from `least` on; 0 where the limit does not allow them.

    Raises:
        DatabaseUnavailable: the database cannot be reached.
    """
    this = spending.c.evaluation_id == evaluation_id
    with reaching(engine), engine.begin() as connection:
        connection.execute(insert(spending).values(evaluation_id=evaluation_id, booked_usd=0).on_conflict_do_nothing())
        booked = connection.scalars(select(spending.c.booked_usd).where(this).with_for_update()).one()
        left: float = limit - booked
        if least > left:
            return 0.0
        drawn = max(least, min(wanted, left / 4))
        connection.execute(update(spending).where(this).values(booked_usd=booked + drawn))
    return drawn


def share_budget(engine: Engine, evaluation_id: str, other: str) -> None:
    """Counts what another evaluation has spent against the budget of one that begins: the two may spend it once."""
    spent = booked_usd(engine, other)
    begins = insert(spending).values(evaluation_id=evaluation_id, booked_usd=spent).on_conflict_do_nothing()
    with reaching(engine), engine.begin() as connection:
        connection.execute(begins)


def give_back_usd(engine: Engine, evaluation_id: str, amount: float) -> None:
    """Takes back what was drawn and not spent; a negative amount books what was spent beyond it.

    Raises:
        DatabaseUnavailable: the database cannot be reached.
    """
    left = func.greatest(0, spending.c.booked_usd - amount)
    with reaching(engine), engine.begin() as connection:
        connection.execute(update(spending).where(spending.c.evaluation_id == evaluation_id).values(booked_usd=left))


def history(engine: Engine, role: str, model: str) -> dict[str, History]:
    """Prompt -> what its calls to a model took."""
    means = (func.avg(column).cast(Double) for column in (call.c.tokens_in, call.c.tokens_out, call.c.latency_ms))
    query = select(call.c.prompt, func.count(), *means).where(call.c.role == role, call.c.model == model)
    with reaching(engine), engine.connect() as connection:
        rows = connection.execute(query.group_by(call.c.prompt))
        return {prompt: History(*figures) for prompt, *figures in rows}
