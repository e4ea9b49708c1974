"""Prefect within a command: where its database is, and its server."""

import atexit
import os
import socket
import ssl
from base64 import b64encode
from typing import TYPE_CHECKING

import httpx

from db.home import prefect_database
from tasks.config.redaction import redact_urls
from tasks.config.settings import settings
from tasks.orchestration import server_access, server_process
from tasks.orchestration.server_process import SQLITE, ServerUnavailable

if TYPE_CHECKING:
    from prefect.settings import Settings

LEAVING_S = 5.0
"""Longest wait for the server to end after the command that it served."""


def prepare_prefect() -> None:
    """Keeps Prefect's own database at home, and its words off the screen: what matters is said by us.

    Where PREFECT_API_URL names the server of this home's `yarus serve`, its password is taken from the home.
    """
    home = settings().home.absolute()
    os.environ.setdefault("PREFECT_API_DATABASE_CONNECTION_URL", f"{SQLITE}{prefect_database(home)}")
    os.environ.setdefault("PREFECT_LOCAL_STORAGE_PATH", str(home / "prefect" / "storage"))
    os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "CRITICAL")
    os.environ.setdefault("PREFECT_SERVER_LOGGING_LEVEL", "CRITICAL")
    let_in()


def let_in() -> None:
    """Takes the password of this home's own server from the home, where PREFECT_API_URL names that server."""
    from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL

    if api := PREFECT_API_URL.value():
        password = server_access.password_of(settings().home, api) if not PREFECT_API_AUTH_STRING.value() else None
        _reaching(api, {server_access.OURS: password} if password else {})


def _reaching(api: str, variables: dict[str, str]) -> None:
    """Has Prefect's clients go by these settings, here and in what we start."""
    from prefect.context import refresh_global_settings_context

    server_access.past_proxies(api)
    os.environ |= variables
    refresh_global_settings_context()


def start_server() -> None:
    """Starts a server where PREFECT_API_URL names none; it ends when this process does, and outlives Ctrl-C.

    A terminal sends Ctrl-C to every process of a command, but the server has to hear how the run ended.

    Raises:
        ServerUnavailable: it cannot start, or PREFECT_API_URL names one that does not answer or does not go with our
            Prefect.
    """
    from prefect.settings import PREFECT_API_URL, PREFECT_SERVER_ALLOW_EPHEMERAL_MODE

    if api := PREFECT_API_URL.value():
        require_compatible(api)
        return
    if not PREFECT_SERVER_ALLOW_EPHEMERAL_MODE.value():
        return
    log = settings().home.absolute() / "prefect" / "server.log"
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        api = f"http://127.0.0.1:{listener.getsockname()[1]}/api"
        variables = server_access.protection(api, server_access.new_password())
        small = {"PREFECT_UI_ENABLED": "0", "PREFECT__SERVER_EPHEMERAL": "1", "PREFECT_SERVER_API_HOST": "127.0.0.1"}
        told = dict.fromkeys(("PREFECT_SERVER_LOGGING_LEVEL", "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL"), "ERROR")
        process = server_process.start(listener, log, variables | small | told)
    atexit.register(server_process.stop, process, LEAVING_S)
    _reaching(api, variables)
    server_process.wait_until_ready(api, process, log)


def require_compatible(api: str) -> None:
    """Finds a server that is not there or not of our time, by one request.

    Args:
        api: its address, as in PREFECT_API_URL. Prefect Cloud goes with every Prefect, and is not asked.

    Raises:
        ServerUnavailable: it does not answer as a Prefect server, or is older than our Prefect, or of another major.
    """
    import prefect
    from prefect.settings import get_current_settings

    if api.startswith(get_current_settings().cloud.api_url):
        return
    shown_address = redact_urls(api)
    try:
        theirs = _version(api, get_current_settings())
        known = tuple(int(part) for part in theirs.split(".")[:2])
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
        raise ServerUnavailable(
            f"PREFECT_API_URL={shown_address}: no Prefect server answers there ({redact_urls(str(error))}); "
            "correct it, or unset it to have one started"
        ) from None
    ours = tuple(int(part) for part in prefect.__version__.split(".")[:2])
    if known[0] != ours[0] or known < ours:
        raise ServerUnavailable(
            f"the server at PREFECT_API_URL={shown_address} is Prefect {theirs}, which does not go with ours, "
            f"{prefect.__version__}: upgrade that server, or unset PREFECT_API_URL to have one started"
        )


def _version(api: str, chosen: "Settings") -> str:
    """What the server says, asked as Prefect's own client would: who we are, and whom we trust."""
    headers = dict(chosen.client.custom_headers)
    if user := chosen.api.auth_string:
        headers["Authorization"] = f"Basic {b64encode(user.get_secret_value().encode()).decode()}"
    elif key := chosen.api.key:
        headers["Authorization"] = f"Bearer {key.get_secret_value()}"
    trusted: bool | ssl.SSLContext = not chosen.api.tls_insecure_skip_verify
    if trusted and chosen.api.ssl_cert_file:
        trusted = ssl.create_default_context(cafile=chosen.api.ssl_cert_file)
    address = f"{api.rstrip('/')}/admin/version"
    reply = httpx.get(address, headers=headers, timeout=10, verify=trusted, follow_redirects=True)
    return str(reply.raise_for_status().json())
