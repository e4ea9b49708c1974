"""Secrets: keys that stand in Prefect's Secret blocks, and what is logged or answered, which holds none."""

import base64
import html
import json
import logging
import re
from binascii import Error as NoBase64
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import quote, quote_plus

from pydantic import SecretStr

from yarus.db.engine import CONFIDENTIAL
from yarus.db.errors import InputError
from yarus.tasks.config.redaction import harmless, redact_urls
from yarus.tasks.config.settings import PREFIX, Settings, settings
from yarus.tasks.config.texts.messages import told

BLOCK = "block:"
"""What a key begins with that names a Secret block of Prefect instead of being the key."""
LOGGERS = ("yarus", "prefect.flow_runs", "prefect.task_runs")
SHORT = 3
"""Characters; a shorter value is no secret but a word that stands in every text, such as `ru`."""
SHORTEST_KEY = 8
"""Characters of a model's key; a shorter one, such as EMPTY, only fills the place, and may be a word of a reply."""
NO_SECRET = re.compile(r"\D{1,19}|[\d.:/-]{1,19}")
"""A word, a host, a media type, a number: it may stand in an answer or an address without being an echo."""
TELLING = re.compile(rf"{CONFIDENTIAL}|(?:set-)?cookie2?", re.IGNORECASE)
"""Names of headers whose values are secrets whatever they look like."""
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
    key = await fetched(given.api_key, f"{PREFIX}{role.upper()}__API_KEY")
    if key is given.api_key:
        return configuration
    return configuration.model_copy(update={role: given.model_copy(update={"api_key": key})})


async def fetched(key: SecretStr | None, place: str) -> SecretStr | None:
    """The key itself, fetched from Prefect where it only names a block.

    Args:
        key: as given.
        place: the setting that it stands in.

    Raises:
        InputError: Prefect has no Secret block of that name.
    """
    if key is None or not key.get_secret_value().startswith(BLOCK):
        return key
    name = key.get_secret_value().removeprefix(BLOCK)
    if name not in _FETCHED:
        _FETCHED[name] = await _fetch(name, place)
    return SecretStr(_FETCHED[name])


def keep_secret(token: str) -> None:
    """Has a token that was fetched taken out of logs, as keys are."""
    _FETCHED[f"token {len(_FETCHED)}"] = token


async def _fetch(name: str, place: str) -> str:
    from prefect.blocks.system import Secret

    try:
        block: Secret[str] = await Secret.aload(name)
    except ValueError as error:
        raise InputError(
            "{place}={block}{name}: Prefect has no Secret block {name!r}; create it in its UI under Blocks, or give "
            "the key itself",
            place=place,
            block=BLOCK,
            name=name,
        ) from error
    return block.get()


class Confidential(logging.Filter):
    """Takes passwords, keys and what a terminal obeys out of what is logged, tracebacks too, before it is sent."""

    def filter(self, record: logging.LogRecord) -> bool:
        """See `logging.Filter`; every record passes, ours in the language of the settings."""
        said = record.getMessage()
        record.msg, record.args = _cleared(told(said, _language()) if record.name == "yarus" else said), ()
        if record.exc_info and not record.exc_text:
            record.exc_text = _cleared(logging.Formatter().formatException(record.exc_info))
        return True


def echoes(headers: Mapping[str, str]) -> tuple[str, ...]:
    """The values of headers that are taken out of what a service answers.

    Args:
        headers: as they are sent.

    Returns:
        All but words and numbers, which only a header whose name tells makes a secret: `X-Space: wiki` must not change
        the address of a page.
    """
    return tuple(value for name, value in headers.items() if TELLING.fullmatch(name) or not NO_SECRET.fullmatch(value))


def redact(text: str, secrets: Iterable[str]) -> str:
    """The text without the secrets that we sent, and which some services repeat, as they are or encoded.

    Args:
        text: not cut yet, for a part of a secret would not be found.
        secrets: values of headers; what follows a scheme such as `Bearer` counts alone too. One of letters alone
            counts as a whole word only.
    """
    for form in forms_of(tuple(secrets)):
        if form in text:
            text = re.sub(rf"\b{form}\b", "***", text) if form.isalpha() else text.replace(form, "***")
    return text


def redact_within(value: Any, secrets: Iterable[str]) -> Any:
    """What was answered, with all texts in it redacted, names too; what is neither text, list nor mapping stays."""
    known = tuple(secrets)
    if isinstance(value, str):
        return redact(value, known)
    if isinstance(value, Mapping):
        return {redact_within(name, known): redact_within(part, known) for name, part in value.items()}
    return [redact_within(part, known) for part in value] if isinstance(value, list | tuple) else value


@lru_cache(64)
def forms_of(secrets: tuple[str, ...]) -> tuple[str, ...]:
    """What the secrets may look like in a text, the longest first."""
    parts = {part for value in secrets for part in _parts(value) if len(part) > SHORT}
    return tuple(sorted({form for part in parts for form in _encoded(part)}, key=len, reverse=True))


def _parts(value: str) -> Iterator[str]:
    """A header's value, what follows its scheme, the values of cookies, the password of a Basic authorization."""
    yield value
    scheme, *rest = value.split() or [""]
    yield from (part for part in rest if "=" not in part or part.endswith("="))
    yield from (part for part in re.findall(r"=([^;,\s\"]+)", value) if not NO_SECRET.fullmatch(part))
    if scheme.lower() == "basic" and rest:
        try:
            pair = base64.b64decode(rest[0], validate=True).decode()
        except (NoBase64, UnicodeDecodeError):
            return
        yield pair
        yield pair.partition(":")[2]


def _encoded(part: str) -> set[str]:
    """A secret as it is, in JSON, HTML and addresses, and as base64 with its padding and without."""
    written = json.dumps(part)[1:-1]
    quoted = {quote(part, safe=""), quote(part), quote_plus(part)}
    quoted |= {re.sub("%..", lambda code: code[0].lower(), one) for one in quoted}
    codes = [code(part.encode()).decode() for code in (base64.b64encode, base64.urlsafe_b64encode)]
    codes += [code.rstrip("=") for code in codes]
    return {part, written, written.replace("/", "\\/"), html.escape(part), *quoted, *codes}


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
    return harmless(redact(redact_urls(text), _secrets()))


def _language() -> str:
    try:
        return settings().language
    except InputError:
        return "en"


def _secrets() -> list[str]:
    try:
        configuration = settings()
    except InputError:
        return list(_FETCHED.values())
    roles = (configuration.generator, configuration.judge, configuration.gate)
    of_embedders = (configuration.embedder_api_key, configuration.similarity_embedder_api_key)
    keys = [key for key in (*(role.api_key for role in roles), *of_embedders) if key]
    services = (configuration.retriever_service, configuration.reranker_service, configuration.sut_service)
    keys += [value for service in services for value in service.headers.values()]
    return [*_FETCHED.values(), *(key.get_secret_value() for key in keys)]
