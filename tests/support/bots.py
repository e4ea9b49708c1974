"""Bots in the user's own code: written into the current folder, asked, and looked for. Imported by full name."""

import asyncio
from collections.abc import Callable

import psutil

from yarus.tasks.config.settings import get_settings
from yarus.tasks.systems.sut import SystemAnswer, create_system
from yarus.tasks.systems.user_code import UserFunctions

USER_CODES = UserFunctions()
"""Processes of user code; each test closes them at its end."""

WriteBot = Callable[..., str]
"""A function that writes the code of a bot into the current folder, and returns its name."""


def ask_bot(name: str, n: int) -> list[SystemAnswer]:
    """Return a bot's answers to n questions: q0, q1 and so on."""
    return asyncio.run(create_system(name, get_settings(), USER_CODES).answers([f"q{number}" for number in range(n)]))


def is_running(pid: int) -> bool:
    """Return whether a process runs."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
