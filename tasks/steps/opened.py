"""What the steps of an evaluation have open together: language models, and the system under test."""

from contextlib import AbstractAsyncContextManager

from yarus.tasks.config.connections import database
from yarus.tasks.config.settings import Settings
from yarus.tasks.evaluation.run import Run
from yarus.tasks.models.calls import Model, RoleName
from yarus.tasks.models.chat import Chats, chat
from yarus.tasks.systems.sut import System, system
from yarus.tasks.systems.user_code import UserCodes


def open_model(run: Run, role: RoleName, configuration: Settings) -> AbstractAsyncContextManager[Model]:
    """The language model of a role, for which the evaluation pays; one client for all its batches at once."""
    return chat(role, configuration, database(), evaluation=run.id, chats=run.resources.get(Chats))


def open_system(run: Run, name: str, configuration: Settings) -> System:
    """The system under test, one for all batches: a callable may not bear two threads, a service keeps connections."""
    return run.resources.open_once("system", lambda: system(name, configuration, run.resources.get(UserCodes)))
