"""What was found of a corpus and kept, for whoever reads it."""

from typing import Any

from sqlalchemy import Engine

from yarus.db import analyses


def stored(engine: Engine, source: str) -> dict[str, Any] | None:
    """What was last kept of a source, with `corpus_id` and `described_at`; None where nothing was."""
    kept = [row for row in analyses.listing(engine, "corpus", source=source, limit=5) if row["document"]]
    if not kept:
        return None
    row = kept[0]
    return dict(row["document"]) | {"corpus_id": row["id"], "described_at": row["started_at"].isoformat()}
