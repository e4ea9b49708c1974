"""Prefect's server behind our guard, mended in two places; for automations see there.

With SQLite it begins transactions without a lock and asks for one when it comes to write. If another has written since,
SQLite refuses at once, whatever the time-out: "database is locked". Asking at the beginning, it waits its turn.
"""

from prefect.server.api import server
from prefect.server.database.configurations import SQLITE_BEGIN_MODE, AioSqliteConfiguration
from prefect.settings import get_current_settings
from sqlalchemy import Connection

from yarus.deployments import automations
from yarus.deployments.guard import Guard
from yarus.tasks.config.settings import settings


def create_app() -> Guard:
    """The application, for uvicorn."""
    AioSqliteConfiguration.begin_sqlite_stmt = _begin  # type: ignore[method-assign,assignment]
    automations.bound()
    chosen = get_current_settings().server.api
    password = chosen.auth_string.get_secret_value() if chosen.auth_string else None
    return Guard(server.create_app(final=True), chosen.host, settings().serve_names, password)


def _begin(configuration: AioSqliteConfiguration, connection: Connection) -> None:
    if SQLITE_BEGIN_MODE.get() is not None:  # None: single statements, which need no transaction
        connection.exec_driver_sql("BEGIN IMMEDIATE")
