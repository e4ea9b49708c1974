"""The call store as a client needs it: asked and told one call at a time, read and written in groups off the loop."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Generic, TypeVar

from sqlalchemy import Engine

from yarus.db.errors import DatabaseUnavailable
from yarus.db.stores.calls import StoredCall, store_calls, stored_calls
from yarus.tasks.models.calls import Call, Reply, RoleName

In = TypeVar("In")
Out = TypeVar("Out")
GROUP = 500
FOUND_S, KEPT_S = 0.03, 0.01
"""How long the first of a group waits for others: to ask the database costs as much CPU as a call, whatever is asked.

Who waits for what is stored keeps no place at the server; who waits to be stored does."""
WAITS_S = (0.2, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0)  # for a database that is gone for a moment


def row(place: bytes, name: RoleName, call: Call, reply: Reply, evaluation: str | None) -> StoredCall:
    """A reply as it is stored."""
    return StoredCall(
        key=place,
        role=name,
        model=reply.requested_model,
        served_model=reply.served_model,
        prompt=call.prompt.name,
        evaluation_id=evaluation,
        reply=reply.raw,
        finish_reason=reply.finish_reason,
        tokens_in=reply.tokens_in,
        tokens_out=reply.tokens_out,
        cost_usd=reply.cost_usd,
        latency_ms=reply.latency_ms or 0.0,
        logprobs=list(reply.logprobs) if reply.logprobs else None,
    )


def from_row(stored: StoredCall, evaluation: str | None) -> Reply:
    """A stored reply: its own cost where this evaluation paid for it before it was resumed, otherwise 0."""
    own = evaluation is not None and stored.evaluation_id == evaluation
    return Reply(
        "ok",
        raw=stored.reply,
        requested_model=stored.model,
        served_model=stored.served_model,
        finish_reason=stored.finish_reason,
        tokens_in=stored.tokens_in,
        tokens_out=stored.tokens_out,
        cost_usd=stored.cost_usd if own else 0.0,
        latency_ms=stored.latency_ms,
        logprobs=tuple(stored.logprobs) if stored.logprobs else None,
        from_store=True,
    )


class Grouped(Generic[In, Out]):
    """A function of many items, called by many for one each."""

    def __init__(self, work: Callable[[Sequence[In]], Sequence[Out]], enough: int, wait_s: float) -> None:
        """Groups calls of a function.

        Args:
            work: items -> a result each.
            enough: a group of so many waits for no more.
            wait_s: how long a smaller one waits.
        """
        self._work, self._enough, self._wait_s = work, enough, wait_s
        self._gathering: asyncio.Future[None] | None = None
        self._waiting: list[tuple[In, asyncio.Future[Out]]] = []
        self._worker: asyncio.Task[None] | None = None

    async def __call__(self, item: In) -> Out:
        """The result of one item, once its group is through."""
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[Out] = loop.create_future()
        self._waiting.append((item, turn))
        if self._worker is None or self._worker.done():
            self._worker = loop.create_task(self._run())
        elif len(self._waiting) >= self._enough:
            self._gathered()
        return await turn

    async def drained(self) -> None:
        """Waits until nothing is under way."""
        if self._worker is not None:
            await self._worker

    async def _run(self) -> None:
        while self._waiting:
            if len(self._waiting) < self._enough:
                loop = asyncio.get_running_loop()
                self._gathering = loop.create_future()
                end = loop.call_later(self._wait_s, self._gathered)
                await self._gathering
                end.cancel()
            group, self._waiting = self._waiting[:GROUP], self._waiting[GROUP:]
            work = partial(self._work, [item for item, _ in group])
            (done,) = await asyncio.gather(patiently(work), return_exceptions=True)
            for number, (_, turn) in enumerate(group):
                if turn.done():
                    continue  # who asked has been cancelled
                if isinstance(done, BaseException):
                    turn.set_exception(done)
                else:
                    turn.set_result(done[number])

    def _gathered(self) -> None:
        if self._gathering is not None and not self._gathering.done():
            self._gathering.set_result(None)


async def patiently(work: Callable[[], Out]) -> Out:
    """What a function comes to that reads or writes the database, off the loop.

    Raises:
        DatabaseUnavailable: the database is away for longer than a moment.
    """
    for wait_s in WAITS_S:
        try:
            return await asyncio.to_thread(work)
        except DatabaseUnavailable:
            await asyncio.sleep(wait_s)
    return await asyncio.to_thread(work)


class CallStore:
    """Replies by key. What `put` has returned from is committed."""

    def __init__(self, engine: Engine, askers: int, unsaved: int) -> None:
        """Opens nothing yet.

        Args:
            engine: of our own database.
            askers: how many calls are looked up at the same time.
            unsaved: how many replies wait to be stored, at most.
        """

        def read(keys: Sequence[bytes]) -> list[StoredCall | None]:
            return stored_calls(engine, keys)

        def write(calls: Sequence[StoredCall]) -> list[None]:
            store_calls(engine, calls)
            return [None] * len(calls)

        self.get = Grouped(read, askers, FOUND_S)
        self.put = Grouped(write, unsaved, KEPT_S)

    async def drained(self) -> None:
        """Waits until everything received is committed."""
        await self.get.drained()
        await self.put.drained()
