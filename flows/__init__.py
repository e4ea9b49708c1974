"""Flows, one file a tier, and the command line."""

import os
from pkgutil import resolve_name
from typing import Any

# Before Prefect is imported anywhere: it reads its settings once. What the user has set stays.
for _name, _value in {
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_LOGGING_EXTRA_LOGGERS": "yarus",
    "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "30",  # s; deployments/automations.yaml waits for it
    "PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW": "ignore",
}.items():
    os.environ.setdefault(_name, _value)


def flow_of(name: str) -> Any:
    """The flow of that name: each stands in a file of its own, as `flows.NAME:NAME`."""
    return resolve_name(f"flows.{name}:{name}")
