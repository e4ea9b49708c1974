"""Addresses of the roles' servers, checks of their settings, and advice after a refusal."""

from typing import TYPE_CHECKING

from yarus.db.errors import InputError
from yarus.db.messages import Words
from yarus.tasks.config.former_names import present_name
from yarus.tasks.config.settings import ModelRole
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
REDIRECT_HELP = Words("The address redirects: set {place}__BASE_URL to the final one")


def suggest_fix(error: "CallError", prefix: str) -> Words:
    """Return what to change if every call is refused like this."""
    concern = error.cause.kind if error.cause else "passing"
    if concern == "unclear" and error.status == 403:
        concern = "key"
    return Words((REDIRECT_HELP if error.is_redirect else HELP[concern]).template, place=prefix)


def get_setting_prefix(name: RoleName) -> str:
    """Return the prefix of a role's settings."""
    return present_name(f"YARUS_{name.upper()}")


def check_role(role: ModelRole, prefix: str) -> tuple[str, str, Credentials]:
    """Return model, address of the completions and credentials of a role.

    Raises:
        InputError: naming the setting, never a secret.
    """
    if not role.model:
        raise InputError(
            "{place}__BASE_URL is set and {place}__MODEL is not: set it to the name of the model", place=prefix
        )
    _check_extra_body(role, prefix)
    url = build_completions_url(role.base_url or "", f"{prefix}__BASE_URL")
    key = role.api_key.get_secret_value().strip() if role.api_key else ""
    return role.model, url, Credentials(role, key, prefix, f"{prefix}__API_KEY")


def _check_extra_body(role: ModelRole, prefix: str) -> None:
    for field in filter(OWN_FIELDS.__contains__, role.extra_body):
        if name := OWN_FIELDS[field]:
            raise InputError(
                "{place}__EXTRA_BODY: Yarus sends {field!r} itself; remove it and set {place}__{name}",
                place=prefix, field=field, name=name,
            )  # fmt: skip
        raise InputError("{place}__EXTRA_BODY: Yarus sends {field!r} itself; remove it", place=prefix, field=field)


def build_completions_url(address: str, setting: str) -> str:
    """Return the address of a server's chat completions.

    Args:
        address: such as `https://api.example.org/v1`, with the path of the completions or without.
        setting: its name, for messages.

    Raises:
        InputError: it is not an address, or has a user name, a password or a secret in its query. The message does not
            repeat them.
    """
    keys = f"{setting.rpartition('__')[0]}__HEADERS"
    return append_path(check_address(address, setting, keys), "/chat/completions")


def append_path(address: str, path: str) -> str:
    """Return an address up to /v1 with a path appended; its query stays at the end, as in Azure's addresses."""
    base, mark, query = address.partition("?")
    return f"{base.rstrip('/').removesuffix(path)}{path}{mark}{query}"
