"""Prefect's server, mended in two places.

Its 3.8 and SQLAlchemy 2.1 do not go together, and without this no schedule ever fires: the scheduler inserts runs with
values for hybrid properties, which SQLAlchemy 2.0 passed over and 2.1 refuses ("Can't evaluate bulk DML statement").
They are computed from other columns, so passing over them is right.

With SQLite it begins transactions without a lock and asks for one when it comes to write. If another has written since,
SQLite refuses at once, whatever the time-out: "database is locked". Asking at the beginning, it waits its turn.
"""

from collections.abc import Callable, MutableMapping
from typing import Any

from fastapi import FastAPI
from prefect.server.api import server
from prefect.server.database.configurations import SQLITE_BEGIN_MODE, AioSqliteConfiguration
from prefect.server.database.orm_models import FlowRun, TaskRun
from sqlalchemy import Connection
from sqlalchemy.ext.hybrid import hybrid_property


def create_app() -> FastAPI:
    """The application, for uvicorn."""
    for model in (FlowRun, TaskRun):
        for name, described in model.__mapper__.all_orm_descriptors.items():
            if isinstance(described, hybrid_property) and getattr(described, "bulk_dml_setter", name) is None:
                described.bulk_dml_setter = _left_out(name)  # type: ignore[assignment]
    AioSqliteConfiguration.begin_sqlite_stmt = _begin  # type: ignore[method-assign,assignment]
    return server.create_app(final=True)


def _left_out(name: str) -> Callable[[type, MutableMapping[str, Any], Any], None]:
    def leave_out(model: type, values: MutableMapping[str, Any], value: Any) -> None:
        values.pop(name, None)

    return leave_out


def _begin(configuration: AioSqliteConfiguration, connection: Connection) -> None:
    if SQLITE_BEGIN_MODE.get() is not None:  # None: single statements, which need no transaction
        connection.exec_driver_sql("BEGIN IMMEDIATE")
