"""Secrets: keys that stand in Prefect's Secret blocks, and what is logged, which holds none."""

import logging

from pydantic import SecretStr

from db.errors import InputError
from tasks.settings import PREFIX, Settings, blotted, masked, settings
from tasks.utf8 import harmless

BLOCK = "block:"
"""What a key begins with that names a Secret block of Prefect instead of being the key."""
LOGGERS = ("yarus", "prefect.flow_runs", "prefect.task_runs")
_FETCHED: dict[str, str] = {}
"""Block -> its value, while this process lives."""


async def with_key(configuration: Settings, role: str) -> Settings:
    """The settings with the key of a role, fetched from Prefect where they only name a block.

    Args:
        configuration: as given; it is not changed.
        role: generator, judge or gate.

    Raises:
        InputError: Prefect has no Secret block of that name.
    """
    given = getattr(configuration, role)
    key = given.api_key.get_secret_value() if given.api_key else ""
    if not key.startswith(BLOCK):
        return configuration
    name = key.removeprefix(BLOCK)
    if name not in _FETCHED:
        _FETCHED[name] = await _fetch(name, f"{PREFIX}{role.upper()}__API_KEY")
    return configuration.model_copy(update={role: given.model_copy(update={"api_key": SecretStr(_FETCHED[name])})})


async def _fetch(name: str, place: str) -> str:
    from prefect.blocks.system import Secret

    try:
        block: Secret[str] = await Secret.aload(name)
    except ValueError as error:
        raise InputError(
            f"{place}={BLOCK}{name}: Prefect has no Secret block {name!r}; create it in its UI under Blocks, "
            "or give the key itself"
        ) from error
    return block.get()


class Confidential(logging.Filter):
    """Takes passwords, keys and what a terminal obeys out of what is logged, tracebacks too, before it is sent."""

    def filter(self, record: logging.LogRecord) -> bool:
        """See `logging.Filter`; every record passes."""
        record.msg, record.args = _cleared(record.getMessage()), ()
        if record.exc_info and not record.exc_text:
            record.exc_text = _cleared(logging.Formatter().formatException(record.exc_info))
        return True


def keep_logs_clean() -> None:
    """Filters what evaluations and Prefect's runs log, and lets the words of an evaluation through to Prefect."""
    log = logging.getLogger("yarus")
    if log.level == logging.NOTSET:
        log.setLevel(logging.INFO)
    for name in LOGGERS:
        logger = logging.getLogger(name)
        if not any(isinstance(known, Confidential) for known in logger.filters):
            logger.addFilter(Confidential())


def _cleared(text: str) -> str:
    return harmless(blotted(masked(text), _secrets()))


def _secrets() -> list[str]:
    try:
        configuration = settings()
    except InputError:
        return list(_FETCHED.values())
    roles = (configuration.generator, configuration.judge, configuration.gate)
    keys = [role.api_key for role in roles if role.api_key]
    services = (configuration.retriever_service, configuration.sut_service)
    keys += [value for service in services for value in service.headers.values()]
    return [*_FETCHED.values(), *(key.get_secret_value() for key in keys)]
