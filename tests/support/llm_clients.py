"""Clients of servers, with short timeouts for chat, for tests of server behaviour. Imported by full name."""

from datetime import date

from pydantic import SecretStr
from sqlalchemy import Engine

from tests.support.bots import USER_CODES
from yarus.tasks.config.services import Price
from yarus.tasks.config.settings import ModelRole, Settings, SystemService, get_settings
from yarus.tasks.models.calls import Call
from yarus.tasks.models.chat import open_chat
from yarus.tasks.models.prompts import read_prompts
from yarus.tasks.models.rate_limits import RetryPolicy
from yarus.tasks.models.verdicts import ask_for_score
from yarus.tasks.systems.sut import System, create_system

KEY = "sk-проверка".encode("ascii", "ignore").decode() + "secret-0123456789abcdef"
QUICK_RETRIES = RetryPolicy(
    attempts=3, first_s=0.01, longest_s=0.05, outage_s=5.0, unreached_s=0.4, wrong_s=0.4, busy_s=0.5, probe_s=0.02
)  # fmt: skip
PROMPTS = read_prompts(Settings(_env_file=None))


def make_settings(**values: object) -> Settings:
    """Return the settings of the environment with these values."""
    return get_settings().model_copy(deep=True, update=values)


def make_chat_settings(url: str, **role: object) -> Settings:
    role = {"model": "asked", "api_key": SecretStr(KEY), "timeout_s": 60, **role}
    return make_settings(**dict.fromkeys(("generator", "judge", "production_judge"), ModelRole(base_url=url, **role)))


def make_call(number: int = 0, name: str = "faithfulness") -> Call:
    return Call(PROMPTS[name], {"question": f"Вопрос {number}?", "context": "Контекст.", "answer": "Ответ."})


def open_system(name: str, **service: object) -> System:
    """Return the system under test of that name, with these settings of its service."""
    return create_system(name, make_settings(sut_service=SystemService.model_validate(service)), USER_CODES)


async def ask_for_verdict(url: str, **role: object):
    async with open_chat("judge", make_chat_settings(url, **role), retries=QUICK_RETRIES) as judge:
        return await ask_for_score(judge, make_call())


HASTY_RETRIES = RetryPolicy(attempts=2, first_s=0.01, unreached_s=0.3, wrong_s=0.3, busy_s=0.05, probe_s=0.02)
MAX_TOKENS = 50


def make_priced_settings(url: str, *, price: float = 1.0, budget: float | None = None, **role: object) -> Settings:
    settings = ModelRole(**({"base_url": url, "model": "asked", "timeout_s": 60, "max_tokens": MAX_TOKENS} | role))
    prices = {"asked": Price(input=price, output=price, as_of=date(2026, 11, 1))}
    return make_settings(
        judge=settings, production_judge=settings, generator=settings, prices=prices, budget_usd=budget
    )


def make_calls(tag: str, n: int) -> list[Call]:
    texts = ({"question": f"{tag} {number:05}", "context": "Контекст", "answer": "Ответ"} for number in range(n))
    return [Call(PROMPTS["faithfulness"], text_values) for text_values in texts]


async def complete_calls(configuration: Settings, engine: Engine | None, requests: list[Call], evaluation: str):
    async with open_chat("judge", configuration, engine, retries=HASTY_RETRIES, evaluation=evaluation) as judge:
        return await judge.complete(requests)
