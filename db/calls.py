"""The call store: what language models have replied, so that no reply is bought twice."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import Double, Engine, case, func, select
from sqlalchemy.dialects.postgresql import insert

from db.engine import reaching
from db.tables import call


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
COLUMNS = [call.c[name] for name in NAMES]


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
    with reaching(engine), engine.connect() as connection:
        rows = connection.execute(select(*COLUMNS).where(call.c.key == func.any(list(keys))))
        found = {row[0]: StoredCall(*row) for row in rows}
    return [found.get(key) for key in keys]


def store_calls(engine: Engine, calls: Iterable[StoredCall]) -> None:
    """Keeps replies, in one transaction; a key that is there already keeps its first reply.

    Raises:
        DatabaseUnavailable: the database cannot be reached.
    """
    with reaching(engine), engine.begin() as connection:
        connection.execute(
            insert(call).on_conflict_do_nothing(), [{name: getattr(one, name) for name in NAMES} for one in calls]
        )


def bought(engine: Engine, evaluation_id: str) -> dict[str, int | float | None]:
    """Tokens and money of the calls that an evaluation has bought; None without any, or where one was not counted."""
    sums = [
        case((func.bool_and(column.is_not(None)), func.sum(column))).label(column.name)
        for column in (call.c.tokens_in, call.c.tokens_out, call.c.cost_usd)
    ]
    with reaching(engine), engine.connect() as connection:
        return dict(connection.execute(select(*sums).where(call.c.evaluation_id == evaluation_id)).mappings().one())


def spent_usd(engine: Engine, evaluation_id: str) -> float:
    """What an evaluation has paid so far."""
    with reaching(engine), engine.connect() as connection:
        paid = connection.scalar(select(func.sum(call.c.cost_usd)).where(call.c.evaluation_id == evaluation_id))
    return float(paid or 0.0)


def history(engine: Engine, role: str, model: str) -> dict[str, History]:
    """Prompt -> what its calls to a model took."""
    means = (func.avg(column).cast(Double) for column in (call.c.tokens_in, call.c.tokens_out, call.c.latency_ms))
    query = select(call.c.prompt, func.count(), *means).where(call.c.role == role, call.c.model == model)
    with reaching(engine), engine.connect() as connection:
        rows = connection.execute(query.group_by(call.c.prompt))
        return {prompt: History(*figures) for prompt, *figures in rows}
