"""A home for one benchmark."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Engine

from db.embedded import server as embedded
from db.engine import own


@contextmanager
def temporary_home() -> Iterator[tuple[Path, Engine]]:
    """A folder that is gone afterwards, and the engine of our tables in its database, which runs meanwhile."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        embedded.running(home)
        try:
            engine = own(home, None)
            yield home, engine
            engine.dispose()
        finally:
            embedded.release(home)
