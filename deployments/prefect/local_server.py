"""Set up Prefect for a command: its database and its server."""

import atexit
import os
import socket
import ssl
import sys
from base64 import b64encode
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

from yarus.db.messages import Words
from yarus.deployments.prefect import home_server, server_access, server_process
from yarus.deployments.prefect.server_process import ServerUnavailable
from yarus.tasks.config.redaction import redact_urls
from yarus.tasks.config.settings import get_settings

if TYPE_CHECKING:
    from prefect.settings import Settings

LEAVING_S = 5.0
"""Longest wait for the server to end after the command that it served."""
READY_S = 180.0
"""Longest wait for the first answer: after an upgrade it migrates its database, and a busy machine is slow."""


def prepare_prefect() -> None:
    """Keep Prefect's database in the home, and its output off the screen.

    If no other server is named, the home's server starts meanwhile. If PREFECT_API_URL names the server of this home's
    `yarus serve`, its password is taken from the home.

    Raises:
        ServerUnavailable: the server of the home cannot be started.
    """
    home = get_settings().home.absolute()
    if home_server.is_wanted(home):
        _join_server(home)
    else:
        _set_environment(home_server.server_environment(home))
        use_home_password()


def use_home_password() -> None:
    """Use the password of this home's own server, if PREFECT_API_URL names that server.

    If no server is named, the server is that of this home's `yarus serve`, if it runs.
    """
    from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL

    home = get_settings().home.absolute()
    if api := PREFECT_API_URL.value():
        password = home_server.server_password(home, api) if not PREFECT_API_AUTH_STRING.value() else None
        _use_server(api, {server_access.OURS: password} if password else {})
    elif home_server.is_wanted(home) and (server := home_server.find_server(home)) and server.serving:
        _join_server(home)


def _use_server(api: str, variables: dict[str, str]) -> None:
    """Set the settings for Prefect's clients, here and in processes that we start."""
    server_access.bypass_proxies(api)
    _set_environment(variables)


def _set_environment(variables: dict[str, str]) -> None:
    """Set Prefect's variables in the environment, and refresh its settings if it is imported."""
    if variables.items() <= os.environ.items():
        return
    os.environ |= variables
    if "prefect" in sys.modules:
        from prefect.context import refresh_global_settings_context
        from prefect.logging.configuration import setup_logging

        refresh_global_settings_context()
        setup_logging()


def start_server() -> None:
    """Wait until the server from `prepare_prefect` answers; start one if it has none.

    Raises:
        ServerUnavailable: it cannot start, or the existing one does not answer or is not compatible with our Prefect.
    """
    from prefect.settings import PREFECT_API_URL, PREFECT_SERVER_ALLOW_EPHEMERAL_MODE

    home = get_settings().home.absolute()
    if (api := PREFECT_API_URL.value()) and api != _joined_addresses.get(home):
        require_compatible(api)
    elif not api and not PREFECT_SERVER_ALLOW_EPHEMERAL_MODE.value():
        return
    elif not home_server.is_shared(home):
        _start_alone(home)
    elif not (api and _is_answering(home, api)) and not _is_answering(
        home, _join_server(home)
    ):  # the joined one was about to end
        raise server_process.start_error(_log_path(home), os.environ[home_server.DATABASE])


_joined_addresses: dict[Path, str] = {}
"""The address of the server that we use, by home."""


def _join_server(home: Path) -> str:
    try:
        server = home_server.join_server(home)
    except ServerUnavailable:
        raise
    except OSError as error:
        raise ServerUnavailable(
            "Prefect's server cannot use {place}: {reason}; set YARUS_HOME to a folder that you may write to, or "
            "make room there",
            place=error.filename or home,
            reason=error.strerror or error,
        ) from None
    password = server_access.password_for(home, "127.0.0.1") if server.serving else server_access.stored_password(home)
    _use_server(server.api, home_server.server_environment(home) | server_access.access_settings(server.api, password))
    _joined_addresses[home] = server.api
    return server.api


def _is_answering(home: Path, api: str) -> bool:
    """Return whether the server of the home answers, now or when it is ready; False if it has ended.

    Raises:
        ServerUnavailable: it runs, but its answer is not that of a compatible server.
    """
    try:
        require_compatible(api, f"the server of {home}", READY_S)
    except ServerUnavailable:
        if home_server.has_ended(home, api):
            return False
        raise
    return True


def _start_alone(home: Path) -> None:
    """Start a server for a database outside of the home; it ends with this process, and survives Ctrl-C.

    A terminal sends Ctrl-C to every process of a command, but the server has to store how the run ended.
    """
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        api = f"http://127.0.0.1:{listener.getsockname()[1]}/api"
        variables = server_access.access_settings(api, server_access.new_password())
        process = server_process.start(listener, _log_path(home), variables | server_process.SMALL_SERVER)
    atexit.register(server_process.stop, process, LEAVING_S)
    _use_server(api, variables)
    try:
        require_compatible(api, "the server that was started", READY_S)
    except ServerUnavailable:
        raise server_process.start_error(_log_path(home), os.environ[home_server.DATABASE]) from None


def _log_path(home: Path) -> Path:
    return home / "prefect" / "server.log"


def require_compatible(api: str, named: str | None = None, patience_s: float = 10) -> None:
    """Check with one request that a server answers and is compatible.

    Args:
        api: its address, as in PREFECT_API_URL. Prefect Cloud is compatible with every Prefect, and is not asked.
        named: its name in messages, if PREFECT_API_URL does not name it.
        patience_s: longest wait for its answer.

    Raises:
        ServerUnavailable: it is not a Prefect server, is older than our Prefect, or has another major version.
    """
    import prefect
    from prefect.settings import get_current_settings

    if api.startswith(get_current_settings().cloud.api_url):
        return
    display_name = named or f"PREFECT_API_URL={redact_urls(api)}"
    way_out = (
        Words("wait a moment and try again, or: yarus admin stop")
        if named
        else Words("correct it, or unset it to have one started")
    )
    try:
        server_version = _read_version(api, get_current_settings(), patience_s)
        server_numbers = tuple(int(part) for part in server_version.split(".")[:2])
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
        raise ServerUnavailable(
            "{shown}: no Prefect server answers there ({error}); {way_out}",
            shown=display_name,
            error=redact_urls(str(error)),
            way_out=way_out,
        ) from None
    own_numbers = tuple(int(part) for part in prefect.__version__.split(".")[:2])
    if server_numbers[0] != own_numbers[0] or server_numbers < own_numbers:
        way_out = Words("start `yarus serve` again") if named else Words("unset PREFECT_API_URL to have one started")
        raise ServerUnavailable(
            "the server at {shown} is Prefect {theirs}, which does not go with ours, {ours}: upgrade that server, or "
            "{way_out}",
            shown=display_name,
            theirs=server_version,
            ours=prefect.__version__,
            way_out=way_out,
        )


def _read_version(api: str, settings: "Settings", patience_s: float) -> str:
    """Return the version of the server, requested with the credentials and certificates of Prefect's client."""
    headers = dict(settings.client.custom_headers)
    if credentials := settings.api.auth_string:
        headers["Authorization"] = f"Basic {b64encode(credentials.get_secret_value().encode()).decode()}"
    elif key := settings.api.key:
        headers["Authorization"] = f"Bearer {key.get_secret_value()}"
    verify: bool | ssl.SSLContext = api.startswith("https://") and not settings.api.tls_insecure_skip_verify
    if verify and settings.api.ssl_cert_file:
        verify = ssl.create_default_context(cafile=settings.api.ssl_cert_file)
    address = f"{api.rstrip('/')}/admin/version"
    reply = httpx.get(address, headers=headers, timeout=patience_s, verify=verify, follow_redirects=True)
    return str(reply.raise_for_status().json())
