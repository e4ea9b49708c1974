"""Secrets: keys in Prefect's Secret blocks, and their redaction in logs and replies."""

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

from yarus.db.engine import CONFIDENTIAL_OPTIONS
from yarus.db.errors import InputError
from yarus.tasks.config.former_names import FORMER_SETTINGS
from yarus.tasks.config.redaction import escape_control_characters, redact_urls
from yarus.tasks.config.settings import ENV_PREFIX, Settings, get_settings
from yarus.tasks.config.texts.messages import told

BLOCK_PREFIX = "block:"
"""Prefix of a key that names a Secret block of Prefect."""
LOGGERS = ("yarus", "prefect.flow_runs", "prefect.task_runs")
MAX_HARMLESS_LENGTH = 3
"""Longest value that is not treated as a secret, in characters: values such as `ru` are common words."""
MIN_KEY_LENGTH = 8
"""Shortest key of a model, in characters; a shorter one, such as EMPTY, is a placeholder and may occur in replies."""
HARMLESS_VALUE = re.compile(r"\D{1,19}|[\d.:/-]{1,19}")
"""Values that are not secrets: a word, a host, a media type, a number may occur in answers and addresses by chance."""
SECRET_HEADER_NAME = re.compile(rf"{CONFIDENTIAL_OPTIONS}|(?:set-)?cookie2?", re.IGNORECASE)
"""Names of headers whose values are always secrets."""
_FETCHED: dict[str, str] = {}
"""Block -> its value, as long as this process runs."""


async def with_resolved_key(configuration: Settings, role: str) -> Settings:
    """Return the settings with the key of a role, fetched from Prefect if they only name a block.

    Args:
        configuration: the settings, which stay unchanged.
        role: generator, judge or gate.

    Raises:
        InputError: Prefect has no Secret block of that name.
    """
    setting = FORMER_SETTINGS.get(role, role)
    role_settings = configuration.get_role(role)
    key = await resolve_secret(role_settings.api_key, f"{ENV_PREFIX}{setting.upper()}__API_KEY")
    if key is role_settings.api_key:
        return configuration
    return configuration.model_copy(update={setting: role_settings.model_copy(update={"api_key": key})})


async def resolve_secret(key: SecretStr | None, place: str) -> SecretStr | None:
    """Return the key itself, fetched from Prefect if it only names a block.

    Args:
        key: the key or block name.
        place: the setting that holds it, for messages.

    Raises:
        InputError: Prefect has no Secret block of that name.
    """
    if key is None or not key.get_secret_value().startswith(BLOCK_PREFIX):
        return key
    name = key.get_secret_value().removeprefix(BLOCK_PREFIX)
    if name not in _FETCHED:
        _FETCHED[name] = await _fetch(name, place)
    return SecretStr(_FETCHED[name])


def redact_in_logs(token: str) -> None:
    """Remember a fetched token, so that logs redact it like keys."""
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
            block=BLOCK_PREFIX,
            name=name,
        ) from error
    return block.get()


class RedactingFilter(logging.Filter):
    """Filter that redacts secrets and control characters in log records, including tracebacks."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Redact the record and let it pass; Yarus's own records are translated. See `logging.Filter`."""
        message = record.getMessage()
        record.msg, record.args = _redact_all(told(message, _language()) if record.name == "yarus" else message), ()
        if record.exc_info and not record.exc_text:
            record.exc_text = _redact_all(logging.Formatter().formatException(record.exc_info))
        return True


def secret_header_values(headers: Mapping[str, str]) -> tuple[str, ...]:
    """Return the header values to redact in a service's replies.

    Args:
        headers: the headers as sent.

    Returns:
        All values except words and numbers. These are included only for headers with a telling name: `X-Space: wiki`
        must not change the address of a page.
    """
    return tuple(
        value
        for name, value in headers.items()
        if SECRET_HEADER_NAME.fullmatch(name) or not HARMLESS_VALUE.fullmatch(value)
    )


def redact(text: str, secrets: Iterable[str]) -> str:
    """Redact the secrets that Yarus sent, which some services repeat, plain or encoded.

    Args:
        text: the full text, because a part of a secret would not be found.
        secrets: values of headers; the part after a scheme such as `Bearer` is redacted too. A secret of letters only
            is redacted as a whole word.
    """
    for form in secret_forms(tuple(secrets)):
        if form in text:
            text = re.sub(rf"\b{form}\b", "***", text) if form.isalpha() else text.replace(form, "***")
    return text


def redact_within(value: Any, secrets: Iterable[str]) -> Any:
    """Redact all texts in a nested value, keys included; other values stay."""
    secret_values = tuple(secrets)
    if isinstance(value, str):
        return redact(value, secret_values)
    if isinstance(value, Mapping):
        return {redact_within(name, secret_values): redact_within(part, secret_values) for name, part in value.items()}
    return [redact_within(part, secret_values) for part in value] if isinstance(value, list | tuple) else value


@lru_cache(64)
def secret_forms(secrets: tuple[str, ...]) -> tuple[str, ...]:
    """Return the forms in which the secrets may occur in a text, longest first."""
    parts = {part for value in secrets for part in _secret_parts(value) if len(part) > MAX_HARMLESS_LENGTH}
    return tuple(sorted({form for part in parts for form in _encoded_forms(part)}, key=len, reverse=True))


def _secret_parts(value: str) -> Iterator[str]:
    """Yield a header's value, the part after its scheme, cookie values, and the password of Basic authorization."""
    yield value
    scheme, *rest = value.split() or [""]
    yield from (part for part in rest if "=" not in part or part.endswith("="))
    yield from (part for part in re.findall(r"=([^;,\s\"]+)", value) if not HARMLESS_VALUE.fullmatch(part))
    if scheme.lower() == "basic" and rest:
        try:
            pair = base64.b64decode(rest[0], validate=True).decode()
        except (NoBase64, UnicodeDecodeError):
            return
        yield pair
        yield pair.partition(":")[2]


def _encoded_forms(part: str) -> set[str]:
    """Return a secret as it is, in JSON, HTML and URLs, and in base64 with and without padding."""
    json_form = json.dumps(part)[1:-1]
    url_forms = {quote(part, safe=""), quote(part), quote_plus(part)}
    url_forms |= {re.sub("%..", lambda match: match[0].lower(), form) for form in url_forms}
    base64_forms = [encode(part.encode()).decode() for encode in (base64.b64encode, base64.urlsafe_b64encode)]
    base64_forms += [form.rstrip("=") for form in base64_forms]
    return {part, json_form, json_form.replace("/", "\\/"), html.escape(part), *url_forms, *base64_forms}


def install_log_redaction() -> None:
    """Install the redaction of logs of evaluations and Prefect's runs, and pass Yarus's INFO messages to Prefect."""
    log = logging.getLogger("yarus")
    if log.level == logging.NOTSET:
        log.setLevel(logging.INFO)
    for name in LOGGERS:
        logger = logging.getLogger(name)
        if not any(isinstance(log_filter, RedactingFilter) for log_filter in logger.filters):
            logger.addFilter(RedactingFilter())


def _redact_all(text: str) -> str:
    return escape_control_characters(redact(redact_urls(text), _list_secrets()))


def _language() -> str:
    try:
        return get_settings().language
    except InputError:
        return "en"


def _list_secrets() -> list[str]:
    try:
        configuration = get_settings()
    except InputError:
        return list(_FETCHED.values())
    roles = (configuration.generator, configuration.judge, configuration.production_judge)
    of_embedders = (configuration.embedder_api_key, configuration.similarity_embedder_api_key)
    keys = [key for key in (*(role.api_key for role in roles), *of_embedders) if key]
    services = (configuration.retriever_service, configuration.reranker_service, configuration.sut_service)
    keys += [value for service in services for value in service.headers.values()]
    return [*_FETCHED.values(), *(key.get_secret_value() for key in keys)]
