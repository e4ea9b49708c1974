"""Bots of the user's own code: written into the current folder, asked, and looked for. Imported by full name."""

import asyncio
from collections.abc import Callable

import psutil

from yarus.tasks.config.settings import settings
from yarus.tasks.systems.sut import Answered, system
from yarus.tasks.systems.user_code import UserCodes

CODES = UserCodes()
"""Of the tests; each closes them at its end."""

Write = Callable[..., str]
"""Writes the code of a bot into the current folder and returns its name."""


def answers(name: str, n: int) -> list[Answered]:
    """What it says to so many questions: q0, q1 and so on."""
    return asyncio.run(system(name, settings(), CODES).answers([f"q{number}" for number in range(n)]))


def lives(pid: int) -> bool:
    """Whether a process runs."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
