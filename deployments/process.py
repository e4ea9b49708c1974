"""The process of Prefect's server: `python -m yarus.deployments.process SOCKET [ADDRESS]`, both open files.

With ADDRESS it is the server of a home, and ends when no command has used it for a while; without, it ends with the
command that started it, whose pipe is its input.
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
    as_made,
    copy_template,
    file_of,
    keep_template,
    remember_made,
)

POLL_S = 0.1
LOOK_S = 0.5
"""How often the server of a home looks whether it is used."""
RECORDED_S = 10.0
"""Longest wait, before it ends, until what it was told of is in its database."""


def main() -> None:
    """Serves on a bound socket that was inherited, until it is stopped or of no more use."""
    address = int(sys.argv[2]) if len(sys.argv) > 2 else None
    if address is not None:
        os.dup(int(sys.argv[1]))  # open to the end: who waits for an answer is sent away when we are gone, not before
    started = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # of itself Python would end without a word to PostgreSQL
    watch, told = (_end_with_the_command, ()) if address is None else (_end_when_unused, (address, started))
    threading.Thread(target=watch, args=told, daemon=True).start()  # first: what follows takes seconds
    gc.disable()  # of what is imported nothing can be collected
    database = os.environ.get(home_server.DATABASE, "")
    with _lock() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        copy_template(database)
        os.environ |= as_made(database)
    import uvicorn

    class OneByOne(uvicorn.Server):
        """Starts while no other starts on its database: of two that make or upgrade it at once, Prefect lets one fail.

        The lock is freed when it has started, or died.
        """

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            with _lock() as lock:
                while not _taken(lock):
                    if self.should_exit:
                        sys.exit(1)
                    await asyncio.sleep(POLL_S)
                await super().startup(sockets)
            remember_made(database)
            keep_template(database)
            gc.freeze()
            gc.enable()
            started.set()

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            if address is not None:
                home_server.withdraw(_home(), address)
            super().handle_exit(sig, frame)

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            await _recorded()
            await super().shutdown(sockets)

    listener = socket.socket(fileno=int(sys.argv[1]))
    application = "yarus.deployments.server_app:create_app"
    config = uvicorn.Config(application, factory=True, log_level="warning", timeout_keep_alive=60, lifespan="on")
    server = OneByOne(config)
    server.run(sockets=[listener])
    sys.exit(not server.started)


def _home() -> Path:
    return Path(os.environ["YARUS_HOME"])


def _lock() -> IO[bytes]:
    """A file beside Prefect's SQLite database, opened; one of nobody else's where that is in memory or on a server."""
    path = file_of(os.environ.get(home_server.DATABASE, ""))
    if path is None:
        return tempfile.TemporaryFile()
    return os.fdopen(os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+b")


def _taken(lock: IO[bytes]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


async def _recorded() -> None:
    """Waits until Prefect has taken in the events that it keeps in memory, which end with the process otherwise."""
    from prefect.server.utilities.messaging.memory import Topic

    deadline = time.monotonic() + RECORDED_S
    while time.monotonic() < deadline and any(  # noqa: ASYNC110 - Prefect's queues tell nobody
        not subscription._queue.empty() for topic in Topic._topics.values() for subscription in topic._subscriptions
    ):
        await asyncio.sleep(POLL_S)


def _end_with_the_command() -> None:
    """Ends the server when the command is gone, even by `kill -9`: its end of the pipe to our input closes then."""
    while os.read(0, 1):  # Python's own reader would hold up the end of the process
        pass
    _end()


def _end_when_unused(address: int, started: threading.Event) -> None:
    """Ends the server when no command of its home has used it for a while, or the home is gone.

    As long as it lives, the home's PostgreSQL does: what comes next waits for neither.
    """
    home, idle_s, unused_since = _home(), None, time.monotonic()
    with suppress(OSError), home_server.unused(home):  # who starts us announces us first
        pass
    while True:
        if idle_s is None and started.is_set():
            idle_s = _idle_s()
        try:
            if home_server.in_use(home):
                unused_since = time.monotonic()
            patience_s = (idle_s or 0) if home_server.is_announced(home, address) else 0
            if time.monotonic() - unused_since >= patience_s:
                with home_server.unused(home) as nobody:
                    if nobody:
                        home_server.withdraw(home, address)
                        break
        except OSError:  # the home was removed
            break
        time.sleep(LOOK_S)
    with suppress(OSError, DatabaseUnavailable):  # the next command meets what is wrong there, and says it
        postgresql.stop(home)  # of a command that was killed before we held it for the next
    _end()


def _idle_s() -> float:
    """How long to stay, by the settings; from now on PostgreSQL stays, too, where it is the home's."""
    from yarus.db.errors import InputError
    from yarus.tasks.config.settings import Settings, settings

    try:
        found = settings()
    except InputError:
        return float(Settings.model_fields["server_idle_s"].default)
    if found.database_url is None:
        with suppress(DatabaseUnavailable):
            postgresql.running(found.home)
    return found.server_idle_s


def _end() -> None:
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(STOP_S)
    os.kill(os.getpid(), signal.SIGKILL)  # a browser holds a connection open


if __name__ == "__main__":
    main()
