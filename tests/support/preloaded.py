"""Imports of all commands, done once: see `tests.support.forked`. Imported by full name."""

import gc
import importlib
import logging
import pkgutil

from prefect.logging.configuration import PROCESS_LOGGING_CONFIG

from yarus import db, flows, metrics, tasks
from yarus.tasks.config.texts.messages import message_catalogue

LIBRARIES = (
    "aiohttp",
    "alembic.command",
    "fastapi",
    "httpx",
    "jinja2",
    "lxml.html",
    "openpyxl",
    "pandas",
    "pgvector.psycopg",
    "plotly.offline",
    "prefect.flow_engine",
    "prefect.server.events",
    "prefect.task_engine",
    "prefect.utilities.visualization",
    "pyarrow.dataset",
    "rapidfuzz.process",
    "rich.markup",
    "rich.status",
    "rich.table",
    "scipy.linalg",
    "scipy.stats",
    "sklearn.cluster",
    "sklearn.decomposition",
    "sklearn.feature_extraction.text",
    "sqlalchemy.dialects.postgresql.psycopg",
)
for _package in (flows, tasks, metrics, db):
    for _module in pkgutil.walk_packages(_package.__path__, f"{_package.__name__}."):
        if not _module.name.startswith(("yarus.db.migrations", "yarus.flows.cli.demo_llm")):
            importlib.import_module(_module.name)
for _name in LIBRARIES:
    importlib.import_module(_name)
message_catalogue("ru")
# Prefect sets up logs on import; a command does it later, when its variables are known.
for _logger in (logging.root, *logging.root.manager.loggerDict.values()):
    if isinstance(_logger, logging.Logger):
        _logger.handlers.clear()
PROCESS_LOGGING_CONFIG.clear()
gc.freeze()
