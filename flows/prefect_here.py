"""Prefect within a command: where its database is, and its server."""

import os
import signal

from tasks.settings import settings


def prepare_prefect() -> None:
    """Keeps Prefect's own database at home, and its words off the screen: what matters is said by us."""
    folder = settings().home.absolute() / "prefect"
    folder.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("PREFECT_API_DATABASE_CONNECTION_URL", f"sqlite+aiosqlite:///{folder}/prefect.db")
    os.environ.setdefault("PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS", "180")  # 20 is short on a busy machine
    os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "CRITICAL")
    os.environ.setdefault("PREFECT_SERVER_LOGGING_LEVEL", "CRITICAL")


def start_server() -> None:
    """Starts the server that Prefect would start by itself, where PREFECT_API_URL names none, to outlive Ctrl-C.

    A terminal sends Ctrl-C to every process of a command, but the server has to hear how the run ended.
    """
    from prefect.server.api.server import SubprocessASGIServer
    from prefect.settings import PREFECT_API_URL, PREFECT_SERVER_ALLOW_EPHEMERAL_MODE

    if PREFECT_API_URL.value() or not PREFECT_SERVER_ALLOW_EPHEMERAL_MODE.value():
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # which what is started inherits
    try:
        SubprocessASGIServer().start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
