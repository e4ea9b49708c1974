"""Run Prefect's server behind the guard, with fixes for SQLite and webhooks (see `automations`).

With SQLite, Prefect begins transactions without a lock and requests one at the first write. If another connection has
written since, SQLite refuses at once, whatever the time-out: "database is locked". A lock requested at the beginning
waits its turn.
"""

from prefect.server.api import server
from prefect.server.database.configurations import SQLITE_BEGIN_MODE, AioSqliteConfiguration
from prefect.settings import get_current_settings
from sqlalchemy import Connection

from yarus.deployments import automations
from yarus.deployments.request_guard import AccessMiddleware
from yarus.tasks.config.settings import get_settings


def create_app() -> AccessMiddleware:
    """Return the application for uvicorn."""
    AioSqliteConfiguration.begin_sqlite_stmt = _begin  # type: ignore[method-assign,assignment]
    automations.limit_webhooks()
    api_settings = get_current_settings().server.api
    password = api_settings.auth_string.get_secret_value() if api_settings.auth_string else None
    return AccessMiddleware(
        server.create_app(final=True), api_settings.host, get_settings().serve_allowed_hosts, password
    )


def _begin(configuration: AioSqliteConfiguration, connection: Connection) -> None:
    if SQLITE_BEGIN_MODE.get() is not None:  # None: single statements, which need no transaction
        connection.exec_driver_sql("BEGIN IMMEDIATE")
