"""Prefect's server, which ends with the command that started it, mended in two places; for webhooks see there.

With SQLite it begins transactions without a lock and asks for one when it comes to write. If another has written since,
SQLite refuses at once, whatever the time-out: "database is locked". Asking at the beginning, it waits its turn.
"""

import os
import signal
import sys
import threading
import time

from fastapi import FastAPI
from prefect.server.api import server
from prefect.server.database.configurations import SQLITE_BEGIN_MODE, AioSqliteConfiguration
from sqlalchemy import Connection

from deployments import webhooks
from deployments.server import STOP_S


def create_app() -> FastAPI:
    """The application, for uvicorn."""
    AioSqliteConfiguration.begin_sqlite_stmt = _begin  # type: ignore[method-assign,assignment]
    webhooks.bound()
    threading.Thread(target=_end_with_the_command, daemon=True).start()
    return server.create_app(final=True)


def _end_with_the_command() -> None:
    """Ends the server when the command is gone, even by `kill -9`: its end of the pipe to our input closes then."""
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(STOP_S)
    os.kill(os.getpid(), signal.SIGKILL)  # a browser holds a connection open


def _begin(configuration: AioSqliteConfiguration, connection: Connection) -> None:
    if SQLITE_BEGIN_MODE.get() is not None:  # None: single statements, which need no transaction
        connection.exec_driver_sql("BEGIN IMMEDIATE")
