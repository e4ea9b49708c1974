"""Cost of calls: prices, the budget of an evaluation, and estimates before any call."""

import asyncio
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from sqlalchemy import Engine

from yarus.db.errors import DatabaseUnavailable, InputError
from yarus.db.messages import Words
from yarus.db.stores.calls import call_history_by_prompt, find_calls, release_usd, reserve_usd
from yarus.tasks.config.services import Price
from yarus.tasks.config.settings import Settings
from yarus.tasks.models.call_store import run_in_thread
from yarus.tasks.models.calls import Call, RoleName, build_call_key, build_request

MILLION = 1_000_000
TEMPLATE_TOKENS = 1_024
"""More tokens than servers add to a request: their chat template, a system prompt, the schema of the reply."""
DRAW_AHEAD_CALLS = 32
"""Calls that money is drawn for at once: enough to save time, few enough that a kill costs little."""

ROUNDING = 1e-9


def find_price(model: str, settings: Settings) -> Price | None:
    """Return the price of a model by the table in the settings.

    Raises:
        InputError: there is a budget but no price, so that the spending is unknown.
    """
    price = settings.prices.get(model)
    if price is None and settings.budget_usd is not None:
        raise InputError(
            "YARUS_BUDGET_USD={budget_usd:g} cannot be kept: YARUS_PRICES has no price for {model!r} (it has: "
            '{known}). Add {{"{model}": {{"input": USD a million tokens, "output": …, "as_of": "YYYY-MM-DD"}}}}, '
            "with 0 for a model that costs nothing, or unset the budget",
            budget_usd=settings.budget_usd,
            model=model,
            known=", ".join(sorted(settings.prices)) or Words("none"),
        )
    return price


def compute_cost_usd(price: Price | None, tokens_in: int | None, tokens_out: int | None) -> float | None:
    """Return the cost of a call; None if the price or the tokens are unknown."""
    if price is None or tokens_in is None or tokens_out is None:
        return None
    return (tokens_in * price.input + tokens_out * price.output) / MILLION


class TokenLimits(NamedTuple):
    """Most tokens that a call can take."""

    tokens_in: int
    tokens_out: int


def bound_tokens(request: bytes, max_tokens: int) -> TokenLimits:
    """Return the most tokens that a server can count: a token has at least one byte, and the reply is limited."""
    return TokenLimits(len(request) + TEMPLATE_TOKENS, max_tokens)


def accept_count(claimed: int | None, upper_bound: int) -> int | None:
    """Return a server's count if it is possible, otherwise None."""
    return claimed if claimed is not None and claimed <= upper_bound else None


class Budget:
    """Money of one evaluation, shared by its roles and, through the database, by its processes.

    Before a call, the most that it can cost is reserved. Afterwards its real cost is charged: the most if it is
    unknown, and more if a server counts more than it was allowed to. Money is drawn in advance for many calls at once,
    so that the database knows of it even if this process dies.
    """

    def __init__(self, limit_usd: float | None, engine: Engine | None = None, evaluation: str = "") -> None:
        """Take the limit, None for none, and the evaluation; without a database or an id the budget is local."""
        self.spent_usd = 0.0
        self._limit_usd = math.inf if limit_usd is None else limit_usd
        self._engine = engine if evaluation else None
        self._evaluation = evaluation
        self._drawn_usd = 0.0 if self._engine else self._limit_usd
        self._refused_usd = math.inf if self._engine else 0.0  # larger amounts need not be requested
        self._reserved_usd = 0.0
        self._in_flight = 0
        self._charge_event = asyncio.Event()
        self._ledger_lock = asyncio.Lock()

    async def reserve(self, most_usd: float) -> bool:
        """Wait, if necessary, until calls in flight are charged; return False if the call could exceed the budget.

        Raises:
            DatabaseUnavailable: money must be drawn, and the database cannot be reached.
        """
        while self._short_usd(most_usd) > 0:
            # Shielded from the caller's cancellation: this object must know what was drawn.
            await asyncio.shield(asyncio.create_task(self._draw(most_usd)))
            if self._short_usd(most_usd) > 0:  # other calls may have reserved or charged meanwhile
                if not self._in_flight:
                    return False
                self._charge_event.clear()
                await self._charge_event.wait()
        self._reserved_usd += most_usd
        self._in_flight += 1
        return True

    def charge(self, most_usd: float, cost_usd: float) -> None:
        """Replace a reservation by the real cost."""
        self._in_flight -= 1
        self._reserved_usd = self._reserved_usd - most_usd if self._in_flight else 0.0
        self.spent_usd += cost_usd
        self._charge_event.set()

    async def settle(self) -> None:
        """Return the unused money to the database, or book spending beyond what was drawn."""
        async with self._ledger_lock:
            unused = self._drawn_usd - self.spent_usd - self._reserved_usd
            if self._engine is None or not unused:
                return
            self._drawn_usd -= unused  # so that no call can reserve it
            self._refused_usd = math.inf
            try:
                await asyncio.to_thread(release_usd, self._engine, self._evaluation, unused)
            except DatabaseUnavailable:
                self._drawn_usd += unused  # as the database has booked it

    def _short_usd(self, most_usd: float) -> float:
        """Return the money missing for a call, with a tolerance for rounding."""
        short_usd = self.spent_usd + self._reserved_usd + most_usd - self._drawn_usd
        return short_usd if most_usd and short_usd > ROUNDING * (most_usd + self._drawn_usd) else 0.0

    async def _draw(self, most_usd: float) -> None:
        """Draw the money missing for a call, and for some more calls of its kind."""
        async with self._ledger_lock:
            while 0 < (short_usd := self._short_usd(most_usd)) < self._refused_usd:
                drawn_usd = await run_in_thread(partial(self._draw_from_ledger, short_usd, DRAW_AHEAD_CALLS * most_usd))
                self._drawn_usd += drawn_usd
                self._refused_usd = self._refused_usd if drawn_usd else short_usd

    def _draw_from_ledger(self, least_usd: float, wanted_usd: float) -> float:
        if self._engine is None:
            return 0.0
        return reserve_usd(self._engine, self._evaluation, least_usd, wanted_usd, self._limit_usd)


@dataclass(frozen=True, slots=True)
class CallEstimate:
    """Calls that must be bought and their cost; None without history of the model or without price."""

    calls: int
    tokens_in: int | None
    tokens_out: int | None
    cost_usd: float | None
    seconds: float | None


def find_unstored_calls(name: RoleName, settings: Settings, engine: Engine, calls: Iterable[Call]) -> list[Call]:
    """Return the calls that are not in the store.

    Raises:
        DatabaseUnavailable: the store cannot be read.
    """
    role = settings.get_role(name)
    planned = list(calls)
    replies = find_calls(engine, [build_call_key(name, call, build_request(call, role)) for call in planned])
    return [call for call, reply in zip(planned, replies, strict=True) if reply is None]


def estimate_calls(name: RoleName, settings: Settings, engine: Engine, planned: Mapping[str, int]) -> CallEstimate:
    """Estimate the cost of calls from earlier ones of the same role, model and prompt.

    Args:
        name: the role.
        settings: its model and limits, and the prices.
        engine: of Yarus's database.
        planned: name of the prompt -> number of calls that are not in the store.
    """
    role = settings.get_role(name)
    n_calls = sum(planned.values())
    if role.base_url is None or not n_calls:
        return CallEstimate(0, 0, 0, 0.0, 0.0)
    history_by_prompt = call_history_by_prompt(engine, name, role.model or "")
    usages = {prompt: usage for prompt, usage in history_by_prompt.items() if usage.tokens_in is not None}
    if not {prompt for prompt, n in planned.items() if n} <= usages.keys():
        return CallEstimate(n_calls, None, None, None, None)
    tokens_in = round(sum(n * (usages[prompt].tokens_in or 0) for prompt, n in planned.items() if n))
    tokens_out = round(sum(n * (usages[prompt].tokens_out or 0) for prompt, n in planned.items() if n))
    waiting_s = sum(n * usages[prompt].latency_ms for prompt, n in planned.items() if n) / 1000 / role.concurrency
    by_calls_s = n_calls * 60 / role.rpm if role.rpm else 0.0
    by_tokens_s = (tokens_in + tokens_out) * 60 / role.tpm if role.tpm else 0.0
    cost = compute_cost_usd(settings.prices.get(role.model or ""), tokens_in, tokens_out)
    return CallEstimate(n_calls, tokens_in, tokens_out, cost, max(waiting_s, by_calls_s, by_tokens_s))
