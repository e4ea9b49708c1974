"""Clients of chat servers that have little patience, for tests of what servers do. Imported by full name."""

from pydantic import SecretStr

from tasks.config.settings import Role, Settings
from tasks.models.calls import Call
from tasks.models.chat import chat
from tasks.models.rate_limits import RetryPolicy
from tasks.models.verdicts import ask_for_score
from tasks.prompts import prompts

KEY = "sk-проверка".encode("ascii", "ignore").decode() + "secret-0123456789abcdef"
QUICK = RetryPolicy(
    attempts=3, first_s=0.01, longest_s=0.05, outage_s=5.0, unreached_s=0.4, wrong_s=0.4, busy_s=0.5, probe_s=0.02
)  # fmt: skip
PROMPTS = prompts(Settings(_env_file=None))


def settings(url: str, **role: object) -> Settings:
    role = {"model": "asked", "api_key": SecretStr(KEY), "timeout_s": 60, **role}
    roles = dict.fromkeys(("generator", "judge", "gate"), Role(base_url=url, **role))
    return Settings(_env_file=None, **roles)


def call(number: int = 0, name: str = "faithfulness") -> Call:
    return Call(PROMPTS[name], {"question": f"Вопрос {number}?", "context": "Контекст.", "answer": "Ответ."})


async def verdict(url: str, **role: object):
    async with chat("judge", settings(url, **role), patience=QUICK) as judge:
        return await ask_for_score(judge, call())
