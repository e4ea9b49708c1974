"""Open the language models and the system under test that the steps of an evaluation share."""

from contextlib import AbstractAsyncContextManager

from yarus.tasks.config.connections import database
from yarus.tasks.config.settings import Settings
from yarus.tasks.evaluation.run import EvaluationRun
from yarus.tasks.models.calls import Model, RoleName
from yarus.tasks.models.chat import ChatPool, open_chat
from yarus.tasks.systems.sut import System, create_system
from yarus.tasks.systems.user_code import UserFunctions


def open_model(run: EvaluationRun, role: RoleName, configuration: Settings) -> AbstractAsyncContextManager[Model]:
    """Open the language model of a role at the evaluation's cost; one client for all its concurrent batches."""
    return open_chat(role, configuration, database(), evaluation=run.id, chats=run.resources.get(ChatPool))


def open_system(run: EvaluationRun, name: str, configuration: Settings) -> System:
    """Open the system under test, once for all batches: callables may not be thread-safe, services keep connections."""
    return run.resources.open_once(
        "system", lambda: create_system(name, configuration, run.resources.get(UserFunctions))
    )
