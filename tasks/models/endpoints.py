"""Where a role's server is, whether its settings can work, and what to do when it refuses us."""

from typing import TYPE_CHECKING

from yarus.db.errors import InputError
from yarus.db.words import Words
from yarus.tasks.config.settings import Role
from yarus.tasks.models.calls import RoleName
from yarus.tasks.models.credentials import Credentials, check_address
from yarus.tasks.models.server_errors import CauseKind

if TYPE_CHECKING:
    from yarus.tasks.models.protocol import CallError

HELP: dict[CauseKind, Words] = {
    "money": Words("The account has no money left: top it up, or set {place}__API_KEY to another account's key"),
    "key": Words("Set {place}__API_KEY to a valid key; if the server wants it in another header, use {place}__HEADERS"),
    "model": Words("Check {place}__MODEL (YandexGPT wants gpt://FOLDER/NAME/latest), and that the key may use it"),
    "address": Words("Check {place}__BASE_URL (it usually ends with /v1) and {place}__MODEL"),
    "host": Words(
        "The server refuses the host name of {place}__BASE_URL: use another one, or start the server so that it "
        "accepts this one (--listen, or the like)"
    ),
    "machine": Words(
        "The server has too little memory for the model: add memory, or set {place}__MODEL to a smaller one"
    ),
    "long": Words(
        "The prompts are longer than the model's context: set {place}__MODEL to another model, start the server with a "
        "longer context, or lower k"
    ),
    "filter": Words(
        "The server filters the prompts: switch its content filter off, or set {place}__MODEL to another model"
    ),
    "passing": Words("Wait, then use --resume; {place}__RPM and __CONCURRENCY limit the calls"),
    "parameter": Words("Remove from {place}__EXTRA_BODY what the server does not take"),
    "unclear": Words(
        "Check {place}__MODEL, __MAX_TOKENS and __TEMPERATURE; add fields that the server requires to "
        "{place}__EXTRA_BODY"
    ),
}
OWN_FIELDS = {
    "model": "MODEL",
    "max_tokens": "MAX_TOKENS",
    "max_completion_tokens": "MAX_TOKENS",
    "temperature": "TEMPERATURE",
    "messages": "",
    "stream": "",
    "n": "",
    "logprobs": "",
}
"""Fields of a request that a user's EXTRA_BODY may not replace -> the setting to use instead; '' for none."""
REDIRECTS = Words("The address redirects: set {place}__BASE_URL to the final one")


def remedy(error: "CallError", place: str) -> Words:
    """Say what to change if every call is answered like this."""
    concern = error.cause.kind if error.cause else "passing"
    if concern == "unclear" and error.status == 403:
        concern = "key"
    return Words((REDIRECTS if error.is_redirect else HELP[concern]).template, place=place)


def place_of(name: RoleName) -> str:
    """Return what the names of a role's settings begin with."""
    return f"YARUS_{name.upper()}"


def checked(role: Role, place: str) -> tuple[str, str, Credentials]:
    """Return model, address of the completions and credentials of a role.

    Raises:
        InputError: naming the setting, never a secret.
    """
    if not role.model:
        raise InputError(
            "{place}__BASE_URL is set and {place}__MODEL is not: set it to the name of the model", place=place
        )
    _check_extra_body(role, place)
    url = completions(role.base_url or "", f"{place}__BASE_URL")
    key = role.api_key.get_secret_value().strip() if role.api_key else ""
    return role.model, url, Credentials(role, key, place, f"{place}__API_KEY")


def _check_extra_body(role: Role, place: str) -> None:
    for field in filter(OWN_FIELDS.__contains__, role.extra_body):
        if name := OWN_FIELDS[field]:
            raise InputError(
                "{place}__EXTRA_BODY: Yarus sends {field!r} itself; remove it and set {place}__{name}",
                place=place, field=field, name=name,
            )  # fmt: skip
        raise InputError("{place}__EXTRA_BODY: Yarus sends {field!r} itself; remove it", place=place, field=field)


def completions(given: str, setting: str) -> str:
    """Return the address of the completions of a server.

    Args:
        given: such as `https://api.example.org/v1`, with the path of the completions or without.
        setting: its name, for messages.

    Raises:
        InputError: it is not an address, or has a user name, a password or a secret in its query; none is repeated.
    """
    keys = f"{setting.rpartition('__')[0]}__HEADERS"
    return with_path(check_address(given, setting, keys), "/chat/completions")


def with_path(address: str, end: str) -> str:
    """Complete the path of an address up to /v1; it may have a query, as Azure's have."""
    base, mark, query = address.partition("?")
    return f"{base.rstrip('/').removesuffix(end)}{end}{mark}{query}"
