"""Who may use the Prefect server of this home: its password, and how our own commands come by it."""

import os
import secrets
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import quote, urlsplit

from dotenv import dotenv_values

from yarus.db.errors import InputError
from yarus.db.home import make

PASSWORD = "PREFECT_SERVER_API_AUTH_STRING"  # noqa: S105 - the name of a variable
OURS = "PREFECT_API_AUTH_STRING"
ENTER = "/enter"
"""Where a link leads that logs a browser in; the password stands behind its #, which browsers send to nobody."""


def given(variable: str) -> str | None:
    """What the environment or `.env` says, as Prefect reads them."""
    return os.environ.get(variable, dotenv_values(".env").get(variable))


def new_password() -> str:
    """A user name and a password that nobody guesses, as Prefect wants them."""
    return f"yarus:{secrets.token_urlsafe(32)}"


def password_for(home: Path, host: str) -> str | None:
    """The password of the server that is about to listen at a host.

    It is what PREFECT_SERVER_API_AUTH_STRING says, or else a file of the home, made when it is first asked for and
    readable by its owner only. Who sets the variable to nothing goes without, on the loopback.

    Raises:
        InputError: no password, though others reach the host.
    """
    chosen = given(PASSWORD)
    if chosen is None:
        return kept(home)
    if not chosen and not is_loopback(host):
        raise InputError(
            "{variable} is empty, but everybody who reaches --host {host} could run programs here: unset it to have "
            "a password made, or set it to USER:PASSWORD",
            variable=PASSWORD,
            host=host,
        )
    return chosen or None


def kept(home: Path) -> str:
    """The password in the home; two commands that make it at once agree on one."""
    path = home / "prefect" / "password"
    if not path.exists():
        make(path.parent, home)
        made = path.with_name(f".password-{secrets.token_hex(8)}")
        with open(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:  # noqa: PTH123
            file.write(new_password())
        with suppress(FileExistsError):
            path.hardlink_to(made)
        made.unlink()
    path.chmod(0o600)
    found = path.read_text(encoding="utf-8").strip()
    if not found:
        raise InputError("{path} holds no password: remove it, and a new one is made", path=path)
    return found


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches what listens at the host."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def protection(api: str, password: str | None) -> dict[str, str]:
    """The settings of Prefect's server, and of its clients, that keep others out.

    Args:
        api: the address of the server.
        password: None for a server of the loopback that goes without.
    """
    return {
        PASSWORD: password or "",
        OURS: password or "",
        "PREFECT_API_URL": api,
        "PREFECT_SERVER_CORS_ALLOWED_ORIGINS": api.removesuffix("/api"),
        "PREFECT_SERVER_CSRF_PROTECTION_ENABLED": "true",
        "PREFECT_CLIENT_CSRF_SUPPORT_ENABLED": "true",
    }


def link(address: str, password: str | None, to: str = "/") -> str:
    """An address that logs a browser in.

    Args:
        address: of the server.
        password: None where it needs none.
        to: the page that is shown then, a path below the address.
    """
    if password is None:
        return address if to == "/" else f"{address}{to}"
    then = "" if to == "/" else f"&{quote(to, safe='')}"
    return f"{address}{ENTER}#{quote(password, safe=':')}{then}"


def same(one: str, other: str) -> bool:
    """Whether two addresses are one; the loopback has several names."""
    first, second = urlsplit(one), urlsplit(other)
    hosts = {"localhost" if is_loopback(part.hostname or "") else part.hostname for part in (first, second)}
    return len(hosts) == 1 and (first.scheme, first.port) == (second.scheme, second.port)


def past_proxies(api: str) -> None:
    """Lets our calls to a server on this machine go there, whatever proxies the environment names."""
    parts = urlsplit(api)
    if not is_loopback(parts.hostname or ""):
        return
    without = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
    if parts.netloc not in without.split(","):
        both = ",".join(filter(None, (without, parts.netloc)))
        os.environ |= {"no_proxy": both, "NO_PROXY": both}
