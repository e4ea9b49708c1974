"""Manage the password of this home's Prefect server, for other users and for our own commands."""

import os
import secrets
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import quote, urlsplit

from dotenv import dotenv_values

from yarus.db.errors import InputError
from yarus.db.home import make_private_folder

SERVER_PASSWORD = "PREFECT_SERVER_API_AUTH_STRING"  # noqa: S105 - the name of a variable
OURS = "PREFECT_API_AUTH_STRING"
LOGIN_PATH = "/enter"
"""Path of the page that logs a browser in; the password follows #, which browsers do not send."""


def read_variable(variable: str) -> str | None:
    """Return a variable of the environment or of `.env`, as Prefect reads them."""
    return os.environ.get(variable, dotenv_values(".env").get(variable))


def new_password() -> str:
    """Return a user name and a random password in Prefect's form."""
    return f"yarus:{secrets.token_urlsafe(32)}"


def password_for(home: Path, host: str) -> str | None:
    """Return the password of the server that is about to listen at a host.

    It is PREFECT_SERVER_API_AUTH_STRING, or else a file of the home, made on first use and readable by its owner only.
    If the variable is set to an empty text, the server has no password, on the loopback only.

    Raises:
        InputError: there is no password, although others can reach the host.
    """
    value = read_variable(SERVER_PASSWORD)
    if value is None:
        return stored_password(home)
    if not value and not is_loopback(host):
        raise InputError(
            "{variable} is empty, but everybody who reaches --host {host} could run programs here: unset it to have "
            "a password made, or set it to USER:PASSWORD",
            variable=SERVER_PASSWORD,
            host=host,
        )
    return value or None


def stored_password(home: Path) -> str:
    """Return the password stored in the home; two commands that create it at once agree on one."""
    path = home / "prefect" / "password"
    if not path.exists():
        make_private_folder(path.parent, home)
        temporary = path.with_name(f".password-{secrets.token_hex(8)}")
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:  # noqa: PTH123
            file.write(new_password())
        with suppress(FileExistsError):
            path.hardlink_to(temporary)
        temporary.unlink()
    path.chmod(0o600)
    password = path.read_text(encoding="utf-8").strip()
    if not password:
        raise InputError("{path} holds no password: remove it, and a new one is made", path=path)
    return password


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach the host."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def access_settings(api: str, password: str | None) -> dict[str, str]:
    """Return the settings of Prefect's server and of its clients that keep others out.

    Args:
        api: the address of the server.
        password: the password; None for a server on the loopback without one.
    """
    return {
        SERVER_PASSWORD: password or "",
        OURS: password or "",
        "PREFECT_API_URL": api,
        "PREFECT_SERVER_CORS_ALLOWED_ORIGINS": api.removesuffix("/api"),
        "PREFECT_SERVER_CSRF_PROTECTION_ENABLED": "true",
        "PREFECT_CLIENT_CSRF_SUPPORT_ENABLED": "true",
    }


def login_link(address: str, password: str | None, to: str = "/") -> str:
    """Return an address that logs a browser in.

    Args:
        address: the address of the server.
        password: the password; None if it needs none.
        to: the page to show afterwards, a path below the address.
    """
    if password is None:
        return address if to == "/" else f"{address}{to}"
    redirect = "" if to == "/" else f"&{quote(to, safe='')}"
    return f"{address}{LOGIN_PATH}#{quote(password, safe=':')}{redirect}"


def is_same_address(address_a: str, address_b: str) -> bool:
    """Return whether two addresses are equal; the loopback has several names."""
    parts_a, parts_b = urlsplit(address_a), urlsplit(address_b)
    hosts = {"localhost" if is_loopback(part.hostname or "") else part.hostname for part in (parts_a, parts_b)}
    return len(hosts) == 1 and (parts_a.scheme, parts_a.port) == (parts_b.scheme, parts_b.port)


def bypass_proxies(api: str) -> None:
    """Exclude a server on this machine from the proxies of the environment."""
    parts = urlsplit(api)
    if not is_loopback(parts.hostname or ""):
        return
    excluded = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
    if parts.netloc not in excluded.split(","):
        all_excluded = ",".join(filter(None, (excluded, parts.netloc)))
        os.environ |= {"no_proxy": all_excluded, "NO_PROXY": all_excluded}
