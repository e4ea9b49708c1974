"""What calls cost, and the budget that an evaluation may not pass."""

import asyncio

from db.errors import InputError
from tasks.settings import Price, Settings

MILLION = 1_000_000


def price_of(model: str, settings: Settings) -> Price | None:
    """The price of a model by the table in the settings.

    Raises:
        InputError: there is a budget and no price, so that nobody could say when it is spent.
    """
    price = settings.prices.get(model)
    if price is None and settings.budget_usd is not None:
        raise InputError(
            f"YARUS_BUDGET_USD={settings.budget_usd:g} cannot be kept: YARUS_PRICES has no price for {model!r} "
            f"(it has: {', '.join(sorted(settings.prices)) or 'none'}). Add "
            f'{{"{model}": {{"input": USD a million tokens, "output": …, "as_of": "YYYY-MM-DD"}}}}, with 0 for a model '
            "that costs nothing, or unset the budget"
        )
    return price


def cost_usd(price: Price | None, tokens_in: int | None, tokens_out: int | None) -> float | None:
    """The cost of a call; None where the price or the tokens are not known."""
    if price is None or tokens_in is None or tokens_out is None:
        return None
    return (tokens_in * price.input + tokens_out * price.output) / MILLION


def most_usd(price: Price | None, request: bytes, max_tokens: int) -> float:
    """What a call can cost at most: a token is at least one byte of the request, and the reply is limited."""
    return cost_usd(price, len(request), max_tokens) or 0.0


class Budget:
    """Money of one evaluation, shared by its roles.

    Before a call the most that it can cost is set aside, afterwards what it did cost is booked. So the budget is not
    passed, except where a server writes or counts more tokens than it was allowed to.
    """

    def __init__(self, limit_usd: float | None, spent_usd: float = 0.0) -> None:
        self.limit_usd = limit_usd
        self.spent_usd = spent_usd
        self._set_aside = 0.0
        self._in_flight = 0
        self._booked = asyncio.Event()

    async def set_aside(self, most_usd: float) -> bool:
        """Waits, if need be, until calls in flight are booked; False if the call could pass the budget."""
        limit = self.limit_usd if self.limit_usd is not None else float("inf")
        while self.spent_usd + self._set_aside + most_usd > limit:
            if not self._in_flight:
                return False
            self._booked.clear()
            await self._booked.wait()
        self._set_aside += most_usd
        self._in_flight += 1
        return True

    def book(self, most_usd: float, cost_usd: float | None) -> None:
        """Ends what `set_aside` began; a call whose cost is not known counts as the most that it could cost."""
        self._in_flight -= 1
        self._set_aside = self._set_aside - most_usd if self._in_flight else 0.0
        self.spent_usd += most_usd if cost_usd is None else cost_usd
        self._booked.set()
