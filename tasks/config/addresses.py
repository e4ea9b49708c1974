"""Addresses of services, as they are set and stored."""

import re
from urllib.parse import parse_qsl, urlsplit

from db.engine import CONFIDENTIAL
from db.errors import InputError
from tasks.config.redaction import redact_urls


def is_address(name: str) -> bool:
    """Whether a name is an http(s) URL, whatever the case of its scheme."""
    return bool(re.match(r"https?://", name, re.IGNORECASE))


def open_address(url: str, place: str, *, keys: str | None = None) -> str:
    """The address of a service as it was given, for it holds nothing that may not be stored.

    Args:
        url: an http(s) URL; anything else passes.
        place: what the settings of the service begin with, such as `YARUS_SUT_SERVICE`.
        keys: the setting that secrets belong in; default: the headers of that place.

    Raises:
        InputError: it has a user name, a password or a secret in its query; they are not repeated.
    """
    if not is_address(url):
        return url
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise InputError(
            f"{place.removesuffix('_SERVICE')}: {error}; expected an address like https://host/path"
        ) from None
    secret = [name for name, _ in parse_qsl(parts.query) if re.fullmatch(CONFIDENTIAL, name, re.IGNORECASE)]
    if "@" in parts.netloc or secret:
        what = f"the option {secret[0]!r}" if secret else "a user name or password"
        raise InputError(
            f"the address {redact_urls(url)!r} is stored with results and has {what}: put secrets into "
            f"{keys or place + '__HEADERS'}"
        )
    return url
