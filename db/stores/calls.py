"""Store the replies of language models, so that Yarus buys none of them twice."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import Double, Engine, case, func, select, update
from sqlalchemy.dialects.postgresql import insert

from yarus.db.engine import get_autocommit_engine, reporting_unreachable
from yarus.db.tables import call, spending


@dataclass(frozen=True, slots=True)
class StoredCall:
    """A row of the table `call`; its column comments explain the fields."""

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


COLUMN_NAMES = StoredCall.__slots__
COLUMN_LIST = ", ".join(COLUMN_NAMES)
FIND_STATEMENT = f"SELECT {COLUMN_LIST} FROM {call.fullname} WHERE key = ANY(%s::bytea[])"  # noqa: S608
STORE_STATEMENT = (
    f"INSERT INTO {call.fullname} ({COLUMN_LIST}) "  # noqa: S608
    f"SELECT {COLUMN_LIST} FROM json_populate_recordset(NULL::{call.fullname}, %s) ON CONFLICT DO NOTHING"
)
"""Both statements are text with one parameter: compiling them and converting each value costs more than the rows."""


class CallHistory(NamedTuple):
    """Mean size and duration of earlier calls with one prompt."""

    n: int
    tokens_in: float | None
    tokens_out: float | None
    latency_ms: float


def find_calls(engine: Engine, keys: Sequence[bytes]) -> list[StoredCall | None]:
    """Return the stored replies for the keys, in their order; None if a key has no reply.

    Raises:
        DatabaseUnavailable: the database cannot be reached.
    """
    key_array = ",".join(rf'"\\x{key.hex()}"' for key in keys)
    with reporting_unreachable(engine), get_autocommit_engine(engine).connect() as connection:
        calls = {row[0]: StoredCall(*row) for row in connection.exec_driver_sql(FIND_STATEMENT, (f"{{{key_array}}}",))}
    return [calls.get(key) for key in keys]


def store_calls(engine: Engine, calls: Iterable[StoredCall]) -> None:
    """Store all replies, or none if one fails; a key that exists keeps its first reply.

    Raises:
        DatabaseUnavailable: the database cannot be reached.
    """
    rows = [{name: getattr(reply, name) for name in COLUMN_NAMES} for reply in calls]
    for row in rows:
        row["key"] = rf"\x{row['key'].hex()}"
        if row["logprobs"] is not None:  # as PostgreSQL reads an array: JSON knows no infinity
            row["logprobs"] = f"{{{','.join(map(str, row['logprobs']))}}}"
    with reporting_unreachable(engine), get_autocommit_engine(engine).connect() as connection:
        connection.exec_driver_sql(STORE_STATEMENT, (json.dumps(rows, ensure_ascii=False),))


def evaluation_spending(engine: Engine, evaluation_id: str) -> dict[str, int | float | None]:
    """Return tokens and cost of the replies that an evaluation has bought.

    A sum is None if there are no replies, if one of them has no count, or if the journal's columns cannot hold it.
    """
    sums = [
        case((func.bool_and(column.is_not(None)) & (func.sum(column) < upper_limit), func.sum(column))).label(
            column.name
        )
        for column, upper_limit in ((call.c.tokens_in, 1e18), (call.c.tokens_out, 1e18), (call.c.cost_usd, 999_999))
    ]
    with reporting_unreachable(engine), engine.connect() as connection:
        return dict(connection.execute(select(*sums).where(call.c.evaluation_id == evaluation_id)).mappings().one())


def reserved_usd(engine: Engine, evaluation_id: str) -> float:
    """Return the USD reserved so far by an evaluation, including calls that brought no reply."""
    with reporting_unreachable(engine), engine.connect() as connection:
        booked = connection.scalar(select(spending.c.booked_usd).where(spending.c.evaluation_id == evaluation_id))
    return booked or 0.0


def reserve_usd(engine: Engine, evaluation_id: str, least: float, wanted: float, limit: float) -> float:
    """Reserve money of an evaluation before one of its processes spends it.

    If a process is killed, the cost of its calls in flight stays reserved, plus at most a quarter of the rest.

    Args:
        engine: the engine of Yarus's own database.
        evaluation_id: the evaluation that pays.
        least: USD needed now.
        wanted: USD to reserve if the budget has enough left.
        limit: USD that may be reserved in total; infinite without a budget.

    Returns:
        USD reserved, at least `least`; 0 if the limit does not allow them.

    Raises:
        DatabaseUnavailable: the database cannot be reached.
    """
    is_evaluation = spending.c.evaluation_id == evaluation_id
    with reporting_unreachable(engine), engine.begin() as connection:
        connection.execute(insert(spending).values(evaluation_id=evaluation_id, booked_usd=0).on_conflict_do_nothing())
        booked = connection.scalars(select(spending.c.booked_usd).where(is_evaluation).with_for_update()).one()
        remaining: float = limit - booked
        if least > remaining:
            return 0.0
        amount = max(least, min(wanted, remaining / 4))
        connection.execute(update(spending).where(is_evaluation).values(booked_usd=booked + amount))
    return amount


def share_budget(engine: Engine, evaluation_id: str, other: str) -> None:
    """Count the spending of another evaluation against the budget of a new one, so that they share one budget."""
    spent_usd = reserved_usd(engine, other)
    statement = insert(spending).values(evaluation_id=evaluation_id, booked_usd=spent_usd).on_conflict_do_nothing()
    with reporting_unreachable(engine), engine.begin() as connection:
        connection.execute(statement)


def release_usd(engine: Engine, evaluation_id: str, amount: float) -> None:
    """Release USD that were reserved and not spent; a negative amount reserves more.

    Raises:
        DatabaseUnavailable: the database cannot be reached.
    """
    booked = func.greatest(0, spending.c.booked_usd - amount)
    with reporting_unreachable(engine), engine.begin() as connection:
        connection.execute(update(spending).where(spending.c.evaluation_id == evaluation_id).values(booked_usd=booked))


def call_history_by_prompt(engine: Engine, role: str, model: str) -> dict[str, CallHistory]:
    """Return the history of the calls to a model, by prompt."""
    means = (func.avg(column).cast(Double) for column in (call.c.tokens_in, call.c.tokens_out, call.c.latency_ms))
    query = select(call.c.prompt, func.count(), *means).where(call.c.role == role, call.c.model == model)
    with reporting_unreachable(engine), engine.connect() as connection:
        rows = connection.execute(query.group_by(call.c.prompt))
        return {prompt: CallHistory(*figures) for prompt, *figures in rows}
