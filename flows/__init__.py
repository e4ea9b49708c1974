"""Flows, one file per tier, and the command line."""

import os
from pkgutil import resolve_name
from typing import Any

if __name__ == "flows":
    raise ImportError("`flows` is now `yarus.flows`; use `from yarus.flows import …`")

# Set before Prefect is imported, because it reads its settings once. The user's own settings stay.
for _name, _value in {
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "180",  # for a flow that is awaited without `start_prefect`
    "PREFECT_LOGGING_EXTRA_LOGGERS": "yarus",
    "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "30",  # s; deployments/automations.yaml waits for it
    "PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW": "ignore",
}.items():
    os.environ.setdefault(_name, _value)


def get_flow(name: str) -> Any:
    """Return the flow of that name from its file, `yarus.flows.NAME:NAME`."""
    return resolve_name(f"yarus.flows.{name}:{name}")
