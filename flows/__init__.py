"""Flows, one file per tier, and the command line."""

from pkgutil import resolve_name
from typing import Any


def flow_of(name: str) -> Any:
    """Return the flow of that name: each is in a file of its own, as `yarus.flows.NAME:NAME`."""
    return resolve_name(f"yarus.flows.{name}:{name}")
