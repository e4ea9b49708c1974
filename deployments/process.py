"""Run the process of Prefect's server: `python -m yarus.deployments.process SOCKET [ADDRESS]`, both open files.

With ADDRESS it is the server of a home, and ends when no command has used it for a while. Without it, the server ends
with the command that started it, whose pipe is its input.
"""

import asyncio
import fcntl
import gc
import os
import signal
import socket
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import IO

from yarus.db.embedded import server as postgresql
from yarus.db.errors import DatabaseUnavailable
from yarus.deployments.prefect import home_server
from yarus.deployments.prefect.server_process import (
    STOP_S,
    copy_template,
    database_file,
    keep_template,
    migration_settings,
    record_migrations,
)

POLL_S = 0.1
CHECK_S = 0.5
"""Seconds between checks whether the server of a home is used."""
RECORD_S = 10.0
"""Longest wait at the end for received events to be stored in the database."""


def main() -> None:
    """Serve on an inherited bound socket, until the server is stopped or no longer needed."""
    address = int(sys.argv[2]) if len(sys.argv) > 2 else None
    if address is not None:
        os.dup(int(sys.argv[1]))  # open to the end: waiting clients are refused only when this process is gone
    started = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # by default Python would end without stopping PostgreSQL
    watch, arguments = (_end_with_the_command, ()) if address is None else (_end_when_unused, (address, started))
    threading.Thread(target=watch, args=arguments, daemon=True).start()  # first, because the rest takes seconds
    gc.disable()  # nothing that is imported can be collected
    database = os.environ.get(home_server.DATABASE, "")
    with _open_lock() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        copy_template(database)
        os.environ |= migration_settings(database)
    import uvicorn

    class OneByOne(uvicorn.Server):
        """Server that starts while no other starts on its database: with two, Prefect lets one fail.

        The lock is freed when it has started, or died.
        """

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            with _open_lock() as lock:
                while not _try_lock(lock):
                    if self.should_exit:
                        sys.exit(1)
                    await asyncio.sleep(POLL_S)
                await super().startup(sockets)
            record_migrations(database)
            keep_template(database)
            gc.freeze()
            gc.enable()
            started.set()

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            if address is not None:
                home_server.hide_server(_home_path(), address)
            super().handle_exit(sig, frame)

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            await _wait_until_recorded()
            await super().shutdown(sockets)

    listener = socket.socket(fileno=int(sys.argv[1]))
    application = "yarus.deployments.server_app:create_app"
    config = uvicorn.Config(application, factory=True, log_level="warning", timeout_keep_alive=60, lifespan="on")
    server = OneByOne(config)
    server.run(sockets=[listener])
    sys.exit(not server.started)


def _home_path() -> Path:
    return Path(os.environ["YARUS_HOME"])


def _open_lock() -> IO[bytes]:
    """Open a lock file beside Prefect's SQLite database; a temporary one for databases in memory or on a server."""
    path = database_file(os.environ.get(home_server.DATABASE, ""))
    if path is None:
        return tempfile.TemporaryFile()
    return os.fdopen(os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+b")


def _try_lock(lock: IO[bytes]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


async def _wait_until_recorded() -> None:
    """Wait until Prefect has stored the events that it keeps in memory, which would be lost with the process."""
    from prefect.server.utilities.messaging.memory import Topic

    deadline = time.monotonic() + RECORD_S
    while time.monotonic() < deadline and any(  # noqa: ASYNC110 - Prefect's queues have no event
        not subscription._queue.empty() for topic in Topic._topics.values() for subscription in topic._subscriptions
    ):
        await asyncio.sleep(POLL_S)


def _end_with_the_command() -> None:
    """End the server when the command is gone, even by `kill -9`: then the pipe to our input closes."""
    while os.read(0, 1):  # Python's own reader would delay the end of the process
        pass
    _end_process()


def _end_when_unused(address: int, started: threading.Event) -> None:
    """End the server when no command of its home has used it for a while, or the home is gone.

    As long as it runs, the home's PostgreSQL does too, so that later commands wait for neither.
    """
    home, idle_s, unused_since = _home_path(), None, time.monotonic()
    with suppress(OSError), home_server.hold_unused(home):  # the starting command announces this server first
        pass
    while True:
        if idle_s is None and started.is_set():
            idle_s = _read_idle_s()
        try:
            if home_server.is_in_use(home):
                unused_since = time.monotonic()
            patience_s = (idle_s or 0) if home_server.is_announced(home, address) else 0
            if time.monotonic() - unused_since >= patience_s:
                with home_server.hold_unused(home) as nobody:
                    if nobody:
                        home_server.hide_server(home, address)
                        break
        except OSError:  # the home was removed
            break
        time.sleep(CHECK_S)
    with suppress(OSError, DatabaseUnavailable):  # the next command finds and reports the error
        postgresql.stop_server(home)  # left by a command that was killed before this process took it over
    _end_process()


def _read_idle_s() -> float:
    """Return how long to stay, from the settings; from now on the home's PostgreSQL stays too."""
    from yarus.db.errors import InputError
    from yarus.tasks.config.settings import Settings, get_settings

    try:
        settings = get_settings()
    except InputError:
        return float(Settings.model_fields["server_idle_timeout_s"].default)
    if settings.database_url is None:
        with suppress(DatabaseUnavailable):
            postgresql.acquire_server(settings.home)
    return settings.server_idle_timeout_s


def _end_process() -> None:
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(STOP_S)
    os.kill(os.getpid(), signal.SIGKILL)  # a browser holds a connection open


if __name__ == "__main__":
    main()
