"""The process of Prefect's server: `python -m deployments.process SOCKET`, with the pipe of its command as input."""

import os
import signal
import socket
import sys
import threading
import time

from tasks.local_server import STOP_S


def main() -> None:
    """Serves on a bound socket that was inherited, until it is stopped or the command that started it is gone."""
    threading.Thread(target=_end_with_the_command, daemon=True).start()  # first: what follows takes seconds
    import uvicorn

    listener = socket.socket(fileno=int(sys.argv[1]))
    application = "deployments.application:create_app"
    config = uvicorn.Config(application, factory=True, log_level="warning", timeout_keep_alive=60, lifespan="on")
    server = uvicorn.Server(config)
    server.run(sockets=[listener])
    sys.exit(not server.started)


def _end_with_the_command() -> None:
    """Ends the server when the command is gone, even by `kill -9`: its end of the pipe to our input closes then."""
    while os.read(0, 1):  # Python's own reader would hold up the end of the process
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(STOP_S)
    os.kill(os.getpid(), signal.SIGKILL)  # a browser holds a connection open


if __name__ == "__main__":
    main()
