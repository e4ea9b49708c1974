"""One real `yarus serve` from nothing, with a home of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from tests.support.prefect_servers import Serve
from yarus.db.engine import own


@pytest.fixture(scope="module")
def journal_of(own_home: Path) -> Iterator[Engine]:
    """The engine of that home's own tables."""
    engine = own(own_home, None)
    yield engine
    engine.dispose()


@pytest.fixture(scope="module")
def starting(own_home: Path) -> Iterator[Serve]:
    """It, which may not be ready yet."""
    serve = Serve(own_home, PYTHONPATH=str(own_home))  # where a test puts a system of its own
    try:
        yield serve
    finally:
        if serve.process.poll() is None:
            serve.stop()
        serve.close()


@pytest.fixture(scope="module")
def served(starting: Serve) -> Serve:
    starting.first_words = "".join(starting.said("Ctrl-C"))
    return starting
