"""Services that are asked over HTTP: their addresses, which are stored, their headers, which are not, and prices."""

import re
from collections.abc import Mapping
from datetime import date
from urllib.parse import parse_qsl, urlsplit

from pydantic import BaseModel, Field, SecretStr

from yarus.db.engine import CONFIDENTIAL
from yarus.db.errors import InputError
from yarus.db.words import Words
from yarus.tasks.config.redaction import redact_urls

OPENAI = "openai:"
"""What stands before the address of a system under test that speaks OpenAI's protocol."""


def is_address(name: str) -> bool:
    """Whether a name is an http(s) URL, whatever the case of its scheme."""
    return bool(re.match(r"https?://", name, re.IGNORECASE))


def is_function(name: str) -> bool:
    """Whether a name is `module:function`, or a method of an object there, and no address."""
    return re.fullmatch(r"[\w.]+:[\w.]+", name) is not None


def open_address(url: str, place: str, *, keys: str | None = None) -> str:
    """The address of a service as it was given, for it holds nothing that may not be stored.

    Args:
        url: an http(s) URL, or one after `openai:`; anything else passes.
        place: what the settings of the service begin with, such as `YARUS_SUT_SERVICE`.
        keys: the setting that secrets belong in; default: the headers of that place.

    Raises:
        InputError: it has a user name, a password or a secret in its query; they are not repeated.
    """
    address = url.removeprefix(OPENAI)
    if not is_address(address):
        return url
    try:
        parts = urlsplit(address)
    except ValueError as error:
        raise InputError(
            "{place}: {error}; expected an address like https://host/path",
            place=place.removesuffix("_SERVICE"),
            error=error,
        ) from None
    secret = [name for name, _ in parse_qsl(parts.query) if re.fullmatch(CONFIDENTIAL, name, re.IGNORECASE)]
    if "@" in parts.netloc or secret:
        what = Words("the option {secret!r}", secret=secret[0]) if secret else Words("a user name or password")
        raise InputError(
            "the address {url!r} is stored with results and has {what}: put secrets into {keys}",
            url=redact_urls(url),
            what=what,
            keys=keys or place + "__HEADERS",
        )
    return url


def headers(given: Mapping[str, SecretStr], place: str) -> dict[str, str]:
    """The headers of a service as they are sent.

    Args:
        given: as the settings have them.
        place: what the settings of the service begin with.

    Raises:
        InputError: a name or a value has characters that no header has; the value is not repeated.
    """
    sent = {name.strip(): value.get_secret_value().strip() for name, value in given.items()}
    for name, value in sent.items():
        if not re.fullmatch(r"[\w!#$%&'*+.^`|~-]+", name, re.ASCII):
            raise InputError("{place}__HEADERS: {name!r} is not a valid header name", place=place, name=name)
        if not (value.isascii() and value.isprintable()):
            raise InputError(
                "{place}__HEADERS: the value of {name!r} has characters that a header cannot have (it is not shown "
                "here); give it in printable ASCII",
                place=place,
                name=name,
            )
    return sent


class Price(BaseModel, extra="forbid", allow_inf_nan=False):
    """What a model costs, and since when that is known."""

    input: float = Field(ge=0, le=1_000_000, description="USD per million input tokens")
    output: float = Field(ge=0, le=1_000_000, description="USD per million output tokens")
    as_of: date = Field(description="date of the provider's price list")
