"""Where a role's server is, whether its settings can work, and what to do when it refuses us."""

import httpx

from db.errors import InputError
from db.words import Words
from tasks.config.settings import Role
from tasks.models.calls import RoleName

HELP = {
    400: "Check {place}__MODEL, __MAX_TOKENS and __TEMPERATURE",
    401: "Set a valid key in {place}__API_KEY",
    402: "The account has no money left: top it up, or name another one in {place}__API_KEY",
    403: "Allow the model for this key, or change {place}__API_KEY or __MODEL",
    404: "Check {place}__BASE_URL (it usually ends with /v1) and {place}__MODEL",
    422: "Check {place}__MODEL, __MAX_TOKENS and __TEMPERATURE",
}
REDIRECTS = "The address redirects: give the final one in {place}__BASE_URL"


def remedy(status: int, place: str) -> str:
    """What to fix when every call is answered with that HTTP status."""
    return (REDIRECTS if status < 400 else HELP.get(status, HELP[404])).format(place=place)


def place_of(name: RoleName) -> str:
    """What a role's settings begin with."""
    return f"YARUS_{name.upper()}"


def checked(role: Role, place: str) -> tuple[str, str, str]:
    """Model, address of the completions, and key of a role.

    Raises:
        InputError: naming the setting, never the key.
    """
    if not role.model:
        raise InputError(
            "{place}__BASE_URL is set and {place}__MODEL is not: set it to the name of the model", place=place
        )
    url = completions(role.base_url or "", f"{place}__BASE_URL")
    secret = role.api_key.get_secret_value().strip() if role.api_key else ""
    if not (secret.isascii() and secret.isprintable()):
        raise InputError(
            "{place}__API_KEY: has characters that a key cannot have (it is not shown here); copy it again", place=place
        )
    return role.model, url, secret


def completions(given: str, setting: str) -> str:
    """The address of the completions of a server, given with or without its end.

    Args:
        given: such as `https://api.example.org/v1`.
        setting: where, for messages.

    Raises:
        InputError: it is no address, or has a user name or a password, which are not repeated.
    """
    base = given.strip().rstrip("/").removesuffix("/chat/completions")
    try:
        url = httpx.URL(base)
    except httpx.InvalidURL as error:
        raise InputError(
            "{setting}: {error}; expected for example https://api.example.org/v1", setting=setting, error=error
        ) from None
    if url.scheme not in ("http", "https") or not url.host or url.userinfo:
        form = (
            Words("https://host/v1, without user name and password")
            if url.userinfo
            else Words("https://host/v1, given: {base!r}", base=base)
        )
        raise InputError("{setting}: expected an address like {form}", setting=setting, form=form)
    return f"{base}/chat/completions"
