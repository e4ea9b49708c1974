"""A real `yarus serve` in a home of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from tests.support.prefect_servers import ServeProcess
from yarus.db.engine import open_own_database


@pytest.fixture(scope="module")
def journal_of(own_home: Path) -> Iterator[Engine]:
    """Return the engine of that home's own tables."""
    engine = open_own_database(own_home, None)
    yield engine
    engine.dispose()


@pytest.fixture(scope="module")
def starting(own_home: Path) -> Iterator[ServeProcess]:
    """Start the server, which may not be ready yet."""
    serve = ServeProcess(own_home, PYTHONPATH=str(own_home))  # folder of systems that tests add
    try:
        yield serve
    finally:
        if serve.process.poll() is None:
            serve.stop()
        serve.close()


@pytest.fixture(scope="module")
def served(starting: ServeProcess) -> ServeProcess:
    starting.first_words = "".join(starting.said("Ctrl-C"))
    return starting
