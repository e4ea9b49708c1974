"""Prefect's server, mended in one place.

With SQLite it begins transactions without a lock and asks for one when it comes to write. If another has written since,
SQLite refuses at once, whatever the time-out: "database is locked". Asking at the beginning, it waits its turn.
"""

from fastapi import FastAPI
from prefect.server.api import server
from prefect.server.database.configurations import SQLITE_BEGIN_MODE, AioSqliteConfiguration
from sqlalchemy import Connection


def create_app() -> FastAPI:
    """The application, for uvicorn."""
    AioSqliteConfiguration.begin_sqlite_stmt = _begin  # type: ignore[method-assign,assignment]
    return server.create_app(final=True)


def _begin(configuration: AioSqliteConfiguration, connection: Connection) -> None:
    if SQLITE_BEGIN_MODE.get() is not None:  # None: single statements, which need no transaction
        connection.exec_driver_sql("BEGIN IMMEDIATE")
