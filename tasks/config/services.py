"""HTTP services: their addresses, which are stored, their headers, which are not, and prices of models."""

import re
from collections.abc import Mapping
from datetime import date
from urllib.parse import parse_qsl, urlsplit

from pydantic import BaseModel, Field, SecretStr

from yarus.db.engine import CONFIDENTIAL_OPTIONS
from yarus.db.errors import InputError
from yarus.db.messages import Words
from yarus.tasks.config.redaction import redact_urls

OPENAI_PREFIX = "openai:"
"""Prefix of the address of a system under test with OpenAI's protocol."""


def is_http_url(name: str) -> bool:
    """Return whether a name is an http(s) URL; the case of its scheme is ignored."""
    return bool(re.match(r"https?://", name, re.IGNORECASE))


def is_function_path(name: str) -> bool:
    """Return whether a name is `module:function`, or a method of an object there, and not an address."""
    return re.fullmatch(r"[\w.]+:[\w.]+", name) is not None


def require_public_address(url: str, place: str, *, keys: str | None = None) -> str:
    """Return the address of a service unchanged, after checking that it holds no secret.

    Args:
        url: an http(s) URL, or one after `openai:`; anything else passes.
        place: prefix of the service's settings, such as `YARUS_SUT_SERVICE`.
        keys: the setting for secrets; default: the headers of that service.

    Raises:
        InputError: it has a user name, a password or a secret in its query; the message does not repeat them.
    """
    address = url.removeprefix(OPENAI_PREFIX)
    if not is_http_url(address):
        return url
    try:
        parts = urlsplit(address)
    except ValueError as error:
        raise InputError(
            "{place}: {error}; expected an address like https://host/path",
            place=place.removesuffix("_SERVICE"),
            error=error,
        ) from None
    secrets = [name for name, _ in parse_qsl(parts.query) if re.fullmatch(CONFIDENTIAL_OPTIONS, name, re.IGNORECASE)]
    if "@" in parts.netloc or secrets:
        what = Words("the option {secret!r}", secret=secrets[0]) if secrets else Words("a user name or password")
        raise InputError(
            "the address {url!r} is stored with results and has {what}: put secrets into {keys}",
            url=redact_urls(url),
            what=what,
            keys=keys or place + "__HEADERS",
        )
    return url


def prepare_headers(secret_headers: Mapping[str, SecretStr], place: str) -> dict[str, str]:
    """Return the headers of a service as they are sent.

    Args:
        secret_headers: the headers in the settings.
        place: prefix of the service's settings.

    Raises:
        InputError: a name or value has invalid characters; the message does not repeat the value.
    """
    plain_headers = {name.strip(): value.get_secret_value().strip() for name, value in secret_headers.items()}
    for name, value in plain_headers.items():
        if not re.fullmatch(r"[\w!#$%&'*+.^`|~-]+", name, re.ASCII):
            raise InputError("{place}__HEADERS: {name!r} is not a valid header name", place=place, name=name)
        if not (value.isascii() and value.isprintable()):
            raise InputError(
                "{place}__HEADERS: the value of {name!r} has characters that a header cannot have (it is not shown "
                "here); give it in printable ASCII",
                place=place,
                name=name,
            )
    return plain_headers


class Price(BaseModel, extra="forbid", allow_inf_nan=False):
    """Price of a model, and the date of the price list."""

    input: float = Field(ge=0, le=1_000_000, description="USD per million input tokens")
    output: float = Field(ge=0, le=1_000_000, description="USD per million output tokens")
    as_of: date = Field(description="date of the provider's price list")
