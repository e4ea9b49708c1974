"""Sweeps and probes that were stored, for whoever reads them."""

from typing import Any

from sqlalchemy import Engine

from yarus.db import analyses


def sweeps(engine: Engine, *, source: str | None = None, limit: int | None = None) -> list[dict[str, Any]]:
    """The stored sweeps, newest first, as `yarus sweep --json` printed them."""
    rows = analyses.listing(engine, "sweep", source=source, limit=limit)
    return [stored(row) for row in rows]


def stored(row: Any) -> dict[str, Any]:
    """A stored sweep as `yarus sweep --json` prints it."""
    told = {"sweep_id": row["id"], "state": row["state"], "started_at": row["started_at"].isoformat()}
    nothing: dict[str, Any] = {"source": row["source"], "metrics": [], "arms": [], "pairs": [], "judges": []}
    return nothing | dict(row["document"] or {}) | told


def probes(engine: Engine, *, source: str | None = None, limit: int | None = None) -> list[dict[str, Any]]:
    """The stored probes, newest first."""
    rows = analyses.listing(engine, "robustness", source=source, limit=limit)
    return [dict(row["document"] or {}) | {"robustness_id": row["id"], "state": row["state"]} for row in rows]
