"""What an evaluation's calls will take, before any is sent: from the call store and its history."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqlalchemy import Engine

from yarus.db.stores.calls import history, stored_calls
from yarus.tasks.config.settings import Role, Settings
from yarus.tasks.models.calls import Call, RoleName, build_request, key
from yarus.tasks.models.cost.prices import cost_usd


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
