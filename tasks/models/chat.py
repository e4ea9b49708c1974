"""One client for every server that speaks the OpenAI chat-completions protocol.

    async with chat("judge", settings, engine, evaluation=evaluation_id) as judge:
        replies = await judge.complete([Call(prompt, texts), ...])

A failed call is a `Reply` with its reason. Only what would fail every call raises: wrong settings, a key that is
refused. Everybody who opens the same role of the same evaluation with the same `Chats` shares one client, and with it
one limiter, one breaker and one set of connections. A call goes from here to the call store, and if it is not there,
to the server (attempts.py), whose answer is stored.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from weakref import WeakKeyDictionary

from sqlalchemy import Engine

from yarus.tasks.cases.privacy.masking import mask, own_key
from yarus.tasks.config.secrets import with_key
from yarus.tasks.config.settings import Role, Settings
from yarus.tasks.models.attempts import Attempts, Limits
from yarus.tasks.models.call_store import CallStore, from_row, row
from yarus.tasks.models.calls import Call, Model, Reply, RoleName, build_request, ignored, key, masked
from yarus.tasks.models.prices import Budget
from yarus.tasks.models.progress import bought, track_call
from yarus.tasks.models.rate_limits import RetryPolicy
from yarus.tasks.models.server_profile import Request, ServerProfile
from yarus.tasks.models.stand_ins import Offline

RETRIES = RetryPolicy()


@asynccontextmanager
async def chat(
    name: RoleName,
    settings: Settings,
    engine: Engine | None = None,
    *,
    evaluation: str = "",
    retries: RetryPolicy = RETRIES,
    chats: "Chats | None" = None,
) -> AsyncIterator[Model]:
    """The language model of a role, or its offline stand-in where the settings give no address.

    Args:
        name: the role.
        settings: addresses, limits, prices, budget.
        engine: of our own database, for the call store; without it every call is bought.
        evaluation: id of the evaluation that pays; budget and time are counted from its first use.
        retries: how long failures of the server are waited out.
        chats: what is open already, for whoever opens a role several times at once.

    Raises:
        InputError: settings that cannot work.
        ModelUnavailable: from a call, when the server refuses what every call would bring.
        DatabaseUnavailable: the call store cannot be reached.
    """
    role: Role = getattr(settings, name)
    if role.base_url is None:
        yield Offline(name)
        return
    settings = await with_key(settings, name)
    role = getattr(settings, name)
    chats = chats or Chats()
    limits = chats.limits(settings, engine, evaluation)
    place = (asyncio.get_running_loop(), name, evaluation, role.model_dump_json())
    shared = chats.open.get(place) or chats.open.setdefault(
        place, _Shared(Chat(name, settings, engine, evaluation, limits, retries))
    )
    shared.users += 1
    try:
        yield shared.chat
    finally:
        shared.users -= 1
        if shared.users == 0:
            del chats.open[place]
            await shared.chat.aclose()


class Chat:
    """The client of one role; made by `chat`."""

    def __init__(
        self,
        name: RoleName,
        settings: Settings,
        engine: Engine | None,
        evaluation: str,
        limits: Limits,
        retries: RetryPolicy,
    ) -> None:
        self.name = name
        self.role: Role = getattr(settings, name)
        self._evaluation = evaluation or None
        self._budget = limits.budget
        self._asking: dict[bytes, asyncio.Task[Reply]] = {}
        # More than run at once, so that store and retries leave no place empty; not all, which would cost memory.
        self._workers = 2 * self.role.concurrency + 32
        unsaved = max(1, self.role.concurrency // 4)  # replies received and not committed
        self._unsaved = asyncio.Semaphore(unsaved)
        self._store = CallStore(engine, self._workers, unsaved) if engine else None
        self._attempts = Attempts(name, settings, limits, retries, self._unsaved if self._store else None, engine)
        self._mask = partial(mask, key=own_key(), language=settings.language) if settings.mask_calls else None

    def describe(self) -> str:
        """See `Model`."""
        return self._attempts.model

    @property
    def profile(self) -> ServerProfile:
        """Return the parameters that its server takes, as far as they are known."""
        return self._attempts.profile

    async def complete(self, calls: Iterable[Call], each: Callable[[Reply], None] = ignored) -> list[Reply]:
        """See `Model`. When one call shows that all would fail, the others are given up."""
        numbered = enumerate(calls)
        replies: dict[int, Reply] = {}

        async def work() -> None:
            for number, call in numbered:
                replies[number] = await self.ask(call)
                each(replies[number])

        workers = [asyncio.create_task(work()) for _ in range(self._workers)]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
        return [replies[number] for number in range(len(replies))]

    async def ask(self, call: Call) -> Reply:
        """See `Model`. From the call store, or bought and stored; equal calls at the same time are bought once."""
        if self._mask is not None:
            call = masked(call, self._mask)
        request = build_request(call, self.role)
        place = key(self.name, call, request)
        task = self._asking.get(place)
        first = task is None
        with track_call() as waited:
            if task is None:
                task = asyncio.create_task(self._reply(call, request, place))
                self._asking[place] = task
                task.add_done_callback(partial(self._answered, place))
            # What is under way is paid for: it is stored even if who asked has been cancelled.
            reply = await asyncio.shield(task)
            if first and not reply.from_store:
                waited()
        return reply if first else replace(reply, from_store=True)  # it is bought once, by who asked first

    def _answered(self, place: bytes, task: asyncio.Task[Reply]) -> None:
        del self._asking[place]
        if not task.cancelled():
            task.exception()  # seen: all who asked may have been cancelled, as when a key is refused

    async def aclose(self) -> None:
        """Gives up what is under way, commits what was received, closes the connections."""
        under_way = list(self._asking.values())
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
        if self._store:
            await self._store.drained()
        await self._budget.settle()
        await self._attempts.aclose()

    async def _reply(self, call: Call, request: Request, place: bytes) -> Reply:
        if self._store and (stored := await self._store.get(place)):
            return from_row(stored, self._evaluation)
        reply = await self._attempts.reply(call, request)
        bought((reply.tokens_in, reply.tokens_out), reply.cost_usd)
        if self._store and reply.status == "ok":
            try:
                await self._store.put(row(place, self.name, call, reply, self._evaluation))
            finally:
                self._unsaved.release()
        return reply


@dataclass(slots=True)
class _Shared:
    chat: Chat
    users: int = 0


class Chats:
    """The clients that are open, each shared by all who use it, and what an evaluation may still spend."""

    def __init__(self) -> None:
        self.open: dict[tuple[asyncio.AbstractEventLoop, str, str, str], _Shared] = {}
        self._limits: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, Limits]] = WeakKeyDictionary()

    def limits(self, settings: Settings, engine: Engine | None, evaluation: str) -> Limits:
        """Return budget and time of an evaluation, made at its first use; what it spent before is in our database."""
        known = self._limits.setdefault(asyncio.get_running_loop(), {})
        if evaluation in known:
            return known[evaluation]
        ends_at = time.monotonic() + (settings.evaluation_timeout_s or float("inf"))
        limits = Limits(Budget(settings.budget_usd, engine, evaluation), ends_at)
        return known.setdefault(evaluation, limits) if evaluation else limits
