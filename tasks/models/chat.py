"""Client for every server that speaks the OpenAI chat-completions protocol.

    async with open_chat("judge", settings, engine, evaluation=evaluation_id) as judge:
        replies = await judge.complete([Call(prompt, texts), ...])

A failed call is a `Reply` with its reason. Only errors that would fail every call raise: wrong settings, a refused key.
Callers that open the same role of the same evaluation with the same `ChatPool` share one client, and with it one
limiter, one breaker and one set of connections. A call is looked up in the call store. If it is not there, it goes to
the server (attempts.py), and the answer is stored.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from weakref import WeakKeyDictionary

from sqlalchemy import Engine

from yarus.tasks.cases.privacy.masking import load_own_key, mask
from yarus.tasks.config.secrets import with_resolved_key
from yarus.tasks.config.settings import Settings
from yarus.tasks.models.attempts import Attempts, EvaluationLimits
from yarus.tasks.models.call_store import CallStore, from_stored_call, to_stored_call
from yarus.tasks.models.calls import (
    Call,
    Model,
    Reply,
    RoleName,
    build_call_key,
    build_request,
    ignore_reply,
    mask_call,
)
from yarus.tasks.models.prices import Budget
from yarus.tasks.models.progress import count_purchase, track_call
from yarus.tasks.models.rate_limits import RetryPolicy
from yarus.tasks.models.server_profile import Request, ServerProfile
from yarus.tasks.models.stand_ins import OfflineModel

RETRIES = RetryPolicy()


@asynccontextmanager
async def open_chat(
    name: RoleName,
    settings: Settings,
    engine: Engine | None = None,
    *,
    evaluation: str = "",
    retries: RetryPolicy = RETRIES,
    chats: "ChatPool | None" = None,
) -> AsyncIterator[Model]:
    """Open the language model of a role, or its offline stand-in if the settings give no address.

    Args:
        name: the role.
        settings: addresses, limits, prices, budget.
        engine: of Yarus's database, for the call store; without it every call is bought.
        evaluation: id of the evaluation that pays; budget and time are counted from its first use.
        retries: how long to wait for a failing server.
        chats: open clients, for callers that open a role several times at once.

    Raises:
        InputError: settings that cannot work.
        ModelUnavailable: from a call, if the server would refuse every call.
        DatabaseUnavailable: the call store cannot be reached.
    """
    role = settings.get_role(name)
    if role.base_url is None:
        yield OfflineModel(name)
        return
    settings = await with_resolved_key(settings, name)
    role = settings.get_role(name)
    chats = chats or ChatPool()
    limits = chats.limits(settings, engine, evaluation)
    client_key = (asyncio.get_running_loop(), name, evaluation, role.model_dump_json())
    entry = chats.open.get(client_key) or chats.open.setdefault(
        client_key, _Shared(ChatClient(name, settings, engine, evaluation, limits, retries))
    )
    entry.users += 1
    try:
        yield entry.chat
    finally:
        entry.users -= 1
        if entry.users == 0:
            del chats.open[client_key]
            await entry.chat.aclose()


class ChatClient:
    """Client of one role; made by `open_chat`."""

    def __init__(
        self,
        name: RoleName,
        settings: Settings,
        engine: Engine | None,
        evaluation: str,
        limits: EvaluationLimits,
        retries: RetryPolicy,
    ) -> None:
        self.name = name
        self.role = settings.get_role(name)
        self._evaluation = evaluation or None
        self._budget = limits.budget
        self._pending: dict[bytes, asyncio.Task[Reply]] = {}
        # More than run at once, so that look-ups and retries leave no slot empty; fewer than all, to save memory.
        self._workers = 2 * self.role.concurrency + 32
        unsaved = max(1, self.role.concurrency // 4)  # replies that are received but not committed
        self._unsaved = asyncio.Semaphore(unsaved)
        self._store = CallStore(engine, self._workers, unsaved) if engine else None
        self._attempts = Attempts(name, settings, limits, retries, self._unsaved if self._store else None, engine)
        self._mask = (
            partial(mask, key=load_own_key(), language=settings.text_language) if settings.mask_model_input else None
        )

    def describe(self) -> str:
        """See `Model`."""
        return self._attempts.model

    @property
    def profile(self) -> ServerProfile:
        """Return the parameters that the server is known to take."""
        return self._attempts.profile

    async def complete(self, calls: Iterable[Call], each: Callable[[Reply], None] = ignore_reply) -> list[Reply]:
        """See `Model`. If one call shows that all would fail, the others are cancelled."""
        indexed_calls = enumerate(calls)
        replies: dict[int, Reply] = {}

        async def work() -> None:
            for index, call in indexed_calls:
                replies[index] = await self.ask(call)
                each(replies[index])

        workers = [asyncio.create_task(work()) for _ in range(self._workers)]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
        return [replies[index] for index in range(len(replies))]

    async def ask(self, call: Call) -> Reply:
        """See `Model`. Look the call up, or buy and store it; equal calls at the same time are bought once."""
        if self._mask is not None:
            call = mask_call(call, self._mask)
        request = build_request(call, self.role)
        store_key = build_call_key(self.name, call, request)
        task = self._pending.get(store_key)
        is_first = task is None
        with track_call() as mark_waited:
            if task is None:
                task = asyncio.create_task(self._reply(call, request, store_key))
                self._pending[store_key] = task
                task.add_done_callback(partial(self._forget_task, store_key))
            # A call under way is paid for: its reply is stored even if the caller has been cancelled.
            reply = await asyncio.shield(task)
            if is_first and not reply.from_store:
                mark_waited()
        return reply if is_first else replace(reply, from_store=True)  # only the first caller buys it

    def _forget_task(self, store_key: bytes, task: asyncio.Task[Reply]) -> None:
        del self._pending[store_key]
        if not task.cancelled():
            task.exception()  # mark it as retrieved: all callers may have been cancelled, as when a key is refused

    async def aclose(self) -> None:
        """Cancel pending calls, commit received replies, close the connections."""
        pending = list(self._pending.values())
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
        if self._store:
            await self._store.flush()
        await self._budget.settle()
        await self._attempts.aclose()

    async def _reply(self, call: Call, request: Request, store_key: bytes) -> Reply:
        if self._store and (stored := await self._store.get(store_key)):
            return from_stored_call(stored, self._evaluation)
        reply = await self._attempts.reply(call, request)
        count_purchase((reply.tokens_in, reply.tokens_out), reply.cost_usd)
        if self._store and reply.status == "ok":
            try:
                await self._store.put(to_stored_call(store_key, self.name, call, reply, self._evaluation))
            finally:
                self._unsaved.release()
        return reply


@dataclass(slots=True)
class _Shared:
    chat: ChatClient
    users: int = 0


class ChatPool:
    """Open clients, each shared by all its users, and the remaining limits of each evaluation."""

    def __init__(self) -> None:
        self.open: dict[tuple[asyncio.AbstractEventLoop, str, str, str], _Shared] = {}
        self._limits: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, EvaluationLimits]] = WeakKeyDictionary()

    def limits(self, settings: Settings, engine: Engine | None, evaluation: str) -> EvaluationLimits:
        """Return budget and end time of an evaluation, made at its first use; earlier spending is in the database."""
        limits_by_evaluation = self._limits.setdefault(asyncio.get_running_loop(), {})
        if evaluation in limits_by_evaluation:
            return limits_by_evaluation[evaluation]
        ends_at = time.monotonic() + (settings.evaluation_timeout_s or float("inf"))
        limits = EvaluationLimits(Budget(settings.budget_usd, engine, evaluation), ends_at)
        return limits_by_evaluation.setdefault(evaluation, limits) if evaluation else limits
