"""The call store for clients: single calls are looked up and stored in groups, outside the event loop."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Generic, TypeVar

from sqlalchemy import Engine

from yarus.db.errors import DatabaseUnavailable
from yarus.db.stores.calls import StoredCall, find_calls, store_calls
from yarus.tasks.models.calls import Call, Reply, RoleName

In = TypeVar("In")
Out = TypeVar("Out")
MAX_GROUP = 500
LOOKUP_WAIT_S, STORE_WAIT_S = 0.03, 0.01
"""Seconds that the first call of a group waits for others: a query costs as much CPU as a call, whatever its size.

A call that waits for a look-up holds no slot at the server; one that waits to be stored does."""
RETRY_WAITS_S = (0.2, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0)  # for a database that is away for a moment


def to_stored_call(key: bytes, name: RoleName, call: Call, reply: Reply, evaluation_id: str | None) -> StoredCall:
    """Return a reply as it is stored."""
    return StoredCall(
        key=key,
        role=name,
        model=reply.requested_model,
        served_model=reply.served_model,
        prompt=call.prompt.name,
        evaluation_id=evaluation_id,
        reply=reply.raw,
        finish_reason=reply.finish_reason,
        tokens_in=reply.tokens_in,
        tokens_out=reply.tokens_out,
        cost_usd=reply.cost_usd,
        latency_ms=reply.latency_ms or 0.0,
        logprobs=list(reply.logprobs) if reply.logprobs else None,
    )


def from_stored_call(stored: StoredCall, evaluation_id: str | None) -> Reply:
    """Return a stored reply, with its cost if this evaluation paid for it before it was resumed, otherwise 0."""
    is_own = evaluation_id is not None and stored.evaluation_id == evaluation_id
    return Reply(
        "ok",
        raw=stored.reply,
        requested_model=stored.model,
        served_model=stored.served_model,
        finish_reason=stored.finish_reason,
        tokens_in=stored.tokens_in,
        tokens_out=stored.tokens_out,
        cost_usd=stored.cost_usd if is_own else 0.0,
        latency_ms=stored.latency_ms,
        logprobs=tuple(stored.logprobs) if stored.logprobs else None,
        from_store=True,
    )


class Batcher(Generic[In, Out]):
    """A function of many items, called with one item by many callers."""

    def __init__(self, work: Callable[[Sequence[In]], Sequence[Out]], full_size: int, wait_s: float) -> None:
        """Group the calls of a function.

        Args:
            work: returns one result per item.
            full_size: a group of this size does not wait for more items.
            wait_s: how long a smaller group waits.
        """
        self._work, self._full_size, self._wait_s = work, full_size, wait_s
        self._group_ready: asyncio.Future[None] | None = None
        self._waiting: list[tuple[In, asyncio.Future[Out]]] = []
        self._worker: asyncio.Task[None] | None = None

    async def __call__(self, item: In) -> Out:
        """Return the result of one item after its group is done."""
        loop = asyncio.get_running_loop()
        result: asyncio.Future[Out] = loop.create_future()
        self._waiting.append((item, result))
        if self._worker is None or self._worker.done():
            self._worker = loop.create_task(self._run())
        elif len(self._waiting) >= self._full_size:
            self._end_waiting()
        return await result

    async def flush(self) -> None:
        """Wait until no call is under way."""
        if self._worker is not None:
            await self._worker

    async def _run(self) -> None:
        while self._waiting:
            if len(self._waiting) < self._full_size:
                loop = asyncio.get_running_loop()
                self._group_ready = loop.create_future()
                timer = loop.call_later(self._wait_s, self._end_waiting)
                await self._group_ready
                timer.cancel()
            group, self._waiting = self._waiting[:MAX_GROUP], self._waiting[MAX_GROUP:]
            work = partial(self._work, [item for item, _ in group])
            (results,) = await asyncio.gather(run_in_thread(work), return_exceptions=True)
            for index, (_, result) in enumerate(group):
                if result.done():
                    continue  # the caller has been cancelled
                if isinstance(results, BaseException):
                    result.set_exception(results)
                else:
                    result.set_result(results[index])

    def _end_waiting(self) -> None:
        if self._group_ready is not None and not self._group_ready.done():
            self._group_ready.set_result(None)


async def run_in_thread(work: Callable[[], Out]) -> Out:
    """Return the result of a function that uses the database, outside the event loop; wait for a missing database.

    Raises:
        DatabaseUnavailable: the database is away for longer than a moment.
    """
    for wait_s in RETRY_WAITS_S:
        try:
            return await asyncio.to_thread(work)
        except DatabaseUnavailable:
            await asyncio.sleep(wait_s)
    return await asyncio.to_thread(work)


class CallStore:
    """Replies by key. If `put` has returned, the reply is committed."""

    def __init__(self, engine: Engine, n_lookups: int, unsaved: int) -> None:
        """Prepare the store; open nothing yet.

        Args:
            engine: of Yarus's database.
            n_lookups: calls that are looked up at the same time.
            unsaved: most replies that may wait to be stored.
        """

        def look_up(keys: Sequence[bytes]) -> list[StoredCall | None]:
            return find_calls(engine, keys)

        def store(calls: Sequence[StoredCall]) -> list[None]:
            store_calls(engine, calls)
            return [None] * len(calls)

        self.get = Batcher(look_up, n_lookups, LOOKUP_WAIT_S)
        self.put = Batcher(store, unsaved, STORE_WAIT_S)

    async def flush(self) -> None:
        """Wait until every received reply is committed."""
        await self.get.flush()
        await self.put.flush()
