"""What calls cost: prices, the budget that an evaluation may not pass, and the estimate before any call."""

import asyncio
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from sqlalchemy import Engine

from yarus.db.errors import DatabaseUnavailable, InputError
from yarus.db.stores.calls import draw_usd, give_back_usd, history, stored_calls
from yarus.db.words import Words
from yarus.tasks.config.services import Price
from yarus.tasks.config.settings import Role, Settings
from yarus.tasks.models.call_store import patiently
from yarus.tasks.models.calls import Call, RoleName, build_request, key

MILLION = 1_000_000
TEMPLATE_TOKENS = 1_024
"""More than servers add to a request: the signs of their chat template, a system prompt, the schema of the reply."""
AHEAD = 32
"""Calls that money is drawn for at once: so seldom that it takes no time, so few that a kill costs little."""

ROUNDING = 1e-9


def price_of(model: str, settings: Settings) -> Price | None:
    """The price of a model by the table in the settings.

    Raises:
        InputError: there is a budget and no price, so that nobody could say when it is spent.
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


def cost_usd(price: Price | None, tokens_in: int | None, tokens_out: int | None) -> float | None:
    """The cost of a call; None where the price or the tokens are not known."""
    if price is None or tokens_in is None or tokens_out is None:
        return None
    return (tokens_in * price.input + tokens_out * price.output) / MILLION


class Allowed(NamedTuple):
    """How many tokens a call can take at most."""

    tokens_in: int
    tokens_out: int


def allowed(request: bytes, max_tokens: int) -> Allowed:
    """What a server can count for a request: a token is at least one byte of it, and the reply is limited."""
    return Allowed(len(request) + TEMPLATE_TOKENS, max_tokens)


def counted(claimed: int | None, most: int) -> int | None:
    """A server's count, if it can be true."""
    return claimed if claimed is not None and claimed <= most else None


class Budget:
    """Money of one evaluation, shared by its roles and, through our database, by its processes.

    Before a call the most that it can cost is set aside, afterwards what it did cost is booked: the most where that is
    not known, and more where a server counts more than it was allowed to. The money that calls are paid from is drawn
    beforehand for many calls at once, so that the database knows of it whatever becomes of this process.
    """

    def __init__(self, limit_usd: float | None, engine: Engine | None = None, evaluation: str = "") -> None:
        """Takes the limit, None for none, and who pays; without a database or a name, the money is this object's."""
        self.spent_usd = 0.0
        self._limit = math.inf if limit_usd is None else limit_usd
        self._engine = engine if evaluation else None
        self._evaluation = evaluation
        self._drawn = 0.0 if self._engine else self._limit
        self._refused = math.inf if self._engine else 0.0  # from this amount on there is no use in asking for more
        self._set_aside = 0.0
        self._in_flight = 0
        self._booked = asyncio.Event()
        self._at_ledger = asyncio.Lock()

    async def set_aside(self, most_usd: float) -> bool:
        """Waits, if need be, until calls in flight are booked; False if the call could pass the budget.

        Raises:
            DatabaseUnavailable: there is more to draw, and the database cannot be reached.
        """
        while self._short_usd(most_usd) > 0:
            # Not cut off where who asks is cancelled: what is drawn must be known here.
            await asyncio.shield(asyncio.create_task(self._draw(most_usd)))
            if self._short_usd(most_usd) > 0:  # others may have set aside meanwhile, or booked
                if not self._in_flight:
                    return False
                self._booked.clear()
                await self._booked.wait()
        self._set_aside += most_usd
        self._in_flight += 1
        return True

    def book(self, most_usd: float, cost_usd: float) -> None:
        """Ends what `set_aside` began."""
        self._in_flight -= 1
        self._set_aside = self._set_aside - most_usd if self._in_flight else 0.0
        self.spent_usd += cost_usd
        self._booked.set()

    async def settle(self) -> None:
        """Gives back what was drawn and is not needed, or books what was spent beyond it."""
        async with self._at_ledger:
            unused = self._drawn - self.spent_usd - self._set_aside
            if self._engine is None or not unused:
                return
            self._drawn -= unused  # nobody may set it aside any more
            self._refused = math.inf
            try:
                await asyncio.to_thread(give_back_usd, self._engine, self._evaluation, unused)
            except DatabaseUnavailable:
                self._drawn += unused  # as it is booked

    def _short_usd(self, most_usd: float) -> float:
        """What is missing for a call; sums of floats that should be equal need not be."""
        short = self.spent_usd + self._set_aside + most_usd - self._drawn
        return short if most_usd and short > ROUNDING * (most_usd + self._drawn) else 0.0

    async def _draw(self, most_usd: float) -> None:
        """Draws what is missing for a call, and for some more of its kind."""
        async with self._at_ledger:
            while 0 < (short := self._short_usd(most_usd)) < self._refused:
                drawn = await patiently(partial(self._from_ledger, short, AHEAD * most_usd))
                self._drawn += drawn
                self._refused = self._refused if drawn else short

    def _from_ledger(self, least: float, wanted: float) -> float:
        if self._engine is None:
            return 0.0
        return draw_usd(self._engine, self._evaluation, least, wanted, self._limit)


@dataclass(frozen=True, slots=True)
class Estimate:
    """Calls that must be bought and what they take; None where there is no history of the model, or no price."""

    calls: int
    tokens_in: int | None
    tokens_out: int | None
    cost_usd: float | None
    seconds: float | None


def missing(name: RoleName, settings: Settings, engine: Engine, calls: Iterable[Call]) -> list[Call]:
    """Those of the calls that are not in the store.

    Raises:
        DatabaseUnavailable: the store cannot be read.
    """
    role: Role = getattr(settings, name)
    planned = list(calls)
    found = stored_calls(engine, [key(name, call, build_request(call, role)) for call in planned])
    return [call for call, stored in zip(planned, found, strict=True) if stored is None]


def estimate(name: RoleName, settings: Settings, engine: Engine, planned: Mapping[str, int]) -> Estimate:
    """What calls will take if they are like the earlier ones of the same role, model and prompt.

    Args:
        name: the role.
        settings: its model and limits, and the prices.
        engine: of our own database.
        planned: name of the prompt -> number of calls that are not in the store.
    """
    role: Role = getattr(settings, name)
    calls = sum(planned.values())
    if role.base_url is None or not calls:
        return Estimate(0, 0, 0, 0.0, 0.0)
    known = history(engine, name, role.model or "")
    counted = {prompt: past for prompt, past in known.items() if past.tokens_in is not None}
    if not {prompt for prompt, n in planned.items() if n} <= counted.keys():
        return Estimate(calls, None, None, None, None)
    tokens_in = round(sum(n * (counted[prompt].tokens_in or 0) for prompt, n in planned.items() if n))
    tokens_out = round(sum(n * (counted[prompt].tokens_out or 0) for prompt, n in planned.items() if n))
    waiting_s = sum(n * counted[prompt].latency_ms for prompt, n in planned.items() if n) / 1000 / role.concurrency
    by_calls_s = calls * 60 / role.rpm if role.rpm else 0.0
    by_tokens_s = (tokens_in + tokens_out) * 60 / role.tpm if role.tpm else 0.0
    cost = cost_usd(settings.prices.get(role.model or ""), tokens_in, tokens_out)
    return Estimate(calls, tokens_in, tokens_out, cost, max(waiting_s, by_calls_s, by_tokens_s))
