"""Clients of servers, those of chat with little patience, for tests of what servers do. Imported by full name."""

from datetime import date

from pydantic import SecretStr
from sqlalchemy import Engine

from tests.support.bots import CODES
from yarus.tasks.config.services import Price
from yarus.tasks.config.settings import Role, Settings, SystemService
from yarus.tasks.config.settings import settings as given
from yarus.tasks.models.calls import Call
from yarus.tasks.models.chat import chat
from yarus.tasks.models.prompts import prompts
from yarus.tasks.models.rate_limits import RetryPolicy
from yarus.tasks.models.verdicts import ask_for_score
from yarus.tasks.systems.sut import System, system

KEY = "sk-проверка".encode("ascii", "ignore").decode() + "secret-0123456789abcdef"
QUICK = RetryPolicy(
    attempts=3, first_s=0.01, longest_s=0.05, outage_s=5.0, unreached_s=0.4, wrong_s=0.4, busy_s=0.5, probe_s=0.02
)  # fmt: skip
PROMPTS = prompts(Settings(_env_file=None))


def bare(**values: object) -> Settings:
    """What the environment sets, and these values."""
    return given().model_copy(deep=True, update=values)


def settings(url: str, **role: object) -> Settings:
    role = {"model": "asked", "api_key": SecretStr(KEY), "timeout_s": 60, **role}
    return bare(**dict.fromkeys(("generator", "judge", "gate"), Role(base_url=url, **role)))


def call(number: int = 0, name: str = "faithfulness") -> Call:
    return Call(PROMPTS[name], {"question": f"Вопрос {number}?", "context": "Контекст.", "answer": "Ответ."})


def system_at(name: str, **service: object) -> System:
    """The system under test of that name, with these settings of its service."""
    return system(name, bare(sut_service=SystemService.model_validate(service)), CODES)


async def verdict(url: str, **role: object):
    async with chat("judge", settings(url, **role), retries=QUICK) as judge:
        return await ask_for_score(judge, call())


HASTY = RetryPolicy(attempts=2, first_s=0.01, unreached_s=0.3, wrong_s=0.3, busy_s=0.05, probe_s=0.02)
MAX_TOKENS = 50


def priced(url: str, *, price: float = 1.0, budget: float | None = None, **role: object) -> Settings:
    made = Role(**({"base_url": url, "model": "asked", "timeout_s": 60, "max_tokens": MAX_TOKENS} | role))
    prices = {"asked": Price(input=price, output=price, as_of=date(2026, 11, 1))}
    return bare(judge=made, gate=made, generator=made, prices=prices, budget_usd=budget)


def calls(tag: str, n: int) -> list[Call]:
    texts = ({"question": f"{tag} {number:05}", "context": "Контекст", "answer": "Ответ"} for number in range(n))
    return [Call(PROMPTS["faithfulness"], one) for one in texts]


async def ask(configuration: Settings, engine: Engine | None, asked: list[Call], evaluation: str):
    async with chat("judge", configuration, engine, retries=HASTY, evaluation=evaluation) as judge:
        return await judge.complete(asked)
