"""The process of Prefect's server: `python -m deployments.process SOCKET`, with the pipe of its command as input."""

import asyncio
import fcntl
import os
import signal
import socket
import sys
import threading
import time

from tasks.orchestration.server_process import STOP_S, file_of

POLL_S = 0.1


def main() -> None:
    """Serves on a bound socket that was inherited, until it is stopped or the command that started it is gone."""
    threading.Thread(target=_end_with_the_command, daemon=True).start()  # first: what follows takes seconds
    import uvicorn

    class OneByOne(uvicorn.Server):
        """Starts while no other starts on its database: of two that make or upgrade it at once, Prefect lets one fail.

        The lock is freed when it has started, or died.
        """

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            lock = _lock()
            try:
                while lock is not None and not _taken(lock):
                    if self.should_exit:
                        sys.exit(1)
                    await asyncio.sleep(POLL_S)
                await super().startup(sockets)
            finally:
                if lock is not None:
                    os.close(lock)

    listener = socket.socket(fileno=int(sys.argv[1]))
    application = "deployments.server_app:create_app"
    config = uvicorn.Config(application, factory=True, log_level="warning", timeout_keep_alive=60, lifespan="on")
    server = OneByOne(config)
    server.run(sockets=[listener])
    sys.exit(not server.started)


def _lock() -> int | None:
    """A file beside Prefect's SQLite database, opened; None where that is in memory or on a server."""
    path = file_of(os.environ.get("PREFECT_API_DATABASE_CONNECTION_URL", ""))
    if path is None or path.name == ":memory:":
        return None
    return os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _taken(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _end_with_the_command() -> None:
    """Ends the server when the command is gone, even by `kill -9`: its end of the pipe to our input closes then."""
    while os.read(0, 1):  # Python's own reader would hold up the end of the process
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(STOP_S)
    os.kill(os.getpid(), signal.SIGKILL)  # a browser holds a connection open


if __name__ == "__main__":
    main()
