"""Prefect within a command: where its database is, and its server."""

import atexit
import os
import socket
import ssl
import sys
from base64 import b64encode
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

from yarus.db.words import Words
from yarus.deployments.prefect import home_server, server_access, server_process
from yarus.deployments.prefect.server_process import ServerUnavailable
from yarus.tasks.config.redaction import redact_urls
from yarus.tasks.config.settings import settings

if TYPE_CHECKING:
    from prefect.settings import Settings

LEAVING_S = 5.0
"""Longest wait for the server to end after the command that it served."""
READY_S = 180.0
"""Longest wait for the first answer: it migrates its database after an upgrade, and a busy machine is slow."""


def prepare_prefect() -> None:
    """Keeps Prefect's own database at home, and its words off the screen: what matters is said by us.

    Where no other server is named, it is the home's, which starts meanwhile; where PREFECT_API_URL names the server
    of this home's `yarus serve`, its password is taken from the home.

    Raises:
        ServerUnavailable: the server of the home cannot be started.
    """
    home = settings().home.absolute()
    if home_server.is_wanted(home):
        _join(home)
    else:
        _put(home_server.server_environment(home))
        let_in()


def let_in() -> None:
    """Takes the password of this home's own server from the home, where PREFECT_API_URL names that server.

    Where no server is named, it is that of this home's `yarus serve`, if that runs.
    """
    from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL

    home = settings().home.absolute()
    if api := PREFECT_API_URL.value():
        password = home_server.password_of(home, api) if not PREFECT_API_AUTH_STRING.value() else None
        _reaching(api, {server_access.OURS: password} if password else {})
    elif home_server.is_wanted(home) and (found := home_server.running(home)) and found.serving:
        _join(home)


def _reaching(api: str, variables: dict[str, str]) -> None:
    """Has Prefect's clients go by these settings, here and in what we start."""
    server_access.past_proxies(api)
    _put(variables)


def _put(variables: dict[str, str]) -> None:
    """Puts into the environment what Prefect goes by, also where it has been imported before."""
    if variables.items() <= os.environ.items():
        return
    os.environ |= variables
    if "prefect" in sys.modules:
        from prefect.context import refresh_global_settings_context
        from prefect.logging.configuration import setup_logging

        refresh_global_settings_context()
        setup_logging()


def start_server() -> None:
    """Waits until the server that `prepare_prefect` found or began to start answers; starts one where it did neither.

    Raises:
        ServerUnavailable: it cannot start, or the one that is there does not answer or does not go with our Prefect.
    """
    from prefect.settings import PREFECT_API_URL, PREFECT_SERVER_ALLOW_EPHEMERAL_MODE

    home = settings().home.absolute()
    if (api := PREFECT_API_URL.value()) and api != _joined.get(home):
        require_compatible(api)
    elif not api and not PREFECT_SERVER_ALLOW_EPHEMERAL_MODE.value():
        return
    elif not home_server.is_shared(home):
        _start_alone(home)
    elif not (api and _answers(home, api)) and not _answers(home, _join(home)):  # one that was about to end
        raise server_process.not_started(_log(home), os.environ[home_server.DATABASE])


_joined: dict[Path, str] = {}
"""The address of the server that we use, by home."""


def _join(home: Path) -> str:
    try:
        found = home_server.join(home)
    except ServerUnavailable:
        raise
    except OSError as error:
        raise ServerUnavailable(
            "Prefect's server cannot use {place}: {reason}; set YARUS_HOME to a folder that you may write to, or "
            "make room there",
            place=error.filename or home,
            reason=error.strerror or error,
        ) from None
    password = server_access.password_for(home, "127.0.0.1") if found.serving else server_access.kept(home)
    _reaching(found.api, home_server.server_environment(home) | server_access.protection(found.api, password))
    _joined[home] = found.api
    return found.api


def _answers(home: Path, api: str) -> bool:
    """Whether the server of the home answers, now or when it is ready; not where it has ended meanwhile.

    Raises:
        ServerUnavailable: it lives, but does not answer as one that goes with ours.
    """
    try:
        require_compatible(api, f"the server of {home}", READY_S)
    except ServerUnavailable:
        if home_server.has_ended(home, api):
            return False
        raise
    return True


def _start_alone(home: Path) -> None:
    """Starts a server for a database that is not the home's; it ends when this process does, and outlives Ctrl-C.

    A terminal sends Ctrl-C to every process of a command, but the server has to hear how the run ended.
    """
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        api = f"http://127.0.0.1:{listener.getsockname()[1]}/api"
        variables = server_access.protection(api, server_access.new_password())
        process = server_process.start(listener, _log(home), variables | server_process.SMALL)
    atexit.register(server_process.stop, process, LEAVING_S)
    _reaching(api, variables)
    try:
        require_compatible(api, "the server that was started", READY_S)
    except ServerUnavailable:
        raise server_process.not_started(_log(home), os.environ[home_server.DATABASE]) from None


def _log(home: Path) -> Path:
    return home / "prefect" / "server.log"


def require_compatible(api: str, named: str | None = None, patience_s: float = 10) -> None:
    """Finds a server that is not there or not of our time, by one request.

    Args:
        api: its address, as in PREFECT_API_URL. Prefect Cloud goes with every Prefect, and is not asked.
        named: what it is called where PREFECT_API_URL does not name it.
        patience_s: longest wait for its answer.

    Raises:
        ServerUnavailable: it does not answer as a Prefect server, or is older than our Prefect, or of another major.
    """
    import prefect
    from prefect.settings import get_current_settings

    if api.startswith(get_current_settings().cloud.api_url):
        return
    shown = named or f"PREFECT_API_URL={redact_urls(api)}"
    way_out = (
        Words("wait a moment and try again, or: yarus stop")
        if named
        else Words("correct it, or unset it to have one started")
    )
    try:
        theirs = _version(api, get_current_settings(), patience_s)
        known = tuple(int(part) for part in theirs.split(".")[:2])
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
        raise ServerUnavailable(
            "{shown}: no Prefect server answers there ({error}); {way_out}",
            shown=shown,
            error=redact_urls(str(error)),
            way_out=way_out,
        ) from None
    ours = tuple(int(part) for part in prefect.__version__.split(".")[:2])
    if known[0] != ours[0] or known < ours:
        way_out = Words("start `yarus serve` again") if named else Words("unset PREFECT_API_URL to have one started")
        raise ServerUnavailable(
            "the server at {shown} is Prefect {theirs}, which does not go with ours, {ours}: upgrade that server, or "
            "{way_out}",
            shown=shown,
            theirs=theirs,
            ours=prefect.__version__,
            way_out=way_out,
        )


def _version(api: str, chosen: "Settings", patience_s: float) -> str:
    """What the server says, asked as Prefect's own client would: who we are, and whom we trust."""
    headers = dict(chosen.client.custom_headers)
    if user := chosen.api.auth_string:
        headers["Authorization"] = f"Basic {b64encode(user.get_secret_value().encode()).decode()}"
    elif key := chosen.api.key:
        headers["Authorization"] = f"Bearer {key.get_secret_value()}"
    trusted: bool | ssl.SSLContext = api.startswith("https://") and not chosen.api.tls_insecure_skip_verify
    if trusted and chosen.api.ssl_cert_file:
        trusted = ssl.create_default_context(cafile=chosen.api.ssl_cert_file)
    address = f"{api.rstrip('/')}/admin/version"
    reply = httpx.get(address, headers=headers, timeout=patience_s, verify=trusted, follow_redirects=True)
    return str(reply.raise_for_status().json())
